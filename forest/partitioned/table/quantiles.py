"""Bins of a table in partitions: exactly those that `max_bins` makes of the whole table.

A partition keeps its columns sorted, as unsigned numbers in the order of the values, and counts how
many of them are at most equal to given numbers. Quantiles of the whole table are searched four bits
at a time, in eight rounds for single precision and 16 for double (eight bits at a time would take
half as many rounds, with answers 16 times as long):

    wanted: the 300th of 1000 values          up to 0x2FFFFFFF there are 250, up to 0x3FFFFFFF 450
                                              up to 0x3eFFFFFF           290, up to 0x3fFFFFFF 450
                                              up to 0x3f0FFFFF           291, up to 0x3f1FFFFF 305
                                              ... 0x3f12a45c is the smallest with 300 or more

(Bins: see `cart.table.bins`.)
"""

from functools import partial
from operator import add
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel
from cart.splitting.category_subsets import CategoricalTable
from cart.table.bins import MAX_BINS
from cart.table.distinct_values import Levels, Ties
from cart.table.table import Table

_DIGIT = 4  # bits


class Bins(NamedTuple):
    """The bins of all columns."""

    levels: list  # per column: ndarray of shape (n_bins,), float32 or float64: smallest values
    tops: list  # per column: largest values
    is_cut: np.ndarray  # (n_columns,) bool: whether there are fewer bins than distinct values
    n_categories: np.ndarray | None = None  # (n_columns,) int64: 0 for numbers; None: no categories

    def with_categories(self, n_categories):
        """The same bins, but a code for each category in columns of categories."""
        values = [np.arange(n, dtype=self.levels[0].dtype) for n in n_categories]
        levels, tops = (
            [mine if len(mine) else known for mine, known in zip(values, old, strict=True)]
            for old in (self.levels, self.tops)
        )
        return Bins(levels, tops, self.is_cut & (n_categories == 0), n_categories)

    def table(self):
        """A Table or CategoricalTable of these bins, without codes."""
        start = np.cumsum([0, *map(len, self.levels)])
        values = np.concatenate(self.levels)
        ties = Ties.find(values, start)
        span = np.where(self.is_cut, 0, ties.tie_span).astype(np.uint32)
        n_columns = len(self.levels)
        table = Table(
            np.empty((n_columns, 0), np.uint32), Levels.of(values),
            Levels.of(np.concatenate(self.tops)), start, ties, span, np.arange(n_columns),
        )  # fmt: skip
        return table if self.n_categories is None else CategoricalTable(*table, self.n_categories)


def sort_columns(X):
    """Sort the columns of a partition.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns), float32 or float64

    Returns
    -------
    list of ndarray, uint32 or uint64
        For each column, its values that are not missing, as ascending keys.
    """
    keys = []
    for column in X.T:
        column = np.ascontiguousarray(column)
        mine = _keys_of(column[~np.isnan(column)])
        mine.sort()
        keys.append(mine)
    return keys


def _keys_of(values):
    """Keys of values: unsigned numbers in the same order; both zeros have the same key."""
    kind = np.dtype(f"u{values.itemsize}")
    bits = (values + values.dtype.type(0)).view(kind)  # -0.0 + 0.0 is 0.0
    sign = kind.type(1 << (8 * kind.itemsize - 1))
    return np.where(bits >= sign, ~bits, bits | sign)


def _values_of(keys):
    kind = keys.dtype
    sign = kind.type(1 << (8 * kind.itemsize - 1))
    bits = np.where(keys >= sign, keys ^ sign, ~keys)
    return bits.view(f"f{kind.itemsize}")


# ------------------------------------------- answers of partitions, and how they are joined


class FewValues(NamedTuple):
    """Number of a column's values that are not missing, and the distinct ones, unless too many."""

    n_known: int
    keys: np.ndarray | None

    def join(self, other):
        keys = None
        if self.keys is not None and other.keys is not None:
            keys = np.union1d(self.keys, other.keys)
            keys = keys if len(keys) <= MAX_BINS else None
        return FewValues(self.n_known + other.n_known, keys)


def few_values(columns):
    """The FewValues of every column of a partition."""
    found = []
    for keys in columns:
        is_new = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        is_few = np.count_nonzero(is_new) <= MAX_BINS
        found.append(FewValues(len(keys), keys[is_new] if is_few else None))
    return found


