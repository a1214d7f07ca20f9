"""The rows of small nodes across features: the ranges of all features are found at once.

across   row 0  [ 4 1 7 . ]      codes of a row side by side, filled up to whole vectors
         row 1  [ 2 5 3 . ]
lowest          [ 2 1 3 . ]      of the rows of a node
"""

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes
from cart.table.ranking import MISSING

WIDTH = 16
SIGN = np.uint32(1 << 31)  # codes are compared as signed numbers


def create_across(n_rows, n_columns):
    """Room for rows across: 16 columns of all rows, then the next ones.

    Returns
    -------
    ndarray of shape (n_blocks, n_rows * 16), int32
    """
    return np.zeros((n_blocks(n_columns), n_rows * WIDTH), np.int32)


def create_ranges(n_columns):
    """Room for the lowest code, one more than the highest known, and the highest, of 16 columns
    each, then of the next ones.

    Returns
    -------
    ndarray of shape (n_blocks, 48), int32
    """
    return np.zeros((n_blocks(n_columns), 3 * WIDTH), np.int32)


def n_blocks(n_columns):
    return -(-n_columns // WIDTH)


def across_of(codes):
    """A table's codes across; see `create_across`."""
    across = create_across(codes.shape[1], len(codes))
    by_place = across.reshape(len(across), -1, WIDTH)
    for column, mine in enumerate(codes):
        by_place[column // WIDTH, :, column % WIDTH] = (mine ^ SIGN).view(np.int32)
    return across


@on_lanes(WIDTH)
def _copy_row(lanes, across, row, copied, i):
    lanes.store(copied, lanes.load(across, lanes.number(row)), lanes.number(i))


@inline_kernel
def copy_across(across, codes, samples, shift, nearer):
    """Copy the rows that samples point to, from rows across or, where there are none, from codes in
    columns."""
    n = samples.shape[0]
    for block in range(across.shape[0]):
        mine, copied = across[block], nearer[block]
        for i in range(n):
            _copy_row(mine, np.int64(samples[i] >> shift), copied, i)
    if across.shape[0] > 0:
        return
    for column in range(codes.shape[0]):
        of_column, copied = codes[column], nearer[column // WIDTH]
        for i in range(n):
            code = of_column[np.int64(samples[i] >> shift)]
            copied[i * WIDTH + column % WIDTH] = np.int32(code ^ SIGN)


@inline_kernel
def place_across(column):
    """Block and place of a column's codes."""
    return column // WIDTH, column % WIDTH


@inline_kernel
def write_across(across, codes, n):
    """Write the first n rows of a table's codes."""
    for column in range(codes.shape[0]):
        mine, block, place = codes[column], across[column // WIDTH], column % WIDTH
        for i in range(n):
            block[i * WIDTH + place] = np.int32(mine[i] ^ SIGN)


def _widen_over(lanes, across, samples, shift, n, ranges):
    def code_of(k):
        row = lanes.number(lanes.same(samples, k)) >> lanes.number(shift)
        return lanes.load(across, row)

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


_find_ranges = on_lanes(WIDTH)(_widen_over)


@inline_kernel
def find_ranges(across, samples, shift, n, ranges):
    """Find the ranges of the codes of n rows: of a sample the bits from `shift` on, uint32."""
    for block in range(across.shape[0]):
        _find_ranges(across[block], samples, shift, n, ranges[block])


@inline_kernel
def range_of(ranges, column):
    """The lowest and the highest known code of a column, and whether any is missing; where all
    are, the lowest is MISSING."""
    mine, place = ranges[column // WIDTH], column % WIDTH
    lowest, above, highest = mine[place], mine[place + WIDTH], mine[place + 2 * WIDTH]
    has_missing = (np.uint32(highest) ^ SIGN) == MISSING
    return (
        np.uint32(lowest) ^ SIGN,
        np.uint32((np.uint32(above) ^ SIGN) - np.uint32(1)),
        has_missing,
    )
