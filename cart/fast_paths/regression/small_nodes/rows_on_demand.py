"""The rows of a small node, sorted along the features that a node looks at, 8 at a time.

Nothing is prepared for the subtree but the words without ranks. A key is a code above the row's
number; sorting takes the words along, and counts how often the code changes:

    keys     [ 31|0  12|1  77|2  12|3 ]   ->   [ 12|1  12|3  31|0  77|2 ]      in each lane
    words    [    0     1     2     3 ]   ->   [  0|1   0|3   1|0   2|2 ]      rank|number
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.small_nodes.cut import compare_exchange, write_gains
from cart.fast_paths.regression.small_nodes.missing import add_turned, find_turned_gains
from cart.fast_paths.regression.small_nodes.node import (
    BLOCK,
    MISSING_RANK,
    N_LANES,
    NO_DEVIATION,
    NUMBER_SHIFT,
    NUMBERS,
    PADDING,
    RANK_SHIFT,
    SMALL_NODE_MAX,
    NoBits,
    bit_of,
    column_of_bit,
    find_bit_gains,
)
from cart.jit.decorators import inline_kernel, kernel
from cart.jit.simd import on_lanes
from cart.primitives.sorting_networks import NETWORK_MAX, merge_exchanges, sort_by_network
from cart.splitting.feature_draw import begin_draw, mark, next_feature
from cart.table.table import has_missing, same_value

_N_MAX = SMALL_NODE_MAX // 2  # rows; more are sorted as fast along one feature after the other
_TIED_MAX = 8  # columns with ties for each feature drawn: every small node is looked at for ties
_CODE_SHIFT = 6  # of keys, above the number
_LAST_KEY = 2**31 - 1  # of the padding
_MISSING_CODE = _LAST_KEY >> _CODE_SHIFT  # in keys; all codes are lower
_MISSING_KEY = _MISSING_CODE << _CODE_SHIFT


class SmallNodeOnDemand(NamedTuple):
    """See `cart.fast_paths.regression.small_nodes.ranked_rows.SmallNode`.

    Columns of `ordered` and the arrays behind it are the features that the node has drawn, in the
    order of the draw; turned columns follow them if values are missing, but in `ordered`.
    """

    rows: np.ndarray  # (NETWORK_MAX,) uint32: rows of the table, ascending
    number: np.ndarray  # (n_rows,) uint8: the number of a row of the table in the small node
    places: np.ndarray  # (SMALL_NODE_MAX,) int64: words by number, without ranks
    node_rows: np.ndarray  # (_N_MAX,) int64: of the current node, rows of the table
    node_words: np.ndarray  # (_N_MAX + 1,) int32: words of these, without ranks
    keys: np.ndarray  # ((_N_MAX + 1) * N_LANES,) int32: of 8 columns
    ordered: np.ndarray  # (n_ordered * BLOCK,) int32: the node's words, sorted
    gain: np.ndarray  # (n_ordered * BLOCK,) float32: of every cut; -1 where there is none
    top: np.ndarray  # (n_ordered * N_LANES,) float32: the highest gain of a column
    second: np.ndarray  # (n_ordered * N_LANES,) float32: the second highest gain
    place: np.ndarray  # (n_ordered * N_LANES,) int32: where the highest gain is
    n_missing: np.ndarray  # (n_ordered * N_LANES,) int32: how many values of a column are missing
    targets: np.ndarray  # (2 * SMALL_NODE_MAX,) float64
    is_left: np.ndarray  # (SMALL_NODE_MAX,) uint8
    unit: np.ndarray  # (1,) float64: deviations are rounded to multiples of it
    candidates: np.ndarray  # (2 * n_features,) int64: drawn features that may have the best cut
    codes: np.ndarray  # (NETWORK_MAX,) uint32: of a column
    tied: np.ndarray  # (n_tied,) int64: columns of the table in which some values are ties
    coming: np.ndarray  # (SMALL_NODE_MAX + 1,) uint32: rows with missing values that are moved
    n_max: int  # the most rows of a small node; 0 if no node counts as small
    turned: int  # a turned column's index less the column's; 0 if no values are missing
    bits: NamedTuple = NoBits()  # what is known of indicators, whose columns follow all others

    @classmethod
    def create(cls, table, max_features, is_used):
        n_rows, n_features = table.codes.shape[1], len(table.columns)
        n_blocks, with_missing = -(-max_features // N_LANES), has_missing(table)
        n_ordered = (1 + with_missing) * n_blocks
        return cls(
            np.empty(NETWORK_MAX, np.uint32), np.empty(n_rows, np.uint8),
            np.empty(SMALL_NODE_MAX, np.int64), np.empty(_N_MAX, np.int64),
            np.empty(_N_MAX + 1, np.int32), np.zeros((_N_MAX + 1) * N_LANES, np.int32),
            np.empty(n_ordered * BLOCK, np.int32), np.empty(n_ordered * BLOCK, np.float32),
            *(np.empty(n_ordered * N_LANES, np.float32) for _ in range(2)),
            *np.zeros((2, n_ordered * N_LANES), np.int32), np.empty(2 * SMALL_NODE_MAX),
            np.empty(SMALL_NODE_MAX, np.uint8), np.empty(1), np.empty(2 * n_features, np.int64),
            np.empty(NETWORK_MAX, np.uint32), np.flatnonzero(table.tie_span),
            np.empty(SMALL_NODE_MAX + 1, np.uint32), _N_MAX if is_used else 0,
            n_blocks * N_LANES if with_missing else 0,
        )  # fmt: skip

    @staticmethod
    def serves(table, max_features):
        """Whether keys have room for the codes, and few columns are to be looked at for ties."""
        n_rows, n_tied = table.codes.shape[1], np.count_nonzero(table.tie_span)
        return n_rows < _MISSING_CODE and n_tied <= _TIED_MAX * max_features

    def draw_and_sort(self, growth, table, samples, node, limits):
        draw, drawn, n_drawn, n = growth.draw, growth.drawn, np.int64(0), node.n
        n_sorted = np.int64(0)
        find_bit_gains(self.bits, self, samples, node, limits.min_samples_leaf)
        size = _begin_node(self, samples, node)
        drawing = begin_draw(draw, node.row, node.n_constant)
        j, drawing = next_feature(draw, drawing, limits.max_features)
        while j >= 0:
            feature = draw.features[j]
            column, lane = np.int64(table.columns[feature]), n_sorted % N_LANES
            bit = bit_of(self.bits, column)
            if bit >= 0:
                at = column_of_bit(self.bits, self, bit, n, limits.min_samples_leaf)
                is_constant = at < 0
            else:
                at, is_constant = n_sorted, _write_keys(self, table.codes[column], n, lane)
            drawing = mark(draw, drawing, j, is_constant)
            if not is_constant:
                drawn.feature[n_drawn], drawn.column[n_drawn] = feature, at
                n_drawn, n_sorted = n_drawn + 1, n_sorted + (bit < 0)
                if bit < 0 and lane == N_LANES - 1:
                    _sort_block(self, n, size, n_sorted // N_LANES - 1)
            j, drawing = next_feature(draw, drawing, limits.max_features)
        if n_sorted % N_LANES > 0:  # the other lanes have keys of before, which nobody looks at
            _sort_block(self, n, size, n_sorted // N_LANES)
        if self.turned > 0:  # else drawn.missing is NONE_MISSING already
            n_drawn = add_turned(self, n, drawn, n_drawn)
        return drawing, n_drawn

    def sorted_code(self, table, number, column):
        return np.int64(table.codes[column, self.rows[number]])

    def missing_word(self, number, column):
        return MISSING_RANK << RANK_SHIFT | self.places[number]


@kernel
def has_ties(small, table, n):
    """Do two rows of the small node have different codes that count as one value?"""
    codes = small.codes
    for column in small.tied:
        for i in range(n):
            codes[i] = table.codes[column, small.rows[i]]
        sort_by_network(codes, n)
        for i in range(1, n):
            gap = codes[i] - codes[i - 1]
            is_near = 0 < gap <= table.tie_span[column]
            if is_near and same_value(table, column, codes[i - 1], codes[i]):
                return True
    return False


@inline_kernel
def _begin_node(small, samples, node):
    """Note the rows of a node and their words, padded to a power of two; return that."""
    size = 4
    while size < node.n:
        size *= 2
    for i in range(node.n):
        number = np.int64(samples[node.start + i])
        small.node_rows[i] = np.int64(small.rows[number])
        small.node_words[i] = small.places[number]
    for i in range(node.n, size):
        small.node_words[i] = NO_DEVIATION
        for lane in range(N_LANES):
            small.keys[i * N_LANES + lane] = _LAST_KEY
    return size


@inline_kernel
def _write_keys(small, codes, n, lane):
    """Write the keys of a column to a lane; return whether it is constant."""
    first, differ = codes[small.node_rows[0]], np.uint32(0)
    for i in range(n):
        code = codes[small.node_rows[i]]
        differ |= code ^ first
        code = min(np.int64(code), _MISSING_CODE)
        number = np.int64(small.node_words[i]) >> NUMBER_SHIFT
        small.keys[i * N_LANES + lane] = code << _CODE_SHIFT | number
    return differ == 0


def _ordering(size):
    """Compile a function that makes sorted words of up to `size` keys in each lane, and finds the
    gains of cuts."""

    def order(lanes, keys, words, *found):
        rows = [(lanes.load(keys, i), lanes.same(words, i)) for i in range(size)]
        for low, high in merge_exchanges(size):
            rows[low], rows[high] = compare_exchange(lanes, rows[low], rows[high])
        before, rank, ranked = rows[0][0], rows[0][0] ^ rows[0][0], []
        for key, word in rows:
            rank = rank + lanes.where((key ^ before) > NUMBERS, 1, rank ^ rank)
            shown = lanes.where(key <= _MISSING_KEY - 1, rank, MISSING_RANK)
            ranked.append(lanes.where(key <= _LAST_KEY - 1, shown << RANK_SHIFT | word, PADDING))
            before = key
        return write_gains(lanes, ranked, *found)

    return on_lanes(N_LANES)(order)


_order_4, _order_8, _order_16, _order_32 = map(_ordering, (4, 8, 16, 32))


@kernel
def _sort_block(small, n, size, block):
    """Sort the keys into the words of a block, and find the gains of all cuts."""
    keys, words = small.keys, small.node_words
    begin, end = block * BLOCK, (block + 1) * BLOCK
    ordered, gain = small.ordered[begin:end], small.gain[begin:end]
    begin, end = block * N_LANES, (block + 1) * N_LANES
    top, second, place = small.top[begin:end], small.second[begin:end], small.place[begin:end]
    if size == 4:
        _order_4(keys, words, ordered, gain, top, second, place)
    elif size == 8:
        _order_8(keys, words, ordered, gain, top, second, place)
    elif size == 16:
        _order_16(keys, words, ordered, gain, top, second, place)
    else:
        _order_32(keys, words, ordered, gain, top, second, place)
    if small.turned > 0:
        find_turned_gains(small, block, n)
