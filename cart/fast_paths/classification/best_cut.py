"""Judge the cuts of a node's ordered keys: approximately all of them, exactly those that may win.

A criterion sums up the entries of a node (keys, or the levels of a histogram) from the left and
gives every cut a gain, in single precision and with vector instructions. Only cuts whose gain is
so high that, within its error, they may be the best are scored as scikit-learn does, to the bit.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import is_cut
from cart.fast_paths.classification.row_words import (
    class_of_word,
    code_of_key,
    row_of_word,
    weight_of_word,
)
from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.splitting.criteria import share_times_log

NO_CUT = np.float32(-1.0)
_BLOCK = 64
_SCAN_MAX = 20  # up to so many keys, every cut of Gini is scored at once
_UNIT = 2.0**-30  # of the table of x log2 x
_ROUNDING = 6e-8  # of single precision, relative


class PrefixCounts(NamedTuple):
    """What lies left of every cut of the entries at hand; entry i is left of cut i."""

    weight: np.ndarray  # (n + 1,) int32
    second: np.ndarray  # (n + 1,) int32: weight of the second class, where there are two
    power_left: np.ndarray  # (n + 1,) float64: sum of `power` of the class counts, where more
    power_right: np.ndarray  # (n + 1,) float64
    bound: np.ndarray  # (n + 1,) float64: see `screening`, of more than two classes
    gain: np.ndarray  # (n + 1,) float32; NO_CUT where both sides have one value
    gain_bits: np.ndarray  # (n + 1,) int32: the same memory; ordered as the gains >= 0 are
    tops: np.ndarray  # (n // _BLOCK + 1,) int32: the highest bits of every block
    left: np.ndarray  # (n_classes,) int64: counts left of the cut at hand
    histogram: np.ndarray  # (n + 1,) int64: see `_count`
    origin: np.ndarray  # (1,) int64: its first code; -1 where the entries are keys
    levels: np.ndarray  # (n + 1,) uint32: the entries of a histogram, like keys

    @classmethod
    def create(cls, n, n_classes):
        n_powers = n + 1 if n_classes > 2 else 1
        gain = np.empty(n + 1, np.float32)
        return cls(
            np.empty(n + 1, np.int32),
            np.empty(n + 1, np.int32),
            np.empty(n_powers),
            np.empty(n_powers),
            np.empty(n_powers),
            gain,
            gain.view(np.int32),
            np.empty(n // _BLOCK + 1, np.int32),
            np.empty(n_classes, np.int64),
            np.empty(n + 1, np.int64),
            np.zeros(1, np.int64),
            np.empty(n + 1, np.uint32),
        )


# ---------------------------------------------------------------------------- the protocol


@dispatch
def impurity_of(criterion, counts, weight):
    """Impurity of weighted class counts, int64."""
    return criterion.impurity_of(counts, weight)


@dispatch
def power(criterion, count):
    """What is summed over classes, int64."""
    return criterion.power(count)


@dispatch
def approximate_gains(criterion, running, entries, first, last, counts, weight, low_mask):
    """Fill `gain` for the cuts from `first` to `last` (excluded).

    It is not negative, but NO_CUT between two entries of one code.
    """
    criterion.approximate_gains(running, entries, first, last, counts, weight, low_mask)


@dispatch
def gain_to_beat(criterion, top, score, counts, weight):
    """The lowest gain that a cut may have and be the best, if `top` is the highest.

    Infinite if no cut scores more than `score`.
    """
    return criterion.gain_to_beat(top, score, counts, weight)


@dispatch
def scores_at_once(criterion, n):
    """Is it cheaper to score all cuts of n entries than to find out which may be the best?"""
    return criterion.scores_at_once(n)


@dispatch
def bounds_more_classes(criterion):
    """Does the bound of `cart.fast_paths.classification.screening` for more than two classes
    hold?"""
    return criterion.bounds_more_classes()


@dispatch
def score_cut(criterion, running, entries, i, counts, weight, layout):
    """Quality of cut i as scikit-learn calculates it; never positive."""
    return criterion.score_cut(running, entries, i, counts, weight, layout)


@dispatch
def child_impurities(criterion, left, counts, left_weight, weight):
    """Impurities left and right of a cut with these counts on its left."""
    return criterion.child_impurities(left, counts, left_weight, weight)


# ------------------------------------------------------------------------------- criteria


class GiniCuts(NamedTuple):
    """Gini impurity."""

    name: int = 0  # numba wants a field

    def impurity_of(self, counts, weight):
        squares = 0.0
        for c in range(counts.shape[0]):
            squares += np.float64(counts[c]) * np.float64(counts[c])
        return 1.0 - squares / (np.float64(weight) * np.float64(weight))

    def power(self, count):
        return count * count

    def approximate_gains(self, running, entries, first, last, counts, weight, low_mask):
        """Of two classes: (n1 - w p1)**2 / (w (W - w)), the squared difference of the shares by a
        constant. Of more: the sums of squared counts over the weight of their side.

        The weight right of a cut is the difference of whole numbers, rounded once. Were it taken in
        single precision, it could vanish beside a total above 2**24."""
        total = np.int32(weight)
        gain = running.gain[first:last]
        weights = running.weight[first:last]
        low = entries[first:last]
        high = entries[first + 1 : last + 1]
        if counts.shape[0] == 2:
            share = np.float32(np.float64(counts[1]) / np.float64(weight))
            second = running.second[first:last]
            for i in range(last - first):
                left = np.float32(weights[i])
                right = np.float32(np.int32(total - weights[i]))
                excess = np.float32(second[i]) - left * share
                found = excess * excess / (left * right)
                gain[i] = found if low[i] ^ high[i] > low_mask else NO_CUT
        else:
            squares_left = running.power_left[first:last]
            squares_right = running.power_right[first:last]
            for i in range(last - first):
                left = np.float32(weights[i])
                right = np.float32(np.int32(total - weights[i]))
                found = np.float32(squares_left[i]) / left
                found += np.float32(squares_right[i]) / right
                gain[i] = found if low[i] ^ high[i] > low_mask else NO_CUT

    def gain_to_beat(self, top, score, counts, weight):
        W = np.float64(weight)
        if counts.shape[0] > 2:  # the score is the gain - W; a gain has about six roundings
            error = 10.0 * _ROUNDING * W
            return np.inf if top - W + error < score else top - 2.0 * error
        # The excess is wrong by 4 roundings of the left weight w at most, its quotient by
        # sqrt(w (W - w)) therefore by 4 sqrt(w / (W - w)) <= 4 sqrt(W) of them.
        error = 8.0 * _ROUNDING * math.sqrt(W)
        root = math.sqrt(top)
        squares = 0.0
        for c in range(2):
            squares += np.float64(counts[c]) * np.float64(counts[c])
        highest = root * (1.0 + 4.0 * _ROUNDING) + error
        if squares / W - W + 2.0 * W * highest * highest + 1e-12 * W < score:
            return np.inf
        lowest = root * (1.0 - 8.0 * _ROUNDING) - 2.0 * error
        return lowest * lowest * (1.0 - 8.0 * _ROUNDING) if lowest > 0.0 else 0.0

    def scores_at_once(self, n):
        return n <= _SCAN_MAX

    def bounds_more_classes(self):
        return True

    def score_cut(self, running, entries, i, counts, weight, layout):
        left = np.float64(running.weight[i])
        right = np.float64(weight) - left
        if counts.shape[0] == 2:
            second_left = np.float64(running.second[i])
            second_right = np.float64(counts[1]) - second_left
            first_left = left - second_left
            first_right = right - second_right
            squares_left = first_left * first_left + second_left * second_left
            squares_right = first_right * first_right + second_right * second_right
        else:
            squares_left = running.power_left[i]
            squares_right = running.power_right[i]
        gini_left = 1.0 - squares_left / (left * left)
        gini_right = 1.0 - squares_right / (right * right)
        return -right * gini_right - left * gini_left

    def child_impurities(self, left, counts, left_weight, weight):
        squares_left = 0.0
        squares_right = 0.0
        for c in range(counts.shape[0]):
            squares_left += np.float64(left[c]) * np.float64(left[c])
            squares_right += np.float64(counts[c] - left[c]) * np.float64(counts[c] - left[c])
        left_weight = np.float64(left_weight)
        right_weight = np.float64(weight) - left_weight
        gini_left = 1.0 - squares_left / (left_weight * left_weight)
        gini_right = 1.0 - squares_right / (right_weight * right_weight)
        return gini_left, gini_right


class EntropyCuts(NamedTuple):
    """Entropy in bits. Its gain is the gain over the node, from a table of x log2 x."""

    table: np.ndarray  # (at least weight + 1,) int64, in units of _UNIT

    @classmethod
    def create(cls, weight):
        x = np.arange(weight + 1, dtype=np.float64)
        return cls(np.rint(x * np.log2(np.maximum(x, 1.0)) / _UNIT).astype(np.int64))

    def impurity_of(self, counts, weight):
        entropy = 0.0
        for c in range(counts.shape[0]):
            entropy -= share_times_log(np.float64(counts[c]), np.float64(weight))
        return entropy

    def power(self, count):
        return self.table[count]

    def approximate_gains(self, running, entries, first, last, counts, weight, low_mask):
        table = self.table
        node = -table[weight]
        for c in range(counts.shape[0]):
            node += table[counts[c]]
        for i in range(first, last):
            running.gain[i] = NO_CUT
            if entries[i] ^ entries[i + 1] <= low_mask:
                continue
            left = np.int64(running.weight[i])
            gain = -table[left] - table[weight - left] - node
            if counts.shape[0] == 2:
                second = np.int64(running.second[i])
                gain += table[second] + table[left - second]
                gain += table[counts[1] - second] + table[counts[0] - (left - second)]
            else:
                gain += np.int64(running.power_left[i]) + np.int64(running.power_right[i])
            running.gain[i] = np.float32(max(gain, 0) * _UNIT)

    def gain_to_beat(self, top, score, counts, weight):
        W = np.float64(weight)
        error = 4.0 * (counts.shape[0] + 2) * _UNIT + 1e-13 * W + 2.0 * _ROUNDING * top
        if top - W * impurity_of(self, counts, weight) + error < score:
            return np.inf
        return max(top - 2.0 * error, 0.0)

    def scores_at_once(self, n):
        return False

    def bounds_more_classes(self):
        return False

    def score_cut(self, running, entries, i, counts, weight, layout):
        left = running.left
        left_weight = np.int64(running.weight[i])
        if counts.shape[0] == 2:
            left[1] = running.second[i]
            left[0] = left_weight - left[1]
        else:
            count_left(running, entries, i, counts, layout)
        entropy_left, entropy_right = child_impurities(self, left, counts, left_weight, weight)
        left_weight = np.float64(left_weight)
        return -(np.float64(weight) - left_weight) * entropy_right - left_weight * entropy_left

    def child_impurities(self, left, counts, left_weight, weight):
        weight_left = np.float64(left_weight)
        weight_right = np.float64(weight) - weight_left
        entropy_left = 0.0
        entropy_right = 0.0
        for c in range(counts.shape[0]):
            entropy_left -= share_times_log(np.float64(left[c]), weight_left)
            entropy_right -= share_times_log(np.float64(counts[c] - left[c]), weight_right)
        return entropy_left, entropy_right


# ------------------------------------------------------------------------------ adding up


@inline_kernel
def add_up(criterion, running, keys, n, counts, layout):
    """Sum up the ordered keys from the left."""
    running.origin[0] = -1
    weight = np.int64(0)
    if counts.shape[0] == 2:
        second = np.int64(0)
        for i in range(n):
            w = weight_of_word(keys[i], layout)
            weight += w
            second += w * class_of_word(keys[i], layout)
            running.weight[i] = weight
            running.second[i] = second
        return
    left = running.left
    power_left, power_right = _before_the_first(criterion, left, counts)
    for i in range(n):
        w = weight_of_word(keys[i], layout)
        c = class_of_word(keys[i], layout)
        before = left[c]
        right = counts[c] - before
        power_left += power(criterion, before + w) - power(criterion, before)
        power_right += power(criterion, right - w) - power(criterion, right)
        left[c] = before + w
        weight += w
        running.weight[i] = weight
        running.power_left[i] = power_left
        running.power_right[i] = power_right


@inline_kernel
def _before_the_first(criterion, left, counts):
    power_right = np.int64(0)
    for c in range(counts.shape[0]):
        left[c] = 0
        power_right += power(criterion, counts[c])
    return np.int64(0), power_right


@kernel
def count_left(running, entries, i, counts, layout):
    """Count the classes left of cut i again, of more than two classes."""
    left = running.left
    for c in range(counts.shape[0]):
        left[c] = 0
    if running.origin[0] < 0:
        for entry in range(i + 1):
            c = class_of_word(entries[entry], layout)
            left[c] += weight_of_word(entries[entry], layout)
        return
    last = np.int64(code_of_key(entries[i], layout)) - running.origin[0]
    for code in range(last + 1):
        for c in range(counts.shape[0]):
            left[c] += running.histogram[code * counts.shape[0] + c]


@inline_kernel
def count_codes(running, codes, words, start, n, n_codes, n_classes, layout):
    """Count the classes of every code of a column; return the lowest and the highest that occur."""
    histogram = running.histogram
    _begin_counting(running, 0, n_codes, n_classes)
    for i in range(start, start + n):
        word = words[i]
        _count(histogram, np.uint64(codes[row_of_word(word, layout)]), word, n_classes, layout)
    width = _width(n_classes)
    first, last = np.int64(0), n_codes * width - 1
    while histogram[first] == 0:
        first += 1
    while histogram[last] == 0:
        last -= 1
    return np.uint32(first // width), np.uint32(last // width)


@inline_kernel
def count_keys(running, keys, n, lowest, highest, n_classes, layout):
    """The same of keys, whose lowest and highest codes are known."""
    _begin_counting(running, np.int64(lowest), np.int64(highest - lowest) + 1, n_classes)
    for i in range(n):
        code = np.uint64(code_of_key(keys[i], layout) - lowest)
        _count(running.histogram, code, keys[i], n_classes, layout)


@inline_kernel
def _begin_counting(running, origin, n_codes, n_classes):
    running.origin[0] = origin
    for cell in range(n_codes * _width(n_classes)):
        running.histogram[cell] = 0


@inline_kernel
def _count(histogram, code, word, n_classes, layout):
    """Count a word. Two classes are one number: the weight above that of the second class."""
    w = weight_of_word(word, layout)
    c = class_of_word(word, layout)
    if n_classes == 2:
        histogram[code] += w << 32 | w * c
    else:
        histogram[code * np.uint64(n_classes) + np.uint64(c)] += w


@inline_kernel
def _width(n_classes):
    """Cells of a code."""
    return 1 if n_classes == 2 else n_classes


@inline_kernel
def add_up_counts(criterion, running, lowest, highest, counts, layout):
    """Sum up the codes that have been counted; those that occur are the entries.

    Returns how many entries there are.
    """
    histogram = running.histogram
    n_classes = counts.shape[0]
    width = _width(n_classes)
    entry = 0
    weight = np.int64(0)
    left = running.left
    power_left, power_right = _before_the_first(criterion, left, counts)
    for code in range(np.int64(lowest), np.int64(highest) + 1):
        cell = (code - running.origin[0]) * width
        before = weight
        if width == 1:
            weight += histogram[cell]
            running.weight[entry] = weight >> 32
            running.second[entry] = weight & 0xFFFFFFFF
        else:
            for c in range(n_classes):
                w = histogram[cell + c]
                if w > 0:
                    power_left += power(criterion, left[c] + w) - power(criterion, left[c])
                    right = counts[c] - left[c]
                    power_right += power(criterion, right - w) - power(criterion, right)
                    left[c] += w
                    weight += w
            running.weight[entry] = weight
            running.power_left[entry] = power_left
            running.power_right[entry] = power_right
        running.levels[entry] = np.uint32(code) << layout.low_bits
        entry += weight > before
    return entry


# ---------------------------------------------------------------------------------- choosing


@inline_kernel
def choose_cut(
    criterion, running, entries, first, last, counts, weight, score, table, column, layout
):
    """The best of the cuts from `first` to `last` (excluded) that scores more than `score`.

    Returns its score and its place; -1 where there is none.
    """
    best = -1
    if last <= first:
        return score, best
    if scores_at_once(criterion, last):
        top = score
        for i in range(first, last):  # without a branch that is hard to foretell
            found = score_cut(criterion, running, entries, i, counts, weight, layout)
            is_best = (found > top) & (entries[i] ^ entries[i + 1] > layout.low_mask)
            top = found if is_best else top
            best = i if is_best else best
        if best < 0 or _is_cut_of(table, column, entries, best, layout):
            return top, best
    approximate_gains(criterion, running, entries, first, last, counts, weight, layout.low_mask)
    while True:
        top = _find_tops(running, first, last)
        if top < 0.0:
            return score, -1
        least = gain_to_beat(criterion, top, score, counts, weight)
        if least == np.inf:
            return score, -1
        running.gain[last] = least
        least_bits = running.gain_bits[last]
        best = -1
        best_score = score
        is_settled = True
        for block in range((last - first + _BLOCK - 1) // _BLOCK):
            if running.tops[block] < least_bits:
                continue
            begin = first + block * _BLOCK
            for i in range(begin, min(begin + _BLOCK, last)):
                if running.gain_bits[i] < least_bits:
                    continue
                if not _is_cut_of(table, column, entries, i, layout):
                    is_settled = False
                    break
                found = score_cut(criterion, running, entries, i, counts, weight, layout)
                if found > best_score:
                    best_score = found
                    best = i
        if is_settled:
            return best_score, best
        for i in range(first, last):  # the highest gain may have been none
            if running.gain_bits[i] >= 0 and not _is_cut_of(table, column, entries, i, layout):
                running.gain[i] = NO_CUT


@inline_kernel
def _is_cut_of(table, column, entries, i, layout):
    low = code_of_key(entries[i], layout)
    high = code_of_key(entries[i + 1], layout)
    return is_cut(table, column, low, high)


@inline_kernel
def _find_tops(running, first, last):
    """The highest gain; those of the blocks stay in `tops`."""
    bits = running.gain_bits[first:last]
    top = np.int32(-1)
    for block in range((last - first + _BLOCK - 1) // _BLOCK):
        mine = bits[block * _BLOCK : block * _BLOCK + _BLOCK]
        highest = np.int32(-1)
        for i in range(mine.shape[0]):
            highest = np.int32(max(highest, mine[i]))
        running.tops[block] = highest
        top = max(top, highest)
    running.gain_bits[last] = top
    return np.float64(running.gain[last])
