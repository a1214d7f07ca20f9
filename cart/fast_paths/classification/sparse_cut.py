"""Whole class counts on sparse tables: a node visits the entries of a column, never its zeros.

The zeros of a node are one entry among the listed ones. Their counts are the node's less those:

    keys      [ 1 | 2 | 0 . . . . . . 0 | 4 | 7 ]      codes in order; that of 0 is 3
    entries   [ 1 | 2 |       3         | 4 | 7 ]      summed up as if it were one sample

Few samples go to the other side of a cut than the zeros do. They are swapped to one end of the
node, and most others stay where they are. The order of samples does not matter to whole counts.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NONE_MISSING, Cut, cut_between
from cart.fast_paths.classification.best_cut import choose_cut, with_enough_weight
from cart.fast_paths.classification.class_rows import ClassRows
from cart.fast_paths.classification.cumulative_counts import ZEROS, begin_left, move_key, move_left
from cart.fast_paths.classification.cuts import (
    FEW_CODES,
    BestCuts,
    is_open,
    monotony_of,
    write_threshold,
)
from cart.fast_paths.classification.packed_rows import (
    class_of,
    code_of_key,
    count_classes,
    count_words,
    row_number,
    total_weight,
    weight_of,
)
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.classification.random_cut import score_if_legal
from cart.fast_paths.drawn_cuts import draw_between
from cart.jit.decorators import inline_kernel, like
from cart.primitives.radix_sort import sort_short_keys
from cart.splitting.splitter import RandomSplitter
from cart.table.frequent_codes import frequent_codes, is_mostly_equal
from cart.table.sparse_table import (
    SparseTable,
    first_entry,
    forget_lists,
    is_listed,
    list_node,
)
from cart.table.table import Table, same_value

_CELLS_MAX = 1 << 26  # of a dense table that is grown on like a sparse one, in each thread
# A dense table is grown on so if at most this share of its cells hold another value than the most
# frequent one of their column; the second share is for nodes that look at fewer than half of the
# features.
_OTHERS_MAX = 1 / 8, 1 / 18


class WordPlaces(NamedTuple):
    """Where the words of rows are, and room to move them."""

    of_rows: np.ndarray  # (n_rows,) int64: place of a row's word, above its weight and class; or -1
    moving: np.ndarray  # (n_rows,) int64: places of the words that move
    is_moving: np.ndarray  # (n_rows,) uint8: by place; 0 between divisions

    @classmethod
    def create(cls, n_rows):
        return cls(*np.empty((2, n_rows), np.int64), np.zeros(n_rows, np.uint8))


@like(BestCuts)
class SparseCuts(NamedTuple):
    """Searches all cuts of a feature that is 0 for the most part.

    A node of many rows visits all entries of a column, a node of few rows those of its rows only
    (see `cart.table.sparse_table`).
    """

    places: WordPlaces

    def begin_tree(self, way, n):
        words = way.tiers[0].words
        forget_lists(way.table.lists)
        self.places.of_rows[:] = -1
        for i in range(n):
            _note_place(words, self.places, i, way.layout)

    def search_feature(self, way, node, searched, feature, best):
        table, scratch, keys = way.table, way.scratch, way.scratch.keys
        prefix, layout, weight = searched.prefix, searched.layout, searched.weight
        n, column = node.end - node.start, table.columns[feature]
        n_listed, in_order = _gather_entries(self.places, way, node, column)
        zero = table.zero[column]
        lowest, highest = _range_of(keys[:n_listed], layout, n, zero)
        if same_value(table, column, lowest, highest):
            return True, best
        if not is_open(best):
            return False, best
        shift, spare = layout.low_bits, scratch.spare
        if not in_order and sort_short_keys(
            keys, n_listed, shift, lowest, highest, spare, scratch.digits
        ):
            keys = spare
        place_of_zeros = _add_up(searched, keys, n_listed, n, zero)
        first, last = cuts_around_zeros(place_of_zeros, n, n_listed, way.limits.min_samples_leaf)
        least = way.limits.min_weight_leaf
        if least > 0.0:
            first, last = with_enough_weight(prefix, first, last, weight, least)
        score, i = choose_cut(
            searched, prefix.levels, first, last, best.score, table, column,
            monotony_of(way, node, feature),
        )  # fmt: skip
        if i < 0:
            return False, best
        left = np.int64(code_of_key(prefix.levels[i], layout))
        right = np.int64(code_of_key(prefix.levels[i + 1], layout))
        return False, cut_between(table, feature, left, right, score, NONE_MISSING)

    def divide_words(self, way, node, cut, left_counts):
        """Swap the words that go to the other side than the zeros to that end of the node."""
        words, moving, is_moving = way.tiers[0].words, self.places.moving, self.places.is_moving
        column, n = way.table.columns[cut.feature], node.end - node.start
        zero_left = np.int64(way.table.zero[column]) <= cut.left_code
        n_moving = _find_moving(self.places, way, node, column, cut.left_code, zero_left)
        first = node.end - n_moving if zero_left else node.start
        for j in range(n_moving):
            is_moving[moving[j]] = 1
        place = first
        for j in range(n_moving):
            if first <= moving[j] < first + n_moving:
                continue
            while is_moving[place]:
                place += 1
            _exchange(words, self.places, moving[j], place, way.layout)
            place += 1
        for j in range(n_moving):
            is_moving[moving[j]] = 0
        count_classes(words, first, n_moving, way.layout, left_counts)
        if zero_left:
            counts = way.scratch.pending[node.row]
            for c in range(counts.shape[0]):
                left_counts[c] = counts[c] - left_counts[c]
        return n - n_moving if zero_left else n_moving


@like(SparseCuts)
class SparseRandomCuts(NamedTuple):
    """Tries one cut of a feature that is 0 for the most part, at a random threshold."""

    places: WordPlaces

    def search_feature(self, way, node, searched, feature, best):
        table, layout = way.table, searched.layout
        n, column = node.end - node.start, table.columns[feature]
        n_listed, _ = _gather_entries(self.places, way, node, column)
        keys, zero = way.scratch.keys[:n_listed], table.zero[column]
        span = _range_of(keys, layout, n, zero)
        cut = draw_between(table, way.draw, feature, span, False, False)
        if cut.feature < 0 or not is_open(best):
            return cut.feature < 0, best
        n_left = _count_left(searched, keys, n, zero, cut.left_code)
        score = score_if_legal(way, node, searched, feature, n_left)
        if score > best.score:
            best = Cut(feature, cut.left_code, 0, score, NONE_MISSING, cut.threshold)
        return False, best

    def write_cut(self, way, tree, this, node, cut, children):
        write_threshold(tree, this, cut)


@inline_kernel
def _gather_entries(places, way, node, column):
    """Write the keys of a column's entries in the node; return how many there are, and whether they
    are in order."""
    table, layout, keys, words = way.table, way.layout, way.scratch.keys, way.tiers[0].words
    start, n, lists = node.start, node.end - node.start, way.table.lists
    n_listed = 0
    if list_node(lists, table.by_row, words, start, n, layout.low_bits):
        entry = first_entry(lists, column)
        while entry >= 0:
            place = places.of_rows[lists.rows[entry]]
            keys[n_listed] = lists.codes[entry] << layout.low_bits | np.uint32(place)
            n_listed += np.uint64((place >> 32) - start) < np.uint64(n)
            entry = np.int64(lists.following[entry])
        return n_listed, False
    for entry in range(table.entry_start[column], table.entry_start[column + 1]):
        place = places.of_rows[table.rows[entry]]
        keys[n_listed] = table.codes[entry] << layout.low_bits | np.uint32(place)
        n_listed += np.uint64((place >> 32) - start) < np.uint64(n)
    return n_listed, True


@inline_kernel
def _range_of(keys, layout, n, zero):
    """The lowest and the highest code of a node of n rows, whose entries are `keys`."""
    lowest = highest = zero if keys.shape[0] < n else code_of_key(keys[0], layout)
    for j in range(keys.shape[0]):
        code = code_of_key(keys[j], layout)
        lowest, highest = min(lowest, code), max(highest, code)
    return lowest, highest


@inline_kernel
def _count_left(searched, keys, n, zero, left_code):
    """Write the class counts left of a cut to `left`; return how many of n rows are there."""
    layout, counts, left = searched.layout, searched.counts, searched.prefix.left
    zero_left, n_moving = np.int64(zero) <= left_code, 0
    for j in range(keys.shape[0]):  # keep those that go to the other side than zeros
        key = keys[j]
        keys[n_moving] = key
        n_moving += (np.int64(code_of_key(key, layout)) <= left_code) != zero_left
    count_words(layout, keys[:n_moving], left)
    if not zero_left:
        return np.int64(n_moving)
    for c in range(counts.shape[0]):
        left[c] = counts[c] - left[c]
    return n - n_moving


@inline_kernel
def _add_up(searched, keys, n_listed, n, zero):
    """Write the prefix counts of the ordered keys, with the zeros as one entry among them, and the
    entries to `levels`; return the place of the zeros, the one after the last if there are none."""
    criterion, prefix, layout, counts, _ = searched
    n_classes = counts.shape[0]
    zeros = prefix.histogram[:n_classes]
    count_words(layout, keys[:n_listed], zeros)
    for c in range(n_classes):
        zeros[c] = counts[c] - zeros[c]
    power_left, power_right = begin_left(criterion, prefix.left, counts)
    left_weight, second, entry, j = np.int64(0), np.int64(0), 0, 0
    is_due, place_of_zeros = n_listed < n, n_listed
    while j < n_listed or is_due:
        if is_due and (j == n_listed or code_of_key(keys[j], layout) > zero):
            is_due, place_of_zeros = False, j
            key = zero << layout.low_bits
            for c in range(n_classes):
                more, less = move_left(criterion, prefix.left, counts, c, zeros[c])
                power_left, power_right = power_left + more, power_right + less
            left_weight += total_weight(zeros, layout)
            second += zeros[1]
        else:
            key, w = keys[j], weight_of(keys[j], layout)
            j += 1
            if n_classes > 2:
                w, more, less = move_key(criterion, prefix.left, counts, key, layout)
                power_left, power_right = power_left + more, power_right + less
            left_weight += w
            second += w * class_of(key, layout)
        prefix.levels[entry], prefix.weight[entry] = key, left_weight
        prefix.second[entry] = second
        if n_classes > 2:
            prefix.power_left[entry], prefix.power_right[entry] = power_left, power_right
        entry += 1
    prefix.origin[0], prefix.origin[1] = ZEROS, place_of_zeros
    return place_of_zeros


@inline_kernel
def cuts_around_zeros(place_of_zeros, n, n_listed, least):
    """The first and the last cut (excluded) with `least` samples on both sides. An entry is a
    sample, but the zeros are as many as are not listed."""
    n_zeros, most = n - n_listed, n - least  # at most so many on the left
    first, last = least - 1, min(place_of_zeros, most)
    if first >= place_of_zeros:
        first = max(place_of_zeros, least - n_zeros)
    if most - n_zeros >= place_of_zeros:
        last = most - n_zeros + 1
    return first, last


@inline_kernel
def _find_moving(places, way, node, column, left_code, zero_left):
    """Write the places of the words that go to the other side than the zeros; return how many."""
    table, lists, moving, n_moving = way.table, way.table.lists, places.moving, 0
    if is_listed(lists, node.start, node.end - node.start):
        entry = first_entry(lists, column)
        while entry >= 0:
            place = places.of_rows[lists.rows[entry]] >> 32
            moving[n_moving] = place
            goes_left = np.int64(lists.codes[entry]) <= left_code
            n_moving += (node.start <= place) & (place < node.end) & (goes_left != zero_left)
            entry = np.int64(lists.following[entry])
        return n_moving
    for entry in range(table.entry_start[column], table.entry_start[column + 1]):
        place = places.of_rows[table.rows[entry]] >> 32
        moving[n_moving] = place
        goes_left = np.int64(table.codes[entry]) <= left_code
        n_moving += (node.start <= place) & (place < node.end) & (goes_left != zero_left)
    return n_moving


@inline_kernel
def _exchange(words, places, i, j, layout):
    words[i], words[j] = words[j], words[i]
    _note_place(words, places, i, layout)
    _note_place(words, places, j, layout)


@inline_kernel
def _note_place(words, places, i, layout):
    low = np.int64(words[i] & layout.low_mask)
    places.of_rows[row_number(words[i], layout)] = np.int64(i) << 32 | low


class SparseClassCountsPath(ClassCountsPath):
    """Grows classification trees on sparse tables, on weights that are whole numbers."""

    table_kind: type = SparseTable
    takes_missing = False

    def _create_cuts(self):
        return SparseCuts(WordPlaces.create(len(self._y)))

    def _create_tiers(self):
        return (ClassRows.create(len(self._y), np.empty((0, 0), np.uint32)),)


class SparseRandomCountsPath(SparseClassCountsPath):
    """Grows extra trees for classification on sparse tables, on weights that are whole numbers."""

    splitter = RandomSplitter

    def _create_cuts(self):
        return SparseRandomCuts(WordPlaces.create(len(self._y)))


class MostlyEqualCountsPath(SparseClassCountsPath):
    """Grows classification trees on dense tables in whose columns most rows have the same value.

    That value takes the place of 0. It is looked for in a few rows only.
    """

    table_kind = Table

    @classmethod
    def fits(cls, table, plan):
        if not super().fits(table, plan) or table.codes.size > _CELLS_MAX:
            return False
        return is_mostly_equal(table, plan.limits.max_features, _OTHERS_MAX, FEW_CODES)

    def _create_scratch(self):
        self._table = self._with_room(SparseTable.of(self._table, frequent_codes(self._table)))
        return super()._create_scratch()
