"""Rank columns: find their distinct values (levels), and the rank of every value (its code).

Whole numbers in a short range index a table of ranks. Other values are sorted together with their
rows, and numbered anew where the value changes:

    values   [ 0.5  0.1  2.0  0.5 ]
    keys     [ 0.1|1   0.5|0  0.5|3   2.0|2 ]     sorted, value | row
    levels   [ 0.1     0.5            2.0   ]
    codes    [ 1    0    2    1   ]               codes[row] = number of the level
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.primitives.float_order import bits_in_order, ordered
from cart.primitives.sort_keys import CODE_SHIFT, record_of

# The code of a missing value.
MISSING = np.uint32(0xFFFFFFFF)
_ZERO = np.uint32(0xFFFFFFFE)  # stands for the rank of 0 until that is known

# Digits of the 32 bits that keys are sorted by. Below _FEW keys they are shorter, as the counts of
# short digits cost less.
_FEW, _FEW_BITS, _DIGIT_BITS = 1 << 12, 8, 11
_N_COUNTS = 3 << _DIGIT_BITS

# First values to check: if a column is not of whole numbers, one of these usually shows it.
_TRIED = 64


class Scratch(NamedTuple):
    """Work space for ranking columns one after another."""

    keys: np.ndarray  # (n,) uint64, see cart.primitives.sort_keys
    spare: np.ndarray  # (n,) uint64
    counts: np.ndarray  # (_N_COUNTS,) int32

    @classmethod
    def create(cls, n):
        counts = np.empty(_N_COUNTS, np.int32)
        return cls(np.empty(n, np.uint64), np.empty(n, np.uint64), counts)


def rank(values, n_categories, codes, levels, scratch):
    """Rank the values of columns.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n), float32 or float64, C order
        nan is a missing value.
    n_categories : ndarray of shape (n_columns,), int64
        Of columns of categories 0, 1, ... (less than 0: missing), which are their own ranks; 0 for
        columns of numbers.
    codes : ndarray of shape (n_columns, n), uint32, C order
        Is filled with the rank of each value among the distinct ones; MISSING for nan. May share
        the memory of `values` if these have 32 bits.
    levels : ndarray, of the dtype of `values`
        Its beginning is filled with the distinct values, ascending, column after column. It must
        have room for all values, and for all categories.
    scratch : Scratch
        For at least n values.

    Returns
    -------
    level_start : ndarray of shape (n_columns + 1,), int64
        Column c owns levels[level_start[c]:level_start[c + 1]].
    """
    n_columns, n = values.shape
    start = n * np.arange(n_columns + 1)
    zero = np.empty(n_columns, np.uint32)  # dense columns have no implicit zeros
    values, codes = values.reshape(-1), codes.reshape(-1)
    return _rank(values, start, n, n_categories, codes, zero, levels, scratch)


def rank_sparse(X):
    """Rank the values of all columns of a sparse table.

    Parameters
    ----------
    X : csc_matrix of shape (n_samples, n_columns), float32 or float64
        In canonical format, without entries that are 0 or nan.

    Returns
    -------
    codes : ndarray of shape (n_entries,), uint32
        Rank of each entry among the distinct values of its column, including 0 if it has zeros.
    zero : ndarray of shape (n_columns,), uint32
        Rank of 0, if the column has zeros.
    levels : ndarray of shape (n_levels,), of the dtype of X
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
    bits, level_bits = (array.view(f"u{array.itemsize}") for array in (values, levels))
    source = _Values(values, bits, start, n_samples, n_categories)
    _rank_columns(source, _Ranks(codes, zero, levels, level_bits, level_start), scratch)
    return level_start


class _Values(NamedTuple):
    """Values of columns, one after another."""

    values: np.ndarray  # float32 or float64
    bits: np.ndarray  # their memory, uint32 or uint64
    start: np.ndarray  # (n_columns + 1,) int64: column c owns values[start[c]:start[c + 1]]
    n_samples: int  # if a column has fewer values, the others are 0
    n_categories: np.ndarray  # (n_columns,) int64


class _Ranks(NamedTuple):
    """The results of ranking; see `rank` and `rank_sparse`."""

    codes: np.ndarray
    zero: np.ndarray
    levels: np.ndarray
    level_bits: np.ndarray  # the memory of `levels`
    level_start: np.ndarray


@entry_kernel
def _rank_columns(source, ranks, scratch):
    level_start = ranks.level_start
    for column in range(ranks.zero.shape[0]):
        first, end = source.start[column], source.start[column + 1]
        values, codes = source.values[first:end], ranks.codes[first:end]
        levels = ranks.levels[level_start[column] :]
        n_levels = source.n_categories[column]
        if n_levels > 0:
            _take_categories(values, codes, levels, n_levels)
        else:
            bits = source.bits[first:end]
            level_bits = ranks.level_bits[level_start[column] :]
            n_levels = _rank_values(
                values, bits, codes, levels, level_bits, scratch.keys, scratch.spare, scratch.counts
            )
        ranks.zero[column] = 0
        if end - first < source.n_samples:
            ranks.zero[column] = _insert_zero(codes, levels, n_levels)
            n_levels += 1
        level_start[column + 1] = level_start[column] + n_levels


@kernel
def _insert_zero(codes, levels, n_levels):
    """Insert 0 into the levels, and shift the codes above it; return its rank."""
    place = 0
    while place < n_levels and levels[place] < 0.0:
        place += 1
    for level in range(n_levels, place, -1):
        levels[level] = levels[level - 1]
    levels[place] = 0.0
    for i in range(codes.shape[0]):
        codes[i] += codes[i] >= place
    return place


