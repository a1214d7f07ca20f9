"""Rows of a small node: codes as ranks, packed with the targets into words of 32 bits.

Growth ends in very many small nodes. The rows of a small node get numbers of their own, 0 to 62,
and their codes become ranks among them, so that all a search needs of a row fits into one word:

    word     | rank | number | weight | deviation from the mean, rounded |
    bit     31     25       19       14                                  0

A vector has the words of one row along 8 columns, a column in each lane:

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
MISSING_RANK = SMALL_NODE_MAX - 1  # of missing values; without these a rank like others
N_LANES, _LANE_BITS = 8, 3
BLOCK = (SMALL_NODE_MAX + 1) * N_LANES  # words of as many columns
RANK_SHIFT, NUMBER_SHIFT, WEIGHT_SHIFT = 25, 19, 14
NUMBERS, WEIGHTS, DEVIATIONS = 63, 31, (1 << WEIGHT_SHIFT) - 1
NO_DEVIATION = 1 << (WEIGHT_SHIFT - 1)  # no deviation
BELOW_RANK = (1 << RANK_SHIFT) - 1  # all of a word but its rank
PADDING = SMALL_NODE_MAX << RANK_SHIFT | NO_DEVIATION  # a word of no weight behind all others
_CODE_MAX = 2**31 - 1
_LEAST = 1e-100  # of deviations, for their squares to be numbers; 1 / _LEAST is the largest


class SmallNode(NamedTuple):
    """Rows of a small node, and those of the node below it at hand, sorted along each column."""

    rows: np.ndarray  # (NETWORK_MAX,) uint32: of the table, ascending
    number: np.ndarray  # (n_rows,) uint8: of a row in the small node
    codes: np.ndarray  # (n_blocks * BLOCK,) int32: of every row, from the table; see `place_of`
    words: np.ndarray  # (n_blocks * BLOCK,) int32: of every row, and one behind all
    places: np.ndarray  # (FEW + 1,) int64: which rows of `words` the node has
    ordered: np.ndarray  # (n_ordered * BLOCK,) int32: the node's words
    gain: np.ndarray  # (n_ordered * BLOCK,) float32: of every cut; -1 where there is none
    top: np.ndarray  # (n_ordered * N_LANES,) float32: the highest of a column
    second: np.ndarray  # (n_ordered * N_LANES,) float32: the highest but one
    place: np.ndarray  # (n_ordered * N_LANES,) int32: of the highest
    targets: np.ndarray  # (2 * FEW,) float64
    is_left: np.ndarray  # (FEW,) uint8
    coming: np.ndarray  # (SMALL_NODE_MAX + 1,) uint32: missing rows, of which some change places
    row: np.ndarray  # (1,) int64: the one that is ranked
    unit: np.ndarray  # (1,) float64: of deviations
    candidates: np.ndarray  # (2 * n_features,) int64: which of the drawn may have the best cut
    n_max: int  # rows of a small node, at most; 0 where there is none
    turned: int  # how far behind a column it stands with missing values first; 0 without these

    @classmethod
    def create(cls, n_rows, n_columns, n_features, n_max=SMALL_NODE_MAX, has_missing=False):
        n_blocks = -(-n_columns // N_LANES)
        n_ordered = (1 + has_missing) * n_blocks
        return cls(
            np.empty(NETWORK_MAX, np.uint32),
            np.empty(n_rows, np.uint8),
            np.empty(n_blocks * BLOCK, np.int32),
            np.full(n_blocks * BLOCK, PADDING, np.int32),
            np.empty(SMALL_NODE_MAX + 1, np.int64),
            np.zeros(n_ordered * BLOCK, np.int32),
            np.empty(n_ordered * BLOCK, np.float32),
            *(np.empty(n_ordered * N_LANES, np.float32) for _ in range(2)),
            np.empty(n_ordered * N_LANES, np.int32),
            np.empty(2 * SMALL_NODE_MAX),
            np.empty(SMALL_NODE_MAX, np.uint8),
            np.empty(SMALL_NODE_MAX + 1, np.uint32),
            np.empty(1, np.int64),
            np.empty(1),
            np.empty(2 * n_features, np.int64),
            min(n_max, MISSING_RANK) if has_missing else n_max,
            n_blocks * N_LANES if has_missing else 0,
        )


@inline_kernel
def enter_small_node(small, samples, start, n, targets, mean):
    """Number samples[start:start + n] in the order of the table, and replace them by the numbers.

    Their codes are to follow, by `write_code`, then `rank_codes`. Returns False, and does nothing,
    if weights do not fit into words or deviations are too small or large to be squared.
    """
    largest = 0.0
    for i in range(start, start + n):
        weight, y = weight_at(targets, samples[i]), y_at(targets, samples[i])
        if weight > WEIGHTS or weight != np.floor(weight):
            return False
        largest = max(largest, abs(weight * (y - mean)))
    if not _LEAST < largest < 1.0 / _LEAST:  # rounding alone may make a node look impure
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
    """How many rows a small node has, at most; `partial_max` where nodes look at some features.

    A small node's rows are ranked along all features: where nodes look at few, mostly in vain.
    """
    if 2 * max_features >= n_features:
        return SMALL_NODE_MAX
    return partial_max if 8 * max_features >= n_features else 0


@inline_kernel
def restore_rows(small, samples, start, n):
    """Replace numbers by the rows of the table again."""
    for i in range(start, start + n):
        samples[i] = small.rows[samples[i]]


@inline_kernel
def place_of(i, column):
    """Where the i-th row of a column stands: columns lie in blocks, side by side."""
    block, lane = column >> _LANE_BITS, column & (N_LANES - 1)
    return block * BLOCK + i * N_LANES + lane


@inline_kernel
def write_code(small, number, column, code):
    small.codes[place_of(number, column)] = code


@inline_kernel
def write_word(small, number, column, code, rank):
    """Write a code with its rank among those of the column, or a number that orders as ranks do."""
    place, code = place_of(number, column), np.int64(code)
    small.codes[place] = code - (code >> 31 << 32)  # MISSING is -1
    small.words[place] = np.int64(rank) << RANK_SHIFT | small.places[number]


@inline_kernel
def read_code(small, number, column):
    return np.int64(np.uint32(small.codes[place_of(number, column)]))


def _ranking(size):
    """Compile the ranking of one row among `size` in each lane: how many have lower codes."""

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
    """Write the words of all rows along all columns."""
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
