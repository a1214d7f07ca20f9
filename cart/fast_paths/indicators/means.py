"""Regression trees by squared error on tables of indicators.

Rows have a bit for each indicator (see `row_bits`). A column has one cut: rows with a 1 go right. A
node adds up weight and targets of these rows for all columns at once.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NO_CUT, NONE_MISSING, Cut
from cart.fast_paths.indicators.row_bits import BITS, FEW_MAX, WEIGHT_MAX, RowBits, bits_pay
from cart.fast_paths.regression.cut_score import mean_score, weight_at, y_at
from cart.fast_paths.regression.histograms.numbers import Numbers
from cart.fast_paths.regression.histograms.path import HistogramPath
from cart.fast_paths.regression.tree_growth import MeanPath, TierRows
from cart.jit.decorators import inline_kernel, kernel, like
from cart.jit.instructions import add_where
from cart.splitting.feature_draw import begin_draw, end_draw, mark, next_feature

# Of the columns that are indicators, and of these that a node looks at, where the path is taken.
_LEAST_SHARES = 1.0, 1 / 6


@like(Numbers)
class _Indicators(NamedTuple):
    """All columns have two values. Nodes of few rows are grown as others."""

    def grow_small(self, growth, table, rows, node, height, n_nodes, limits):
        return np.int64(-1)


class IndicatorScratch(NamedTuple):
    """What a node's rows have with a 1, in all columns."""

    bits: RowBits
    ones: np.ndarray  # (3 * width,) float64: their number, their weight and their sum of targets
    few: np.ndarray  # (2 * width,) uint8: number and weight of some of them
    heaviest: np.ndarray  # (1,) int64: the most that a row weighs; 0 if weights do not fit `few`
    feature: np.ndarray  # (n_features,) int64: those drawn whose cut is allowed
    gain: np.ndarray  # (n_features,) float64: of these cuts, as in `cut_score`
    spare: np.ndarray  # (n,) uint32: to partition rows
    columns: _Indicators

    @classmethod
    def create(cls, table, heaviest):
        bits = RowBits.of(table)
        n_features, (n_rows, n_words) = len(table.columns), bits.words.shape
        return cls(
            bits, np.empty(3 * BITS * n_words), np.empty(2 * BITS * n_words, np.uint8), heaviest,
            np.empty(n_features, np.int64), np.empty(n_features), np.empty(n_rows, np.uint32),
            _Indicators(),
        )  # fmt: skip

    def search_node(self, rows, table, draw, node, slack, limits):
        return _search_indicators(self, rows, table, draw, node, slack, limits)


@kernel
def _search_indicators(scratch, rows, table, draw, node, slack, limits):
    """Draw features and score the cut of each, as `search_node`."""
    bits, ones, samples = scratch.bits, scratch.ones, rows.samples[node.start : node.end]
    width, least, top, n_drawn = ones.shape[0] // 3, limits.min_samples_leaf, 0.0, np.int64(0)
    mean = node.total / node.weight
    _add_up(scratch, samples, rows.targets)
    drawing = begin_draw(draw, node.row, node.n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        place = bits.place[table.columns[feature]]
        n_right = np.int64(ones[place])
        is_constant = n_right == 0 or n_right == node.n
        if least <= n_right <= node.n - least:
            weight = ones[width + place]
            excess = ones[2 * width + place] - weight * mean
            gain = excess * excess / (weight * (node.weight - weight))
            scratch.feature[n_drawn], scratch.gain[n_drawn] = feature, gain
            top = max(top, gain)
            n_drawn += 1
        drawing = mark(draw, drawing, j, is_constant)
        j, drawing = next_feature(draw, drawing, limits.max_features)
    best, total_of_best = NO_CUT, np.nan
    for k in range(n_drawn):
        feature = scratch.feature[k]
        place = bits.place[table.columns[feature]]
        may_be_best = scratch.gain[k] >= top * (1.0 - 1e-9) - slack
        # With the sum of the best cut, a cut divides the rows as that does.
        if may_be_best and ones[2 * width + place] != total_of_best:
            n_left = node.n - np.int64(ones[place])
            left = _sums_of_left(bits.words, place, samples, rows.targets, node, n_left)
            score = mean_score(*left, node.weight, node.total)
            if score > best.score:
                best = Cut(feature, 0, 1, score, NONE_MISSING, 0.0)
                total_of_best = ones[2 * width + place]
    return best, end_draw(draw, drawing)


@inline_kernel
def _sums_of_left(words, place, samples, targets, node, n_left):
    """Weight and sum of targets of the samples with a 0, added up as in scikit-learn: from the
    first on, or, if those with a 1 are fewer, subtracted from the node's, the last one first."""
    n, word, bit, one = samples.shape[0], place // BITS, np.uint64(place % BITS), np.uint64(1)
    from_left = 2 * n_left <= n
    weight, total = (0.0, 0.0) if from_left else (node.weight, node.total)
    for i in range(n):
        row = samples[i if from_left else n - 1 - i]
        is_right = (words[row, word] >> bit) & one != 0
        if is_right != from_left:
            here = weight_at(targets, row) if from_left else -weight_at(targets, row)
            weight += here
            total += here * y_at(targets, row)
    return weight, total


@inline_kernel
def _add_up(scratch, samples, targets):
    """Add up the samples with a 1, for all columns."""
    words, ones, few = scratch.bits.words, scratch.ones, scratch.few
    heaviest, width, n = scratch.heaviest[0], few.shape[0] // 2, samples.shape[0]
    at_once = FEW_MAX // max(heaviest, 1)
    ones[:] = 0.0
    for first in range(0, n, at_once):
        few[:] = 0
        for i in range(first, min(first + at_once, n)):
            row = samples[i]
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


class IndicatorMeanPath(HistogramPath):
    """Grows regression trees by squared error where all columns have two values."""

    @classmethod
    def fits(cls, table, plan):
        is_usual = MeanPath.fits.__func__(cls, table, plan)
        return is_usual and bits_pay(table, plan.limits.max_features, *_LEAST_SHARES)

    @classmethod
    def takes_narrow(cls, codes, plan):
        return True

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        self._heaviest = np.zeros(1, np.int64)

    def accepts(self, weights, is_whole):
        self._heaviest[0] = weights.max() if is_whole and weights.max() <= WEIGHT_MAX else 0
        return self._are_in_range(weights)

    def _create_rows(self):
        n_rows, codes = len(self._y), self._table.codes
        return (
            (TierRows.create(self._per_row, n_rows, codes),),
            IndicatorScratch.create(self._table, self._heaviest),
        )
