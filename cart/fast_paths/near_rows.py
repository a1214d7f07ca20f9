"""The rows of small nodes across features: the ranges of all features are found at once.

across   row 0  [ 4 1 7 . ]      codes of a row side by side, filled up to whole vectors
         row 1  [ 2 5 3 . ]
lowest          [ 2 1 3 . ]      of the rows of a node
"""

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes
from cart.table.ranking import MISSING

_LANES = 16
_SIGN = np.uint32(1 << 31)  # codes are compared as signed numbers


def create_across(n_rows, n_columns):
    """Room for rows across: 16 columns of all rows, then the next ones.

    Returns
    -------
    ndarray of shape (n_blocks, n_rows * 16), int32
    """
    return np.zeros((n_blocks(n_columns), n_rows * _LANES), np.int32)


def create_ranges(n_columns):
    """Room for the lowest code, one more than the highest known, and the highest, of 16 columns
    each, then of the next ones.

    Returns
    -------
    ndarray of shape (n_blocks, 48), int32
    """
    return np.zeros((n_blocks(n_columns), 3 * _LANES), np.int32)


def n_blocks(n_columns):
    return -(-n_columns // _LANES)


@inline_kernel
def write_across(across, codes, n):
    """Write the first n rows of a table's codes."""
    for column in range(codes.shape[0]):
        mine, block, place = codes[column], across[column // _LANES], column % _LANES
        for i in range(n):
            block[i * _LANES + place] = np.int32(mine[i] ^ _SIGN)


def _widen_over(lanes, across, samples, n, ranges):
    def code_of(k):
        return lanes.load(across, lanes.number(lanes.same(samples, k)))

    def widen(k, lowest, above, highest):
        code = code_of(k)
        following = code + 1  # of a missing value the lowest of all
        return (
            lanes.where(lowest > code, code, lowest),
            lanes.where(following > above, following, above),
            lanes.where(code > highest, code, highest),
        )

    first = code_of(0)
    found = lanes.repeat(lanes.number(n), widen, first, first + 1, first)
    for k, each in enumerate(found):
        lanes.store(ranges, each, k)


_find_ranges = on_lanes(_LANES)(_widen_over)


@inline_kernel
def find_ranges(across, samples, n, ranges):
    """Find the ranges of the codes of n rows."""
    for block in range(across.shape[0]):
        _find_ranges(across[block], samples, n, ranges[block])


@inline_kernel
def range_of(ranges, column):
    """The lowest and the highest known code of a column, and whether any is missing; where all
    are, the lowest is MISSING."""
    mine, place = ranges[column // _LANES], column % _LANES
    lowest, above, highest = mine[place], mine[place + _LANES], mine[place + 2 * _LANES]
    has_missing = (np.uint32(highest) ^ _SIGN) == MISSING
    return (
        np.uint32(lowest) ^ _SIGN,
        np.uint32((np.uint32(above) ^ _SIGN) - np.uint32(1)),
        has_missing,
    )
