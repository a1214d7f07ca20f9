"""Send rows down packed trees, many rows in flight at once."""

import numpy as np
from scipy.sparse import issparse

from cart.jit import entry_kernel, inline_kernel
from cart.packed import MISSING_LEFT, Rows, step

# Rows walked at once: their cache misses overlap (one at a time was 4x slower).
_LANES = 16
# Values of the rows that visit a tree before the next one is fetched: rows and tree stay in the
# cache. With fewer, trees are fetched more often.
_BLOCK_VALUES = 1 << 18
_MIN_BLOCK = 1 << 10
# Values of a sparse table that are made dense at a time.
_DENSE_VALUES = 4_000_000


@inline_kernel
def _walk(packed, first, X, n_features, rows, i, n, may_miss, row, place):
    """Send rows[i:i + n], n <= _LANES, down one tree: place[:n] are their leaves."""
    for j in range(_LANES):  # idle lanes repeat the last row
        row[j] = np.uint64(rows[i + min(j, n - 1)] * n_features)
        place[j] = 0
    moved = np.uint32(1)
    while moved != 0:
        for _ in range(3):
            for j in range(_LANES):
                place[j] = step(packed, first, place[j], X, row[j], may_miss)
        moved = np.uint32(0)
        for j in range(_LANES):
            to = step(packed, first, place[j], X, row[j], may_miss)
            moved |= to ^ place[j]
            place[j] = to


@inline_kernel
def _add(packed, first_tree, end_tree, X, n_features, rows, block, may_miss, lanes, out):
    row, place = lanes
    n_rows = rows.shape[0]
    for begin in range(0, n_rows, block):
        for tree in range(first_tree, end_tree):
            first = np.uint64(packed.start[tree])
            end = min(begin + block, n_rows)
            for i in range(begin, end, _LANES):
                n = min(_LANES, end - i)
                _walk(packed, first, X, n_features, rows, i, n, may_miss, row, place)
                for j in range(n):
                    at = packed.value_at[first + np.uint64(place[j])]
                    for k in range(out.shape[1]):
                        out[rows[i + j], k] += packed.value[at, k]


@entry_kernel
def _add_values(packed, first_tree, end_tree, X, n_features, rows, block, may_miss, lanes, out):
    """Add the leaf values of trees first_tree..end_tree to out[rows], in tree order."""
    if may_miss:  # known to the compiler
        _add(packed, first_tree, end_tree, X, n_features, rows, block, True, lanes, out)
    else:
        _add(packed, first_tree, end_tree, X, n_features, rows, block, False, lanes, out)


@inline_kernel
def _find(packed, tree, X, n_features, rows, may_miss, lanes, out):
    row, place = lanes
    first = np.uint64(packed.start[tree])
    for i in range(0, rows.shape[0], _LANES):
        n = min(_LANES, rows.shape[0] - i)
        _walk(packed, first, X, n_features, rows, i, n, may_miss, row, place)
        for j in range(n):
            out[i + j] = packed.number[first + np.uint64(place[j])] & ~MISSING_LEFT


@entry_kernel
def _find_leaves(packed, tree, X, n_features, rows, may_miss, lanes, out):
    """Numbers, in their Tree, of the leaves that `rows` reach."""
    if may_miss:
        _find(packed, tree, X, n_features, rows, True, lanes, out)
    else:
        _find(packed, tree, X, n_features, rows, False, lanes, out)


def _create_lanes():
    """Where the values of the rows in flight begin, and the places that they have reached."""
    return np.zeros(_LANES, np.uint64), np.zeros(_LANES, np.uint32)


def _dense_parts(X, rows):
    """Some rows of a sparse table at a time, and the same dense."""
    step_size = max(1, _DENSE_VALUES // X.shape[1])
    for first in range(0, len(rows), step_size):
        part = rows[first : first + step_size]
        yield part, X[part].toarray()


def leaf_ids(packed, tree, X, rows=None):
    """Number of the leaf that each row reaches in one tree.

    Parameters
    ----------
    packed : cart.packed.Packed or PackedWide
    tree : int
    X : cart.packed.Rows; or ndarray of shape (n_samples, n_features) in C order, of the dtype \
    that `packed` was made for; or csr_matrix
    rows : ndarray of shape (n_rows,), int64, optional
        Rows of X to send; all by default.

    Returns
    -------
    ndarray of shape (n_rows,), int64
    """
    if issparse(X):
        rows = np.arange(X.shape[0]) if rows is None else rows
        parts = [leaf_ids(packed, tree, dense) for _, dense in _dense_parts(X, rows)]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)
    X = X if isinstance(X, Rows) else Rows.of(packed, X)
    rows = np.arange(X.n_samples) if rows is None else rows
    out = np.empty(len(rows), np.int64)
    _find_leaves(
        packed, tree, X.values, X.n_features, rows, X.may_miss, _create_lanes(), out,
    )  # fmt: skip
    return out


def sum_of_values(packed, X, first_tree=0, end_tree=None, rows=None, out=None):
    """Sum over trees of the values of the leaves that rows reach, added in tree order.

    Parameters
    ----------
    packed, X, rows : see `leaf_ids`
    first_tree, end_tree : int
        Trees first_tree..end_tree - 1; all by default.
    out : ndarray of shape (n_samples, n_values), float64, optional
        Added to in place, at `rows`.

    Returns
    -------
    ndarray of shape (n_samples, n_values), float64
    """
    end_tree = len(packed.start) - 1 if end_tree is None else end_tree
    if issparse(X):
        rows = np.arange(X.shape[0]) if rows is None else rows
        out = np.zeros((X.shape[0], packed.value.shape[1])) if out is None else out
        for part, dense in _dense_parts(X, rows):
            out[part] += sum_of_values(packed, dense, first_tree, end_tree)
        return out
    X = X if isinstance(X, Rows) else Rows.of(packed, X)
    rows = np.arange(X.n_samples) if rows is None else rows
    out = np.zeros((X.n_samples, packed.value.shape[1])) if out is None else out
    block = max(_MIN_BLOCK, _BLOCK_VALUES // X.n_features)
    _add_values(
        packed, first_tree, end_tree, X.values, X.n_features, rows, block, X.may_miss,
        _create_lanes(), out,
    )  # fmt: skip
    return out
