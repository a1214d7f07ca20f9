"""Levels, the distinct values of columns, and ties, neighbours that scikit-learn treats as equal.

levels      0.1   0.2   0.20000001   0.3        a cut between two values needs a distance
code        0     1     2            3          of more than FEATURE_THRESHOLD
ties        code = [ 1 ], last = [ 2 ]          tie_span = 1: the largest last - code
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.primitives.sort_keys import first_not_below

# scikit-learn treats two neighbouring values of a feature as equal if they differ by no more.
FEATURE_THRESHOLD = np.float32(1e-7)


class Levels(NamedTuple):
    """Values in single or double precision, as one type for kernels: one of the arrays is empty."""

    single: np.ndarray  # (n,) float32
    double: np.ndarray  # (n,) float64

    @classmethod
    def of(cls, values):
        """Wrap an array of values, without a copy."""
        if values.dtype == np.float64:
            return cls(np.empty(0, np.float32), values)
        return cls(values, np.empty(0))

    @property
    def array(self):
        return self.double if len(self.double) else self.single


@inline_kernel
def level_at(levels, at):
    """Level number `at`, as float64."""
    if levels.double.shape[0] > 0:
        return levels.double[at]
    return np.float64(levels.single[at])


class Ties(NamedTuple):
    """The codes whose values are within FEATURE_THRESHOLD of the next, and count as equal to it."""

    start: np.ndarray  # (n_columns + 1,) int64: column c owns entries start[c]:start[c + 1]
    code: np.ndarray  # (n,) uint32, ascending in a column
    last: np.ndarray  # (n,) uint32: the highest code whose value counts as equal to that of `code`

    @classmethod
    def join(cls, parts):
        """Concatenate the ties of several runs of columns."""
        starts, codes, lasts = zip(*parts, strict=True)
        start = np.cumsum(np.concatenate([[0], *map(np.diff, starts)]))
        return cls(start, np.concatenate(codes), np.concatenate(lasts))

    @classmethod
    def find(cls, levels, level_start):
        """Find the ties of some columns.

        Parameters
        ----------
        levels : ndarray of shape (n_levels,), float32 or float64
            The distinct values, ascending, column after column. Doubles never count as equal.
        level_start : ndarray of shape (n_columns + 1,), int64
        """
        n_columns = len(level_start) - 1
        if levels.dtype == np.float64:
            nothing = np.empty(0, np.uint32)
            return cls(np.zeros(n_columns + 1, np.int64), nothing, nothing)
        is_close = levels[1:] <= levels[:-1] + FEATURE_THRESHOLD
        border = level_start[(level_start > 0) & (level_start < len(levels))]
        is_close[border - 1] = False
        at = np.flatnonzero(is_close)
        start = np.searchsorted(at, level_start)
        last = np.empty(len(at), np.uint32)
        for column in np.flatnonzero(np.diff(start)):
            first, end = start[column : column + 2]
            mine = levels[level_start[column] : level_start[column + 1]]
            farthest = levels[at[first:end]] + FEATURE_THRESHOLD
            last[first:end] = np.searchsorted(mine, farthest, side="right") - 1
        code = at - np.repeat(level_start[:-1], np.diff(start))
        return cls(start, code.astype(np.uint32), last)

    @property
    def tie_span(self):
        """(n_columns,) uint32: the largest distance, in ranks, of values that count as equal."""
        tie_span = np.zeros(len(self.start) - 1, np.uint32)
        has_some = np.flatnonzero(np.diff(self.start))
        if len(has_some):
            tie_span[has_some] = np.maximum.reduceat(self.last - self.code, self.start[has_some])
        return tie_span


@inline_kernel
def last_tied(ties, column, code):
    """The highest code, int64, of a column whose value counts as equal to that of `code`."""
    code = np.int64(code)
    first, end = ties.start[column], ties.start[column + 1]
    at = first + first_not_below(ties.code[first:end], end - first, code)
    return np.int64(ties.last[at]) if at < end and ties.code[at] == code else code
