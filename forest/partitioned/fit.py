"""The forest of a table in partitions, which is the forest of the whole table."""

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state

from cart.estimators.category_encoder import encode_categories
from cart.growth.plan import make_plan
from cart.primitives.mersenne_twister import first_draws
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.precision import precision_of
from forest.estimators.growth import empty_tree
from forest.estimators.parameters import refuse_contradictions
from forest.growing.progress import ProgressReporter
from forest.partitioned.engines import Engine
from forest.partitioned.growth import DEFAULT_SIZE, PartitionedTable, Size, grow_together
from forest.partitioned.histograms import ClassTargets, NumberTargets
from forest.partitioned.open_rows import begin
from forest.partitioned.out_of_bag import Judged, judge
from forest.partitioned.table.in_bag import counts_of_part
from forest.partitioned.table.partitions import (
    Kind,
    examine,
    join_covers,
    join_looks,
    look_of,
    sorted_of,
    target_of,
    values_of,
)
from forest.partitioned.table.quantiles import find_bins, find_codes
from forest.partitioned.table.sources import empty_on_disk
from forest.partitioned.table.targets import in_steps, step_of
from forest.sampling.plan import plan_bootstrap

# Bytes of the in-bag rows of the trees that are grown together, of each worker.
_OPEN_BYTES = 1 << 30
_BYTES_PER_ROW = 5  # number and weight
_CRITERIA = ("gini", "entropy", "log_loss", "squared_error")
_MOST_CLASSES = 1 << 16


def fit_together(
    forest: BaseEstimator, engine: Engine, X_parts: Any, y_parts: Any, n_parts: int,
    size: Size = DEFAULT_SIZE, folder: str | None = None,
) -> BaseEstimator:  # fmt: skip
    """Fit a forest on the partitions of a table, together.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Unfitted; with max_bins and feature_draw="keyed". It is left as it is.
    engine : Engine
    X_parts, y_parts : handles
        Of the partitions of X and y, in the order of the rows.
    n_parts : int
    size : Size, optional
    folder : str, optional
        Where codes are kept, in files; in memory unless given.

    Returns
    -------
    estimator
        A fitted clone of `forest`.

    Raises
    ------
    ValueError
        If the forest asks for what partitions cannot do, or these do not fit each other.
    """
    model = clone(forest)
    refuse_impossible(model)
    kind = Kind(precision_of(model), is_classifier(model), model.categorical_features)
    look, bins = _look_for_bins(model, engine, X_parts, y_parts, n_parts, kind)
    starts = _describe(model, look)
    kind, bins, n_categories = _learn_categories(model, look, kind, bins)
    table = bins.table()
    dtype = np.min_scalar_type(int(np.diff(table.level_start).max()))
    codes = engine.map(_code, X_parts, each=range(n_parts), common=(kind, bins, dtype, folder))
    if not model.oob_score:
        del X_parts  # workers need not keep X in memory
    target = model._encode_target(look.labels if kind.has_classes else np.zeros(1))
    n_rows = starts[-1]
    bootstrap = plan_bootstrap(model, np.broadcast_to(0.0, (n_rows, 1)), None, None, None)
    total_weight = bootstrap.n_draws or n_rows
    step = None if kind.has_classes else step_of(look.largest, total_weight)
    labels = look.labels if kind.has_classes else step
    targets = engine.map(_encode, y_parts, each=_spans(starts), common=(kind, labels))
    n_bytes = n_rows * (len(bins.levels) * dtype.itemsize + (2 if kind.has_classes else 8))
    is_held = n_bytes <= size.held_bytes or engine.n_processes == 1
    held = engine.hold(codes, targets) if is_held else None
    data = PartitionedTable(engine, codes, targets, table, step, n_categories, held)
    model._bootstrap, model._row_weight = bootstrap, None
    model._n_samples = n_rows
    model.estimators_ = _grow(model, data, bootstrap, starts, total_weight, target, size)
    if model.oob_score:
        common = engine.share(model), kind
        judged = engine.map(judge, X_parts, y_parts, each=_spans(starts), common=common)
        model.oob_score_ = engine.reduce(_itself, Judged.join, judged).score(kind.has_classes)
    return model


def _look_for_bins(model, engine, X_parts, y_parts, n_parts, kind):
    """What is known of the table, and its bins, from one reading."""
    examined = engine.map(examine, X_parts, y_parts, each=range(n_parts), common=(kind,))
    look = engine.reduce(look_of, join_looks, examined)
    _describe(model, look)  # which may refuse it
    sorted_parts = engine.map(sorted_of, examined)
    return look, find_bins(engine, sorted_parts, model.max_bins, kind.precision)


def _learn_categories(model, look, kind, bins):
    """Let the forest know the categories of the whole table: a code each, and no bins.

    Returns the Kind and the Bins then, and how many each column has; None where there are none.
    """
    if kind.categorical_features is None:
        return kind, bins, None
    encode_categories(model, join_covers(look.cover), reset=True)
    kind = kind._replace(encoder=model._category_encoder)
    n_categories = model._category_encoder.n_categories
    if not n_categories.any():
        return kind, bins, None
    if len(look.labels if kind.has_classes else ()) > 2 and model.min_samples_leaf != 1:
        raise ValueError(
            "Forests of partitions with categories and more than two classes cannot have "
            "min_samples_leaf yet; leave it out."
        )
    return kind, bins.with_categories(n_categories), n_categories


