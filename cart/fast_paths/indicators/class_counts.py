"""Classification on tables with many indicators: class counts of all of them at once.

Rows have a bit for each indicator (see `row_bits`). The cuts of all indicators that a node draws
are the entries of one search, at its end; other columns are searched as in `cuts`:

    drawn    column 7   column 2   column 5   column 4
    search   bits       codes      bits       bits
    cuts     [ 7 | 5 | 4 ], with the counts left and right of each, against the best of column 2
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NONE_MISSING, Cut
from cart.fast_paths.classification.cuts import BestCuts, search_codes
from cart.fast_paths.classification.impurities import (
    NO_CUT,
    approximate_gains,
    child_impurities,
    gain_to_beat,
    powers_of,
)
from cart.fast_paths.classification.packed_rows import (
    class_of,
    n_outputs_of,
    place_of_class,
    row_number,
    total_weight,
    weight_of,
)
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.indicators.row_bits import BITS, FEW_MAX, WEIGHT_MAX, RowBits, bits_pay
from cart.jit.decorators import inline_kernel, kernel, like
from cart.jit.instructions import add_where
from cart.table.frequent_codes import is_mostly_equal

# Lists are faster where nodes look at less than half of the features, and so few cells hold another
# value than the most frequent one of their column.
_OTHERS_LEAST = 0.0, 1 / 40
_LEAST_COLUMNS = 1 / 2  # that are indicators, for which the path is faster
# The share of them that a node has to look at, for each time that a row is added to sums, and for
# each class, whose sums have to be emptied.
_LEAST_PER_OUTPUT, _LEAST_PER_CLASS = 1 / 24, 1 / 720


@like(BestCuts)
class IndicatorCuts(NamedTuple):
    """Searches indicators together, other columns one by one."""

    bits: RowBits
    # ((n_classes + 1) * width,) uint8: the weight of each class in a few of the node's rows with a
    # 1, and last, how many these are
    few: np.ndarray
    ones: np.ndarray  # (n_classes + 1, width) int64: the same, of all the node's rows
    feature: np.ndarray  # (n_features,) int64: the indicators drawn that vary in the node
    turn: np.ndarray  # (n_features,) int64: when they were drawn
    counters: np.ndarray  # (3,) int64: indicators in `feature`, draws, the draw of the best cut

    @classmethod
    def create(cls, table, n_classes):
        bits = RowBits.of(table)
        width = BITS * bits.words.shape[1]
        return cls(
            bits, np.empty((n_classes + 1) * width, np.uint8),
            np.empty((n_classes + 1, width), np.int64),
            *np.empty((2, len(table.columns)), np.int64), np.zeros(3, np.int64),
        )  # fmt: skip

    def begin_search(self, way, node, searched):
        words = way.tiers[0].words[node.start : node.end]
        _count_ones(self, words, searched.layout, way.limits.min_samples_leaf > 1)
        self.counters[0] = self.counters[1] = 0

    def search_feature(self, way, node, searched, feature, best):
        place = self.bits.place[way.table.columns[feature]]
        turn = self.counters[1]
        self.counters[1] = turn + 1
        if place < 0:
            is_constant, found = search_codes(way, node, searched, feature, best)
            if found.feature == feature:
                self.counters[2] = turn
            return is_constant, found
        weight, n_places = np.int64(0), self.ones.shape[0] - 1
        for c in range(n_places // n_outputs_of(searched.layout)):  # of the first output
            weight += self.ones[c, place]
        if weight == 0 or weight == searched.weight:
            return True, best
        k = self.counters[0]
        self.feature[k], self.turn[k] = feature, turn
        self.counters[0] = k + 1
        return False, best

    def end_search(self, way, node, searched, best):
        return _best_of_drawn(self, way, node, searched, best) if self.counters[0] > 0 else best


@kernel
def _count_ones(cuts, words, layout, counts_samples):
    """Write the weight of each class in the rows with a 1, for every indicator, and how many rows
    these are."""
    bits, few, ones = cuts.bits.words, cuts.few, cuts.ones
    width, n_words, samples = ones.shape[1], bits.shape[1], few.shape[0] - ones.shape[1]
    ones[:] = 0
    at_once = FEW_MAX // np.int64(layout.low_mask >> layout.class_bits)  # no row weighs more
    for first in range(0, words.shape[0], at_once):
        few[:] = 0
        for i in range(first, min(first + at_once, words.shape[0])):
            weight, row = np.uint8(weight_of(words[i], layout)), row_number(words[i], layout)
            for output in range(n_outputs_of(layout)):
                place = width * place_of_class(layout, class_of(words[i], layout), output)
                for k in range(n_words):
                    add_where(few, place + BITS * k, bits[row, k], weight)
            for k in range(n_words if counts_samples else 0):
                add_where(few, samples + BITS * k, bits[row, k], np.uint8(1))
        for c in range(ones.shape[0]):
            for j in range(width):
                ones[c, j] += few[c * width + j]


@kernel
def _best_of_drawn(cuts, way, node, searched, best):
    """Return the better of the best Cut so far and those of the indicators drawn. Of equal scores,
    that of the feature drawn first is the better one."""
    criterion, prefix, layout, counts, weight = searched
    n_drawn, left, entries = cuts.counters[0], prefix.left, prefix.levels
    for k in range(n_drawn + 1):
        entries[k] = np.uint32(k) << layout.low_bits  # all differ: there is a cut behind each
    for k in range(n_drawn):
        _write_left(cuts, way, k, counts, left)
        prefix.weight[k] = total_weight(left, layout)
        prefix.second[k] = left[1]
        if counts.shape[0] > 2:
            prefix.power_left[k], prefix.power_right[k] = powers_of(criterion, left, counts)
    approximate_gains(criterion, prefix, entries, 0, n_drawn, counts, weight, layout.low_mask)
    if way.limits.min_samples_leaf > 1:
        _drop_small(cuts, way, node, prefix.gain, counts.shape[0])
    top = NO_CUT
    for k in range(n_drawn):
        top = max(top, prefix.gain[k])
    if top < 0.0:
        return best
    bar = np.nextafter(best.score, -np.inf)
    least = gain_to_beat(criterion, np.float64(top), bar, counts, weight)
    for k in range(n_drawn):
        if prefix.gain[k] >= max(least, 0.0):
            _write_left(cuts, way, k, counts, left)
            left_weight = total_weight(left, layout)
            of_left, of_right = child_impurities(criterion, left, counts, left_weight, weight)
            score = -np.float64(weight - left_weight) * of_right - np.float64(left_weight) * of_left
            is_first = cuts.turn[k] < cuts.counters[2]
            if score > best.score or (score == best.score and is_first):
                best = Cut(cuts.feature[k], 0, 1, score, NONE_MISSING, 0.0)
                cuts.counters[2] = cuts.turn[k]
    return best


@inline_kernel
def _drop_small(cuts, way, node, gain, n_classes):
    """Rule out cuts with too few samples on a side."""
    least, n = way.limits.min_samples_leaf, node.end - node.start
    for k in range(cuts.counters[0]):
        n_right = cuts.ones[n_classes, _place_of(cuts, way, k)]
        if min(n_right, n - n_right) < least:
            gain[k] = NO_CUT


@inline_kernel
def _place_of(cuts, way, k):
    """Where the bits have the k-th of the indicators drawn."""
    return cuts.bits.place[way.table.columns[cuts.feature[k]]]


@inline_kernel
def _write_left(cuts, way, k, counts, left):
    """Write the class counts of the rows with a 0 in the k-th of the indicators drawn."""
    place = _place_of(cuts, way, k)
    for c in range(counts.shape[0]):
        left[c] = counts[c] - cuts.ones[c, place]


class IndicatorCountsPath(ClassCountsPath):
    """Grows classification trees on tables with many columns of two values."""

    takes_bounds = False

    @classmethod
    def fits(cls, table, plan):
        n_outputs, n_classes = plan.n_outputs, plan.n_outputs * plan.n_values
        least = _LEAST_PER_OUTPUT * n_outputs + _LEAST_PER_CLASS * n_classes
        looked_at = plan.limits.max_features
        pays = super().fits(table, plan) and bits_pay(table, looked_at, _LEAST_COLUMNS, least)
        return pays and not is_mostly_equal(table, looked_at, _OTHERS_LEAST)

    def accepts(self, weights, is_whole):
        return weights.max() <= WEIGHT_MAX and super().accepts(weights, is_whole)

    def _create_cuts(self):
        return IndicatorCuts.create(self._table, self._n_classes)

    def _create_tiers(self):
        return super()._create_tiers()[:1]

    @property
    def _n_entries(self):
        return max(len(self._y), len(self._table.columns))
