"""Quantile regression forests: the distribution of y over the leaves that a row reaches."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from cart.estimators.validation import as_of_now
from cart.files import require
from cart.primitives.threads import in_parts
from cart.tree.nodes import LEAF
from cart.tree.traversal import leaf_ids, rows_for
from forest.inference import leaf_rows
from forest.inference.training_rows import TrainingRows, training_rows
from forest.sampling.bootstrap import bootstrap_of

_BLOCK_STARTS = 1 << 22  # starts of leaves held at a time: 16 MB per thread
_MIN_ROWS_PER_WORKER = 256  # with fewer rows per thread, one thread is faster


def predict_quantiles(
    forest: BaseEstimator, X: Any, q: ArrayLike, in_bag: bool = False
) -> np.ndarray:
    """Quantiles of y given x: quantile regression forests (Meinshausen 2006).

    The weight of training row i for a row x is the mean over trees of

        1[i lies in the leaf of x] * w_i / (sum of w_j over the rows j in that leaf)

    (equations 4 and 5 of the paper, where all w_i are 1). F(y | x), the sum of the weights of the
    rows with y_i <= y, is the estimated distribution of y (equation 6). The quantile is its
    inverse, without interpolation: the smallest y_i of positive weight with F(y_i | x) >= q. q=0
    gives the lowest y of positive weight, q=1 the highest. A cumulative weight that falls short of
    q by no more than 1e-10 counts as q, since sums of shares such as 1/3 are rounded.

    All training rows count, even those out of bag for a tree, as in the paper. If the forest was
    fitted with `sample_weight`, w_i is the weight of the row: with a bootstrap, its expected count
    in bag is proportional to it; without one, it is the row's weight in the tree.

    Parameters
    ----------
    forest : fitted forest regressor with one output
    X : array-like of shape (n_samples, n_features)
    q : float, or array-like of shape (n_quantiles,)
        Numbers between 0 and 1, in any order.
    in_bag : bool, default=False
        Count only the rows that each tree was grown on, as often as they were drawn. The mean of
        that distribution is the prediction of a forest of means. Without a bootstrap, this makes no
        difference.

    Returns
    -------
    ndarray of shape (n_samples,), or (n_samples, n_quantiles) if q is an array, float64

    Raises
    ------
    ValueError
        If q is not between 0 and 1, the forest has several outputs, or it does not know its
        training rows (see `keep_leaves`).
    sklearn.exceptions.NotFittedError

    References
    ----------
    Meinshausen, N. (2006). Quantile regression forests. Journal of Machine Learning Research 7.
    """
    forest = as_of_now(forest)
    X = forest._check_X(X)
    levels = np.atleast_1d(np.asarray(q))
    if levels.ndim != 1 or not len(levels) or levels.dtype.kind not in "biuf":
        raise ValueError(f"q must be a number or a list of numbers, got {q!r}.")
    if not np.all((levels >= 0.0) & (levels <= 1.0)):
        raise ValueError(f"Quantiles q must lie in [0, 1], got {q!r}.")
    rows = training_rows(forest)
    members, mass = rows.members, rows.mass
    if in_bag and bootstrap_of(forest).is_drawn:
        members, mass = _drawn_members(forest, rows), np.ones(len(rows.y))
    out = quantiles_of(forest, X, members, mass, rows.y, levels.astype(np.float64))
    return out[:, 0] if np.ndim(q) == 0 else out


def _drawn_members(forest, rows):
    """The rows that each tree was grown on, leaf by leaf: (n_trees, most draws) int32."""
    bootstrap = bootstrap_of(forest)
    n_trees = len(rows.trees)
    most = max(len(bootstrap.draws(t)) for t in range(n_trees))
    drawn = np.empty((n_trees, most), np.int32)

    def repeat(first_tree, end_tree):
        for t in range(first_tree, end_tree):
            ranks = _ranks_of(rows.members[t])
            counts = bootstrap.counts(t)[rows.order][ranks]
            bounds = np.append(0, np.cumsum(counts))[_bounds_of(rows.members[t])]
            require((np.diff(bounds) > 0).all(), "a leaf has no drawn row")
            drawn[t, : bounds[-1]] = np.repeat(ranks, counts)  # as many may differ between trees
            drawn[t, bounds[1:] - 1] ^= -1

    in_parts(repeat, n_trees, forest.n_jobs)
    return drawn


def _ranks_of(members):
    return np.maximum(members, ~members)


def _bounds_of(members):
    """Where the list of each leaf begins, and where the last one ends."""
    return np.append(0, np.flatnonzero(members < 0) + 1)


def quantiles_of(
    forest: BaseEstimator,
    X: np.ndarray,
    members: np.ndarray,
    mass: np.ndarray,
    y: np.ndarray,
    levels: np.ndarray,
) -> np.ndarray:
    """Quantiles of y over the leaves that rows reach.

    Parameters
    ----------
    forest : fitted forest
    X : ndarray of shape (n_rows, n_features), float32 or float64, C order, or csr_matrix
    members, mass, y : ndarray
        See `forest.inference.leaf_rows.leaf_quantiles`.
    levels : ndarray of shape (n_levels,), float64
        In any order.

    Returns
    -------
    ndarray of shape (n_rows, n_levels), float64
    """
    packed, trees = forest._packed(), [estimator.tree_ for estimator in forest.estimators_]
    ascending, at = np.unique(levels, return_inverse=True)
    out = np.empty((X.shape[0], len(ascending)))

    def fill(begin, end):
        part = rows_for(packed, X[begin:end])
        start = np.empty((len(trees), end - begin), np.int32)
        for t, tree in enumerate(trees):
            n_leaves = (tree.expanded.children_left == LEAF).cumsum()  # up to each node
            start[t] = _bounds_of(members[t])[n_leaves[leaf_ids(packed, t, part)] - 1]
        own = np.full(end - begin, -1)
        leaf_rows.leaf_quantiles(
            members, start, own, mass, y, ascending,
            leaf_rows.QuantileScratch.create(len(y), len(trees)), out[begin:end],
        )  # fmt: skip

    block = max(1, _BLOCK_STARTS // len(trees))
    in_parts(fill, X.shape[0], forest.n_jobs, _MIN_ROWS_PER_WORKER, block)
    return out[:, at]


def out_of_bag_quantiles(
    forest: BaseEstimator, rows: TrainingRows, levels: np.ndarray
) -> np.ndarray:
    """Quantiles of y for every training row, from the trees that were not grown on it.

    The row itself does not count, as if it were not in the table, nor do others of its group, if
    the forest draws groups of rows. Quantiles are nan for a row that was never out of bag.

    Parameters
    ----------
    forest : fitted forest with a bootstrap
    rows : forest.inference.training_rows.TrainingRows
    levels : ndarray of shape (n_levels,), float64
        Ascending.

    Returns
    -------
    ndarray of shape (n_samples, n_levels), float64
        One row per rank.
    """
    bootstrap = bootstrap_of(forest)
    n_rows, n_trees = len(rows.y), len(rows.trees)
    group = None if bootstrap.groups is None else bootstrap.groups[rows.order]
    out = np.empty((n_rows, len(levels)))

    def fill(begin, end):
        start = np.empty((n_trees, end - begin), np.int32)
        first = np.empty(n_rows, np.int32)
        for t, members in enumerate(rows.members):
            bounds = _bounds_of(members)
            first[_ranks_of(members)] = np.repeat(bounds[:-1], np.diff(bounds))
            first[bootstrap.counts(t)[rows.order] > 0] = leaf_rows.NO_LEAF
            start[t] = first[begin:end]
        scratch = leaf_rows.QuantileScratch.create(n_rows, n_trees)
        mass = rows.mass if group is None else rows.mass.copy()

        def judge(start, own, out):
            leaf_rows.leaf_quantiles(rows.members, start, own, mass, rows.y, levels, scratch, out)

        if group is None:
            judge(start, np.arange(begin, end), out[begin:end])
            return
        for g in np.unique(group[begin:end]):
            is_mine, mine = group == g, begin + np.flatnonzero(group[begin:end] == g)
            mass[is_mine] = 0.0
            found = np.empty((len(mine), len(levels)))
            judge(np.ascontiguousarray(start[:, mine - begin]), np.full(len(mine), -1), found)
            out[mine] = found
            mass[is_mine] = rows.mass[is_mine]

    block = max(1, _BLOCK_STARTS // n_trees)
    in_parts(fill, n_rows, forest.n_jobs, _MIN_ROWS_PER_WORKER, block)
    return out
