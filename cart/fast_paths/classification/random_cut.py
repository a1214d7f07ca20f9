"""Extra trees on whole class counts: one cut per feature, at a threshold drawn at random.

Nothing is sorted. One pass over the node's rows finds the lowest and the highest code, of many
features at once if rows are stored across. A second pass counts the classes up to the threshold:

    codes    [ 4 1 7 2 5 ]        bits of the values, in the order of floats
    class    [ a b a a b ]        threshold between 2 and 4:  left  a 1  b 1
"""

from itertools import starmap
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, NO_CUT, Cut
from cart.fast_paths.cache_copies import create_cache_copies
from cart.fast_paths.classification.best_cut import keeps_direction
from cart.fast_paths.classification.class_rows import copy_columns, renumber_words
from cart.fast_paths.classification.cuts import (
    BestCuts,
    divide_stably,
    is_open,
    monotony_of,
    write_threshold,
)
from cart.fast_paths.classification.impurities import child_impurities
from cart.fast_paths.classification.packed_rows import (
    class_of,
    count_words,
    fit_quarters,
    gather_codes,
    n_outputs_of,
    place_of_class,
    quarter_of,
    total_weight,
    weight_of,
    write_quarters,
)
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.drawn_cuts import DrawnCuts, begin_cuts, draw_among, draw_cut, drawn_cut
from cart.fast_paths.rows_across import (
    HALF,
    SIGN,
    WIDTH,
    across_of,
    copy_across,
    create_across,
    load_across,
    place_across,
)
from cart.jit.decorators import inline_kernel, like
from cart.jit.instructions import highest_bit
from cart.jit.simd import on_lanes
from cart.primitives.gather import EXPECTED_MAX, expect, gather
from cart.splitting.category_subsets import keep_subset
from cart.splitting.feature_draw import likely_next
from cart.splitting.splitter import RandomSplitter
from cart.table.float_table import FloatTable

_CLASSES_MAX = 6
# With more counts, or more numbers to pack them into, columns are read faster than rows across.
_COUNTS_MAX, _NUMBERS_MAX = 10, 4
_AS_WEIGHT = -1  # instead of a number of rows: the weight is this number
_VECTORS_PAY = 32  # rows from which on vectors pay
_SHARE = 1 / 16  # of the columns: rows across pay if nodes look at this share or more
_TABLE_MAX = 1 << 20  # values: no larger table is held across as a whole
_ROWS_MAX = 2048  # rows of a node: of more, columns are read faster than rows across
# Sizes of near tiers across; a table that is held across needs the last only.
_NEAR_ROWS = _ROWS_MAX, 512


class AcrossRows(NamedTuple):
    """The rows of a tier, as in `ClassRows`, with codes stored in columns or across.

    If they are across (see `cart.fast_paths.rows_across`), nodes read many features of a row at
    once.
    """

    words: np.ndarray  # (n,) uint32
    codes: np.ndarray  # (n_columns, at least n) uint32; without rows in near tiers that are across
    across: np.ndarray  # (n_blocks, n * 16) int32, or of no blocks
    bits: np.ndarray  # the same memory as uint32

    @classmethod
    def create(cls, n, codes, across=None):
        across = create_across(0, 0) if across is None else across
        return cls(np.empty(n, np.uint32), codes, across, across.view(np.uint32))

    def room_of(self):
        return self.words.shape[0]

    def copy_rows(self, start, n, nearer, layout):
        words = self.words[start : start + n]
        if nearer.across.shape[0] == 0:
            copy_columns(self.codes, words, layout, nearer.codes)
        else:
            copy_across(self.across, self.codes, words, layout.low_bits, nearer.across)
        renumber_words(words, layout, nearer.words)


class StridedCodes(NamedTuple):
    """The codes of a column, stored in a column or across."""

    codes: np.ndarray  # uint32
    stride: int
    first: int
    flip: np.uint32  # bits to flip in each code

    def gather_codes(self, words, layout, gathered):
        codes = self.codes[self.first :]
        gather(codes, words, layout.low_bits, np.uint32(self.stride), gathered)
        if self.flip != 0:
            for i in range(words.shape[0]):
                gathered[i] ^= self.flip


