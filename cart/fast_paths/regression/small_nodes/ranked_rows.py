"""The rows of a small node, ranked once along all columns: the words serve the whole subtree.

It takes a while to rank rows along all columns, which pays where nodes look at most of them.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.small_nodes.cut import sort_small_node
from cart.fast_paths.regression.small_nodes.missing import add_turned
from cart.fast_paths.regression.small_nodes.node import (
    BLOCK,
    MISSING_RANK,
    N_LANES,
    PADDING,
    RANK_SHIFT,
    SMALL_NODE_MAX,
    NoBits,
    bit_of,
    column_of_bit,
    find_bit_gains,
    place_of,
    rank_at,
)
from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes
from cart.primitives.sorting_networks import NETWORK_MAX
from cart.splitting.feature_draw import begin_draw, mark, next_feature

_CODE_MAX = 2**31 - 1


class SmallNode(NamedTuple):
    """The rows of a small node, and those of the current node below it, sorted along each column.

    Where a shape has `n_ordered`, turned columns follow the others if values are missing; of these
    `ordered` has nothing.
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
    n_missing: np.ndarray  # (n_ordered * N_LANES,) int32: how many values of a column are missing
    targets: np.ndarray  # (2 * SMALL_NODE_MAX,) float64
    is_left: np.ndarray  # (SMALL_NODE_MAX,) uint8
    coming: np.ndarray  # (SMALL_NODE_MAX + 1,) uint32: rows with missing values that are moved
    row: np.ndarray  # (1,) int64: the row that is being ranked
    unit: np.ndarray  # (1,) float64: deviations are rounded to multiples of it
    candidates: np.ndarray  # (2 * n_features,) int64: drawn features that may have the best cut
    n_max: int  # the most rows of a small node; 0 if no node counts as small
    turned: int  # a turned column's index less the column's; 0 if no values are missing
    bits: NamedTuple = NoBits()  # what is known of indicators, whose columns follow all others

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
            *np.zeros((2, n_ordered * N_LANES), np.int32), np.empty(2 * SMALL_NODE_MAX),
            np.empty(SMALL_NODE_MAX, np.uint8), np.empty(SMALL_NODE_MAX + 1, np.uint32),
            np.empty(1, np.int64), np.empty(1), np.empty(2 * n_features, np.int64),
            min(n_max, MISSING_RANK) if has_missing else n_max,
            n_blocks * N_LANES if has_missing else 0,
        )  # fmt: skip

    def draw_and_sort(self, growth, table, samples, node, limits):
        draw, drawn, n = growth.draw, growth.drawn, node.n
        sort_small_node(self, samples, node.start, n)
        find_bit_gains(self.bits, self, samples, node, limits.min_samples_leaf)
        n_drawn = 0
        drawing = begin_draw(draw, node.row, node.n_constant)
        j, drawing = next_feature(draw, drawing, limits.max_features)
        while j >= 0:
            feature = draw.features[j]
            column = np.int64(table.columns[feature])
            bit = bit_of(self.bits, column)
            if bit >= 0:
                column = column_of_bit(self.bits, self, bit, n, limits.min_samples_leaf)
                is_constant = column < 0
            else:
                is_constant = rank_at(self, 0, column) == rank_at(self, n - 1, column)
            drawing = mark(draw, drawing, j, is_constant)
            if not is_constant:
                drawn.feature[n_drawn], drawn.column[n_drawn] = feature, column
                n_drawn += 1
            j, drawing = next_feature(draw, drawing, limits.max_features)
        if self.turned > 0:  # else drawn.missing is NONE_MISSING already
            n_drawn = add_turned(self, n, drawn, n_drawn)
        return drawing, n_drawn

    def sorted_code(self, table, number, column):
        return read_code(self, number, column)

    def missing_word(self, number, column):
        return np.int64(self.words[place_of(number, column)])


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
