"""Splits on subsets of categories, of a node whose rows are known by histograms.

As in `cart.splitting.category_subsets`, categories get places in an order, and the scan searches
places as if they were ranks. The order of equal categories, and of sums, is that in which a local
node meets them: by their first row. So a cell has one number more, the largest over partitions:

    cells[code]      [ numbers ... | FIRST - row ]        row: the first of the node with this code
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, kernel
from cart.primitives.sort_keys import sort_positions_by_value
from cart.splitting.all_subsets import try_all_subsets
from cart.splitting.category_subsets import (
    EXACT,
    Subsets,
    exceeds_f_ratio,
    keep_left,
    merge_categories,
    order_categories,
)
from cart.splitting.splitter import SearchContext
from forest.partitioned.histograms import FIRST, ROW, WEIGHT


def join_cells(one, other):
    """Cells of two partitions together, where the last number is a first row."""
    both = one + other
    np.maximum(one[..., -1], other[..., -1], out=both[..., -1])
    return both


@dispatch
def has_places(categories, column):
    """Are the column's codes categories?"""
    return categories.has_places(column)


@dispatch
def find_places(categories, context, column, cells, n_numbers, step):
    """Give the node's categories their places; return how many they are, and how many places."""
    return categories.find_places(context, column, cells, n_numbers, step)


@dispatch
def keep(categories, n_present, left_place):
    """Remember which categories the best cut so far sends left: places up to `left_place`."""
    categories.keep(n_present, left_place)


@dispatch
def place_of(categories, code):
    """The place of a category of the node."""
    return categories.place_of(code)


@dispatch
def side_of(categories, code):
    """0 where the best cut sends a category left, else 1."""
    return categories.side_of(code)


@dispatch
def try_subsets(categories, context, codes, n_present):
    """Try all subsets of few categories where they have several responses; how many places there
    are then."""
    return categories.try_subsets(context, codes, n_present)


class NoCategories(NamedTuple):
    """Of tables whose columns are all numbers."""

    name: int = 0  # numba wants a field

    def has_places(self, column):
        return False

    def find_places(self, context, column, cells, n_numbers, step):
        return 0, 0

    def keep(self, n_present, left_place):
        pass

    def place_of(self, code):
        return code

    def side_of(self, code):
        return 0

    def try_subsets(self, context, codes, n_present):
        return n_present


class SomeCategories(NamedTuple):
    """Of tables with categories."""

    n_categories: np.ndarray  # (n_columns,) int64; 0: the column holds numbers
    subsets: Subsets
    n_values: int  # classes; 1 in regression

    @classmethod
    def create(cls, n_categories, n_values):
        most = int(n_categories.max())
        return cls(n_categories, Subsets.create(most, 1, 1, 1, n_values), n_values)

    def has_places(self, column):
        return self.n_categories[column] > 0

    def find_places(self, context, column, cells, n_numbers, step):
        n_present, n_known = _sum_up(self, cells, n_numbers, step)
        if n_present == 0:
            return 0, 0
        least = context.limits.min_category_ratio  # as in `BestSplitter.find_subsets`
        if self.n_categories[column] > EXACT and not exceeds_f_ratio(
            self.subsets, n_present, n_known, least
        ):
            merge_categories(self.subsets, n_present)
            return n_present, min(n_present, 2)
        order_categories(self.subsets, n_present)
        return n_present, n_present

    def keep(self, n_present, left_place):
        keep_left(self.subsets, n_present, left_place)

    def place_of(self, code):
        return np.int64(self.subsets.place[code])

    def side_of(self, code):
        return 1 - np.int64(self.subsets.goes_left[code])

    def try_subsets(self, context, codes, n_present):
        if self.subsets.response.shape[1] > 1 and 2 < n_present <= EXACT:
            with_subsets = SearchContext(
                context.splitter, context.criterion, context.node, context.draw, self,
                context.limits, context.bounds, context.keep_order,
            )  # fmt: skip
            try_all_subsets(with_subsets, codes, n_present)
            return 2
        return n_present


@kernel
def _sum_up(categories, cells, n_numbers, step):
    """Find a node's categories, in the order of their first rows, and sum up their responses;
    return how many there are, and how many rows have one."""
    subsets = categories.subsets
    n_responses = subsets.response.shape[1]
    n_present = 0
    n_known = 0
    squares = 0.0
    for c in range(cells.shape[0] - 1):
        if cells[c, n_numbers] == 0:
            continue
        subsets.present[n_present] = c
        subsets.score[n_present, 0] = -np.float64(cells[c, n_numbers] - np.int64(FIRST))
        n_present += 1
        weight = 0.0
        if categories.n_values == 1:
            n_known += cells[c, 0] // np.int64(ROW)
            weight = np.float64(cells[c, 0] & np.int64(WEIGHT))
            subsets.response[c, 0] = cells[c, 1] * step
            squares += cells[c, 2] * (step * step)
        else:
            for k in range(n_numbers):
                n_known += cells[c, k] // np.int64(ROW)
                of_class = np.float64(cells[c, k] & np.int64(WEIGHT))
                weight += of_class
                if n_responses > 1:
                    subsets.response[c, k] = of_class
                elif k == 1:
                    subsets.response[c, 0] = of_class
            squares += weight if n_responses > 1 else subsets.response[c, 0]
        subsets.weight[c] = weight
    subsets.squares[0] = squares
    sort_positions_by_value(subsets.score, 0, n_present, subsets.spare)
    for p in range(n_present):
        subsets.spare[1, p] = subsets.present[subsets.spare[0, p]]
    for p in range(n_present):
        subsets.present[p] = subsets.spare[1, p]
    return n_present, n_known
