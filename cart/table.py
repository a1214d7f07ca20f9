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
def remember(table, samples, start, n, positions):
    """Prepare to gather the codes of samples[start:start + n]."""
    table.remember(samples, start, n, positions)


@dispatch
def gather(table, column, samples, start, n, positions, out):
    """Copy the codes of samples[start:start + n] in one column; return the lowest and highest."""
    return table.gather(column, samples, start, n, positions, out)


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

    def remember(self, samples, start, n, positions):
        pass

    def gather(self, column, samples, start, n, positions, out):
        codes = self.codes[column]
        lowest = codes[row_of(samples[start])]
        highest = lowest
        for i in range(n):
            code = codes[row_of(samples[start + i])]
            out[i] = code
            lowest = min(lowest, code)
            highest = max(highest, code)
        return lowest, highest


class SparseTable(NamedTuple):
    """Sparse training data as the kernels see it; read-only. See `Table`."""

    entry_start: np.ndarray  # (n_columns + 1,) int64: column c owns entries start[c]:start[c + 1]
    rows: np.ndarray  # (n_entries,) int32: rows of the non-zero values, ascending per column
    codes: np.ndarray  # (n_entries,) uint32: rank among the column's distinct values
    zero: np.ndarray  # (n_columns,) uint32: rank of 0
    levels: np.ndarray  # as in Table
    level_start: np.ndarray
    reach: np.ndarray
    columns: np.ndarray

    def without(self, features):
        """The same table without one feature, or without several."""
        return self._replace(columns=np.delete(self.columns, features))

    def remember(self, samples, start, n, positions):
        for i in range(n):
            positions[row_of(samples[start + i])] = i

    def gather(self, column, samples, start, n, positions, out):
        """Meet the column's entries and ask which of them lie in the node."""
        zero = self.zero[column]
        for i in range(n):
            out[i] = zero
        lowest = np.uint32(0xFFFFFFFF)
        highest = np.uint32(0)
        n_met = 0
        for entry in range(self.entry_start[column], self.entry_start[column + 1]):
            row = np.int64(self.rows[entry])
            i = positions[row]
            if i < n and row_of(samples[start + i]) == row:
                code = self.codes[entry]
                out[i] = code
                lowest = min(lowest, code)
                highest = max(highest, code)
                n_met += 1
        if n_met < n:
            lowest = min(lowest, zero)
            highest = max(highest, zero)
        return lowest, highest


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
    X.sum_duplicates()
    X.eliminate_zeros()
    X.sort_indices()
    n_samples, n_columns = X.shape
    codes = np.empty(X.nnz, np.uint32)
    zero = np.zeros(n_columns, np.uint32)
    levels = []
    for column in range(n_columns):
        mine = slice(X.indptr[column], X.indptr[column + 1])
        levels_c, codes[mine] = _rank(X.data[mine])
        if mine.stop - mine.start < n_samples:
            zero[column] = np.searchsorted(levels_c, np.float32(0.0))
            codes[mine] += codes[mine] >= zero[column]
            levels_c = np.insert(levels_c, zero[column], np.float32(0.0))
        levels.append(levels_c)
    indptr = X.indptr.astype(np.int64)
    rows = X.indices.astype(np.int32)
    return SparseTable(indptr, rows, codes, zero, *_join(levels), np.arange(n_columns))


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
    return np.concatenate(levels), start, np.array([_reach(v) for v in levels], np.uint32)


def _reach(levels):
    """The largest distance in ranks between two levels that count as one value."""
    if len(levels) == 0:
        return 0
    last_within = np.searchsorted(levels, levels + FEATURE_THRESHOLD, side="right") - 1
    return int(np.max(last_within - np.arange(len(levels))))
