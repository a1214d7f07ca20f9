"""Fit a forest on a table in partitions; it is the forest of the whole table."""

from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state

from cart.estimators.category_encoder import encode_categories
from cart.estimators.target import warn_of_small_target
from cart.estimators.validation import as_of_now, check_class_weight
from cart.growth.plan import make_plan
from cart.primitives.mersenne_twister import first_draws
from cart.primitives.progress import ProgressReporter
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.precision import precision_of
from forest.estimators.fitted_on import parameters_of_trees
from forest.estimators.growth import empty_tree
from forest.estimators.parameters import refuse_contradictions
from forest.growing.dask import require_forest
from forest.growing.interruption import Interruption
from forest.partitioned.engines import Engine
from forest.partitioned.growth import DEFAULT_SIZE, PartitionedTable, Size, grow_together
from forest.partitioned.histograms import ClassTargets, NumberTargets
from forest.partitioned.open_rows import begin
from forest.partitioned.out_of_bag import Judged, judge
from forest.partitioned.pace import Pace
from forest.partitioned.table import partitions
from forest.partitioned.table.in_bag import InBag
from forest.partitioned.table.quantiles import find_bins, find_codes
from forest.partitioned.table.sources import empty_on_disk
from forest.partitioned.table.targets import in_steps, steps_between
from forest.partitioned.table.weights import BYTES_PER_ROW, total_of_whole, weights_of_table
from forest.sampling.bootstrap import Bootstrap
from forest.sampling.plan import plan_bootstrap

_OPEN_BYTES_PER_ROW = 5  # of an in-bag row: its number and weight
_CRITERIA = ("gini", "entropy", "log_loss", "squared_error")
_MOST_CLASSES = 1 << 16


def fit_together(
    forest: BaseEstimator, engine: Engine, X_parts: Any, y_parts: Any, n_parts: int,
    size: Size = DEFAULT_SIZE, folder: str | Path | None = None, weight_parts: Any = None,
) -> BaseEstimator:  # fmt: skip
    """Fit a forest on all partitions of a table together.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Unfitted; with max_bins and feature_draw="keyed". It is not changed, except after Ctrl-C.
    engine : Engine
    X_parts, y_parts : handles
        Partitions of X and y, in the order of the rows.
    n_parts : int
    size : Size, optional
    folder : path, optional
        Folder for files with the codes; by default these are kept in memory.
    weight_parts : handle, optional
        Partitions of the weights of the rows.

    Returns
    -------
    estimator
        A fitted clone of `forest`.

    Raises
    ------
    ValueError
        If the forest needs something that partitions do not support, or if partitions contradict
        each other.
    KeyboardInterrupt
        On Ctrl-C. If trees were finished by then, `forest` is fitted with them, and a warning says
        how many.
    """
    model = clone(forest)
    model.callback = forest.callback  # clone deep-copies a bound method with its object
    refuse_impossible(model, weight_parts is not None)
    kind = partitions.Kind(
        precision_of(model), is_classifier(model), model.categorical_features, None, model.missing
    )
    with Interruption() as interruption:
        look, spans, bins = _look_for_bins(model, engine, X_parts, y_parts, n_parts, kind)
        target = model._encode_target(look.labels if kind.has_classes else np.array(look.ends))
        weight = weights_of_table(model, engine, y_parts, weight_parts, spans, kind, target)
        total_weight = _plan_draws(model, engine, spans[-1][-1], weight, size)
        kind, bins = _learn_categories(model, look, kind, bins)
        table = bins.table()
        dtype = np.min_scalar_type(int(table.n_levels().max()))
        codes = engine.map(_code, X_parts, range(n_parts), common=(kind, bins, dtype, folder))
        if not model.oob_score:
            del X_parts  # workers need not keep X in memory
        low, high = look.ends
        step = None if kind.has_classes else steps_between(low, high, total_weight)
        labels = look.labels if kind.has_classes else step
        targets = engine.map(_encode, y_parts, spans, common=(kind, labels))
        n_bytes = len(bins.levels) * dtype.itemsize + (2 if kind.has_classes else 8)
        is_held = _is_held(n_bytes, model._n_samples, engine, size)
        held = engine.hold(codes, targets) if is_held else None
        data = PartitionedTable(engine, codes, targets, table, step, held)
        seeds = check_random_state(model.random_state).randint(
            DRAW_SEED_MAX, size=model.n_estimators
        )
        counted = None if model.bootstrap else weight
        in_bag = engine.share(InBag(model._bootstrap.of_trees(seeds), counted))
        model.estimators_ = _grow(
            model, data, in_bag, spans, seeds.tolist(), total_weight, target, size, interruption
        )
        model._grown_with = [parameters_of_trees(model)]
        if model.oob_score:
            _score(model, engine, X_parts, y_parts, spans, kind, in_bag, interruption)
        if interruption.came or interruption.is_cut:  # KeyboardInterrupt will replace the result
            forest.__dict__ = {**vars(model), **forest.get_params(deep=False)}
    return model


