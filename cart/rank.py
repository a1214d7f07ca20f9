"""Rank the values of columns: their distinct values, ascending, and which of them each one is."""

from typing import NamedTuple

import numpy as np

from cart.floats import ordered
from cart.jit import entry_kernel, inline_kernel, kernel
from cart.order import CODE_SHIFT, record_of

# The code of a missing value.
MISSING = np.uint32(0xFFFFFFFF)

# Of the codes that keys are sorted by, the whole of 32 bits.
_DIGIT_BITS, _N_DIGITS = 8, 4

# Values of which one tells of most columns that they are not whole numbers.
_TRIED = 64


class Scratch(NamedTuple):
    """What the ranking of columns writes to, one after another."""

    keys: np.ndarray  # (n,) uint64, see cart.order
    spare: np.ndarray  # (n,) uint64
    counts: np.ndarray  # (_N_DIGITS, 2**_DIGIT_BITS) int64

    @classmethod
    def create(cls, n):
        counts = np.empty((_N_DIGITS, 1 << _DIGIT_BITS), np.int64)
        return cls(np.empty(n, np.uint64), np.empty(n, np.uint64), counts)


def rank(values, n_categories, codes, levels, scratch):
    """Rank the values of columns.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n), float32 or float64, C order
        nan is a missing value.
    n_categories : ndarray of shape (n_columns,), int64
        Of columns of categories 0, 1, ... (less than 0: missing), which are their own ranks; 0 of
        columns of numbers.
    codes : ndarray of shape (n_columns, n), uint32, C order
        Is filled with the rank of each value among the distinct ones; MISSING for nan.
    levels : ndarray, of the type of `values`
        Its beginning is filled with the distinct values, ascending, column after column. There is
        room for all values, and for all categories.
    scratch : Scratch
        For n values at least.

    Returns
    -------
    level_start : ndarray of shape (n_columns + 1,), int64
        Column c owns levels[level_start[c]:level_start[c + 1]].
    """
    n_columns, n = values.shape
    start = n * np.arange(n_columns + 1)
    zero = np.empty(n_columns, np.uint32)  # no column has zeros beside its values
    values, codes = values.reshape(-1), codes.reshape(-1)
    return _rank(values, start, n, n_categories, codes, zero, levels, scratch)


def rank_sparse(X):
    """Rank the values of all columns of a sparse table.

    Parameters
    ----------
    X : csc_matrix of shape (n_samples, n_columns), float32 or float64
        In canonical format, no entry 0 or nan.

    Returns
    -------
    codes : ndarray of shape (n_entries,), uint32
        Rank of each entry among the distinct values of its column, 0 included where it has any.
    zero : ndarray of shape (n_columns,), uint32
        Rank of 0, where the column has zeros.
    levels : ndarray of shape (n_levels,), of the type of X
        Distinct values, ascending, column after column.
    level_start
        See `rank`.
    """
    n_samples, n_columns = X.shape
    start = X.indptr.astype(np.int64, copy=False)
    codes = np.empty(X.nnz, np.uint32)
    zero = np.empty(n_columns, np.uint32)
    scratch = Scratch.create(int(np.diff(start).max(initial=0)))
    no_categories = np.zeros(n_columns, np.int64)
    levels = np.empty(X.nnz + n_columns, X.dtype)
    level_start = _rank(X.data, start, n_samples, no_categories, codes, zero, levels, scratch)
    levels.resize(level_start[-1], refcheck=False)  # in place
    return codes, zero, levels, level_start


def _rank(values, start, n_samples, n_categories, codes, zero, levels, scratch):
    level_start = np.zeros(len(start), np.int64)
    bits = values.view(f"u{values.itemsize}")
    _rank_columns(
        values, bits, start, n_samples, n_categories, codes, zero, levels, level_start, *scratch
    )
    return level_start


