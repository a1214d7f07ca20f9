"""The rows of small nodes across features, so that vectors look at all features of a row at once.

across   row 0  [ 4 1 7 . ]      codes of a row side by side, filled up to whole vectors
         row 1  [ 2 5 3 . ]
"""

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes

WIDTH, HALF = 16, 8
SIGN = np.uint32(1 << 31)  # codes are compared as signed numbers


def create_across(n_rows, n_columns):
    """Room for rows across: 16 columns of all rows, then the next ones.

    Returns
    -------
    ndarray of shape (n_blocks, n_rows * 16), int32
    """
    shape = n_blocks(n_columns), n_rows * WIDTH
    n, n_bytes = shape[0] * shape[1], WIDTH * np.dtype(np.int32).itemsize
    room = np.zeros(n + WIDTH, np.int32)
    first = -room.ctypes.data % n_bytes // room.itemsize  # so that no row lies in two cache lines
    return room[first : first + n].reshape(shape)


def n_blocks(n_columns):
    return -(-n_columns // WIDTH)


def across_of(codes):
    """A table's codes across; see `create_across`."""
    across = create_across(codes.shape[1], len(codes))
    for block, rows in enumerate(across.reshape(len(across), -1, WIDTH)):
        mine = codes[block * WIDTH : (block + 1) * WIDTH]
        rows[:, : len(mine)] = (mine ^ SIGN).view(np.int32).T
    return across


def load_across(lanes, block, row):
    """The codes of a row in a block of rows across, or the first ones, as many as there are lanes.

    A block of which no more than half is filled has HALF columns: few CPUs have vectors for all.
    """
    return lanes.load(block, row * (WIDTH // lanes.n))


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
