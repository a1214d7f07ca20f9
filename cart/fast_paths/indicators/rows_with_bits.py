"""The rows of nodes where some columns are indicators: bits of rows, for which nothing is sorted.

Columns of numbers have lists, as always; indicators follow them:

    column   0 .. 9                        10 .. 209
             presorted or sorted           a bit of every row; what the node's rows with a 1 weigh,
             on demand                     and the sum of their targets
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.indicators.row_bits import BITS, FEW_MAX, RowBits, bit_in
from cart.fast_paths.regression.cut_score import weight_at, y_at
from cart.fast_paths.regression.node_sums import divide_stably
from cart.fast_paths.regression.presorted_rows import divide_own_rows
from cart.fast_paths.regression.small_nodes.node import enter_bits
from cart.fast_paths.regression.sorted_rows import (
    begin_tree,
    divide_feature,
    divide_rows,
    expect_feature,
    hand_to_small_node,
    has_all_entries,
    is_presorted,
    list_all,
    load_feature,
    mark_left,
    room_for,
    unlisted_code,
)
from cart.jit.decorators import inline_kernel, kernel
from cart.jit.instructions import add_where
from cart.primitives.sort_keys import CODE_SHIFT
from cart.table.ranking import MISSING


class RowsWithBits(NamedTuple):
    """The protocol is that of `cart.fast_paths.regression.sorted_rows`."""

    numbers: NamedTuple  # PresortedRows or RowsSortedOnDemand, of the columns that have lists
    entries: np.ndarray  # those of `numbers`, then n_rows for the order of an indicator
    first_column: int  # that is an indicator; all after it are, too
    bits: RowBits
    ones: np.ndarray  # (3 * width,) float64: number, weight and sum of targets of rows with a 1
    few: np.ndarray  # (2 * width,) uint8: number and weight of some of them
    heaviest: np.ndarray  # (1,) int64: the most that a row weighs; 0 if weights do not fit `few`
    rows: np.ndarray  # (n_rows,) uint32: of the tree, ascending in a node
    spare_rows: np.ndarray  # as rows
    targets: np.ndarray  # see `cart.fast_paths.regression.sorted_path.SortedScratch`

    @classmethod
    def beside(cls, numbers, bits, first_column, heaviest, targets):
        """Add RowBits to the rows of the columns that have lists."""
        n_rows, n_words = bits.words.shape
        entries = np.empty(len(numbers.entries) + n_rows, np.uint64)
        numbers = numbers._replace(entries=entries)
        return cls(
            numbers, entries, first_column, bits, np.empty(3 * BITS * n_words),
            np.empty(2 * BITS * n_words, np.uint8), heaviest, *np.empty((2, n_rows), np.uint32),
            targets,
        )  # fmt: skip

    def has_list(self, column):
        return column < self.first_column

    def begin_node(self, node):
        _add_up(self, self.rows[node.start : node.end])

    def ones_of(self, column):
        ones, place = self.ones, column - self.first_column
        width = ones.shape[0] // 3
        return np.int64(ones[place]), ones[width + place], ones[2 * width + place]

    def sum_zeros(self, column, node):
        return _sum_zeros(self, column - self.first_column, node)

    def begin_tree(self, table, in_bag, n, is_in_bag):
        for i in range(n):
            self.rows[i] = in_bag[i]
        begin_tree(self.numbers, table, in_bag, n, is_in_bag)

    def expect_feature(self, table, column, node):
        if column < self.first_column:
            expect_feature(self.numbers, table, column, node)

    def load_feature(self, table, column, place, node):
        if column < self.first_column:
            return load_feature(self.numbers, table, column, place, node)
        n_ones = np.int64(self.ones[column - self.first_column])
        return _order_at(self), np.uint32(n_ones == node.n), np.uint32(n_ones > 0)

    def unlisted_code(self, column, n):
        if column < self.first_column:
            return np.uint32(unlisted_code(self.numbers, column, n))
        return MISSING

    def list_all(self, table, column, first, node):
        if column < self.first_column:
            return list_all(self.numbers, table, column, first, node)
        at = _order_at(self)
        _list_all(self, column - self.first_column, self.entries[at:], node)
        return at

    def room_for(self, column, place, node):
        return room_for(self.numbers, column, place, node)

    def mark_left(self, table, cut, node, is_left):
        column = table.columns[cut.feature]
        if column < self.first_column:
            n_left = mark_left(self.numbers, table, cut, node, is_left)
        else:
            place = column - self.first_column
            for i in range(node.start, node.end):
                row = self.rows[i]
                is_left[row] = bit_in(self.bits.words, row, place) == 0
            if has_all_entries(self.numbers):
                divide_own_rows(self.numbers, node, is_left)
            n_left = node.n - np.int64(self.ones[place])
        divide_stably(self.rows, node.start, node.end, is_left, self.spare_rows)
        return n_left

    def divide_rows(self, table, features, node, cut, n_left, is_left):
        divide_rows(self.numbers, table, features, node, cut, n_left, is_left)

    def divide_feature(self, column, start, n, depth, n_left, is_left):
        divide_feature(self.numbers, column, start, n, depth, n_left, is_left)

    def note_split(self, table, this, node, cut, n_left):
        pass

    def is_presorted(self):
        return is_presorted(self.numbers)

    def has_all_entries(self):
        return has_all_entries(self.numbers)

    def hand_to_small_node(self, small, table, features, samples, targets, node):
        numbers = self.numbers
        if not hand_to_small_node(numbers, small, table, features, samples, targets, node):
            return False
        enter_bits(small.bits, small, node.n)
        return True


@inline_kernel
def _order_at(rows):
    """Where the order of an indicator is written."""
    return rows.entries.shape[0] - rows.rows.shape[0]


@kernel
def _add_up(rows, mine):
    """Add up those of a node's rows with a 1, for all indicators."""
    words, ones, few, targets = rows.bits.words, rows.ones, rows.few, rows.targets
    heaviest, width, n = rows.heaviest[0], few.shape[0] // 2, mine.shape[0]
    at_once = FEW_MAX // max(heaviest, 1)
    ones[:] = 0.0
    for first in range(0, n, at_once):
        few[:] = 0
        for i in range(first, min(first + at_once, n)):
            row = mine[i]
            weight = weight_at(targets, row)
            total = weight * y_at(targets, row)
            for k in range(words.shape[1]):
                word = words[row, k]
                add_where(few, BITS * k, word, np.uint8(1))
                if heaviest > 0:
                    add_where(few, width + BITS * k, word, np.uint8(weight))
                else:
                    add_where(ones, width + BITS * k, word, weight)
                add_where(ones, 2 * width + BITS * k, word, total)
        for j in range(2 * width):
            ones[j] += few[j]


@kernel
def _sum_zeros(rows, place, node):
    """Weight and sum of targets of the rows with a 0: from the first on, or, if those with a 1 are
    fewer, the node's less these, the last one first."""
    mine, targets = rows.rows[node.start : node.end], rows.targets
    from_left = 2 * np.int64(rows.ones[place]) >= node.n
    weight, total = (0.0, 0.0) if from_left else (node.weight, node.total)
    for i in range(node.n):
        row = mine[i if from_left else node.n - 1 - i]
        if (bit_in(rows.bits.words, row, place) == 0) == from_left:
            here = weight_at(targets, row) if from_left else -weight_at(targets, row)
            weight += here
            total += here * y_at(targets, row)
    return weight, total


@kernel
def _list_all(rows, place, entries, node):
    """Write the node's rows with a 0, then those with a 1."""
    zeros, ones = np.int64(0), node.n - np.int64(rows.ones[place])
    for i in range(node.n):
        row = rows.rows[node.start + i]
        code = bit_in(rows.bits.words, row, place)
        entries[ones if code else zeros] = np.uint64(code) << CODE_SHIFT | np.uint64(row)
        zeros, ones = zeros + 1 - code, ones + code
