"""Gini impurity and entropy on whole class counts: approximate gains of cuts, and exact scores.

A criterion sums up the entries of a node (keys, or the levels of a histogram) from the left and
gives every cut a gain, in single precision and with vector instructions. Only the cuts that may be
the best, given the error of their gain, are scored as in scikit-learn, bit for bit.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.fast_paths.classification.cumulative_counts import count_left, move_left
from cart.fast_paths.classification.packed_rows import class_of, weight_of
from cart.jit.decorators import dispatch, inline_kernel, like
from cart.splitting.class_criteria import share_times_log

NO_CUT = np.float32(-1.0)
_SCAN_MAX = 20  # with so many keys or fewer, Gini scores every cut at once
_UNIT = 2.0**-30  # of the table of x log2 x
_ROUNDING = 6e-8  # relative error of a rounding to single precision


# ---------------------------------------------------------------------------- the protocol


@dispatch
def impurity_of(criterion, counts, weight):
    """Impurity of weighted class counts, int64."""


@dispatch
def approximate_gains(criterion, prefix, entries, first, last, counts, weight, low_mask):
    """Write the gains of the cuts from `first` to `last` (excluded) to `prefix.gain`.

    They are not negative, except NO_CUT between two entries of the same code.
    """


@dispatch
def gain_to_beat(criterion, top, score, counts, weight):
    """The least gain with which a cut may be the best, if `top` is the highest gain.

    Infinite if no cut scores more than `score`.
    """


@dispatch
def scores_at_once(criterion, n):
    """Is scoring all cuts of n entries cheaper than finding those that may be the best?"""


@dispatch
def bounds_more_classes(criterion):
    """Does the bound of `cart.fast_paths.classification.screening` for more than two classes hold
    for this criterion?"""


@dispatch
def score_cut(criterion, prefix, entries, i, counts, weight, layout):
    """The score of cut i as scikit-learn calculates it; never positive."""


@dispatch
def child_impurities(criterion, left, counts, left_weight, weight):
    """Impurities left and right of a cut with the counts `left` on its left, `counts` in all."""


@dispatch
def write_shares(criterion, value, counts, weight):
    """Write the value of a node with these counts to `value`, of shape (n_outputs, n_values)."""


@dispatch
def _power(criterion, count):
    """The power of a class count, see `cart.fast_paths.classification.cumulative_counts`."""


@inline_kernel
def powers_of(criterion, left, counts):
    """The sums of powers over the class counts on the left, and over those on the right."""
    of_left, of_right = np.int64(0), np.int64(0)
    for c in range(counts.shape[0]):
        of_left += _power(criterion, left[c])
        of_right += _power(criterion, counts[c] - left[c])
    return of_left, of_right


@inline_kernel
def gain_of_squares(prefix, entries, first, last, weight, low_mask):
    """Write as gains the sum, over both sides, of squared counts divided by the side's weight."""
    total = np.int32(weight)
    gain = prefix.gain[first:last]
    weights = prefix.weight[first:last]
    low = entries[first:last]
    high = entries[first + 1 : last + 1]
    squares_left = prefix.power_left[first:last]
    squares_right = prefix.power_right[first:last]
    for i in range(last - first):
        left = np.float32(weights[i])
        right = np.float32(np.int32(total - weights[i]))
        found = np.float32(squares_left[i]) / left
        found += np.float32(squares_right[i]) / right
        gain[i] = found if low[i] ^ high[i] > low_mask else NO_CUT


# ------------------------------------------------------------------------------- criteria


