"""Out-of-bag permutation importance of a table in partitions: exact, without moving rows.

To take the expectation over all permutations, it is enough to know how many donors lie at or below
each threshold of a tree (`importance.permutation.expectation`). These are counts, which add up:

    every partition     counts its out-of-bag rows up to the thresholds of every tree
    together            the sums are the donors of the whole table
    every partition     what its own rows lose when they get any donor's value
    together            the sums, divided by the rows and the donors
"""

from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple

import numpy as np

from cart.estimators.target import encode_known_labels
from cart.estimators.validation import refuse_missing
from cart.primitives.progress import ProgressReporter
from cart.table.precision import precision_of
from forest.partitioned.dask import open_parts
from forest.partitioned.engines import Engine, itself
from forest.partitioned.growth import DEFAULT_SIZE
from forest.partitioned.table.in_bag import counts_of_part
from forest.partitioned.table.partitions import Kind, shown, target_of, values_of
from forest.sampling.bootstrap import Bootstrap, bootstrap_of
from importance.core.adoption import of_fitted_forest
from importance.core.fitted_forest import (
    NO_ROW,
    is_classification,
    names_of,
    refuse_sent_by_surrogates,
    refuse_several_tables,
)
from importance.core.losses import MakeLoss, choose_loss
from importance.core.result import OVER_TREES, Importances, mean_and_error
from importance.permutation.expectation import expected_increase
from importance.permutation.influence import error_over_data, followed
from importance.permutation.oob import BIAS, OVER_ROWS
from importance.permutation.prepared_tree import prepare_tree

__all__ = ["oob_permutation"]


class DonorCounts(NamedTuple):
    """Counts of the out-of-bag rows of some partitions, as donors of values."""

    n_rows: np.ndarray  # (n_trees,) int64
    n_below: np.ndarray  # (n_nodes,) int64: rows at or below the threshold; nodes of all trees
    of_feature: np.ndarray  # (n_trees, n_features, 2) int64: rows with a value, and without one


class Losses(NamedTuple):
    """What rows of some partitions lose when they get the values of donors."""

    increase: np.ndarray  # (n_trees, n_features) over rows and donors, divided by both
    influence: np.ndarray  # (n_features, n_followed) summed over trees, of the followed rows
    is_out: np.ndarray  # (n_trees, n_followed) uint8: whether a followed row is out of bag


