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

The words serve the whole subtree (`ranked_rows.py` of this folder), or are made anew for each node
along the features that it looks at (`rows_on_demand.py`). `subtree.py` grows the subtree, `cut.py`
searches its nodes.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.cut_score import weight_at, write_target, y_at
from cart.jit.decorators import dispatch, inline_kernel
from cart.primitives.sorting_networks import sort_by_network

SMALL_NODE_MAX = 63  # rows
MISSING_RANK = SMALL_NODE_MAX - 1  # an ordinary rank if the table has no missing values
N_LANES, _LANE_BITS = 8, 3
BLOCK = (SMALL_NODE_MAX + 1) * N_LANES  # words of N_LANES columns
RANK_SHIFT, NUMBER_SHIFT, WEIGHT_SHIFT = 25, 19, 14
NUMBERS, WEIGHTS, DEVIATIONS = 63, 31, (1 << WEIGHT_SHIFT) - 1
NO_DEVIATION = 1 << (WEIGHT_SHIFT - 1)  # what stands for a deviation of 0
BELOW_RANK = (1 << RANK_SHIFT) - 1  # mask of all of a word but its rank
PADDING = SMALL_NODE_MAX << RANK_SHIFT | NO_DEVIATION  # a word without weight, after all others
_LEAST = 1e-100  # deviations between this and its inverse have squares in range


# ---------------------------------------------------------------------------- the protocol


@dispatch
def draw_and_sort(small, growth, table, samples, node, limits):
    """Draw the features of a node, sort its rows along them, and find the gains of all cuts.

    Returns the Drawing, and how many columns are to be searched, which `growth.drawn` lists:
    `column` is where the arrays of `small` have them. No column is constant.
    """


@dispatch
def sorted_code(small, table, number, column):
    """The table's code of the row with this number along a column that is no indicator."""


@dispatch
def missing_word(small, number, column):
    """The word of the row with this number along a column in which its value is missing."""


# -------------------------------------------------------------------------------- indicators


@dispatch
def enter_bits(bits, small, n):
    """Note which indicators the n rows of a small node have, when these have been numbered."""


@dispatch
def find_bit_gains(bits, small, samples, node, least):
    """Find the gains of the cuts of all indicators, which must leave `least` rows on a side."""


@dispatch
def bit_of(bits, column):
    """Which of the indicators a column of the table is; -1 if it is none."""


@dispatch
def bit_at(bits, number, bit):
    """The code along an indicator of the row with this number."""


@dispatch
def column_of_bit(bits, small, bit, n, least):
    """The column of `small.top` with the gain of an indicator's one cut; -1 if it is constant."""


@dispatch
def is_bit(bits, column):
    """Whether a column of `small.top` is that of an indicator."""


@dispatch
def show_order(bits, small, column):
    """The column of `small.ordered` with the node's rows in the order of one of `small.top`: the
    same, or for an indicator one that is written now, over the last indicator's."""


class NoBits(NamedTuple):
    """All columns are sorted. For many indicators see `cart.fast_paths.indicators.small_bits`."""

    name: int = 0  # numba wants a field

    def enter_bits(self, small, n):
        pass

    def find_bit_gains(self, small, samples, node, least):
        pass

    def bit_of(self, column):
        return np.int64(-1)

    def bit_at(self, number, bit):
        return np.int64(0)

    def column_of_bit(self, small, bit, n, least):
        return np.int64(-1)

    def is_bit(self, column):
        return False

    def show_order(self, small, column):
        return column


@inline_kernel
def code_of(small, table, number, column):
    """The table's code of the row with this number along a column of the table."""
    bit = bit_of(small.bits, column)
    if bit >= 0:
        return bit_at(small.bits, number, bit)
    return sorted_code(small, table, number, column)


# ---------------------------------------------------------------------------- entering and leaving


@inline_kernel
def enter_small_node(small, samples, start, n, targets, mean):
    """Number samples[start:start + n] in the order of the table, and replace them by the numbers.

    `small.places` gets their words, without ranks. Returns False, and changes nothing, if weights
    do not fit into words, or if deviations are too small or too large to be squared.
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
def rank_at(small, i, column):
    """Rank of the node's row in place i along a column."""
    return np.int64(small.ordered[place_of(i, column)] >> RANK_SHIFT)


@inline_kernel
def number_at(small, i, column):
    """Number of the node's row in place i along a column."""
    return np.int64(small.ordered[place_of(i, column)] >> NUMBER_SHIFT & NUMBERS)