def _look_for_bins(model, engine, X_parts, y_parts, n_parts, kind):
    """Read the table once: return what it is like, the spans of its partitions, and its bins."""
    examined = engine.map(partitions.examine, X_parts, y_parts, range(n_parts), common=(kind,))
    look = engine.reduce(partitions.look_of, partitions.join_looks, examined)
    spans = _describe(model, look)  # may raise an error
    sorted_parts = engine.map(partitions.sorted_of, examined)
    return look, spans, find_bins(engine, sorted_parts, model.max_bins, kind.precision)


def _learn_categories(model, look, kind, bins):
    """Store the categories of the whole table in the forest, and return the updated kind and bins.

    Every category has a code of its own, without bins.
    """
    if kind.categorical_features is None:
        return kind, bins
    encode_categories(model, partitions.join_covers(look.cover), reset=True)
    kind = kind._replace(encoder=model._category_encoder)
    n_categories = model._category_encoder.n_categories
    if not n_categories.any():
        return kind, bins
    if len(look.labels if kind.has_classes else ()) > 2 and model.min_samples_leaf != 1:
        raise ValueError(
            "Forests of partitions with categories and more than two classes do not support "
            "min_samples_leaf yet; leave it out."
        )
    return kind, bins.with_categories(n_categories)


def refuse_impossible(forest: BaseEstimator, has_weights: bool = False) -> None:
    """Raise an error, before any work, for a forest that cannot be grown on partitions together.

    Parameters
    ----------
    forest : estimator
    has_weights : bool, default=False
        Whether rows have weights.

    Raises
    ------
    TypeError
        If it is not a forest of ours.
    ValueError
    """
    require_forest(forest)
    forest._validate_params()
    if "max_bins" not in forest.get_params():
        raise ValueError(
            f"{type(forest).__name__} draws thresholds between values, which partitions do not "
            "keep; use a random forest."
        )
    if forest.max_bins is None or forest.feature_draw != "keyed":
        raise ValueError(
            "Partitions need bins and keyed draws of features; set max_bins=255 and "
            'feature_draw="keyed".'
        )
    class_weight = getattr(forest, "class_weight", None)
    check_class_weight(class_weight)
    is_keyed = forest.bootstrap and forest.bootstrap_draw == "keyed"
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
        f"class_weight={class_weight!r}": class_weight == "balanced_subsample",
        'weights with bootstrap_draw="keyed"': is_keyed and (has_weights or bool(class_weight)),
        f"voting={forest.voting!r}": forest.voting not in ("soft", "majority"),
        "a function as oob_score": callable(forest.oob_score),
        "warm_start": forest.warm_start,
        "replace=False": not forest.replace,
        "stratify": forest.stratify,
    }
    for name, is_wanted in refused.items():
        if is_wanted:
            raise ValueError(f"Forests of partitions do not support {name} yet; leave it out.")
    refuse_contradictions(forest, [])


def _describe(model, look):
    """Set the forest's attributes of its table; return number, first row and end of partitions."""
    ends = np.cumsum([n for _, n in sorted(look.n_rows)]).tolist()
    if ends[-1] == 0:
        raise ValueError("The partitions have no rows.")
    if look.n_features == 0:
        raise ValueError("The partitions have no columns.")
    if look.labels is not None and len(look.labels) > _MOST_CLASSES:
        raise ValueError(
            f"y has {len(look.labels):,} classes, but at most {_MOST_CLASSES:,} are supported."
        )
    model.n_features_in_ = look.n_features
    if look.names is not None:
        model.feature_names_in_ = np.array(look.names, dtype=object)
    if look.dates is not None:
        model._are_dates = look.dates
    model.n_merged_values_ = np.zeros(look.n_features, np.int64)
    return list(zip(range(len(ends)), [0, *ends], ends, strict=False))