@kernel
def _take_categories(values, codes, levels, n_categories):
    for i in range(values.shape[0]):
        codes[i] = np.uint32(values[i]) if values[i] >= 0.0 else MISSING
    for category in range(n_categories):
        levels[category] = category


@kernel
def _rank_values(values, bits, codes, levels, level_bits, keys, spare, counts):
    """Rank the values of a column; return how many are distinct.

    `bits` and `level_bits` are the memory of `values` and `levels`.
    """
    n_levels = _rank_near_whole_numbers(values, codes, levels, keys)
    if n_levels > 0:
        return n_levels
    n, n_zeros = 0, 0  # values that are to be sorted; zeros, often most of a column, are not
    for i in range(values.shape[0]):
        if np.isnan(values[i]):
            codes[i] = MISSING
        elif values[i] == 0.0:
            codes[i] = _ZERO
            n_zeros += 1
        else:
            keys[n] = i
            n += 1
    # Sort doubles by their lower half first, then by the upper one: the sort is stable.
    for half in range(bits.itemsize // 4):
        for j in range(n):
            i = record_of(keys[j])
            code = ordered(np.uint64(bits[i]), 8 * bits.itemsize) >> np.uint64(32 * half)
            keys[j] = code << CODE_SHIFT | np.uint64(i)
        if _sort(keys, n, counts, spare) == 1:
            keys, spare = spare, keys
    n_levels, zero = 0, -1
    before, number_of_zero = np.uint64(0), ordered(np.uint64(0), 8 * bits.itemsize)
    for j in range(n):
        i = record_of(keys[j])
        # A key holds all bits of a single-precision value.
        is_single = bits.itemsize == 4
        number = keys[j] >> CODE_SHIFT if is_single else ordered(np.uint64(bits[i]), 64)
        if j == 0 or number != before:
            if n_zeros > 0 and zero < 0 and number > number_of_zero:
                zero, level_bits[n_levels] = n_levels, 0
                n_levels += 1
            level_bits[n_levels] = bits_in_order(number, 8 * bits.itemsize)
            n_levels += 1
            before = number
        codes[i] = n_levels - 1
    if n_zeros > 0:
        if zero < 0:
            zero, level_bits[n_levels] = n_levels, 0
            n_levels += 1
        for i in range(values.shape[0]):
            codes[i] = zero if codes[i] == _ZERO else codes[i]
    return n_levels


@kernel
def _rank_near_whole_numbers(values, codes, levels, ranks):
    """Rank whole numbers whose range is shorter than n, by a table, without sorting.

    Missing values have the last place of the table. Returns how many numbers are distinct; 0 if the
    values are not such.
    """
    n = values.shape[0]
    for i in range(min(n, _TRIED)):
        if values[i] != np.floor(values[i]) and not np.isnan(values[i]):
            return 0
    lowest = np.inf
    highest = -np.inf
    is_whole, some_missing = True, False
    for i in range(n):
        value = np.float64(values[i])
        is_missing = np.isnan(value)
        is_whole &= is_missing | (value == np.floor(value))
        some_missing |= is_missing
        lowest = value if value < lowest else lowest  # never nan
        highest = value if value > highest else highest
    if not (is_whole and 0.0 <= highest - lowest < n - some_missing):
        return 0
    n_places = np.int64(highest - lowest) + 1
    for place in range(n_places):
        ranks[place] = 0
    for i in range(n):
        ranks[_place_of(values[i], lowest, n_places - 1 + some_missing)] = 1
    n_levels = 0
    for place in range(n_places):
        if ranks[place] > 0:
            ranks[place] = n_levels
            levels[n_levels] = lowest + place
            n_levels += 1
    if some_missing:
        ranks[n_places] = MISSING
    for i in range(n):
        codes[i] = ranks[_place_of(values[i], lowest, n_places - 1 + some_missing)]
    return n_levels


@inline_kernel
def _place_of(value, lowest, last):
    """Where the table of ranks has a whole number, or a missing value, which is the last."""
    return last if np.isnan(value) else np.int64(value - lowest)


@kernel
def _sort(keys, n, counts, spare):
    """Sort keys[:n] by code. Return where the result is: 0 for `keys`, 1 for `spare`."""
    if n < _FEW:
        return _sort_by_digits(keys, n, _FEW_BITS, 32 // _FEW_BITS, counts, spare)
    return _sort_by_digits(keys, n, _DIGIT_BITS, _N_COUNTS >> _DIGIT_BITS, counts, spare)


@inline_kernel
def _sort_by_digits(keys, n, digit_bits, n_digits, counts, spare):
    """As `_sort`, digit by digit; a digit that is the same in all keys is skipped. The sort that
    other modules share is slower here (decision 042)."""
    size = 1 << digit_bits
    mask = np.uint64(size - 1)
    for d in range(n_digits * size):
        counts[d] = 0
    for j in range(n):
        code = keys[j] >> CODE_SHIFT
        for digit in range(n_digits):
            counts[np.uint64(digit * size) + (code & mask)] += np.int32(1)
            code >>= np.uint64(digit_bits)
    place = 0
    for digit in range(n_digits):
        mine = counts[digit * size : (digit + 1) * size]
        shift = CODE_SHIFT + np.uint64(digit * digit_bits)
        if n == 0 or mine[(keys[0] >> shift) & mask] == n:
            continue
        before = np.int32(0)
        for d in range(size):
            here = mine[d]
            mine[d] = before
            before += here
        for j in range(n):
            key = keys[j]
            d = (key >> shift) & mask
            spare[mine[d]] = key
            mine[d] += np.int32(1)
        keys, spare = spare, keys
        place = 1 - place
    return place
