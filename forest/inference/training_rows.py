"""A forest's training table: remember it, recognise it, and list the rows of every leaf.

Rows have fingerprints, by which the rows of one table are found in another, in any order:

    bits of a value, folded     b_1  b_2 ..  b_p      0 for the value 0, so that sparse and dense
    odd numbers, one a column   a_1  a_2 ..  a_p      rows have the same fingerprints
    row                         b_1 a_1 + b_2 a_2 + .. + b_p a_p  mod 2**64  (multilinear hashing)
"""

from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, gen_batches
from sklearn.utils.validation import check_is_fitted

from cart.estimators.target import Target, encode_numbers
from cart.estimators.validation import as_of_now
from cart.files import require, storable
from cart.primitives.threads import in_parts
from cart.tree.traversal import leaf_ids, rows_for
from cart.tree.tree import Tree
from forest.inference.leaf_rows import group_by_leaf
from forest.sampling.bootstrap import bootstrap_of

# The training table of each fit, by its bootstrap. It is kept here, so that pickles do not hold it.
_TABLES: WeakKeyDictionary = WeakKeyDictionary()
# Attributes in which a forest keeps results computed from its training rows.
_FOUND = ("_training_rows", "_spread")
# For fingerprints: values processed at once, and seeds of the columns' numbers, of X and of y.
_VALUES_AT_ONCE, _X, _Y = 1 << 16, 1, 2

_ANOTHER_TABLE = (
    "The trees were not grown on this table: it is another one, or was changed after the fit. "
    "Call keep_leaves(X, y) with the training table."
)


class Fingerprint(NamedTuple):
    """Checksum of a training table in old pickles and files, which have none of single rows."""

    is_sparse: bool  # a sparse and a dense table cannot be compared
    digest: int | None  # None: trees were grown on several tables


def is_table_of(
    forest: BaseEstimator, X: Any, codes: np.ndarray, precision: DTypeLike | None = None
) -> bool | None:
    """Whether a table is the one that a forest was fitted on.

    Parameters
    ----------
    forest : fitted forest, ours or scikit-learn's
    X, codes, precision : see `row_fingerprints`

    Returns
    -------
    bool, or None
        None if it is not known: the forest has no fingerprints, or an old one of the other kind.
    """
    if not is_of_one_table(forest):
        return False
    rows, known = (getattr(forest, name, None) for name in ("_row_fingerprints", "_fingerprint"))
    if rows is not None:
        return np.array_equal(rows, row_fingerprints(X, codes, precision))
    if known is None or known.is_sparse != issparse(X):
        return None
    return known.digest == _old_digest(X, codes, precision)


def require_table(
    forest: BaseEstimator, X: Any, codes: np.ndarray, precision: DTypeLike | None = None
) -> None:
    """Raise a ValueError if this is known not to be the table that a forest was fitted on.

    Which rows are out of bag is a matter of their positions in it.
    """
    require_one_table(forest)
    if is_table_of(forest, X, codes, precision) is False:
        raise ValueError(
            f"(X, y) is not the table that the {type(forest).__name__} was fitted on: values or "
            "the order of the rows differ. Pass the training table."
        )


def require_one_table(
    forest: BaseEstimator, end: str = ", so it has no single training table."
) -> None:
    """Raise a ValueError, with this end, if trees drew their rows from several tables or ways."""
    if not is_of_one_table(forest):
        raise ValueError(
            f"The {type(forest).__name__} was fitted on several tables, or drew its rows in "
            f"several ways (warm_start=True){end}"
        )


def is_of_one_table(forest: BaseEstimator) -> bool:
    """Whether all trees drew rows from the same table in the same way, as far as is known."""
    old = getattr(forest, "_fingerprint", None)
    return getattr(forest, "_is_of_one_table", old is None or old.digest is not None)


def _old_digest(X, codes, precision):
    """The checksum of a table, as an old Fingerprint has it."""
    if issparse(X):
        X = X.tocsr().sorted_indices()
        parts = X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, codes
    else:
        parts = X.astype(precision or X.dtype), codes
    digest = 0
    for part in parts:
        digest = crc32(np.ascontiguousarray(part).view(np.uint8).data, digest)
    return digest