def _code(X, number, kind, bins, dtype, folder):
    """The codes of a partition, (n_features, n_rows), in a file in `folder` if there is one."""
    X = partitions.values_of(X, number, kind)[0]
    return find_codes(X, bins, empty_on_disk(X.shape[::-1], dtype, folder))


def _encode(y, span, kind, labels_or_step):
    """The targets of a partition as classes, or in whole steps."""
    number, first, end = span
    y = partitions.target_of(y, end - first, number, kind)
    if kind.has_classes:
        return ClassTargets(np.searchsorted(labels_or_step, y).astype(np.uint16))
    return NumberTargets(in_steps(y, labels_or_step))


def _begin(codes, span, in_bag, trees):
    """The open rows of a partition: those in bag for some trees."""
    _, first, end = span
    return begin((in_bag.counts(tree, first, end) for tree in trees), first)


def _plan_draws(model, engine, n_rows, weight, size):
    """Plan the draws of the forest's rows; return the total weight of the rows of a tree."""
    if weight is not None and not _is_held(BYTES_PER_ROW, n_rows, engine, size):
        raise ValueError(
            f"Weights of {n_rows:,} rows need more than {size.held_bytes:,} bytes, which every "
            "process would hold to draw rows by them; leave them out, or raise Size.held_bytes."
        )
    model._n_samples, model._row_weight = n_rows, weight
    model._bootstrap = plan_bootstrap(model, np.broadcast_to(0.0, (n_rows, 1)), weight, None, None)
    if model.bootstrap:
        return model._bootstrap.n_draws
    return n_rows if weight is None else total_of_whole(weight)


def _is_held(bytes_per_row, n_rows, engine, size):
    """Whether every process may hold so many bytes for each row of the table."""
    return bytes_per_row * n_rows <= size.held_bytes or engine.n_processes == 1


def _grow(model, data, in_bag, spans, seeds, total_weight, target, size, interruption):
    """Grow the trees, as estimators, group after group.

    The callback is called after each group and may end growth. Ctrl-C loses the current group.
    """
    plan = make_plan(
        model, model._criteria[model.criterion], "best", model._n_samples, model.n_features_in_, 1,
        target.n_values,
    )  # fmt: skip
    draw_seeds = first_draws(seeds, DRAW_SEED_MAX)
    rows = max(1, min(model._n_samples, total_weight) // data.engine.n_processes)
    pace = Pace(rows, size.open_bytes // (_OPEN_BYTES_PER_ROW * rows), size.trees_at_once)
    example = empty_tree(model, target, plan)
    grown: list = []

    def grow_some(some):
        opened = data.engine.map(_begin, data.codes, spans, common=(in_bag, some))
        grown.extend(
            grow_together(
                data, opened, plan, draw_seeds[some.start : some.stop], total_weight, size
            )
        )

    with ProgressReporter(len(seeds), "tree", model.verbose, model.callback) as reporter:
        while len(grown) < len(seeds) and not reporter.is_stopped:
            start, first = perf_counter(), len(grown)
            n = pace.next(len(seeds) - first)
            if not interruption.run(partial(grow_some, range(first, first + n))):
                if not grown:
                    raise KeyboardInterrupt
                interruption.keep(
                    f"{len(grown)} of {len(seeds)} trees are finished and kept in the forest "
                    "that was passed (those that were being grown are lost)"
                )
                break
            pace.note(n, perf_counter() - start)
            for _ in range(n):
                if not reporter.is_stopped:
                    reporter.step()
    warn_of_small_target(grown, target)
    return [example.holding(tree, seed) for tree, seed in zip(grown, seeds, strict=False)]


def _score(model, engine, X_parts, y_parts, spans, kind, in_bag, interruption):
    """Compute the out-of-bag score, unless Ctrl-C came: terminals send it to local workers, too."""
    voters = as_of_now(model)  # without attributes as long as the table, which in_bag has
    nothing = {"_bootstrap": Bootstrap.plain(model._n_samples, None), "_row_weight": None}
    voters.__dict__ = {**vars(model), **nothing}
    common = engine.share(voters), kind, in_bag

    def ask():
        judged = engine.reduce(judge, Judged.join, X_parts, y_parts, spans, common=common)
        model.oob_score_ = judged.score(kind.has_classes)

    if interruption.is_cut or not interruption.run(ask):
        interruption.keep("its out-of-bag score is not known")
