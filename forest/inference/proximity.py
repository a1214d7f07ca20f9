"""Proximities: the share of trees in which two rows lie in the same leaf.

    leaves   tree A  tree B        proximity   row 0    1    2    3
    row 0      a       c                   0    1.0  0.5  0.0  0.5
    row 1      a       d                   1    0.5  1.0  0.5  0.0
    row 2      b       d                   2    0.0  0.5  1.0  0.5
    row 3      b       c                   3    0.5  0.0  0.5  1.0

They are computed in blocks of rows, as products of sparse matrices of shape (n_rows, n_leaves) that
indicate leaves.
"""

from collections.abc import Callable
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, vstack
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d, gen_batches
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from cart.estimators.target import refuse_missing_target
from cart.estimators.validation import as_of_now
from cart.primitives.progress import watched
from forest.inference.training_rows import require_one_table

PAIRS = ("all", "out_of_bag", "gap")
_BLOCK_ROWS = 1024  # rows whose proximities are computed at a time
_BLOCK_PAIRS = 1 << 20  # pairs of rows whose common trees are counted at a time
_ROUNDED = 1e-10  # relative difference up to which raw scores count as equal


def proximity(
    forest: BaseEstimator, X: ArrayLike, Y: ArrayLike | None = None, pairs: str = "all",
    *, verbose: int = 0, callback: Callable | None = None,
) -> csr_matrix:  # fmt: skip
    """Proximities of rows in a forest.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
    X : array-like of shape (n_samples, n_features)
        The training table, unless `pairs` is "all".
    Y : array-like of shape (n_others, n_features), optional
        Rows to compare those of X with (only with `pairs="all"`); X by default.
    pairs : {"all", "out_of_bag", "gap"}, default="all"
        "all": the share of trees in which rows i and j lie in the same leaf (Breiman and Cutler).

        "out_of_bag": the same share, among the trees for which both rows are out of bag; 0 if there
        are none. It is `oob.prox` of R's randomForest (Liaw and Wiener 2002).

        "gap": geometry- and accuracy-preserving proximities (Rhodes, Cutler and Moon 2023): the
        share of row j among the draws in the leaf of row i, averaged over the trees for which i is
        out of bag. They are not symmetric, and 0 for a row with itself. Those of row i sum to 1,
        and the mean of y weighted by them is the out-of-bag prediction of a forest of means. They
        are all 0 for a row that was never out of bag.
    verbose : int, default=0
        1 shows a progress bar with the time left on standard error; a step is a block of rows.
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every step.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (n_samples, n_samples or n_others), float64
        With sorted indices; `.toarray()` makes it dense.

    Raises
    ------
    TypeError
        If this is not a forest.
    ValueError
        If `pairs` is unknown, or if it needs out-of-bag rows and the forest has no bootstrap or X
        is not its training table.
    sklearn.exceptions.NotFittedError

    References
    ----------
    Breiman, L. and Cutler, A. Random forests, section "Proximities".
    https://www.stat.berkeley.edu/~breiman/RandomForests/cc_home.htm
    Liaw, A. and Wiener, M. (2002). Classification and regression by randomForest. R News 2.
    Rhodes, J. S., Cutler, A. and Moon, K. R. (2023). Geometry- and accuracy-preserving random
    forest proximities. IEEE Transactions on Pattern Analysis and Machine Intelligence 45.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import RandomForestClassifier, proximity
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> proximity(forest, X[:3]).toarray().round(2)
    array([[1., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """
    of_rows = _Proximities(forest, X, Y, pairs)
    return vstack([found for _, found in of_rows.blocks(verbose, callback)], "csr")


