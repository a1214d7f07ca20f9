"""Histograms of a node's rows: weight and sum of targets for each code, and the best cut in them.

    codes of rows   2 0 2 5 0          code     0      1      2      3      4      5
    sums            [ weight, sum of w y ]    [ 2 .. | 0 0  | 2 .. | 0 0  | 0 0  | 1 .. ]
    occupied        a bit for every code        1      0      1      0      0      1
    cuts                                           |-------------|------------------|

The search visits only codes that occur, lowest bit first, and empties them on the way, so that the
histogram is all 0 between searches. Sums of whole numbers are exact in any order, without a sort.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NO_CUT, NONE_MISSING, Cut, is_cut
from cart.fast_paths.regression.cut_score import mean_score, weight_at, write_target, y_at
from cart.jit.decorators import dispatch, inline_kernel
from cart.jit.instructions import lowest_bit
from cart.splitting.feature_draw import BARRED, begin_draw, end_draw, mark, next_feature
from cart.table.table import same_value

CODES_MAX = 2**12  # of a column
WORD_SHIFT = 6  # log2 of the bits of a word
WORD_MASK = (1 << WORD_SHIFT) - 1


class HistogramScratch(NamedTuple):
    """The histogram of the current feature; 0 between searches."""

    sums: np.ndarray  # (2 n_codes,) float64: weight and sum of targets of each code
    occupied: np.ndarray  # (n_words,) uint64: a bit for each code, set if it occurs
    counts: np.ndarray  # (n_codes,) int64: how many rows have a code
    spare: np.ndarray  # (n,) uint32: to partition rows
    columns: NamedTuple  # Numbers, or `cart.fast_paths.regression.histograms.categories`

    @classmethod
    def create(cls, n, n_codes, columns):
        return cls(
            np.zeros(2 * n_codes), np.zeros((n_codes >> WORD_SHIFT) + 1, np.uint64),
            np.zeros(n_codes, np.int64), np.empty(n, np.uint32), columns,
        )  # fmt: skip

    def search_node(self, rows, table, draw, node, slack, limits):
        return _search_histograms(self, rows, table, draw, node, slack, limits)


class Filled(NamedTuple):
    """What a node's rows have of a column."""

    words: int  # uint64: a bit for each word of HistogramScratch.occupied that is not 0
    first: int  # the first and the last code that may be next to a cut on its right
    last: int
    n_categories: int  # 0: the column holds numbers
    is_barred: bool  # whether the guard of categories bars cuts; then the histogram is empty


class Best(NamedTuple):
    """The best cut so far."""

    cut: Cut
    least: float  # a cut with no more gain cannot be better


# ------------------------------------------------- the protocols of scratch and kinds of columns


@dispatch
def search_node(scratch, rows, table, draw, node, slack, limits):
    """Draw features and search them; return the best Cut and the number of constant features."""


@dispatch
def read_column(columns, scratch, rows, table, column, node, limits):
    """Add up a node's rows by the codes of a column; return a Filled."""


@dispatch
def keep_cut(columns, table, filled, best, found):
    """Return the better of the Best so far and what was found in the column just read; if that is
    new, remember what it needs to be divided and written."""


@dispatch
def divide_rows(columns, scratch, rows, table, cut, node):
    """Divide a node's rows at a cut; return the place of the first row that goes right."""


@dispatch
def note_split(columns, table, this, cut):
    """Store what node `this`, split at the cut of the rows just divided, has besides the cut."""


@dispatch
def grow_small(columns, growth, table, rows, node, height, n_nodes, limits):
    """Grow the subtree of a node of few rows at this height of the stack, and return how many nodes
    the tree then has; -1 if the node has to be grown like others."""


# ------------------------------------------------------------------------------- the search


@inline_kernel
def _search_histograms(scratch, rows, table, draw, node, slack, limits):
    """Search features by their histograms, as `search_node`."""
    best = Best(NO_CUT, -1.0)
    drawing = begin_draw(draw, node.row, node.n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = table.columns[feature]
        filled = read_column(scratch.columns, scratch, rows, table, column, node, limits)
        is_constant, found = _best_cut_of(table, scratch, filled, feature, node, slack, best)
        best = keep_cut(scratch.columns, table, filled, best, found)
        drawing = mark(draw, drawing, j, BARRED if filled.is_barred else np.int64(is_constant))
        j, drawing = next_feature(draw, drawing, limits.max_features)
    return best.cut, end_draw(draw, drawing)


@inline_kernel
def add_row(scratch, code, targets, row):
    """Add a row to the sums of its code."""
    sums = scratch.sums
    weight = weight_at(targets, row)
    total = y_at(sums, code) + weight * y_at(targets, row)
    write_target(sums, code, weight_at(sums, code) + weight, total)


@inline_kernel
def code_range(scratch, words, n, min_samples_leaf):
    """The first and the last code that may be next to a cut on its right, from the counts of a
    node's n rows, which are emptied."""
    first, last = np.int64(CODES_MAX), np.int64(0)
    n_left = 0
    while words > 0:
        w = lowest_bit(words)
        words &= words - np.uint64(1)
        word = scratch.occupied[w]
        while word > 0:
            code = (w << WORD_SHIFT) + lowest_bit(word)
            word &= word - np.uint64(1)
            if n_left >= min_samples_leaf:
                first = min(first, code)
            if n - n_left >= min_samples_leaf:
                last = code
            n_left += scratch.counts[code]
            scratch.counts[code] = 0
    return first, last


@inline_kernel
def _best_cut_of(table, scratch, filled, feature, node, slack, best):
    """Find the best cut of a feature, and empty the histogram.

    Cuts whose gain (see `cart.fast_paths.regression.cut_score`) may be the best are scored as in
    scikit-learn. Returns whether the feature is constant in the node, and the new Best.
    """
    column, sums, mean = table.columns[feature], scratch.sums, node.total / node.weight
    words, first, last = filled.words, filled.first, filled.last
    cut, least = best
    left_weight = 0.0
    left_sum = 0.0
    lowest = np.int64(-1)
    low = np.int64(-1)
    while words > 0:
        w = lowest_bit(words)
        words &= words - np.uint64(1)
        word = scratch.occupied[w]
        scratch.occupied[w] = 0
        while word > 0:
            code = (w << WORD_SHIFT) + lowest_bit(word)
            word &= word - np.uint64(1)
            excess = left_sum - left_weight * mean
            scale = left_weight * (node.weight - left_weight)
            if (
                scale > 0.0  # something lies on its left
                and excess * excess > least * scale
                and first <= code <= last
                and is_cut(table, column, low, code)
            ):
                score = mean_score(left_weight, left_sum, node.weight, node.total)
                if score > cut.score:
                    cut = Cut(feature, low, code, score, NONE_MISSING, 0.0)
                least = max(least, excess * excess / scale * (1.0 - 1e-9) - slack)
            left_weight += weight_at(sums, code)
            left_sum += y_at(sums, code)
            write_target(sums, code, 0.0, 0.0)
            if low < 0:
                lowest = code
            low = code
    return same_value(table, column, lowest, low), Best(cut, least)