@inline_kernel
def _codes_in(rows, column):
    """The StridedCodes of a column in a tier."""
    if rows.codes.shape[1] > 0:
        return StridedCodes(rows.codes[column], np.int64(1), np.int64(0), np.uint32(0))
    block, place = place_across(np.int64(column))
    return StridedCodes(rows.bits[block], np.int64(WIDTH), place, SIGN)


class PackedCounts(NamedTuple):
    """Counts of several classes in numbers of 32 bits, each in a part of as many bits as the node's
    weight has. Weights of three classes, say, take

        up to 1,023    [ c b a ]
        above          [   b a ] [     c ]
    """

    of_rows: np.ndarray  # (_NUMBERS_MAX, _ROWS_MAX) int32: of each row of a node
    left: np.ndarray  # (_NUMBERS_MAX, n_columns padded to whole vectors) int32: sums of those left
    n_parts: np.ndarray  # (64,) int64: how many parts of so many bits a number has

    @classmethod
    def create(cls, n):
        of_rows, left = (np.empty((_NUMBERS_MAX, length), np.int32) for length in (_ROWS_MAX, n))
        return cls(of_rows, left, 32 // np.maximum(np.arange(64), 1))


class Packing(NamedTuple):
    """Where packed counts have their parts."""

    n_bits: int  # of a part
    n_parts: int  # of a number
    n_numbers: int


class OneOfPacked(NamedTuple):
    """One of the numbers of packed counts."""

    of_rows: np.ndarray
    left: np.ndarray


@like(BestCuts)
class RandomCuts(NamedTuple):
    """Tries one cut of a feature, at a random threshold.

    If rows are across, the cuts of all features are drawn first. Then one pass counts the classes
    left of every column's cut, in lanes; counts of columns that were not drawn are ignored.
    """

    drawn: DrawnCuts
    counts: PackedCounts

    @classmethod
    def create(cls, table):
        drawn = DrawnCuts.create(table)
        return cls(drawn, PackedCounts.create(len(drawn.low)))

    def begin_search(self, way, node, searched):
        rows, n = way.tiers[node.tier], node.end - node.start
        self.drawn.n_drawn[0] = -1
        if _is_put_off(self, way, node, searched):
            words = rows.words[node.start : node.end]
            begin_cuts(self.drawn, rows.across, words, way.layout.low_bits, n)

    def expect_next(self, way, node, drawing, j):
        rows = way.tiers[node.tier]
        words = rows.words[node.start : node.end]
        if node.tier == 0 and words.shape[0] <= EXPECTED_MAX and self.drawn.n_drawn[0] < 0:
            column = way.table.columns[likely_next(way.draw, drawing, j, 1)]
            expect(rows.codes[column], words, way.layout.low_bits)

    def search_feature(self, way, node, searched, feature, best):
        if self.drawn.n_drawn[0] >= 0:
            return not draw_cut(self.drawn, way.table, way.draw, feature), best
        return search_cut(way, node, searched, feature, best)

    def end_search(self, way, node, searched, best):
        return _try_drawn(self, way, node, searched) if self.drawn.n_drawn[0] >= 0 else best

    def divide_words(self, way, node, cut, left_counts):
        codes = _codes_in(way.tiers[node.tier], way.table.columns[cut.feature])
        return divide_stably(way, node, cut, codes, left_counts)

    def write_cut(self, way, tree, this, node, cut, children):
        write_threshold(tree, this, cut)


@inline_kernel
def _is_put_off(cuts, way, node, searched):
    """Are the cuts of the node put off, to be tried together in `end_search`?"""
    if way.tiers[node.tier].across.shape[0] == 0 or node.end - node.start > _ROWS_MAX:
        return False
    n_counts = searched.counts.shape[0] + _counts_rows(way)
    packing = _packing(cuts.counts, searched.weight, n_counts)
    return n_counts <= _COUNTS_MAX and packing.n_parts > 1 and packing.n_numbers <= _NUMBERS_MAX


@inline_kernel
def _packing(counts, weight, n_counts):
    """How the counts of a node of this weight are packed."""
    n_bits = highest_bit(np.uint64(weight)) + 1
    n_parts, n_numbers = counts.n_parts[n_bits], 1
    while n_numbers * n_parts < n_counts and n_numbers <= _NUMBERS_MAX:  # a division takes longer
        n_numbers += 1
    return Packing(n_bits, n_parts, n_numbers)


@inline_kernel
def _counts_rows(way):
    """Does a part count rows? Weights suffice if each row weighs 1 or a leaf needs one row."""
    layout = way.layout
    return way.limits.min_samples_leaf > 1 and layout.low_mask >> layout.class_bits > 1


@inline_kernel
def search_cut(way, node, searched, feature, best):
    """Draw a cut of a feature and try it; return whether it is constant, and the better Cut."""
    table, rows, keys = way.table, way.tiers[node.tier], way.scratch.keys
    words = rows.words[node.start : node.end]
    gather_codes(_codes_in(rows, table.columns[feature]), words, searched.layout, keys)
    cut, n_present = draw_among(table, way.draw, feature, keys[: words.shape[0]])
    if cut.feature < 0 or not is_open(best):
        return cut.feature < 0, best
    goes_left = cut.missing == MISSING_LEFT
    n_left = _count_left(searched, keys, words, np.uint32(cut.left_code), goes_left)
    score = score_if_legal(way, node, searched, feature, n_left)
    if score > best.score:
        keep_subset(table, n_present, cut.left_code)
        best = Cut(feature, cut.left_code, 0, score, cut.missing, cut.threshold)
    return False, best


@inline_kernel
def _try_drawn(cuts, way, node, searched):
    """Try the cuts that were put off, in the order of the draw; return the best one."""
    drawn, best, left = cuts.drawn, NO_CUT, searched.prefix.left
    counts_rows = _counts_rows(way)
    packing = _packing(cuts.counts, searched.weight, left.shape[0] + counts_rows)
    _pack_rows(cuts.counts, packing, way, node, left.shape[0])
    _count_lanes(cuts, packing, way, node)
    for k in range(drawn.n_drawn[0]):
        if not is_open(best):
            break
        feature = drawn.feature[k]
        column = way.table.columns[feature]
        n_left = _read_counts(cuts.counts, packing, column, left, counts_rows)
        score = score_if_legal(way, node, searched, feature, n_left)
        if score > best.score:
            best = drawn_cut(drawn, feature, column, 0, score)
    return best


@inline_kernel
def _pack_rows(counts, packing, way, node, n_classes):
    """Write each row's packed counts: its weight in the part of its class, of each output, and 1 in
    the part after all classes, if there is one."""
    words, layout = way.tiers[node.tier].words[node.start : node.end], way.layout
    n_bits, n_parts = np.int32(packing.n_bits), np.int32(packing.n_parts)
    for number in range(packing.n_numbers):
        of_rows, first = counts.of_rows[number], np.int32(number) * n_parts
        rest = np.int32(n_classes) - first
        one = np.uint32(0 <= rest < n_parts) << np.uint32(rest * n_bits & np.int32(31))
        for i in range(words.shape[0]):
            c, weight = words[i] & layout.class_mask, np.uint32(weight_of(words[i], layout))
            packed = one
            for output in range(n_outputs_of(layout)):
                part = np.int32(place_of_class(layout, c, output)) - first
                moved = weight << np.uint32(part * n_bits & np.int32(31))
                packed |= moved if 0 <= part < n_parts else np.uint32(0)
            of_rows[i] = np.int32(packed)


@inline_kernel
def _read_counts(counts, packing, column, left, counts_rows):
    """Write the class counts left of a column's cut to `left`; return how many rows are there, if
    these are counted, or _AS_WEIGHT."""
    n_bits, first, total = np.uint32(packing.n_bits), 0, np.uint32(0)
    mask = (np.uint32(1) << n_bits) - np.uint32(1)
    for number in range(packing.n_numbers):
        total = np.uint32(counts.left[number, column])
        for c in range(first, min(first + packing.n_parts, left.shape[0])):
            left[c] = total & mask
            total >>= n_bits
        first += packing.n_parts
    return np.int64(total & mask) if counts_rows else np.int64(_AS_WEIGHT)


@inline_kernel
def _count_lanes(cuts, packing, way, node):
    """Add up, for each column's cut, the packed counts of the rows that go left, two numbers at a
    time."""
    rows, drawn, counts = way.tiers[node.tier], cuts.drawn, cuts.counts
    words, shift, n = rows.words[node.start : node.end], way.layout.low_bits, node.end - node.start
    blocks = _blocks_of(way.table, drawn)
    for block in range(rows.across.shape[0]):
        across, is_whole = rows.across[block], block < drawn.n_whole
        if not blocks >> np.uint64(block & 63) & np.uint64(1):
            continue
        for k in range(0, packing.n_numbers, 2):
            one = OneOfPacked(counts.of_rows[k], counts.left[k])
            other = OneOfPacked(counts.of_rows[k + 1], counts.left[k + 1])
            is_single = k + 1 == packing.n_numbers
            if is_single and is_whole:
                _count(drawn, across, words, shift, n, block, one)
            elif is_single:
                _count_of_half(drawn, across, words, shift, n, block, one)
            elif is_whole:
                _count(drawn, across, words, shift, n, block, one, other)
            else:
                _count_of_half(drawn, across, words, shift, n, block, one, other)


@inline_kernel
def _blocks_of(table, drawn):
    """A bit for each block, modulo 64, in which a column was drawn."""
    blocks = np.uint64(0)
    for k in range(drawn.n_drawn[0]):
        block, _ = place_across(table.columns[drawn.feature[k]])
        blocks |= np.uint64(1) << np.uint64(block & 63)
    return blocks


def _count_on(lanes, drawn, across, words, shift, n, block, *numbers):
    """Add up the packed counts of the rows that go left, for the cuts of a block of columns."""
    place = lanes.number(block) * (WIDTH // lanes.n)
    most, added = lanes.load(drawn.last, place), lanes.load(drawn.step, place)

    def count(k, *sums):
        row = lanes.number(lanes.same(words, k)) >> lanes.number(shift)
        goes_left = load_across(lanes, across, row) + added <= most
        return tuple(
            lanes.where(goes_left, its_sum + lanes.same(each.of_rows, k), its_sum)
            for its_sum, each in zip(sums, numbers, strict=True)
        )

    nothing = [most & 0] * len(numbers)
    sums = lanes.repeat(lanes.number(n), count, *nothing)
    for its_sum, each in zip(sums, numbers, strict=True):
        lanes.store(each.left, its_sum, place)


_count, _count_of_half = on_lanes(WIDTH)(_count_on), on_lanes(HALF)(_count_on)


@inline_kernel
def _count_left(searched, codes, words, left_code, missing_left):
    """Return how many rows go left, and write their class counts to `left`.

    Missing values have the highest code. If they go left, 1 is added to all codes, which makes
    theirs 0. With few classes, one pass for each takes less time than one for all: it writes no
    memory, so that it is vectorized. With few rows, vectors do not pay.
    """
    left, n_classes, n = searched.prefix.left, searched.counts.shape[0], words.shape[0]
    layout = searched.layout
    class_mask, low_mask, shift = layout.class_mask, layout.low_mask, layout.class_bits
    step = np.uint32(missing_left)
    last = np.uint32(left_code + step)
    n_left = np.uint32(0)
    if n < _VECTORS_PAY and fit_quarters(n, n_classes, layout):
        total = np.uint64(0)
        for i in range(n):
            goes_left = np.uint32(codes[i] + step) <= last
            total += quarter_of(words[i], layout) & -np.uint64(goes_left)
            n_left += np.uint32(goes_left)
        write_quarters(total, left)
        return np.int64(n_left)
    for i in range(n):
        n_left += np.uint32(np.uint32(codes[i] + step) <= last)
    if n_outputs_of(layout) > 1:
        for i in range(n):  # cleared, the others weigh nothing
            codes[i] = words[i] if np.uint32(codes[i] + step) <= last else np.uint32(0)
        count_words(layout, codes[:n], left)
        return np.int64(n_left)
    if n_classes > _CLASSES_MAX:
        for c in range(n_classes):
            left[c] = 0
        for i in range(n):
            goes_left = np.uint32(codes[i] + step) <= last
            left[class_of(words[i], layout)] += weight_of(words[i], layout) * goes_left
        return np.int64(n_left)
    weighs_rows, rest = low_mask >> shift > 1, np.int64(n_left)
    for c in range(n_classes if weighs_rows else n_classes - 1):
        its_weight = np.uint32(0)
        for i in range(n):
            goes_left = np.uint32(codes[i] + step) <= last
            is_its = goes_left & ((words[i] & class_mask) == np.uint32(c))
            its_weight += (words[i] & low_mask) >> shift if is_its else np.uint32(0)
        left[c] = its_weight
        rest -= np.int64(its_weight)
    if not weighs_rows:  # each row weighs 1: the last class has the rest
        left[n_classes - 1] = rest
    return np.int64(n_left)


@inline_kernel
def score_if_legal(way, node, searched, feature, n_left):
    """Score of the cut whose class counts are in `left`; -inf if limits forbid it.

    `n_left` is how many rows go left, or _AS_WEIGHT if weights tell whether these are enough.
    """
    criterion, prefix, _, counts, weight = searched
    left_weight = total_weight(prefix.left, way.layout)
    right_weight, n_right = weight - left_weight, node.end - node.start - n_left
    if n_left == _AS_WEIGHT:
        n_left, n_right = left_weight, right_weight
    if min(n_left, n_right) < way.limits.min_samples_leaf:
        return -np.inf
    if min(left_weight, right_weight) < way.limits.min_weight_leaf:
        return -np.inf
    monotony = monotony_of(way, node, feature)
    if monotony.direction != 0:
        prefix.weight[0], prefix.second[0] = left_weight, prefix.left[1]
        if not keeps_direction(monotony, prefix, 0, counts, weight):
            return -np.inf
    left, right = child_impurities(criterion, prefix.left, counts, left_weight, weight)
    return -np.float64(right_weight) * right - np.float64(left_weight) * left


class RandomClassCountsPath(ClassCountsPath):
    """Grows extra trees for classification on weights that are whole numbers."""

    splitter, table_kind = RandomSplitter, FloatTable
    copy_bytes = 2**15, 2**12
    takes_across = True  # whether to store rows across where this pays

    def _create_cuts(self):
        return RandomCuts.create(self._table)

    def _create_tiers(self):
        codes, limits = self._table.codes, self._plan.limits
        n_columns, n_rows = codes.shape
        pays = self.takes_across and limits.max_features >= _SHARE * n_columns
        is_whole = pays and codes.size <= _TABLE_MAX
        tiers = [AcrossRows.create(n_rows, codes, across_of(codes) if is_whole else None)]
        used_up = not self._is_best_first  # copies serve depth-first growth only
        # The number of tiers is part of a type, so it is fixed; one that does not pay has no rows.
        if not pays:
            near = create_cache_copies(codes, used_up * limits.max_features, self.copy_bytes)
            return (*tiers, *starmap(AcrossRows.create, near))
        near = [n if used_up and 2 * n <= n_rows else 0 for n in _NEAR_ROWS]
        if is_whole:
            near[0] = 0
        return (
            *tiers,
            *(AcrossRows.create(n, codes[:, :0], create_across(n, n_columns)) for n in near),
        )