def count_up_to(columns, wanted):
    """Count the values of a partition that are at most equal to each of some keys.

    Parameters
    ----------
    columns : list of ndarray
        See `sort_columns`.
    wanted : list of (int, ndarray)
        Numbers of columns, and ascending keys.

    Returns
    -------
    list of ndarray, int64
    """
    return [np.searchsorted(columns[j], keys, side="right") for j, keys in wanted]


def next_above(columns, wanted):
    """The smallest key of a partition above each given key; the dtype's maximum if none is."""
    found = []
    for j, keys in wanted:
        last = columns[j].dtype.type(np.iinfo(columns[j].dtype).max)
        at = np.searchsorted(columns[j], keys, side="right")
        found.append(np.append(columns[j], last)[at])
    return found


def join_each(join, one, other):
    """Join the answers of two partitions item by item."""
    return [join(a, b) for a, b in zip(one, other, strict=True)]


# -------------------------------------------------------------------------- the whole table


def find_bins(engine, sorted_parts, max_bins, precision):
    """Find the bins of the whole table.

    Parameters
    ----------
    engine : forest.partitioned.engines.Engine
    sorted_parts : handle of the sorted columns of the partitions
    max_bins : int
    precision : dtype

    Returns
    -------
    Bins
    """
    kind = np.dtype(f"u{np.dtype(precision).itemsize}")
    few = engine.reduce(few_values, partial(join_each, FewValues.join), sorted_parts)
    levels = [column.keys for column in few]
    is_cut = np.array([keys is None or len(keys) > max_bins for keys in levels])
    tops = list(levels)
    cut = np.flatnonzero(is_cut)
    if len(cut):
        found = _find_quantiles(
            engine, sorted_parts, cut, [few[j].n_known for j in cut], max_bins, kind
        )
        begins = [np.concatenate((np.zeros(1, kind), keys[:-1])) for keys in found]
        # The key 0 is below the first bin: only a nan has it.
        wanted = list(zip(cut.tolist(), begins, strict=True))
        join = partial(join_each, np.minimum)
        firsts = engine.reduce(next_above, join, sorted_parts, common=(wanted,))
        for j, top, first in zip(cut, found, firsts, strict=True):
            levels[j], tops[j] = first.astype(kind), top
    return Bins([_values_of(k) for k in levels], [_values_of(k) for k in tops], is_cut)


def _find_quantiles(engine, sorted_parts, cut, n_known, max_bins, kind):
    """For each of the columns `cut`, the largest keys of its bins."""
    n_bits = 8 * kind.itemsize
    # Positions of the bins' ends among the sorted values, counted from 1.
    wanted = [-(-n * np.arange(1, max_bins + 1) // max_bins) for n in n_known]
    prefix = [np.zeros(max_bins, kind) for _ in cut]
    for shift in range(n_bits - _DIGIT, -1, -_DIGIT):
        below = kind.type((1 << shift) - 1)
        digits = np.arange(1 << _DIGIT, dtype=kind) << kind.type(shift)
        known = [np.unique(keys) for keys in prefix]
        asked = [(keys[:, None] | digits | below).ravel() for keys in known]
        counts = engine.reduce(
            count_up_to, partial(join_each, add), sorted_parts,
            common=(list(zip(cut.tolist(), asked, strict=True)),),
        )  # fmt: skip
        for i in range(len(cut)):
            at = np.searchsorted(counts[i], wanted[i])  # first count that reaches the position
            prefix[i] = asked[i][at] & ~below
    return [np.unique(keys) for keys in prefix]


def find_codes(X, bins, codes):
    """Write the codes of a partition, and return them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns), float32 or float64
    bins : Bins
    codes : ndarray of shape (n_columns, n_rows)
        Output; the highest number of its dtype is a missing value.
    """
    missing = np.iinfo(codes.dtype).max
    for j, tops in enumerate(bins.tops):
        _find_codes(np.require(X[:, j], requirements="CW"), tops, codes[j], missing)
    return codes


@entry_kernel
def _find_codes(values, tops, codes, missing):
    """Write the number of tops below each value; no value is above the last top."""
    for i in range(values.shape[0]):
        value = values[i]
        if value != value:
            codes[i] = missing
            continue
        low, length = 0, tops.shape[0]
        while length > 1:  # binary search without branches, which would be unpredictable
            half = length // 2
            low += half * (tops[low + half - 1] < value)
            length -= half
        codes[i] = low + (tops[low] < value)
