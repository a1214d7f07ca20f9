"""Histograms of tables with categories: subsets are cuts along an order of the categories.

Rows are added up by category. The guard and the order are those of
`cart.splitting.category_subsets`; the sums are then moved to the places in that order, where cuts
are searched as they are between the codes of numbers:

    categories   a      b      c            weight, sum of w y
    sums         2 18   2 4    1 7
    places       [ b | c | a ]              2 4 | 1 7 | 2 18
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import Cut
from cart.fast_paths.regression.cut_score import weight_at, write_target, y_at
from cart.fast_paths.regression.histograms.histogram import (
    CODES_MAX,
    WORD_MASK,
    WORD_SHIFT,
    Best,
    Filled,
    add_row,
    code_range,
)
from cart.fast_paths.regression.histograms.numbers import add_up_codes, divide_codes
from cart.fast_paths.regression.histograms.path import HistogramPath
from cart.jit.decorators import inline_kernel, kernel
from cart.primitives.partition import partition
from cart.splitting.category_subsets import (
    EXACT,
    CategoricalTable,
    Subsets,
    exceeds_f_ratio,
    keep_left,
    list_marked,
    mark_category,
    order_categories,
    write_subset,
)


class NumbersAndCategories(NamedTuple):
    """Some columns hold categories; the same protocol as
    `cart.fast_paths.regression.histograms.numbers.Numbers`."""

    subsets: Subsets

    def read_column(self, scratch, rows, table, column, node, limits):
        if table.n_categories[column] == 0:
            return add_up_codes(scratch, rows, table, column, node, limits)
        return _add_up_places(self.subsets, scratch, rows, table, column, node, limits)

    def keep_cut(self, table, filled, best, found):
        if filled.n_categories == 0 or found.cut.score <= best.cut.score:
            return found
        cut = found.cut
        keep_left(self.subsets, filled.n_categories, cut.left_code)
        cut = Cut(cut.feature, np.int64(0), np.int64(1), cut.score, cut.missing, 0.0)
        return Best(cut, found.least)

    def divide_rows(self, scratch, rows, table, cut, node):
        column = table.columns[cut.feature]
        if table.n_categories[column] == 0:
            return divide_codes(scratch, rows, table, cut, node)
        return _divide_subset(self.subsets, scratch, rows, rows.codes[column], node)

    def note_split(self, table, this, cut):
        if table.n_categories[table.columns[cut.feature]] > 0:
            write_subset(self.subsets, this)

    def grow_small(self, growth, table, rows, node, height, n_nodes, limits):
        return np.int64(-1)  # so the kernels of small nodes are not compiled


@kernel
def _add_up_places(subsets, scratch, rows, table, column, node, limits):
    """Add up a node's rows by the places of their categories; return a Filled."""
    node_rows, codes = rows.samples[node.start : node.end], rows.codes[column]
    n_present = _add_up_categories(subsets, scratch, node_rows, codes, rows.targets)
    first, last, min_ratio = np.int64(0), np.int64(CODES_MAX), limits.min_category_ratio
    is_guarded = n_present > 1 and table.n_categories[column] > EXACT
    subsets.squares[0] = node.rest
    if is_guarded and not exceeds_f_ratio(subsets, n_present, node.n, min_ratio):
        return Filled(np.uint64(0), first, last, n_present, True)
    order_categories(subsets, n_present)
    for place in range(n_present):
        category = subsets.present[subsets.spare[0, place]]
        write_target(scratch.sums, place, subsets.weight[category], subsets.response[category, 0])
    words = _mark_first(scratch.occupied, n_present)
    if limits.min_samples_leaf > 1:
        for i in range(node.n):
            scratch.counts[subsets.place[codes[node_rows[i]]]] += 1
        first, last = code_range(scratch, words, node.n, limits.min_samples_leaf)
    return Filled(words, first, last, n_present, False)


@inline_kernel
def _add_up_categories(subsets, scratch, rows, codes, targets):
    """Move the sums of a node's categories to `subsets`, and list the categories there.

    Returns how many there are.
    """
    sums, n_present = scratch.sums, 0
    for i in range(rows.shape[0]):
        row = rows[i]
        category = codes[row]
        subsets.present[n_present] = category  # no branch: whether it is new is unpredictable
        n_present += weight_at(sums, category) == 0.0
        add_row(scratch, category, targets, row)
    for p in range(n_present):
        category = subsets.present[p]
        subsets.weight[category] = weight_at(sums, category)
        subsets.response[category, 0] = y_at(sums, category)
        write_target(sums, category, 0.0, 0.0)
    return n_present


@inline_kernel
def _mark_first(occupied, n):
    """Set the bits of the first n codes; return a word with a bit for each word that is not 0."""
    words, every = np.uint64(0), ~np.uint64(0)
    for begin in range(0, n, WORD_MASK + 1):
        n_bits = min(n - begin, WORD_MASK + 1)
        occupied[begin >> WORD_SHIFT] = every >> np.uint64(WORD_MASK + 1 - n_bits)
        words |= np.uint64(1) << np.uint64(begin >> WORD_SHIFT)
    return words


class _Sides(NamedTuple):
    """Where a subset sends rows (see `cart.primitives.partition`)."""

    codes: np.ndarray
    of_category: np.ndarray  # 1: left

    def goes_left(self, i, item):
        return np.int64(self.of_category[self.codes[item]])


@kernel
def _divide_subset(subsets, scratch, rows, codes, node):
    """Divide a node's rows at the subset kept, and list the categories of the smaller side; return
    the place of the first row that goes right."""
    mine = rows.samples[node.start : node.end]
    n_left = partition(_Sides(codes, subsets.goes_left), mine, node.n, mine, scratch.spare)
    listed_left = 2 * n_left < node.n
    first, end = (0, n_left) if listed_left else (n_left, node.n)
    n_listed = 0
    for i in range(first, end):
        n_listed = mark_category(subsets, n_listed, codes[mine[i]])
    list_marked(subsets, n_listed, listed_left)
    return node.start + n_left


class CategoryHistogramPath(HistogramPath):
    """Grows regression trees by squared error on tables with categories, one at a time."""

    table_kind = CategoricalTable
    _has_small_nodes = False
    _may_round = False
    _narrows = True

    def _create_rows(self):
        self._table = self._table.narrow()
        return super()._create_rows()

    def _create_columns(self):
        return NumbersAndCategories(self._table.subsets)