class GiniCuts(NamedTuple):
    """Gini impurity."""

    n_outputs: int = 1  # of several, see `cart.fast_paths.classification.several_outputs`

    def impurity_of(self, counts, weight):
        squares = 0.0
        for c in range(counts.shape[0]):
            squares += np.float64(counts[c]) * np.float64(counts[c])
        return 1.0 - squares / (np.float64(weight) * np.float64(weight))

    def _power(self, count):
        return count * count

    def begin_left(self, left, counts):
        power_right = np.int64(0)
        for c in range(counts.shape[0]):
            left[c] = 0
            power_right += _power(self, counts[c])
        return np.int64(0), power_right

    def move_left(self, left, counts, c, w):
        before = left[c]
        right = counts[c] - before
        left[c] = before + w
        more = _power(self, before + w) - _power(self, before)
        return more, _power(self, right - w) - _power(self, right)

    def move_key(self, left, counts, key, layout):
        w = weight_of(key, layout)
        more, less = move_left(self, left, counts, class_of(key, layout), w)
        return w, more, less

    def approximate_gains(self, prefix, entries, first, last, counts, weight, low_mask):
        """For two classes, gains are (n1 - w p1)**2 / (w (W - w)), half of the impurity decrease.
        For more, see `gain_of_squares`.

        The weight right of a cut is a difference of integers, rounded once. Calculated in single
        precision, it could vanish next to a total above 2**24."""
        if counts.shape[0] > 2:
            gain_of_squares(prefix, entries, first, last, weight, low_mask)
            return
        total = np.int32(weight)
        gain = prefix.gain[first:last]
        weights = prefix.weight[first:last]
        low = entries[first:last]
        high = entries[first + 1 : last + 1]
        share = np.float32(np.float64(counts[1]) / np.float64(weight))
        second = prefix.second[first:last]
        for i in range(last - first):
            left = np.float32(weights[i])
            right = np.float32(np.int32(total - weights[i]))
            excess = np.float32(second[i]) - left * share
            found = excess * excess / (left * right)
            gain[i] = found if low[i] ^ high[i] > low_mask else NO_CUT

    def gain_to_beat(self, top, score, counts, weight):
        W = np.float64(weight)
        if counts.shape[0] > 2:  # the score is the mean gain - W; a gain has about six roundings
            n_outputs = np.float64(self.n_outputs)
            error = 10.0 * _ROUNDING * W * n_outputs
            missed = top - W * n_outputs + error < score * n_outputs
            return np.inf if missed else top - 2.0 * error
        # The excess is off by at most 4 roundings of the left weight w, so its quotient by
        # sqrt(w (W - w)) is off by at most 4 sqrt(w / (W - w)) <= 4 sqrt(W) roundings.
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

    def score_cut(self, prefix, entries, i, counts, weight, layout):
        left = np.float64(prefix.weight[i])
        right = np.float64(weight) - left
        if counts.shape[0] == 2:
            second_left = np.float64(prefix.second[i])
            second_right = np.float64(counts[1]) - second_left
            first_left = left - second_left
            first_right = right - second_right
            squares_left = first_left * first_left + second_left * second_left
            squares_right = first_right * first_right + second_right * second_right
        else:
            squares_left = prefix.power_left[i]
            squares_right = prefix.power_right[i]
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

    def write_shares(self, value, counts, weight):
        for c in range(counts.shape[0]):
            value[0, c] = np.float64(counts[c]) / np.float64(weight)


@like(GiniCuts)
class EntropyCuts(NamedTuple):
    """Entropy in bits. Gains are decreases of weight times entropy, from a table of x log2 x."""

    table: np.ndarray  # (at least weight + 1,) int64, in units of _UNIT
    n_outputs: int = 1

    @classmethod
    def create(cls, weight, n_outputs=1):
        x = np.arange(weight + 1, dtype=np.float64)
        table = np.rint(x * np.log2(np.maximum(x, 1.0)) / _UNIT).astype(np.int64)
        return cls(table, n_outputs)

    def impurity_of(self, counts, weight):
        entropy = 0.0
        for c in range(counts.shape[0]):
            entropy -= share_times_log(np.float64(counts[c]), np.float64(weight))
        return entropy

    def _power(self, count):
        return self.table[count]

    def approximate_gains(self, prefix, entries, first, last, counts, weight, low_mask):
        table, n_outputs = self.table, self.n_outputs
        node = -table[weight] * n_outputs
        for c in range(counts.shape[0]):
            node += table[counts[c]]
        for i in range(first, last):
            prefix.gain[i] = NO_CUT
            if entries[i] ^ entries[i + 1] <= low_mask:
                continue
            left = np.int64(prefix.weight[i])
            gain = -(table[left] + table[weight - left]) * n_outputs - node
            if counts.shape[0] == 2:
                second = np.int64(prefix.second[i])
                gain += table[second] + table[left - second]
                gain += table[counts[1] - second] + table[counts[0] - (left - second)]
            else:
                gain += np.int64(prefix.power_left[i]) + np.int64(prefix.power_right[i])
            prefix.gain[i] = np.float32(max(gain, 0) * _UNIT)

    def gain_to_beat(self, top, score, counts, weight):
        W, n_outputs = np.float64(weight), np.float64(self.n_outputs)
        n_rounded = counts.shape[0] + 2 * self.n_outputs
        error = 4.0 * n_rounded * _UNIT + 1e-13 * W * n_outputs + 2.0 * _ROUNDING * top
        if top - W * impurity_of(self, counts, weight) * n_outputs + error < score * n_outputs:
            return np.inf
        return max(top - 2.0 * error, 0.0)

    def scores_at_once(self, n):
        return False

    def bounds_more_classes(self):
        return False

    def score_cut(self, prefix, entries, i, counts, weight, layout):
        left = prefix.left
        left_weight = np.int64(prefix.weight[i])
        if counts.shape[0] == 2:
            left[1] = prefix.second[i]
            left[0] = left_weight - left[1]
        else:
            count_left(prefix, entries, i, counts, layout)
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
