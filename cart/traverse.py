"""Send rows down trees: compact nodes, many rows in flight at once.

A packed node is four 32-bit words: feature, threshold, left child, and its number in its Tree with
the highest bit set where missing values go left. Nodes stand in breadth-first order, so the right
child follows the left one; a leaf is its own left child with threshold +inf, so a row that has
arrived stays there and needs no test.

A node that splits on a subset lists the categories of one side; all others go to the other one.

Rows in single precision are compared with thresholds rounded down to float32, which decides as the
thresholds themselves do; rows in double precision with the latter, which lie apart.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from cart.jit import dispatch, entry_kernel, inline_kernel, kernel
from cart.nodes import LEAF

# Rows walked at once: their cache misses overlap (one at a time was 4x slower).
_LANES = 16
_MISSING_LEFT = np.uint32(1 << 31)
SINGLE = np.dtype(np.float32)
# Rows per visit of a tree: the rows and the tree's upper nodes stay in the cache.
_BLOCK = 4096
# Values of a sparse table that are made dense at a time.
_DENSE_VALUES = 4_000_000


class Packed(NamedTuple):
    """One or more trees, ready to be walked; tree t owns nodes start[t]:start[t + 1]."""

    words: np.ndarray  # (4 * n_nodes,) uint32
    floats: np.ndarray  # the same memory as float32: thresholds, rounded down
    threshold: np.ndarray  # (n_nodes,) float64, in packed order
    start: np.ndarray  # (n_trees + 1,) int64
    value: np.ndarray  # (n_nodes, n_values) float64, in packed order

    def goes_right(self, q, x, is_single):
        if is_single:  # known to the compiler
            return np.uint32(x > self.floats[q + np.uint64(1)])
        return np.uint32(x > self.threshold[q >> np.uint64(2)])


class PackedSubsets(NamedTuple):
    """`Packed` trees that split on subsets of categories too."""

    words: np.ndarray
    floats: np.ndarray
    threshold: np.ndarray
    start: np.ndarray
    value: np.ndarray
    list_start: np.ndarray  # (n_nodes,) int64: where in `lists` the node's begins; -1: no subset
    lists: np.ndarray  # uint32: twice the length, plus 1 if they go left; then the categories

    def goes_right(self, q, x, is_single):
        first = self.list_start[q >> np.uint64(2)]
        if first < 0:
            if is_single:
                return np.uint32(x > self.floats[q + np.uint64(1)])
            return np.uint32(x > self.threshold[q >> np.uint64(2)])
        return np.uint32(not is_in_left_subset(self.lists, first, x))


@inline_kernel
def is_in_left_subset(lists, first, category):
    """Does a category go left at the node whose list begins at `first`?"""
    low = first + 1
    end = low + np.int64(lists[first] >> 1)
    high = end
    while low < high:
        middle = (low + high) // 2
        if lists[middle] < category:
            low = middle + 1
        else:
            high = middle
    is_listed = low < end and lists[low] == category
    return is_listed == (lists[first] & 1 == 1)


@dispatch
def goes_right(packed, q, x, is_single):
    """Does value x go right at the packed node whose words begin at q?"""
    return packed.goes_right(q, x, is_single)


def pack(trees):
    """Pack a list of cart.tree.Tree.

    Returns
    -------
    Packed, or PackedSubsets if a tree splits on subsets of categories
    """
    start = np.concatenate(([0], np.cumsum([t.node_count for t in trees])))
    words = np.empty(4 * start[-1], np.uint32)
    exact = np.empty(start[-1])
    value = np.empty((start[-1], trees[0].value.shape[1] * trees[0].value.shape[2]))
    order = np.empty(max(t.node_count for t in trees), np.int64)
    list_start = np.full(start[-1], -1)
    lists = [np.empty(0, np.uint32)]
    for tree, first, end in zip(trees, start, start[1:], strict=False):
        with np.errstate(over="ignore"):
            threshold = np.float32(tree.threshold)
        too_high = threshold > tree.threshold
        threshold[too_high] = np.nextafter(threshold[too_high], np.float32(-np.inf))
        mine = words[4 * first : 4 * end]
        _pack_tree(
            tree.children_left, tree.children_right, tree.feature, tree.threshold, threshold,
            tree.missing_go_to_left, order, mine, mine.view(np.float32), exact[first:end],
        )  # fmt: skip
        value[first:end] = tree.value.reshape(tree.node_count, -1)[order[: end - first]]
        if getattr(tree, "categories", None) is not None:
            begins, listed = tree.categories.in_one(tree.is_subset)
            begins[begins >= 0] += sum(map(len, lists))
            list_start[first:end] = begins[order[: end - first]]
            lists.append(listed)
    packed = Packed(words, words.view(np.float32), exact, start, value)
    if len(lists) == 1:
        return packed
    return PackedSubsets(*packed, list_start, np.concatenate(lists))


@entry_kernel
def _pack_tree(
    left, right, feature, threshold, rounded, missing_left, order, words, floats, exact
):  # fmt: skip
    order[0] = 0
    n_placed = 1
    for i in range(left.shape[0]):
        node = order[i]
        words[4 * i + 3] = node
        if left[node] == LEAF:
            words[4 * i + 3] |= _MISSING_LEFT
            words[4 * i] = 0
            floats[4 * i + 1] = np.inf
            exact[i] = np.inf
            words[4 * i + 2] = i
        else:
            if missing_left[node]:
                words[4 * i + 3] |= _MISSING_LEFT
            words[4 * i] = feature[node]
            floats[4 * i + 1] = rounded[node]
            exact[i] = threshold[node]
            words[4 * i + 2] = n_placed
            order[n_placed] = left[node]
            order[n_placed + 1] = right[node]
            n_placed += 2


@inline_kernel
def _goes_right(packed, q, X, at, may_miss):
    x = X[at]
    if may_miss and np.isnan(x):
        return np.uint32(packed.words[q + np.uint64(3)] < _MISSING_LEFT)
    return goes_right(packed, q, x, X.dtype == SINGLE)


@inline_kernel
def _walk(packed, tree, X, n_features, rows, first, end, may_miss, lane, base, leaf):
    """Packed positions of the leaves that rows[first:end] of X, flattened, reach in one tree."""
    words = packed.words
    origin = np.uint64(packed.start[tree])
    four, two = np.uint64(4), np.uint64(2)
    i = first
    while i < end:
        n = min(_LANES, end - i)
        for j in range(_LANES):  # idle lanes repeat the last row
            base[j] = np.uint64(rows[i + min(j, n - 1)] * n_features)
            lane[j] = 0
        moved = np.uint32(1)
        while moved != 0:
            for _ in range(3):
                for j in range(_LANES):
                    q = (origin + np.uint64(lane[j])) * four
                    at = base[j] + np.uint64(words[q])
                    lane[j] = words[q + two] + _goes_right(packed, q, X, at, may_miss)
            moved = np.uint32(0)
            for j in range(_LANES):
                q = (origin + np.uint64(lane[j])) * four
                at = base[j] + np.uint64(words[q])
                node = words[q + two] + _goes_right(packed, q, X, at, may_miss)
                moved |= node ^ lane[j]
                lane[j] = node
        for j in range(n):
            leaf[i - first + j] = origin + np.uint64(lane[j])
        i += n


@kernel
def _find(packed, tree, X, n_features, rows, first, end, may_miss, scratch):
    """`_walk`, compiled apart for tables without missing values."""
    lane, base, leaf = scratch
    if may_miss:
        _walk(packed, tree, X, n_features, rows, first, end, True, lane, base, leaf)
    else:
        _walk(packed, tree, X, n_features, rows, first, end, False, lane, base, leaf)


@entry_kernel
def add_values(
    packed, first_tree, end_tree, X, n_features, rows, first, end, may_miss, scratch, out
):
    """Add the leaf values of trees first_tree..end_tree to out[rows[first:end]], in tree order."""
    leaf = scratch[2]
    block = first
    while block < end:
        stop = min(block + _BLOCK, end)
        for tree in range(first_tree, end_tree):
            _find(packed, tree, X, n_features, rows, block, stop, may_miss, scratch)
            for i in range(block, stop):
                at = leaf[i - block]
                for k in range(out.shape[1]):
                    out[rows[i], k] += packed.value[at, k]
        block = stop


@entry_kernel
def find_leaves(packed, tree, X, n_features, rows, first, end, may_miss, scratch, out):
    """Numbers, in their Tree, of the leaves that rows[first:end] reach: out[first:end]."""
    leaf = scratch[2]
    block = first
    while block < end:
        stop = min(block + _BLOCK, end)
        _find(packed, tree, X, n_features, rows, block, stop, may_miss, scratch)
        for i in range(block, stop):
            out[i] = packed.words[4 * leaf[i - block] + 3] & ~_MISSING_LEFT
        block = stop


def has_missing(X):
    """Is any value missing? (Sparse tables have none.)"""
    if issparse(X):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum(dtype=np.float64)))


def _dense_parts(X, rows):
    """Some rows of a sparse table at a time, and the same dense."""
    step = max(1, _DENSE_VALUES // X.shape[1])
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        yield part, X[part].toarray()


def create_scratch():
    """What a thread writes to while it walks."""
    return np.zeros(_LANES, np.uint32), np.zeros(_LANES, np.uint64), np.empty(_BLOCK, np.int64)


def leaf_ids(packed, tree, X, rows=None, may_miss=None):
    """Number of the leaf that each row reaches in one tree.

    Parameters
    ----------
    packed : Packed
    tree : int
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order, or csr_matrix
    rows : ndarray of shape (n_rows,), int64, optional
        Rows of X to send; all by default.
    may_miss : bool, optional
        Whether X may have missing values; looked up by default.

    Returns
    -------
    ndarray of shape (n_rows,), int64
    """
    rows = np.arange(X.shape[0]) if rows is None else rows
    if issparse(X):
        parts = [leaf_ids(packed, tree, dense, None, False) for _, dense in _dense_parts(X, rows)]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)
    may_miss = has_missing(X) if may_miss is None else may_miss
    out = np.empty(len(rows), np.int64)
    find_leaves(
        packed, tree, X.ravel(), X.shape[1], rows, 0, len(rows), may_miss,
        create_scratch(), out,
    )  # fmt: skip
    return out


def sum_of_values(packed, X, first_tree=0, end_tree=None, rows=None, out=None, may_miss=None):
    """Sum over trees of the values of the leaves that rows reach, added in tree order.

    Parameters
    ----------
    packed, X, rows, may_miss : see `leaf_ids`
    first_tree, end_tree : int
        Trees first_tree..end_tree - 1; all by default.
    out : ndarray of shape (n_samples, n_values), float64, optional
        Added to in place, at `rows`.

    Returns
    -------
    ndarray of shape (n_samples, n_values), float64
    """
    rows = np.arange(X.shape[0]) if rows is None else rows
    end_tree = len(packed.start) - 1 if end_tree is None else end_tree
    out = np.zeros((X.shape[0], packed.value.shape[1])) if out is None else out
    if issparse(X):
        for part, dense in _dense_parts(X, rows):
            out[part] += sum_of_values(packed, dense, first_tree, end_tree, may_miss=False)
        return out
    may_miss = has_missing(X) if may_miss is None else may_miss
    add_values(
        packed, first_tree, end_tree, X.ravel(), X.shape[1], rows, 0, len(rows), may_miss,
        create_scratch(), out,
    )  # fmt: skip
    return out
