"""The training table: every column as ranks, built once and shared by all trees and threads."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, issparse

from cart.jit import dispatch, inline_kernel

# scikit-learn takes two neighbouring values of a feature for one if they differ by no more.
FEATURE_THRESHOLD = np.float32(1e-7)

# The code of a missing value.
MISSING = np.uint32(0xFFFFFFFF)


@inline_kernel
def row_of(sample):
    """Row of the table; a sample is the number of its kind above the row, 32 bits each."""
    return np.int64(sample & np.uint64(0xFFFFFFFF))


@dispatch
def gather(table, column, samples, start, n, node, may_list):
    """Copy the codes of samples[start:start + n] in one column into the `node`.

    Returns the lowest and the highest, and of how many samples the codes were copied: all n, or
    with `may_list` perhaps the few that are not 0 in a sparse table, listed in `node.listed`.
    """
    return table.gather(column, samples, start, n, node, may_list)


@dispatch
def zero_code(table, column):
    """The code of the samples that `gather` does not list."""
    return table.zero_code(column)


@dispatch
def next_cut(table, unlisted, p):
    """The next position after `p` to cut ordered samples at; there is none among the unlisted."""
    return table.next_cut(unlisted, p)


@dispatch
def remember(table, samples, start, n, positions):
    """Note that samples[start:start + n] have changed places."""
    table.remember(samples, start, n, positions)


@dispatch
def keeps_order(table):
    """Do samples keep the order of the features looked at before (see `cart.split`)?"""
    return table.keeps_order()


class Table(NamedTuple):
    """Training data as the kernels see it; read-only.

    `columns` says which stored column is feature 0, 1, ...: leaving a feature out is a new
    `columns`, and nothing is copied or sorted again.
    """

    codes: np.ndarray  # (n_columns, n_samples) uint32: rank among the values, or MISSING
    levels: np.ndarray  # (n_levels,) float32: distinct values ascending, column after column
    level_start: np.ndarray  # (n_columns + 1,) int64: column c owns levels[start[c]:start[c + 1]]
    reach: np.ndarray  # (n_columns,) uint32: how many ranks lie within FEATURE_THRESHOLD
    columns: np.ndarray  # (n_features,) int64: the column of each feature

    def without(self, features):
        """The same table without one feature, or without several."""
        return self._replace(columns=np.delete(self.columns, features))

    def gather(self, column, samples, start, n, node, may_list):
        codes = self.codes[column]
        lowest = codes[row_of(samples[start])]
        highest = lowest
        for i in range(n):
            code = codes[row_of(samples[start + i])]
            node.codes[i] = code
            lowest = min(lowest, code)
            highest = max(highest, code)
        return lowest, highest, n

    def zero_code(self, column):
        return np.uint32(0)  # never asked for: every sample is listed

    def next_cut(self, unlisted, p):
        return p + 1

    def remember(self, samples, start, n, positions):
        pass

    def keeps_order(self):
        return True


class SparseTable(NamedTuple):
    """Sparse training data as the kernels see it; read-only. See `Table`."""

    entry_start: np.ndarray  # (n_columns + 1,) int64: column c owns entries start[c]:start[c + 1]
    rows: np.ndarray  # (n_entries,) int32: rows of the non-zero values, ascending per column
    codes: np.ndarray  # (n_entries,) uint32: rank among the column's distinct values
    zero: np.ndarray  # (n_columns,) uint32: rank of 0, where the column has zeros
    levels: np.ndarray  # as in Table
    level_start: np.ndarray
    reach: np.ndarray
    columns: np.ndarray

    def without(self, features):
        """The same table without one feature, or without several."""
        return self._replace(columns=np.delete(self.columns, features))

    def gather(self, column, samples, start, n, node, may_list):
        """Meet the column's entries and ask which of them lie in the node."""
        zero = self.zero[column]
        lowest = np.uint32(0xFFFFFFFF)
        highest = np.uint32(0)
        n_listed = 0
        for entry in range(self.entry_start[column], self.entry_start[column + 1]):
            i = node.positions[self.rows[entry]] - start
            if 0 <= i < n:
                code = self.codes[entry]
                lowest = min(lowest, code)
                highest = max(highest, code)
                node.listed[n_listed] = i
                node.codes[n_listed] = code
                n_listed += 1
        if n_listed < n:
            lowest = min(lowest, zero)
            highest = max(highest, zero)
        if may_list and 2 * n_listed < n:
            return lowest, highest, n_listed
        node.unlisted[:] = 0
        for j in range(n_listed):
            node.spare_codes[j] = node.codes[j]
        for i in range(n):
            node.codes[i] = zero
        for j in range(n_listed):
            node.codes[node.listed[j]] = node.spare_codes[j]
        return lowest, highest, n

    def zero_code(self, column):
        return self.zero[column]

    def next_cut(self, unlisted, p):
        return unlisted[1] if unlisted[0] < p + 1 < unlisted[1] else p + 1

    def remember(self, samples, start, n, positions):
        for i in range(start, start + n):
            positions[row_of(samples[i])] = i

    def keeps_order(self):
        return False  # to keep it would cost the zeros


