"""Rows of a small node: ranks of codes and rounded targets, packed into words of 32 bits.

A tree has very many small nodes. The rows of a small node are numbered from 0 to 62, and their
codes become ranks within the node, so that all that a search needs of a row fits into one word:

    word     | rank | number | weight | deviation from the mean, rounded |
    bit     31     25       19       14                                  0

A vector holds the words of one row along 8 columns, a column in each lane:

    words    row 0  [ c0 c1 c2 c3 c4 c5 c6 c7 ]      a block: columns 0 to 7
             row 1  [ c0 c1 c2 c3 c4 c5 c6 c7 ]
             ...                                     then columns 8 to 15

Missing values have the rank MISSING_RANK, above all others (see `missing.py` of this folder).

The words serve the whole subtree (`subtree.py` of this folder); each of its nodes is searched by
`cut.py`.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.cut_score import weight_at, write_target, y_at
from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes
from cart.primitives.sorting_networks import NETWORK_MAX, sort_by_network

SMALL_NODE_MAX = 63  # rows
MISSING_RANK = SMALL_NODE_MAX - 1  # an ordinary rank if the table has no missing values
N_LANES, _LANE_BITS = 8, 3
BLOCK = (SMALL_NODE_MAX + 1) * N_LANES  # words of N_LANES columns
RANK_SHIFT, NUMBER_SHIFT, WEIGHT_SHIFT = 25, 19, 14
NUMBERS, WEIGHTS, DEVIATIONS = 63, 31, (1 << WEIGHT_SHIFT) - 1
NO_DEVIATION = 1 << (WEIGHT_SHIFT - 1)  # what stands for a deviation of 0
BELOW_RANK = (1 << RANK_SHIFT) - 1  # mask of all of a word but its rank
PADDING = SMALL_NODE_MAX << RANK_SHIFT | NO_DEVIATION  # a word without weight, after all others
_CODE_MAX = 2**31 - 1
_LEAST = 1e-100  # deviations between this and its inverse have squares in range


class SmallNode(NamedTuple):
    """The rows of a small node, and those of the current node below it, sorted along each column.

    Where a shape has `n_ordered`, turned columns follow the others if values are missing.
    """

    rows: np.ndarray  # (NETWORK_MAX,) uint32: rows of the table, ascending
    number: np.ndarray  # (n_rows,) uint8: the number of a row of the table in the small node
    codes: np.ndarray  # (n_blocks * BLOCK,) int32: the table's codes; for places see `place_of`
    words: np.ndarray  # (n_blocks * BLOCK,) int32: of every row, with PADDING as the last
    places: np.ndarray  # (SMALL_NODE_MAX + 1,) int64: which rows of `words` the node has
    ordered: np.ndarray  # (n_ordered * BLOCK,) int32: the node's words, sorted
    gain: np.ndarray  # (n_ordered * BLOCK,) float32: of every cut; -1 where there is none
    top: np.ndarray  # (n_ordered * N_LANES,) float32: the highest gain of a column
    second: np.ndarray  # (n_ordered * N_LANES,) float32: the second highest gain
    place: np.ndarray  # (n_ordered * N_LANES,) int32: where the highest gain is
    targets: np.ndarray  # (2 * SMALL_NODE_MAX,) float64
    is_left: np.ndarray  # (SMALL_NODE_MAX,) uint8
    coming: np.ndarray  # (SMALL_NODE_MAX + 1,) uint32: rows with missing values that are moved
    row: np.ndarray  # (1,) int64: the row that is being ranked
    unit: np.ndarray  # (1,) float64: deviations are rounded to multiples of it
    candidates: np.ndarray  # (2 * n_features,) int64: drawn features that may have the best cut
    n_max: int  # the most rows of a small node; 0 if no node counts as small
    turned: int  # a turned column's index less the column's; 0 if no values are missing

    @classmethod
    def create(cls, n_rows, n_columns, n_features, n_max=SMALL_NODE_MAX, has_missing=False):
        n_blocks = -(-n_columns // N_LANES)
        n_ordered = (1 + has_missing) * n_blocks
        return cls(
            np.empty(NETWORK_MAX, np.uint32), np.empty(n_rows, np.uint8),
            np.empty(n_blocks * BLOCK, np.int32), np.full(n_blocks * BLOCK, PADDING, np.int32),
            np.empty(SMALL_NODE_MAX + 1, np.int64), np.zeros(n_ordered * BLOCK, np.int32),
            np.empty(n_ordered * BLOCK, np.float32),
            *(np.empty(n_ordered * N_LANES, np.float32) for _ in range(2)),
            np.empty(n_ordered * N_LANES, np.int32), np.empty(2 * SMALL_NODE_MAX),
            np.empty(SMALL_NODE_MAX, np.uint8), np.empty(SMALL_NODE_MAX + 1, np.uint32),
            np.empty(1, np.int64), np.empty(1), np.empty(2 * n_features, np.int64),
            min(n_max, MISSING_RANK) if has_missing else n_max,
            n_blocks * N_LANES if has_missing else 0,
        )  # fmt: skip


@inline_kernel
def enter_small_node(small, samples, start, n, targets, mean):
    """Number samples[start:start + n] in the order of the table, and replace them by the numbers.

    Their codes are written next: by `write_code` and `rank_codes`, or by `write_word`. Returns
    False, and changes nothing, if weights do not fit into words, or if deviations are too small or
    too large to be squared.
    """
    largest = 0.0
    for i in range(start, start + n):
        weight, y = weight_at(targets, samples[i]), y_at(targets, samples[i])
        if weight > WEIGHTS or weight != np.floor(weight):
            return False
        largest = max(largest, abs(weight * (y - mean)))
    if not _LEAST < largest < 1.0 / _LEAST:  # it may be impure by rounding alone
        return False
    for i in range(n):
        small.rows[i] = samples[start + i]
    sort_by_network(small.rows, n)
    for i in range(n):
        row = small.rows[i]
        small.number[row] = i
        write_target(small.targets, i, weight_at(targets, row), y_at(targets, row))
    for i in range(start, start + n):
        samples[i] = small.number[samples[i]]
    small.unit[0] = largest / (NO_DEVIATION - 1)
    for i in range(n):
        deviation = weight_at(small.targets, i) * (y_at(small.targets, i) - mean)
        above = np.int64(math.floor(deviation / small.unit[0] + 0.5)) + NO_DEVIATION
        small.places[i] = (
            i << NUMBER_SHIFT | np.int64(weight_at(small.targets, i)) << WEIGHT_SHIFT | above
        )
    return True


def small_node_max(max_features, n_features, partial_max):
    """The most rows of a small node; `partial_max` if nodes look at some of the features only.

    A small node's rows are ranked along all features, mostly in vain where nodes look at few.
    """
    if 2 * max_features >= n_features:
        return SMALL_NODE_MAX
    return partial_max if 8 * max_features >= n_features else 0


@inline_kernel
def restore_rows(small, samples, start, n):
    """Replace the numbers of samples by rows of the table again."""
    for i in range(start, start + n):
        samples[i] = small.rows[samples[i]]


@inline_kernel
def place_of(i, column):
    """Where the i-th row of a column is: columns are side by side in blocks of N_LANES."""
    block, lane = column >> _LANE_BITS, column & (N_LANES - 1)
    return block * BLOCK + i * N_LANES + lane


@inline_kernel
def write_code(small, number, column, code):
    small.codes[place_of(number, column)] = code


@inline_kernel
def write_word(small, number, column, code, rank):
    """Write a code with its rank in the column, or with a number in the same order as the rank."""
    place, code = place_of(number, column), np.int64(code)
    small.codes[place] = code - (code >> 31 << 32)  # MISSING is -1
    small.words[place] = np.int64(rank) << RANK_SHIFT | small.places[number]


@inline_kernel
def read_code(small, number, column):
    return np.int64(np.uint32(small.codes[place_of(number, column)]))


def _ranking(size):
    """Compile the ranking of one row among `size` in each lane: it counts the lower codes."""

    def rank(lanes, codes, words, number, word):
        mine = lanes.load(codes, lanes.item(number, 0))
        below = mine ^ mine
        for i in range(size):
            below = below + lanes.where(mine > lanes.load(codes, i), 1, below ^ below)
        lanes.store(words, below << RANK_SHIFT | word, lanes.item(number, 0))
        return lanes.any(below > 0)

    return on_lanes(N_LANES)(rank)


_rank_8, _rank_16, _rank_32, _rank_64 = map(_ranking, (8, 16, 32, 64))


@inline_kernel
def rank_codes(small, n):
    """Rank the codes of n rows along all columns, and write their words."""
    size = 8 if n <= 8 else 16 if n <= 16 else 32 if n <= 32 else 64
    for at in range(0, small.codes.shape[0], BLOCK):
        codes, words = small.codes[at : at + BLOCK], small.words[at : at + BLOCK]
        for i in range(n * N_LANES, size * N_LANES):
            codes[i] = _CODE_MAX
        for i in range(n):
            small.row[0] = i
            word = np.int32(small.places[i])
            if size == 8:
                _rank_8(codes, words, small.row, word)
            elif size == 16:
                _rank_16(codes, words, small.row, word)
            elif size == 32:
                _rank_32(codes, words, small.row, word)
            else:
                _rank_64(codes, words, small.row, word)