def nearest_rows(
    forest: BaseEstimator, X: ArrayLike, k: int, Y: ArrayLike | None = None, pairs: str = "all",
    *, verbose: int = 0, callback: Callable | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Find the k rows of highest proximity to every row.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
    X : array-like of shape (n_samples, n_features)
        The training table, unless `pairs` is "all".
    k : int
        At most the number of rows to choose from. Without Y, a row is not its own neighbour.
    Y : array-like of shape (n_others, n_features), optional
        Rows to choose from (only with `pairs="all"`); X by default.
    pairs : {"all", "out_of_bag", "gap"}, default="all"
        Kind of proximity, see `proximity`.
    verbose : int, default=0
        1 shows a progress bar with the time left on standard error; a step is a block of rows.
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every step.

    Returns
    -------
    proximities : ndarray of shape (n_samples, k), float64
        Descending.
    rows : ndarray of shape (n_samples, k), int64
        Row numbers in Y, or in X; among equal proximities, the lowest number comes first.

    Raises
    ------
    TypeError, ValueError
        See `proximity`; also a ValueError if there are fewer than k rows to choose from.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import RandomForestClassifier, nearest_rows
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> likeness, rows = nearest_rows(forest, X, 3)
    >>> likeness.shape, rows.shape
    ((150, 3), (150, 3))
    """
    of_rows = _Proximities(forest, X, Y, pairs)
    n_choices = of_rows.n_others - (Y is None)
    if n_choices < 1:
        raise ValueError(
            "X is one row, which is not its own neighbour; pass more rows, or the rows to choose "
            "from as Y."
        )
    if not (isinstance(k, Integral) and k is not True and 1 <= k <= n_choices):
        raise ValueError(
            f"k must be a whole number between 1 and {n_choices}, the number of rows to choose "
            f"from, but is {k!r}."
        )
    near = np.empty((of_rows.n_rows, k))
    rows = np.empty((of_rows.n_rows, k), np.int64)
    for some, found in of_rows.blocks(verbose, callback):
        for i in range(found.shape[0]):
            row = some.start + i
            near[row], rows[row] = _nearest(found, i, k, row if Y is None else -1)
    return near, rows


def outlier_scores(
    forest: BaseEstimator, X: ArrayLike, y: ArrayLike | None = None, pairs: str = "all",
    *, verbose: int = 0, callback: Callable | None = None,
) -> np.ndarray:  # fmt: skip
    """Score how far every row lies from the others of its class (Breiman and Cutler).

    The raw score of row i is n / sum of p(i, j)^2 over the rows j of its class, including itself; a
    sum of 0 counts as 1. The score is the raw score minus the median of its class, divided by the
    class's median absolute deviation from that median. Breiman and Cutler look at scores above 10.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
    X : array-like of shape (n_samples, n_features)
        The training table, unless `pairs` is "all".
    y : array-like of shape (n_samples,), optional
        Classes; by default all rows are in one class.
    pairs : {"all", "out_of_bag", "gap"}, default="all"
        Kind of proximity, see `proximity`.
    verbose : int, default=0
        1 shows a progress bar with the time left on standard error; a step is a block of rows.
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every step.

    Returns
    -------
    ndarray of shape (n_samples,), float64
        A row whose raw score is the median has the score 0, even if the median absolute deviation
        is 0; other rows then have infinite scores.

    Raises
    ------
    TypeError, ValueError
        See `proximity`; also a ValueError if y differs from X in length, has missing values, or
        holds numbers with fractions, which are no classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cartwood import RandomForestClassifier, outlier_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> scores = outlier_scores(forest, X, y)
    >>> scores.argmax()  # the iris that is least like its kind
    np.int64(14)
    """
    of_rows = _Proximities(forest, X, None, pairs)
    n_rows = of_rows.n_rows
    refuse_missing_target(y)
    labels = np.zeros(n_rows) if y is None else column_or_1d(y)
    check_consistent_length(of_rows.leaves, labels)
    assert_all_finite(labels, input_name="y")
    if type_of_target(labels) == "continuous":
        raise ValueError("y must hold classes, but holds numbers with fractions; leave it out.")
    classes, codes = np.unique(labels, return_inverse=True)
    squares = np.empty(n_rows)
    for some, found in of_rows.blocks(verbose, callback):
        of_row = np.repeat(codes[some], np.diff(found.indptr))
        found.data *= found.data * (codes[found.indices] == of_row)
        squares[some] = np.asarray(found.sum(axis=1)).ravel()
    raw = n_rows / np.where(squares == 0.0, 1.0, squares)
    scores = np.empty(n_rows)
    for code in range(len(classes)):
        mine = codes == code
        median = np.median(raw[mine])
        beyond = np.where(np.isclose(raw[mine], median, _ROUNDED, 0.0), 0.0, raw[mine] - median)
        with np.errstate(divide="ignore", invalid="ignore"):  # the deviation may be 0
            scores[mine] = np.where(beyond == 0.0, 0.0, beyond / np.median(np.abs(beyond)))
    return scores


class _Proximities:
    """Computes proximities in blocks of rows, as products of sparse matrices."""

    def __init__(self, forest, X, Y, pairs):
        check_is_fitted(forest)
        forest = as_of_now(forest)
        trees = getattr(forest, "estimators_", [None])
        if not (hasattr(forest, "apply") and hasattr(trees[0], "tree_")):
            raise TypeError(f"Proximities need a forest, but got {type(forest).__name__}.")
        if pairs not in PAIRS:
            raise ValueError(f"pairs must be one of {PAIRS}, got {pairs!r}.")
        self.pairs = pairs
        self.leaves = self._number_leaves(forest, X)
        self.n_rows = self.n_others = len(self.leaves)
        self.n_leaves = self.first_leaf[-1]
        if pairs == "all":
            others = self.leaves if Y is None else self._number_leaves(forest, Y)
            self.n_others = len(others)
            self.others = self._indicate(others).T.tocsr()
            return
        counts = _count_draws(forest, Y, self.n_rows)
        self._require_training_table(forest, counts)
        self.out_of_bag = counts == 0
        if pairs == "out_of_bag":
            self.bits = np.packbits(self.out_of_bag, axis=1)
            self.others = self._indicate(self.leaves, self.out_of_bag).T.tocsr()
        else:
            drawn = self._indicate(self.leaves, counts)
            in_leaf = np.asarray(drawn.sum(axis=0)).ravel()
            drawn.data /= in_leaf[drawn.indices]
            self.others = drawn.T.tocsr()

    def _number_leaves(self, forest, X):
        """The leaf of each row in each tree, numbered across trees: (n_rows, n_trees) int64."""
        n_nodes = [estimator.tree_.node_count for estimator in forest.estimators_]
        self.first_leaf = np.concatenate(([0], np.cumsum(n_nodes)))
        return forest.apply(X) + self.first_leaf[:-1]

    def _require_training_table(self, forest, counts):
        """Raise a ValueError if the leaves do not get as many drawn rows as they had in growth."""
        # With few leaves, counts might agree by chance.
        require_one_table(forest, f"; use pairs={PAIRS[0]!r}.")
        weight = getattr(forest, "_row_weight", getattr(forest, "_sample_weight", None))
        is_grown_on = counts > 0
        if weight is not None:
            is_grown_on &= (weight > 0.0)[:, np.newaxis]
        trees = [estimator.tree_ for estimator in forest.estimators_]
        expected = [np.where(t.children_left < 0, t.n_node_samples, 0) for t in trees]
        found = np.bincount(self.leaves[is_grown_on], minlength=self.n_leaves)
        if not np.array_equal(found, np.concatenate(expected)):
            raise ValueError(
                "X is not the table that the forest was fitted on: values or the order of the "
                f"rows differ. Pass the training table, or use pairs={PAIRS[0]!r}."
            )

    def _indicate(self, leaves, values=None):
        """Sparse matrix of shape (n_rows, n_leaves): `values` (1 by default) at the leaves."""
        values = np.ones(leaves.shape) if values is None else values.astype(np.float64)
        indptr = np.arange(len(leaves) + 1) * leaves.shape[1]
        shape = (len(leaves), self.n_leaves)
        matrix = csr_matrix((values.ravel(), leaves.ravel(), indptr), shape=shape)
        matrix.eliminate_zeros()
        return matrix

    def blocks(self, verbose, callback):
        """Yield slices of the rows, and their proximities."""
        slices = [*gen_batches(self.n_rows, _BLOCK_ROWS)]
        for some in watched(slices, len(slices), "block", verbose, callback):
            yield some, self._block(some)

    def _block(self, some):
        """Proximities of a slice of the rows: csr_matrix of shape (n_some, n_others)."""
        out_of_bag = None if self.pairs == "all" else self.out_of_bag[some]
        found = self._indicate(self.leaves[some], out_of_bag) @ self.others
        if self.pairs == "all":
            found.data /= self.leaves.shape[1]
        elif self.pairs == "out_of_bag":
            found.data /= self._count_common_trees(found, some.start)
        else:
            found.data /= np.repeat(out_of_bag.sum(axis=1), np.diff(found.indptr))
        found.sort_indices()
        return found

    def _count_common_trees(self, found, first_row):
        """For each pair of rows in `found`, the number of trees for which both are out of bag."""
        row = np.repeat(np.arange(first_row, first_row + found.shape[0]), np.diff(found.indptr))
        common = np.empty(found.nnz, np.int64)
        for first in range(0, found.nnz, _BLOCK_PAIRS):
            some = slice(first, first + _BLOCK_PAIRS)
            both = self.bits[row[some]] & self.bits[found.indices[some]]
            common[some] = np.bitwise_count(both).sum(axis=1)
        return common


def _count_draws(forest, Y, n_rows):
    """How often each row was drawn for each tree: int64 of shape (n_rows, n_trees)."""
    if Y is not None:
        raise ValueError('Y needs pairs="all": only rows of the training table can be out of bag.')
    draws = getattr(forest, "_bootstrap", None)  # None in scikit-learn's forests
    if not (forest.bootstrap if draws is None else draws.is_drawn):
        raise ValueError(
            "The forest was fitted with bootstrap=False, so no row is out of bag. Fit it with "
            'bootstrap=True, or use pairs="all".'
        )
    if n_rows != forest._n_samples:
        raise ValueError(
            f"X has {n_rows} rows, but the forest was fitted on {forest._n_samples}; out-of-bag "
            "proximities need the training table."
        )
    return np.array([np.bincount(rows, minlength=n_rows) for rows in forest.estimators_samples_]).T


def _nearest(found, i, k, own):
    """The k largest values of row i and their columns, without the column `own` (-1: with all)."""
    entries = slice(found.indptr[i], found.indptr[i + 1])
    columns, values = found.indices[entries], found.data[entries]
    values, columns = values[columns != own], columns[columns != own]
    best = np.argsort(-values, kind="stable")[:k]
    n_more = k - len(best)
    if n_more:  # fill up with rows of proximity 0, the lowest numbers first
        free = np.setdiff1d(np.arange(k + 1 + len(columns)), np.append(columns, own))[:n_more]
        return np.append(values[best], np.zeros(n_more)), np.append(columns[best], free)
    return values[best], columns[best]
