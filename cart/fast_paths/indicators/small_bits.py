"""Indicators in small nodes: a cut's gain follows from two sums over the rows with a 1.

A small node's rows keep their bits. The rows of a node below it are added up once for all
indicators, weight and rounded deviation in one word, so that a vector holds 16 indicators:

    sums    | weight | deviation |        of the rows with a 1
    bit    31       20           0
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.indicators.row_bits import BITS, RowBits, bit_in
from cart.fast_paths.regression.small_nodes.node import (
    BELOW_RANK,
    BLOCK,
    DEVIATIONS,
    NO_DEVIATION,
    RANK_SHIFT,
    SMALL_NODE_MAX,
    WEIGHT_SHIFT,
    WEIGHTS,
    place_of,
)
from cart.jit.decorators import inline_kernel
from cart.jit.instructions import add_where, lowest_bit
from cart.jit.simd import on_lanes

# Sums of deviations are below 63 * 2**13 < _HALF in size, sums of weights at most 63 * 31 < 2**11.
_SHIFT = 20
_HALF = 1 << (_SHIFT - 1)
_LANES = 16


class SmallBits(NamedTuple):
    """The protocol is that of `cart.fast_paths.regression.small_nodes.node`."""

    table: RowBits
    first_column: int  # of the table that is an indicator; all after it are, too
    first: int  # the column of `small.top` of the first indicator
    words: np.ndarray  # (SMALL_NODE_MAX, n_words) uint64: bits of a row, by its number
    plain: np.ndarray  # (SMALL_NODE_MAX,) int64: words of rows, without ranks, by number
    present: np.ndarray  # (1,) uint64: a bit for each number that the current node has
    sums: np.ndarray  # (n_words * BITS,) int32: of the current node's rows with a 1
    counts: np.ndarray  # (n_words * BITS,) uint8: how many these are, if cuts have to leave some

    @classmethod
    def beside(cls, small, table, first_column):
        """Return a small node with room for the indicators of a table of RowBits."""
        first, n_words = len(small.top), table.words.shape[1]
        per_bit = [np.zeros(n_words * BITS, dtype) for dtype in (np.float32, np.float32, np.int32)]
        found = small.top, small.second, small.place
        top, second, place = map(np.concatenate, zip(found, per_bit, strict=True))
        second[first:] = -1.0
        more = np.zeros(BLOCK, np.int32), np.zeros(BLOCK, np.float32)
        ordered, gain = map(np.concatenate, zip((small.ordered, small.gain), more, strict=True))
        bits = cls(
            table, first_column, first, np.empty((SMALL_NODE_MAX, n_words), np.uint64),
            np.empty(SMALL_NODE_MAX, np.int64), np.empty(1, np.uint64),
            np.empty(n_words * BITS, np.int32), np.empty(n_words * BITS, np.uint8),
        )  # fmt: skip
        return small._replace(
            ordered=ordered, gain=gain, top=top, second=second, place=place, bits=bits
        )

    def enter_bits(self, small, n):
        for i in range(n):
            self.plain[i] = small.places[i]
            for k in range(self.words.shape[1]):
                self.words[i, k] = self.table.words[small.rows[i], k]

    def find_bit_gains(self, small, samples, node, least):
        weight, deviation = _add_up(self, samples, node, least > 1)
        tops, share = small.top[self.first :], np.float32(deviation / weight)
        _write_gains(self.sums, tops, self.sums.shape[0] // _LANES, np.float32(weight), share)

    def bit_of(self, column):
        return max(column - self.first_column, np.int64(-1))

    def bit_at(self, number, bit):
        return bit_in(self.words, number, bit)

    def column_of_bit(self, small, bit, n, least):
        column = self.first + bit
        if small.top[column] < 0.0:
            return np.int64(-1)
        if least > 1 and not least <= self.counts[bit] <= n - least:
            small.top[column] = -1.0
        return column

    def is_bit(self, column):
        return column >= self.first

    def show_order(self, small, column):
        if column < self.first:
            return column
        _show(self, small, column)
        return np.int64(self.first)


@inline_kernel
def _add_up(bits, samples, node, counts_rows):
    """Add up the rows with a 1; return weight and deviation of all rows."""
    sums, counts, weight, total = bits.sums, bits.counts, np.int64(0), np.int64(0)
    sums[:], present = 0, np.uint64(0)
    if counts_rows:
        counts[:] = 0
    for i in range(node.n):
        number = np.int64(samples[node.start + i])
        word, present = bits.plain[number], present | np.uint64(1) << np.uint64(number)
        here, deviation = word >> WEIGHT_SHIFT & WEIGHTS, (word & DEVIATIONS) - NO_DEVIATION
        weight, total = weight + here, total + deviation
        for k in range(bits.words.shape[1]):
            add_where(sums, BITS * k, bits.words[number, k], np.int32((here << _SHIFT) + deviation))
            if counts_rows:
                add_where(counts, BITS * k, bits.words[number, k], np.uint8(1))
    bits.present[0] = present
    return weight, total


@on_lanes(_LANES)
def _write_gains(lanes, sums, tops, n_vectors, weight, share):
    """Write the gains of all cuts; -1 where an indicator is constant."""

    def write(k):
        total = lanes.load(sums, k)
        here = (total + _HALF) >> _SHIFT
        right, excess = lanes.real(here), lanes.real(total - (here << _SHIFT))
        left, excess = weight - right, excess - right * share
        gain = excess * excess / (left * right)
        lanes.store(tops, lanes.where((left > 0.0) & (right > 0.0), gain, -1.0), k)
        return ()

    lanes.repeat(lanes.number(n_vectors), write)


@inline_kernel
def _show(bits, small, column):
    """Write the node's rows with a 0, then those with a 1, to `small.ordered`."""
    bit, first, zeros = column - bits.first, bits.first, np.int64(0)
    for code in range(2):
        left = bits.present[0]
        while left != 0:
            number = np.int64(lowest_bit(left))
            left &= left - np.uint64(1)
            if bit_in(bits.words, number, bit) == code:
                word = bits.plain[number] & BELOW_RANK | code << RANK_SHIFT
                small.ordered[place_of(zeros, first)] = word
                zeros += 1
        if code == 0:
            small.place[column] = zeros - 1
    small.gain[place_of(small.place[column], first)] = small.top[column]