class TrainingRows(NamedTuple):
    """The training rows in the order of y, and which of them share a leaf."""

    trees: list  # of cart.tree.tree.Tree: the trees of `members`
    order: np.ndarray  # (n_samples,) int64: row of each rank
    y: np.ndarray  # (n_samples,) float64: target of each rank, ascending
    mass: np.ndarray  # (n_samples,) float64: weight of each rank
    members: np.ndarray  # (n_trees, n_samples) int32: see `forest.inference.leaf_rows`

    def check(self) -> None:
        """Check that the list of every tree has every rank once and as many ends as leaves.

        Raises
        ------
        cart.files.DamagedModelError
        """
        n, members = len(self.order), self.members
        for array, kind in ((self.order, "i"), (self.y, "f"), (self.mass, "f")):
            is_array = isinstance(array, np.ndarray) and array.dtype.kind == kind
            require(
                is_array and array.shape == (n,) and n > 0,
                "order, y and mass of the training rows do not match",
            )
        is_whole = np.array_equal(np.bincount(self.order, minlength=n), np.ones(n))
        require(is_whole, "the training rows are not each there once")
        require(
            self.mass.min() >= 0.0 and self.mass.sum() < np.inf,
            "the weights of the training rows are negative or have no finite sum",
        )
        is_table = isinstance(members, np.ndarray) and members.dtype == np.int32
        require(
            is_table and members.shape == (len(self.trees), n),
            "the rows of leaves do not match the trees",
        )
        for tree, of_tree in zip(self.trees, members, strict=True):
            require(isinstance(tree, Tree), "the rows of leaves have no tree")
            is_last = of_tree < 0
            ranks = np.where(is_last, ~of_tree, of_tree)
            require(ranks.max() < n, "the rows of leaves are not in the table")
            is_whole = np.bincount(ranks, minlength=n).max() == 1
            n_leaves = (tree.node_count + 1) // 2
            is_whole &= is_last[-1] and np.count_nonzero(is_last) == n_leaves
            require(bool(is_whole), "the rows of leaves do not match the leaves")


storable("Fingerprint", Fingerprint)
storable("TrainingRows", TrainingRows)


def is_worth_remembering(target: Target) -> bool:
    """Whether the target is one number per row: only then is the table needed after a fit."""
    return target.labels is None and target.n_outputs == 1


def remember(forest: BaseEstimator, X: Any, target: Target) -> None:
    """Remember the table of a fit, and forget results for an earlier one.

    Parameters
    ----------
    forest : fitted forest
    X : ndarray of shape (n_samples, n_features), or sparse
        As the forest was grown on it. It is not copied.
    target : cart.estimators.target.Target
        If it is not worth remembering, X may be None.
    """
    forget(forest)
    if is_worth_remembering(target):
        _TABLES[forest._bootstrap] = X, target.codes[:, 0].copy()  # it may be the user's array


def forget(forest: BaseEstimator) -> None:
    """Forget a forest's training table, and the results computed from it."""
    for name in _FOUND:
        vars(forest).pop(name, None)
    _TABLES.pop(forest._bootstrap, None)


def training_table(forest: BaseEstimator) -> tuple[Any, np.ndarray]:
    """The table that a forest was fitted on.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order, or csr_matrix
    y : ndarray of shape (n_samples,), float64

    Raises
    ------
    ValueError
        If the forest does not know it.
    """
    table = _TABLES.get(forest._bootstrap)
    if table is None:
        raise ValueError(
            "The forest does not know its training table: it was copied, unpickled or converted. "
            "Call keep_leaves(X, y) with that table. (Pickles keep what was found before: call "
            "keep_leaves() for quantiles, or predict_interval for intervals, before pickling.)"
        )
    X, y = table
    return X.tocsr() if issparse(X) else np.ascontiguousarray(X), y


def keep_leaves(
    forest: BaseEstimator, X: ArrayLike | None = None, y: ArrayLike | None = None
) -> None:
    """Find the leaf of every training row in every tree, and keep it with the forest.

    Parameters
    ----------
    forest : fitted forest regressor with one output
    X : array-like of shape (n_samples, n_features), optional
    y : array-like of shape (n_samples,), optional
        The training table, for a forest that does not know it.

    Raises
    ------
    ValueError
        If there are several outputs, or if the table is not known or is not the one that the trees
        were grown on.
    sklearn.exceptions.NotFittedError
    """
    forest = as_of_now(forest)
    _require_one_output(forest)
    if (X is None) != (y is None):
        raise ValueError("keep_leaves needs both X and y of the training table, or neither.")
    is_given = X is not None
    if is_given:
        table = forest._check_X(X)
        target = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y").ravel()
        check_consistent_length(table, target)
    else:
        table, target = training_table(forest)
    require_one_table(forest)
    if table.shape[0] == forest._n_samples and is_table_of(forest, table, target) is False:
        raise ValueError(_ANOTHER_TABLE)
    rows = list_rows(forest, table, target)
    if is_given:
        remember(forest, table, encode_numbers(target))
    forest._training_rows = rows


