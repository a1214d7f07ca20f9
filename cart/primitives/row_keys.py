"""Rows of a table as keys: unsigned integers in the order of the values, faster to compare.

value    -inf   -1.5    0      1.5    inf    nan
key      small  ... ascending with the value ...  largest

A row is stored as its keys, followed by a zero.
"""

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.jit.simd import on_lanes
from cart.primitives.float_order import TOP, ordinal_of

# Keys of a missing value, above all others, and of the two infinities.
MISSING = np.uint32(0xFFFFFFFF)
_INFINITE, _MINUS_INFINITE = np.uint32(0xFF800000), np.uint32(0x00800000)
FINITE, SOME_MISSING, INFINITE = range(3)  # of rows: all values finite, some missing, some infinite
_LARGEST = 0x7F7FFFFF  # bits of the largest finite value
_SIGN = -(1 << 31)
_LANES, _LANE_BITS = 8, 3
_BLOCK = 16  # keys in a cache line
_TOGETHER = 1 << 14  # keys that fit into the cache


@inline_kernel
def key_of(bits):
    """The ordinal of a float32 value, counted from 0, as uint32; see
    `cart.primitives.float_order.ordinal_of`."""
    return np.uint32(np.int64(ordinal_of(bits)) + (np.int64(1) << 31))


@inline_kernel
def whole_number_of(key):
    """The value, a whole number from 0 on, that has this key; of lower values, a number below 0."""
    return np.int64(np.uint32(np.int64(key) - (np.int64(1) << 31)).view(np.float32))


@on_lanes(_LANES)
def _write_most_keys(lanes, X, keys, n_rows, n_features):
    """Write the keys of the first rows, a zero after each; return whether any is not finite.

    The last lanes of a row go beyond its end; the next row overwrites what they write there.
    """
    n_rows, n_features = lanes.number(n_rows), lanes.number(n_features)
    n_parts = (n_features + (_LANES - 1)) >> _LANE_BITS
    zeros = lanes.bits(lanes.single(lanes.load(X)))
    zeros = zeros ^ zeros

    def write_row(i, largest):
        begin, at = i * n_features, i * (n_features + 1)

        def write_part(k, largest):
            bits = lanes.bits(lanes.single(lanes.load_at(X, begin + k * _LANES)))
            magnitude = bits & int(TOP)
            key = lanes.where(bits > -1, magnitude, zeros - magnitude) ^ _SIGN
            key = lanes.where(magnitude > _LARGEST + 1, -1, key)  # MISSING
            lanes.store_at(keys, key, at + k * _LANES)
            return (lanes.where(magnitude > largest, magnitude, largest),)

        (largest,) = lanes.repeat(n_parts, write_part, largest)
        lanes.store_at(keys, zeros, at + n_features)
        return (largest,)

    (largest,) = lanes.repeat(n_rows, write_row, zeros)
    return lanes.any(largest > _LARGEST)


@inline_kernel
def write_keys(X, keys):
    """Write the keys of rows, a zero after each; return FINITE, SOME_MISSING or INFINITE."""
    return _write_rows(X, keys, X.shape[0], _n_by_lanes(X))


@inline_kernel
def _n_by_lanes(X):
    """How many rows end far enough before the end of X for vectors to go beyond them."""
    return max(0, X.shape[0] - 1 - (_LANES - 2) // X.shape[1])


@inline_kernel
def _write_rows(X, keys, n, n_by_lanes):
    """As `write_keys`, for the first n rows of X; vectors may go beyond the ends of the first
    `n_by_lanes` rows."""
    n_features = X.shape[1]
    is_finite = n_by_lanes == 0 or not _write_most_keys(X, keys, n_by_lanes, n_features)
    for i in range(n_by_lanes, n):
        at = i * (n_features + 1)
        for j in range(n_features):
            bits = np.float32(X[i, j]).view(np.int32)
            is_finite &= (bits & TOP) <= _LARGEST
            keys[at + j] = key_of(bits)
        keys[at + n_features] = 0
    if is_finite:
        return FINITE
    n_infinite = 0
    for i in range(n * (n_features + 1)):
        n_infinite += (keys[i] == _INFINITE) | (keys[i] == _MINUS_INFINITE)
    return INFINITE if n_infinite > 0 else SOME_MISSING


def keys_of(X):
    """Return the keys of rows, a zero after each; whether any value is missing; and FINITE,
    SOME_MISSING or INFINITE."""
    keys = np.empty(len(X) * (X.shape[1] + 1), np.uint32)
    found = _fill_keys(np.require(X, requirements="CW"), keys)
    may_miss = found == SOME_MISSING or (found == INFINITE and bool(keys.max() == MISSING))
    return keys, may_miss, found


@entry_kernel
def _fill_keys(X, keys):
    return write_keys(X, keys)


def keys_of_columns(X, columns):
    """As `keys_of`, with the keys of some columns only, ascending. All of X is checked, and values
    that are not finite may all be missing."""
    X = np.require(X, requirements="W")
    n, n_features = X.shape
    keys = np.empty(n * (len(columns) + 1), np.uint32)
    if X.flags.c_contiguous:
        n_together = max(1, _TOGETHER // n_features)
        spare = np.empty(n_together * (n_features + 1) + _LANES, np.uint32)
        found = _fill_along(X, columns, keys, spare)
    else:
        spare = np.empty(_BLOCK * (n + 1) + _LANES, np.uint32)
        found = _fill_across(np.ascontiguousarray(X.T), columns, keys, spare)
    return keys, found != FINITE, found


@entry_kernel
def _fill_along(X, columns, keys, spare):
    """Make keys of whole rows, some rows at a time, and copy those of the columns."""
    n, n_features = X.shape
    found, width, n_together = FINITE, columns.shape[0] + 1, spare.shape[0] // (n_features + 1)
    for begin in range(0, n, n_together):
        end = min(begin + n_together, n)
        found = max(found, _write_rows(X[begin:], spare, end - begin, min(end, n - 1) - begin))
        for i in range(begin, end):
            at, row = i * width, (i - begin) * (n_features + 1)
            for k in range(width - 1):
                keys[at + k] = spare[row + columns[k]]
            keys[at + width - 1] = 0
    return found


@entry_kernel
def _fill_across(X, columns, keys, spare):
    """As `_fill_along`, for a table that is stored column by column, X[column, row].

    Columns are transposed in blocks of `_BLOCK`, so that their keys of a row fill a cache line.
    """
    n_features, n = X.shape
    found, n_columns = FINITE, columns.shape[0]
    first, n_waiting, n_by_lanes = 0, 0, _n_by_lanes(X)
    for j in range(n_features):
        row = spare[n_waiting * (n + 1) :]
        found = max(found, _write_rows(X[j:], row, 1, np.int64(j < n_by_lanes)))
        column = first + n_waiting
        n_waiting += column < n_columns and columns[min(column, n_columns - 1)] == j
        if n_waiting == _BLOCK or j == n_features - 1:
            for i in range(n):
                at = i * (n_columns + 1) + first
                if n_waiting == _BLOCK:
                    for k in range(_BLOCK):
                        keys[at + k] = spare[k * (n + 1) + i]
                else:
                    for k in range(n_waiting):
                        keys[at + k] = spare[k * (n + 1) + i]
            first, n_waiting = first + n_waiting, 0
    for i in range(n):
        keys[i * (n_columns + 1) + n_columns] = 0
    return found
