"""The training table: every column as ranks, built once and shared by all trees and threads."""

from typing import NamedTuple

import numpy as np

# scikit-learn takes two neighbouring values of a feature for one if they differ by no more.
FEATURE_THRESHOLD = np.float32(1e-7)

# The code of a missing value.
MISSING = np.uint32(0xFFFFFFFF)


class Table(NamedTuple):
    """Training data as the kernels see it; read-only.

    `columns` says which stored column is feature 0, 1, ...: leaving a feature out is a new
    `columns`, and nothing is copied or sorted again.
    """

    codes: (
        np.ndarray
    )  # (n_columns, n_samples) uint32: rank among the column's distinct values, or MISSING
    levels: np.ndarray  # (n_levels,) float32: distinct values ascending, column after column
    level_start: np.ndarray  # (n_columns + 1,) int64: column c owns levels[start[c]:start[c + 1]]
    reach: np.ndarray  # (n_columns,) uint32: how many ranks lie within FEATURE_THRESHOLD
    columns: np.ndarray  # (n_features,) int64: the column of each feature

    def without(self, features):
        """The same table without one feature, or without several."""
        return self._replace(columns=np.delete(self.columns, features))


def encode(X):
    """Rank the columns of X.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32
        Finite, or nan where a value is missing.

    Returns
    -------
    Table
    """
    n_samples, n_columns = X.shape
    codes = np.empty((n_columns, n_samples), np.uint32)
    levels = []
    for column in range(n_columns):
        values = np.ascontiguousarray(X[:, column])
        order = np.argsort(values)
        ordered = values[order]
        n_known = n_samples - np.count_nonzero(np.isnan(values))
        is_new = np.ones(n_known, bool)
        np.not_equal(ordered[1:n_known], ordered[: n_known - 1], out=is_new[1:])
        levels.append(ordered[:n_known][is_new])
        codes[column, order[:n_known]] = np.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
        codes[column, order[n_known:]] = MISSING
    return Table(
        codes=codes,
        levels=np.concatenate(levels),
        level_start=np.concatenate(([0], np.cumsum([len(v) for v in levels]))).astype(np.int64),
        reach=np.array([_reach(v) for v in levels], np.uint32),
        columns=np.arange(n_columns),
    )


def _reach(levels):
    """The largest distance in ranks between two levels that count as one value."""
    if len(levels) == 0:
        return 0
    last_within = np.searchsorted(levels, levels + FEATURE_THRESHOLD, side="right") - 1
    return int(np.max(last_within - np.arange(len(levels))))