def training_rows(forest: BaseEstimator) -> TrainingRows:
    """The training rows of a forest, computed on first use and kept with it.

    Returns
    -------
    TrainingRows

    Raises
    ------
    ValueError
        See `keep_leaves`.
    sklearn.exceptions.NotFittedError
    """
    _require_one_output(forest)
    trees = [estimator.tree_ for estimator in forest.estimators_]
    if not hasattr(forest, "_training_rows") or forest._training_rows.trees != trees:
        keep_leaves(forest)
    return forest._training_rows


def _require_one_output(forest):
    check_is_fitted(forest)
    if forest.n_outputs_ > 1:
        raise ValueError(
            f"The forest has {forest.n_outputs_} outputs, but quantiles and intervals support a "
            "single one: take of_output(forest, 0).keep_leaves(X, y[:, 0])."
        )


def require_as_many_rows(forest: BaseEstimator, X: Any) -> None:
    """Raise a ValueError unless X has as many rows as the training table."""
    if X.shape[0] != forest._n_samples:
        raise ValueError(
            f"X has {X.shape[0]} rows, but the forest was fitted on {forest._n_samples}; pass "
            "its training table."
        )


def list_rows(forest: BaseEstimator, X: Any, y: np.ndarray) -> TrainingRows:
    """List the rows of a table in the order of y, and which of them share a leaf.

    Parameters
    ----------
    forest : fitted forest
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order, or csr_matrix
        The table that its trees were grown on, checked.
    y : ndarray of shape (n_samples,), float64
        A number for every row: the target, or another.

    Returns
    -------
    TrainingRows

    Raises
    ------
    ValueError
        If the leaves do not hold the rows that the trees were grown on.
    """
    require_as_many_rows(forest, X)
    trees = [estimator.tree_ for estimator in forest.estimators_]
    packed, bootstrap = forest._packed(), bootstrap_of(forest)
    order = np.argsort(y, kind="stable")
    weight = forest._row_weight
    mass = np.ones(len(y)) if weight is None else weight[order]
    members = np.empty((len(trees), len(y)), np.int32)
    X = rows_for(packed, X)
    most_nodes = max(tree.node_count for tree in trees)

    def group(first_tree, end_tree):
        end, n_drawn = np.empty(most_nodes, np.int64), np.empty(most_nodes, np.int64)
        for t in range(first_tree, end_tree):
            is_drawn = (bootstrap.counts(t)[order] > 0) & (mass > 0.0)
            n = trees[t].node_count
            nodes = trees[t].expanded
            if not group_by_leaf(
                leaf_ids(packed, t, X, order), is_drawn, nodes.children_left,
                nodes.n_node_samples, end[:n], n_drawn[:n], members[t],
            ):  # fmt: skip
                raise ValueError(_ANOTHER_TABLE)

    in_parts(group, len(trees), forest.n_jobs)
    return TrainingRows(trees, order, y[order], mass, members)


def row_fingerprints(X: Any, codes: np.ndarray, precision: DTypeLike | None = None) -> np.ndarray:
    """The fingerprint of every row, (n_samples,) uint64; equal rows have equal ones.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64, or sparse matrix
    codes : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        Positions of the classes, or numbers.
    precision : dtype, optional
        Precision to which X is cast first; by default its own.
    """
    precision = np.dtype(precision or X.dtype)
    codes = codes.reshape(len(codes), -1)
    prints = _bits(codes) @ _numbers(_Y, codes.shape[1])
    numbers = _numbers(_X, X.shape[1])
    if issparse(X):
        X = X.tocsr()
        terms = _bits(X.data.astype(precision)) * numbers[X.indices]
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))
        return prints + (sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    for some in gen_batches(len(X), max(1, _VALUES_AT_ONCE // X.shape[1])):
        prints[some] += _bits(X[some].astype(precision, order="C", copy=False)) @ numbers
    return prints


def _bits(values):
    """The bits of numbers, folded, since round numbers differ in their upper half only."""
    bits = (values + 0.0).view(f"u{values.itemsize}")  # -0.0 is 0.0
    bits ^= bits >> (4 * values.itemsize)
    return bits


@lru_cache(8)
def _numbers(seed, n):
    """Random odd numbers, one per column; cached, since seeding takes longer than drawing."""
    return np.frombuffer(np.random.RandomState(seed).bytes(8 * n), "<u8").astype(np.uint64) | 1