def refuse_impossible(forest: BaseEstimator) -> None:
    """Refuse a forest that cannot be grown on partitions together, before any work.

    Raises
    ------
    ValueError
    """
    forest._validate_params()
    if "max_bins" not in forest.get_params():
        raise ValueError(
            f"{type(forest).__name__} draws thresholds between values, which partitions do not "
            "keep; use a random forest."
        )
    if forest.max_bins is None or forest.feature_draw != "keyed":
        raise ValueError(
            'Partitions keep bins, and draw by name: set max_bins=255 and feature_draw="keyed".'
        )
    class_weight = getattr(forest, "class_weight", None)
    refused = {
        'n_estimators="auto"': forest.n_estimators == "auto",
        f"criterion={forest.criterion!r}": forest.criterion not in _CRITERIA,
        "priors": getattr(forest, "priors", None) is not None,
        "loss": getattr(forest, "loss", None) is not None,
        f"missing={forest.missing!r}": forest.missing not in ("learned", "refuse"),
        "surrogates": forest.surrogates != 0,
        "competitors": forest.competitors > 0,
        "max_leaf_nodes": forest.max_leaf_nodes is not None,
        "monotonic_cst": forest.monotonic_cst is not None,
        f"class_weight={class_weight!r}": class_weight is not None,
        f"voting={forest.voting!r}": forest.voting not in ("soft", "majority"),
        "a function as oob_score": callable(forest.oob_score),
        "warm_start": forest.warm_start,
        "replace=False": not forest.replace,
        "stratify": forest.stratify,
    }
    for name, is_wanted in refused.items():
        if is_wanted:
            raise ValueError(f"Forests of partitions cannot have {name} yet; leave it out.")
    refuse_contradictions(forest, 0)


def _describe(model, look):
    """Let the forest know what its table is like; return where partitions start, and the end."""
    n_rows = [n for _, n in sorted(look.n_rows)]
    starts = np.cumsum([0, *n_rows])
    if starts[-1] == 0:
        raise ValueError("The partitions have no rows.")
    if look.n_features == 0:
        raise ValueError("The partitions have no columns.")
    if look.labels is not None and len(look.labels) > _MOST_CLASSES:
        raise ValueError(f"y has {len(look.labels):,} classes; at most {_MOST_CLASSES:,} can be.")
    model.n_features_in_ = look.n_features
    if look.names is not None:
        model.feature_names_in_ = np.array(look.names, dtype=object)
    model.n_merged_values_ = np.zeros(look.n_features, np.int64)
    return starts.tolist()


def _spans(starts):
    """Number, first row and end of every partition."""
    return [(number, *span) for number, span in enumerate(pairwise(starts))]


def _itself(answer):
    return answer


def _code(X, number, kind, bins, dtype, folder):
    X = values_of(X, number, kind)[0]
    shape = X.shape[::-1]
    return find_codes(
        X, bins, np.empty(shape, dtype) if folder is None else empty_on_disk(shape, dtype, folder)
    )


def _encode(y, span, kind, labels_or_step):
    number, first, end = span
    y = target_of(y, end - first, number, kind)
    if kind.has_classes:
        return ClassTargets(np.searchsorted(labels_or_step, y).astype(np.uint16))
    return NumberTargets(in_steps(y, labels_or_step))


def _begin(codes, span, bootstrap, trees):
    """The open rows of a partition: those in bag for some trees."""
    _, first, end = span
    return begin((counts_of_part(bootstrap, tree, first, end) for tree in trees), first)


def _grow(model, data, bootstrap, starts, total_weight, target, size):
    """The trees, as estimators; as many are grown together as memory allows, after which the
    callback hears of them, and may end growth."""
    plan = make_plan(
        model, model._criteria[model.criterion], "best", starts[-1], model.n_features_in_, 1,
        target.n_values,
    )  # fmt: skip
    random_state = check_random_state(model.random_state)
    seeds = random_state.randint(DRAW_SEED_MAX, size=model.n_estimators).tolist()
    bootstrap = bootstrap.of_trees(seeds)
    draw_seeds = first_draws(seeds, DRAW_SEED_MAX)
    rows = max(1, min(starts[-1], total_weight) // data.engine.n_processes)
    n_at_once = max(1, _OPEN_BYTES // (_BYTES_PER_ROW * rows))
    example = empty_tree(model, target)
    example.max_features_ = plan.limits.max_features
    grown: list = []
    with ProgressReporter(len(seeds), "tree", model.verbose, model.callback) as reporter:
        for first in range(0, len(seeds), n_at_once):
            some = range(first, min(first + n_at_once, len(seeds)))
            opened = data.engine.map(
                _begin, data.codes, each=_spans(starts), common=(bootstrap, some)
            )
            grown += grow_together(
                data, opened, plan, draw_seeds[some.start : some.stop], total_weight, size
            )
            for _ in some:
                if not reporter.is_stopped:
                    reporter.step()
            if reporter.is_stopped:
                break
    return [example.holding(tree, seed) for tree, seed in zip(grown, seeds, strict=False)]
