"""Rows stored across features, so that one vector reads many features of a row of a small node.

across   row 0  [ 4 1 7 . ]      codes of a row side by side, padded to whole vectors
         row 1  [ 2 5 3 . ]
"""

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes

WIDTH, HALF = 16, 8
SIGN = np.uint32(1 << 31)  # flipped in codes, so that signed comparisons order them


def create_across(n_rows, n_columns):
    """Allocate rows across: 16 columns of all rows, then the next 16 columns.

    Returns
    -------
    ndarray of shape (n_blocks, n_rows * 16), int32
    """
    shape = n_blocks(n_columns), n_rows * WIDTH
    n, n_bytes = shape[0] * shape[1], WIDTH * np.dtype(np.int32).itemsize
    room = np.zeros(n + WIDTH, np.int32)
    first = -room.ctypes.data % n_bytes // room.itemsize  # aligned: no row spans two cache lines
    return room[first : first + n].reshape(shape)


def n_blocks(n_columns):
    """How many blocks of 16 columns there are."""
    return -(-n_columns // WIDTH)


def across_of(codes):
    """Return a table's codes across; see `create_across`."""
    across = create_across(codes.shape[1], len(codes))
    for block, rows in enumerate(across.reshape(len(across), -1, WIDTH)):
        mine = codes[block * WIDTH : (block + 1) * WIDTH]
        rows[:, : len(mine)] = (mine ^ SIGN).view(np.int32).T
    return across


def load_across(lanes, block, row):
    """Load the codes of a row of a block: all WIDTH, or with HALF lanes the first half.

    HALF lanes suffice for a block that is at most half filled; few CPUs have vectors of WIDTH.
    """
    return lanes.load(block, row * (WIDTH // lanes.n))


@on_lanes(WIDTH)
def _copy_row(lanes, across, row, copied, i):
    """Copy a row of a block to the i-th row of another."""
    lanes.store(copied, lanes.load(across, lanes.number(row)), lanes.number(i))


@inline_kernel
def copy_across(across, codes, samples, shift, nearer):
    """Copy the rows that samples point to into `nearer`: from `across` or, if that has no blocks,
    from columns of `codes`."""
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
    """The block of a column's codes, and their place within each row of it."""
    return column // WIDTH, column % WIDTH


@inline_kernel
def write_across(across, codes, n):
    """Write the first n rows of a table's codes to `across`."""
    for column in range(codes.shape[0]):
        mine, block, place = codes[column], across[column // WIDTH], column % WIDTH
        for i in range(n):
            block[i * WIDTH + place] = np.int32(mine[i] ^ SIGN)