@entry_kernel
def _rank_columns(
    values, bits, start, n_samples, n_categories,
    codes, zero, levels, level_start, keys, spare, counts,
):  # fmt: skip
    for column in range(zero.shape[0]):
        first, end = start[column], start[column + 1]
        mine = codes[first:end]
        ranked = levels[level_start[column] :]
        n_levels = n_categories[column]
        place = 0
        if n_levels > 0:
            _take_categories(values[first:end], mine, ranked, n_levels)
        else:
            n_levels = _rank_values(
                values[first:end], bits[first:end], mine, ranked, keys, spare, counts
            )
        if end - first < n_samples:
            while place < n_levels and ranked[place] < 0.0:
                place += 1
            for level in range(n_levels, place, -1):
                ranked[level] = ranked[level - 1]
            ranked[place] = 0.0
            n_levels += 1
            for i in range(mine.shape[0]):
                mine[i] += mine[i] >= place
        zero[column] = place
        level_start[column + 1] = level_start[column] + n_levels


@kernel
def _take_categories(values, codes, levels, n_categories):
    for i in range(values.shape[0]):
        codes[i] = np.uint32(values[i]) if values[i] >= 0.0 else MISSING
    for category in range(n_categories):
        levels[category] = category


@kernel
def _rank_values(values, bits, codes, levels, keys, spare, counts):
    n_levels = _rank_near_whole_numbers(values, codes, levels, keys)
    if n_levels > 0:
        return n_levels
    n = 0  # how many are not missing
    for i in range(values.shape[0]):
        codes[i] = MISSING
        keys[n] = i
        n += not np.isnan(values[i])
    # The lower half of a double first: sorting is stable.
    for half in range(bits.itemsize // 4):
        for j in range(n):
            i = record_of(keys[j])
            code = ordered(np.uint64(bits[i]), 8 * bits.itemsize) >> np.uint64(32 * half)
            keys[j] = code << CODE_SHIFT | np.uint64(i)
        if _sort(keys, n, counts, spare) == 1:
            keys, spare = spare, keys
    n_levels = 0
    for j in range(n):
        i = record_of(keys[j])
        if n_levels == 0 or values[i] != levels[n_levels - 1]:
            levels[n_levels] = values[i]
            n_levels += 1
        codes[i] = n_levels - 1
    return n_levels


@kernel
def _rank_near_whole_numbers(values, codes, levels, ranks):
    """Rank whole numbers in a range not longer than they are many: they are their own places in a
    table, and nothing is sorted. Returns how many are distinct; 0 for other values."""
    n = values.shape[0]
    for i in range(min(n, _TRIED)):
        if values[i] != np.floor(values[i]):  # nan too
            return 0
    lowest = np.inf
    highest = -np.inf
    is_whole = True
    for i in range(n):
        value = np.float64(values[i])
        is_whole &= value == np.floor(value)
        lowest = min(lowest, value)
        highest = max(highest, value)
    if not (is_whole and 0.0 <= highest - lowest < n):
        return 0
    n_places = np.int64(highest - lowest) + 1
    for place in range(n_places):
        ranks[place] = 0
    for i in range(n):
        ranks[np.int64(values[i] - lowest)] = 1
    n_levels = 0
    for place in range(n_places):
        if ranks[place] > 0:
            ranks[place] = n_levels
            levels[n_levels] = lowest + place
            n_levels += 1
    for i in range(n):
        codes[i] = ranks[np.int64(values[i] - lowest)]
    return n_levels


@kernel
def _sort(keys, n, counts, spare):
    """Sort keys[:n] by code, digit by digit; passes over digits that are the same in all.

    Returns where they are: 0 for `keys`, 1 for `spare`.
    """
    counts[:] = 0
    for j in range(n):
        for digit in range(_N_DIGITS):
            counts[digit, _digit_of(keys[j], digit)] += 1
    place = 0
    for digit in range(_N_DIGITS):
        if n == 0 or counts[digit, _digit_of(keys[0], digit)] == n:
            continue
        before = 0
        for d in range(1 << _DIGIT_BITS):
            here = counts[digit, d]
            counts[digit, d] = before
            before += here
        for j in range(n):
            d = _digit_of(keys[j], digit)
            spare[counts[digit, d]] = keys[j]
            counts[digit, d] += 1
        keys, spare = spare, keys
        place = 1 - place
    return place


@inline_kernel
def _digit_of(key, digit):
    shift = CODE_SHIFT + np.uint64(digit * _DIGIT_BITS)
    return np.int64((key >> shift) & np.uint64((1 << _DIGIT_BITS) - 1))