@of_fitted_forest
def oob_permutation(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, client: Any = None,
    n_jobs: int | None = None, rows_at_once: int = DEFAULT_SIZE.rows_at_once,
    verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """`importance.oob_permutation` of a table in partitions, without moving any row.

    The expectation over all permutations and its standard error over data are those of the whole
    table, up to rounding of sums. For every tree, each partition reports how many of its
    out-of-bag rows lie at or below each threshold, and what its rows lose. X is read three times,
    the first time for the sizes of the partitions.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Fitted on the table, by `forest.dask.fit` or in one process, without weights or categories.
    X, y : partitions of the training table
        As `forest.dask.fit` takes them; they may be cut differently.
    loss : str, default=None
        See `importance.oob_permutation`.
    client : distributed.Client, optional
        Client for Dask tables; the current one by default.
    n_jobs : int, default=None
        Number of threads, for tables other than Dask's.
    rows_at_once : int, default=1048576
        How many rows to read at a time from arrays and files that are read in pieces.
    %(reported_parts)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If the forest has no out-of-bag rows, draws rows by weights or strata, splits on categories,
        or is part of a pipeline; if the table has other rows, columns or classes than the forest
        was fitted on, or missing values that surrogates would send. (Whether the values are those
        of the training table is not checked.)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor
    >>> from importance.dask import oob_permutation
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> oob_permutation(forest, np.array_split(X, 4), np.array_split(y, 4))
    <Importances oob_permutation, squared_error, ± over data, from the rows: x8 1,570 ± 310, x2
     1,470 ± 330, x3 620 ± 230, x7 430 ± 160, x6 240 ± 150, ...>
    """
    _refuse_impossible(forest)
    name, make_loss = choose_loss(loss, forest)
    engine, X_parts, y_parts = open_parts(X, y, client, n_jobs, rows_at_once)
    kind = Kind(precision_of(forest), is_classification(forest))
    watch = ProgressReporter(2 * len(X_parts), "partition", verbose, callback)
    with watch, engine:
        tables = engine.spread(X_parts), engine.spread(y_parts)
        donors, losses = _ask(engine, *tables, forest, kind, make_loss, watch.step)
    return _report(forest, name, donors, losses)


def _ask(engine, X_parts, y_parts, forest, kind, make_loss, step):
    """Map over the partitions twice: sum up their donors, then what their rows lose."""
    shared = engine.share(forest)
    spans = _spans(engine, X_parts, kind, forest)
    counted = engine.map(_count, X_parts, spans, common=(shared, kind), done=step)
    donors = engine.reduce(itself, _add_each, counted)
    if not donors.n_rows.any():
        raise ValueError(NO_ROW)
    common = shared, kind, make_loss, engine.share(donors)
    judged = engine.map(_judge, X_parts, y_parts, spans, common=common, done=step)
    return donors, engine.reduce(itself, _add_each, judged)


def _refuse_impossible(forest):
    bootstrap = getattr(forest, "_bootstrap", None)
    if not isinstance(bootstrap, Bootstrap) or bootstrap.n_draws is None:
        raise ValueError(
            "The forest has no out-of-bag rows: fit one of Cartwood's with bootstrap=True."
        )
    if not (bootstrap.is_uniform or bootstrap.by_blocks) or forest._row_weight is not None:
        raise ValueError(
            "The forest was fitted with weights, strata or groups of rows, which partitions do not "
            "support; use importance.oob_permutation."
        )
    if getattr(forest, "_steps_before", ()):
        raise TypeError(
            "Partitions do not pass through the pipeline steps before the forest; give it the "
            "forest, pipeline[-1], and partitions that these steps have transformed."
        )
    refuse_several_tables(forest)
    if any(tree.tree_.categories is not None for tree in forest.estimators_):
        raise ValueError(
            "The forest splits on categories, which partitions do not support, because they count "
            "donors by thresholds; use importance.oob_permutation."
        )


def _spans(engine: Engine, X_parts: Any, kind: Kind, forest: Any) -> list[tuple[int, int, int]]:
    """Number, first row and end of every partition; refuses tables of another size."""
    common = engine.share(forest), kind
    sizes = engine.map(_size, X_parts, range(len(X_parts)), common=common)
    found = sorted(engine.reduce(itself, add, sizes))
    ends = np.cumsum([n_rows for _, n_rows, _ in found]).tolist()
    if ends[-1] != forest._n_samples:
        raise ValueError(
            f"The partitions have {ends[-1]} rows, but the forest was fitted on "
            f"{forest._n_samples}: give the training table."
        )
    for number, _, n_features in found:
        if n_features not in (0, forest.n_features_in_):
            raise ValueError(
                f"Partition {number} has {n_features} columns, but the forest was fitted on "
                f"{forest.n_features_in_}."
            )
    return list(zip(range(len(ends)), [0, *ends], ends, strict=False))


def _size(X, number, forest, kind):
    """Number, rows and columns of a partition; refuses rows that the forest would not take."""
    X, names = values_of(X, number, kind)
    known = getattr(forest, "feature_names_in_", None)
    if names and known is not None and names != tuple(known):
        raise ValueError(
            f"The columns of partition {number} are called {shown(names)}, but the forest was "
            f"fitted on {shown(tuple(known))}: use the same names in the same order."
        )
    refuse_missing(forest, X)
    refuse_sent_by_surrogates(forest, X)
    return [(number, *X.shape)]


def _add_each(one, other):
    return type(one)(*map(add, one, other))


def _count(X, span, forest, kind):
    """Count the donors of a partition."""
    number, first, end = span
    X = values_of(X, number, kind)[0]
    trees = [tree.tree_ for tree in forest.estimators_]
    start = np.cumsum([0, *(tree.node_count for tree in trees)])
    donors = DonorCounts(
        np.zeros(len(trees), np.int64), np.zeros(start[-1], np.int64),
        np.zeros((len(trees), forest.n_features_in_, 2), np.int64),
    )  # fmt: skip
    for t, (rows, prepared, _) in enumerate(_prepared(forest, X, first, end)):
        donors.n_rows[t] = len(rows)
        donors.n_below[start[t] : start[t + 1]] = prepared.n_below
        donors.of_feature[t, prepared.groups] = prepared.donor_range[:, 1:]
    return donors


def _prepared(forest: Any, X: np.ndarray, first: int, end: int) -> Any:
    """Yield for every tree the partition's out-of-bag rows, the prepared tree and node values."""
    bootstrap = bootstrap_of(forest)
    for t, tree in enumerate(forest.estimators_):
        rows = np.flatnonzero(counts_of_part(bootstrap, t, first, end) == 0)
        yield rows, *prepare_tree(tree.tree_, X, rows)


def _judge(X, y, span, forest, kind, make_loss: MakeLoss, donors: DonorCounts):
    """Compute what the rows of a partition lose."""
    number, first, end = span
    X = values_of(X, number, kind)[0]
    y = target_of(y, end - first, number, kind)
    codes = y
    if kind.has_classes and len(y):
        codes = encode_known_labels(y, [forest.classes_]).codes[:, 0]
    number_of = followed(forest._n_samples)
    mine = np.flatnonzero((number_of >= first) & (number_of < end))
    n_trees, n_features = len(forest.estimators_), forest.n_features_in_
    losses = Losses(
        np.zeros((n_trees, n_features)), np.zeros((n_features, len(number_of))),
        np.zeros((n_trees, len(number_of)), np.uint8),
    )  # fmt: skip
    start = 0
    for t, (rows, prepared, values) in enumerate(_prepared(forest, X, first, end)):
        tree = forest.estimators_[t].tree_
        nodes = slice(start, start + tree.node_count)
        start = nodes.stop
        if len(rows) == 0:
            continue
        donor_range = np.zeros_like(prepared.donor_range)  # of the donors of all partitions
        donor_range[:, 1:] = donors.of_feature[t, prepared.groups]
        prepared = prepared._replace(
            n_below=donors.n_below[nodes].copy(), donor_range=donor_range,
            missing_left=np.require(tree.missing_go_to_left, np.uint8, ["C", "W"]),
        )  # fmt: skip
        _, of_rows = expected_increase(prepared, make_loss(values, codes[rows]), by_row=True)
        n_rows = donors.n_rows[t]
        of_rows *= len(rows) / n_rows  # the mean over the donors of all partitions
        losses.increase[t, prepared.groups] = of_rows.sum(axis=1) / n_rows
        at = np.searchsorted(rows, number_of[mine] - first)
        is_out = rows[np.minimum(at, len(rows) - 1)] == number_of[mine] - first
        losses.is_out[t, mine] = is_out
        followed_rows = np.ix_(prepared.groups, mine[is_out])
        losses.influence[followed_rows] += of_rows[:, at[is_out]] / n_rows
    return losses


def _report(forest: Any, name: str, donors: DonorCounts, losses: Losses) -> Importances:
    n_rows = donors.n_rows[:, np.newaxis]
    per_tree = np.where(n_rows > 0, losses.increase, np.nan)
    values, over_trees = mean_and_error(per_tree)
    share = losses.increase / np.maximum(n_rows, 1)
    total = losses.influence - share.T @ losses.is_out
    has_classes = is_classification(forest)
    n_trees = int(np.count_nonzero(donors.n_rows))
    error = error_over_data(total, forest._n_samples, n_trees, has_classes, over_trees)
    return Importances(
        "oob_permutation", values, error, per_tree, names_of(forest), uncertainty=OVER_ROWS,
        bias=BIAS, unit=f"increase in out-of-bag {name.replace('_', '-')} loss of a tree",
        loss=name,
        other_errors={OVER_TREES: over_trees, "over permutations": np.zeros(len(values))},
    )  # fmt: skip
