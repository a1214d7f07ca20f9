"""Histograms of a node, sums per code, and the search in them for the best cut."""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NO_CUT, Cut, is_cut
from cart.fast_paths.regression.cut_score import mean_score, weight_at, write_target, y_at
from cart.jit.decorators import inline_kernel
from cart.jit.simd import lowest_bit
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
)
from cart.table.table import same_value

CODES_MAX = 2**12  # of a column
_WORD_SHIFT = 6  # bits that number those of a word
_WORD_MASK = (1 << _WORD_SHIFT) - 1


class HistogramRows(NamedTuple):
    """Some rows: those of a node side by side, and what their numbers point to."""

    rows: np.ndarray  # (n,) uint32, ascending in a node
    codes: np.ndarray  # (n_columns, at least n) uint8 or uint16
    targets: np.ndarray  # (2 n,) float64: weight and y

    @classmethod
    def create(cls, n, codes):
        return cls(np.empty(n, np.uint32), codes, np.empty(2 * n))


class HistogramScratch(NamedTuple):
    """What a node is searched on."""

    sums: np.ndarray  # (2 n_codes,) float64: weight, and times y, of a code; 0 between searches
    occupied: np.ndarray  # (n_words,) uint64: a bit for every code that occurs; 0 between searches
    counts: np.ndarray  # (n_codes,) int64: rows of a code; 0 between searches
    spare: np.ndarray  # (n,) uint32

    @classmethod
    def create(cls, n, n_codes):
        return cls(
            np.zeros(2 * n_codes),
            np.zeros((n_codes >> _WORD_SHIFT) + 1, np.uint64),
            np.zeros(n_codes, np.int64),
            np.empty(n, np.uint32),
        )


@inline_kernel
def search_histograms(
    table, rows, draw, scratch, start, n, n_constant, weight, total, slack, limits
):
    """Draw features and search each; return the best Cut and how many features are constant."""
    best = NO_CUT
    least = -1.0
    targets = rows.targets
    drawing = begin_draw(draw, np.uint64(0), n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = table.columns[feature]
        node_rows, codes = rows.rows[start : start + n], rows.codes[column]
        n_codes = table.level_start[column + 1] - table.level_start[column]
        if n < n_codes:
            occupied_words = _fill_sparse(scratch, node_rows, codes, targets, n)
        else:
            occupied_words = _fill_dense(scratch, node_rows, codes, targets, n, n_codes)
        first, last = np.int64(0), np.int64(CODES_MAX)
        if limits.min_samples_leaf > 1:
            first, last = _code_range(
                scratch, occupied_words, node_rows, codes, n, limits.min_samples_leaf
            )
        is_constant, best, least = _best_cut_of(
            table,
            scratch,
            occupied_words,
            feature,
            column,
            first,
            last,
            weight,
            total,
            slack,
            best,
            least,
        )
        if is_constant:
            drawing = mark_constant(draw, drawing, j)
        else:
            drawing = mark_searched(draw, drawing, j)
        j, drawing = next_feature(draw, drawing, limits.max_features)
    return best, end_draw(draw, drawing)


@inline_kernel
def _fill_sparse(scratch, rows, codes, targets, n):
    """Add up the rows of every code, and mark the codes that occur.

    Returns a word that has a bit for each of scratch.words that is not 0.
    """
    occupied = scratch.occupied
    occupied_words = np.uint64(0)
    for i in range(n):
        row = rows[i]
        code = codes[row]
        _add_row(scratch, code, targets, row)
        w = np.uint64(code >> _WORD_SHIFT)
        occupied[w] |= np.uint64(1) << np.uint64(code & _WORD_MASK)
        occupied_words |= np.uint64(1) << w
    return occupied_words


@inline_kernel
def _fill_dense(scratch, rows, codes, targets, n, n_codes):
    """The same of so many rows that most codes occur: they are marked afterwards."""
    sums, occupied = scratch.sums, scratch.occupied
    for i in range(n):
        row = rows[i]
        _add_row(scratch, codes[row], targets, row)
    occupied_words = np.uint64(0)
    for begin in range(0, n_codes, _WORD_MASK + 1):
        word = np.uint64(0)
        for code in range(begin, min(begin + _WORD_MASK + 1, n_codes)):
            word |= np.uint64(weight_at(sums, code) != 0.0) << np.uint64(code - begin)
        occupied[begin >> _WORD_SHIFT] = word
        occupied_words |= np.uint64(word != 0) << np.uint64(begin >> _WORD_SHIFT)
    return occupied_words


@inline_kernel
def _add_row(scratch, code, targets, row):
    """Add a row to its code."""
    sums = scratch.sums
    weight = weight_at(targets, row)
    total = y_at(sums, code) + weight * y_at(targets, row)
    write_target(sums, code, weight_at(sums, code) + weight, total)


@inline_kernel
def _code_range(scratch, occupied_words, rows, codes, n, min_samples_leaf):
    """The first and the last code that may be the first right of a cut."""
    for i in range(n):
        scratch.counts[codes[rows[i]]] += 1
    first, last = np.int64(CODES_MAX), np.int64(0)
    n_left = 0
    while occupied_words > 0:
        w = lowest_bit(occupied_words)
        occupied_words &= occupied_words - np.uint64(1)
        word = scratch.occupied[w]
        while word > 0:
            code = (w << _WORD_SHIFT) + lowest_bit(word)
            word &= word - np.uint64(1)
            if n_left >= min_samples_leaf:
                first = min(first, code)
            if n - n_left >= min_samples_leaf:
                last = code
            n_left += scratch.counts[code]
            scratch.counts[code] = 0
    return first, last


@inline_kernel
def _best_cut_of(
    table, scratch, occupied_words, feature, column, first, last, weight, total, slack, best, least
):
    """Judge the cuts between codes, and leave the scratch empty.

    The gain of a cut with weight w and sum s on its left is (s - w mean)**2 / (w (W - w)), W
    being the weight of the node. Cuts with more than `least` are scored as scikit-learn does it.
    Returns whether the feature is constant in the node, the better of `best` and its best Cut, and
    the least gain of a cut that may be better.
    """
    mean = total / weight
    left_weight = 0.0
    left_sum = 0.0
    lowest = np.int64(-1)
    low = np.int64(-1)
    while occupied_words > 0:
        w = lowest_bit(occupied_words)
        occupied_words &= occupied_words - np.uint64(1)
        word = scratch.occupied[w]
        scratch.occupied[w] = 0
        while word > 0:
            code = (w << _WORD_SHIFT) + lowest_bit(word)
            word &= word - np.uint64(1)
            excess = left_sum - left_weight * mean
            scale = left_weight * (weight - left_weight)
            if (
                scale > 0.0  # something lies on its left
                and excess * excess > least * scale
                and first <= code <= last
                and is_cut(table, column, low, code)
            ):
                found = mean_score(left_weight, left_sum, weight, total)
                if found > best.score:
                    best = Cut(feature, low, code, found)
                least = max(least, excess * excess / scale * (1.0 - 1e-9) - slack)
            left_weight += weight_at(scratch.sums, code)
            left_sum += y_at(scratch.sums, code)
            write_target(scratch.sums, code, 0.0, 0.0)
            if low < 0:
                lowest = code
            low = code
    return same_value(table, column, lowest, low), best, least