def encode(X):
    """Rank the columns of X.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32, or sparse
        Finite, or nan where a value is missing (dense only).

    Returns
    -------
    Table or SparseTable
    """
    if issparse(X):
        return _encode_sparse(csc_matrix(X, copy=True))
    n_samples, n_columns = X.shape
    codes = np.empty((n_columns, n_samples), np.uint32)
    levels = []
    for column in range(n_columns):
        levels_c, codes[column] = _rank(np.ascontiguousarray(X[:, column]))
        levels.append(levels_c)
    return Table(codes, *_join(levels), np.arange(n_columns))


def _encode_sparse(X):
    """All columns at once: they are many, and their entries few."""
    X.sum_duplicates()
    X.eliminate_zeros()
    X.sort_indices()
    n_samples, n_columns = X.shape
    n_entries = np.diff(X.indptr)
    column = np.repeat(np.arange(n_columns), n_entries)
    order = np.argsort(_order_keys(column, X.data))
    ordered = X.data[order]
    is_new = np.ones(X.nnz, bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]) | (column[1:] != column[:-1])
    levels, level_column = ordered[is_new], column[is_new]
    n_levels = np.bincount(level_column, minlength=n_columns)
    zero = np.bincount(level_column[levels < 0.0], minlength=n_columns)
    has_zeros = n_entries < n_samples
    start = np.concatenate(([0], np.cumsum(n_levels)))
    codes = np.empty(X.nnz, np.uint32)
    codes[order] = np.cumsum(is_new) - 1 - start[column]
    codes += has_zeros[column] & (X.data > 0.0)
    levels = np.insert(levels, (start[:-1] + zero)[has_zeros], np.float32(0.0))
    start[1:] += np.cumsum(has_zeros)
    return SparseTable(
        X.indptr.astype(np.int64),
        X.indices.astype(np.int32),
        codes,
        zero.astype(np.uint32),
        levels,
        start,
        _reaches(levels, start),
        np.arange(n_columns),
    )


def _order_keys(column, values):
    """Whole numbers in the order of (column, value), for float32 values."""
    bits = values.view(np.uint32)
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return column.astype(np.uint64) << np.uint64(32) | ascending


def _rank(values):
    """Distinct values, ascending, and the rank of each value among them; nan is MISSING."""
    order = np.argsort(values)
    ordered = values[order]
    n_known = len(values) - np.count_nonzero(np.isnan(values))
    is_new = np.ones(n_known, bool)
    np.not_equal(ordered[1:n_known], ordered[: max(n_known - 1, 0)], out=is_new[1:])
    codes = np.empty(len(values), np.uint32)
    codes[order[:n_known]] = np.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
    codes[order[n_known:]] = MISSING
    return ordered[:n_known][is_new], codes


def _join(levels):
    """`levels`, `level_start` and `reach` of a table."""
    start = np.concatenate(([0], np.cumsum([len(v) for v in levels]))).astype(np.int64)
    levels = np.concatenate(levels)
    return levels, start, _reaches(levels, start)


def _reaches(levels, start):
    """Per column the largest distance in ranks between two levels that count as one value."""
    reaches = np.zeros(len(start) - 1, np.uint32)
    is_close = levels[1:] <= levels[:-1] + FEATURE_THRESHOLD
    border = start[(start > 0) & (start < len(levels))]
    is_close[border - 1] = False
    columns = np.searchsorted(start, np.flatnonzero(is_close), side="right") - 1
    for column in np.unique(columns):
        mine = levels[start[column] : start[column + 1]]
        last_within = np.searchsorted(mine, mine + FEATURE_THRESHOLD, side="right") - 1
        reaches[column] = np.max(last_within - np.arange(len(mine)))
    return reaches
