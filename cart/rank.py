"""Rank the values of a column: its distinct values, ascending, and which of them each one is."""

from typing import NamedTuple

import numpy as np

from cart.jit import entry_kernel
from cart.order import CODE_SHIFT, N_COUNTS, record_of, sort_keys

# The code of a missing value.
MISSING = np.uint32(0xFFFFFFFF)


class Scratch(NamedTuple):
    """What the ranking of columns writes to, one after another."""

    keys: np.ndarray  # (n,) uint64, see cart.order
    spare: np.ndarray  # (n,) uint64
    counts: np.ndarray  # (N_COUNTS,) int64

    @classmethod
    def create(cls, n):
        return cls(np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(N_COUNTS, np.int64))


def rank(values, codes, scratch):
    """Rank the values of a column.

    Parameters
    ----------
    values : ndarray of shape (n,), float32 or float64, contiguous
    codes : ndarray of shape (n,), uint32
        Is filled with the rank of each value among the distinct ones; MISSING for nan.
    scratch : Scratch
        For so many values at least.

    Returns
    -------
    ndarray of shape (n_levels,), of the type of `values`
        Distinct values, ascending.
    """
    levels = np.empty_like(values)
    n_levels = _rank(values, ordered_bits(values), codes, levels, *scratch)
    return levels[:n_levels].copy()


def ordered_bits(values):
    """Whole numbers in the order of the values, which are float32 or float64 and not nan."""
    bits = values.view(f"u{values.itemsize}")
    sign = bits.dtype.type(1 << 8 * values.itemsize - 1)
    return bits ^ (-(bits >> bits.dtype.type(8 * values.itemsize - 1)) | sign)


@entry_kernel
def _rank(values, bits, codes, levels, keys, spare, counts):
    n = 0  # how many are not missing
    for i in range(values.shape[0]):
        codes[i] = MISSING
        if not np.isnan(values[i]):
            keys[n] = i
            n += 1
    # The lower half of a double first: sorting is stable.
    for half in range(bits.itemsize // 4):
        for j in range(n):
            i = record_of(keys[j])
            code = np.uint64(bits[i]) >> np.uint64(32 * half)
            keys[j] = code << CODE_SHIFT | np.uint64(i)
        sort_keys(keys, n, 32, counts, spare)
    n_levels = 0
    for j in range(n):
        i = record_of(keys[j])
        if n_levels == 0 or values[i] != levels[n_levels - 1]:
            levels[n_levels] = values[i]
            n_levels += 1
        codes[i] = n_levels - 1
    return n_levels
