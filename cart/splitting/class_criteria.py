"""Classification criteria: Gini impurity and entropy, from weighted class counts."""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel, like
from cart.primitives.float_order import WHOLE_MAX
from cart.primitives.sort_keys import record_of
from cart.splitting.criterion import AnyCriterion, Side, log2

NOTHING, SQUARES_OF_OUTPUTS, SECOND_CLASS, SQUARES = range(4)
_ROUNDING = 1e-9  # more than the rounding error of a score, as a share of the node's weight


@like(AnyCriterion)
class ClassCounts(NamedTuple):
    """Base of the classification criteria: weighted class counts of the node and its left side.

    If weights are whole numbers, the Side keeps numbers that are exact in whatever order they are
    summed: with two classes, the count of the second one on the left; with more, the sums of
    squared counts left and right, as long as these are exact. Those of several outputs together
    only bound the score, whose last bits depend on the squares of each output.
    """

    node: np.ndarray  # (n_outputs, n_classes) float64
    left: np.ndarray  # (n_outputs, n_classes) float64
    weight: np.ndarray  # (1,) float64: of the node
    kept: np.ndarray  # (1,) int64: what is exact in the Side: NOTHING, SECOND_CLASS, ...

    @classmethod
    def create(cls, n_outputs, n_values, n_samples):
        counts = np.zeros((2, n_outputs, n_values))
        return cls(counts[0], counts[1], np.zeros(1), np.zeros(1, np.int64))

    def load(self, records, keys, n, keep_order):
        self.kept[0] = NOTHING
        if not keep_order:
            self.kept[0] = SECOND_CLASS if self.node.shape[1] == 2 else SQUARES
            if self.node.shape[0] > 1:
                self.kept[0] = SQUARES_OF_OUTPUTS
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.node[k, c] = 0.0
        weight = 0.0
        if self.kept[0] == SECOND_CLASS:  # sums are exact, and stay in registers
            second = 0.0
            for j in range(n):
                i = record_of(keys[j])
                weight += records[i, 0]
                second += records[i, 0] * records[i, 1]
            self.node[0, 0] = weight - second
            self.node[0, 1] = second
        else:
            for j in range(n):
                i = record_of(keys[j])
                w = records[i, 0]
                for k in range(self.node.shape[0]):
                    self.node[k, int(records[i, k + 1])] += w
                weight += w
        self.weight[0] = weight
        if self.kept[0] != SECOND_CLASS and self.node.shape[0] * weight * weight > WHOLE_MAX:
            self.kept[0] = NOTHING  # squares are not exact, nor are their differences

    def all_right(self):
        if self.kept[0] == SECOND_CLASS:
            return Side(0.0, 0.0, 0.0)
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.left[k, c] = 0.0
        return Side(0.0, 0.0, _sum_of_squares(self.node))

    def all_left(self):
        if self.kept[0] == SECOND_CLASS:
            return Side(self.weight[0], self.node[0, 1], 0.0)
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.left[k, c] = self.node[k, c]
        return Side(self.weight[0], _sum_of_squares(self.node), 0.0)

    def move(self, side, records, i, sign):
        w = sign * records[i, 0]
        if self.kept[0] == SECOND_CLASS:
            return Side(side.weight + w, side.first + w * records[i, 1], 0.0)
        left, right = 0.0, 0.0  # weights of the sample's classes, summed over outputs
        for k in range(self.left.shape[0]):
            c = int(records[i, k + 1])
            left += self.left[k, c]
            right += self.node[k, c] - self.left[k, c]
            self.left[k, c] += w
        own = self.left.shape[0] * w
        squares_left = side.first + w * (2.0 * left + own)
        return Side(side.weight + w, squares_left, side.second - w * (2.0 * right - own))

    def side_values(self, side):
        left = count_left(self, side, 0, 0)
        return left / side.weight, (self.node[0, 0] - left) / (self.weight[0] - side.weight)

    def write_value(self, value):
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                value[k, c] = self.node[k, c] / self.weight[0]


@inline_kernel
def count_left(criterion, side, k, c):
    """The weight of class c of output k on the left side."""
    if criterion.kept[0] == SECOND_CLASS:
        return side.first if c == 1 else side.weight - side.first
    return criterion.left[k, c]


@inline_kernel
def _sum_of_squares(counts):
    squares = 0.0
    for k in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            squares += counts[k, c] * counts[k, c]
    return squares


@inline_kernel
def _mean(total, n_outputs):
    return total if n_outputs == 1 else total / n_outputs  # saves a division at every cut


class Gini(ClassCounts):
    """1 - sum of squared class shares, the mean over outputs."""

    __slots__ = ()

    def impurity(self, records, keys, n):
        gini = 0.0
        for k in range(self.node.shape[0]):
            squares = 0.0
            for c in range(self.node.shape[1]):
                squares += self.node[k, c] * self.node[k, c]
            gini += 1.0 - squares / (self.weight[0] * self.weight[0])
        return gini / self.node.shape[0]

    def may_score(self, side, least):
        if self.kept[0] != SQUARES_OF_OUTPUTS:
            return True
        # The score is (left squares / left weight + right squares / right weight) / n - weight.
        left, weight, n = side.weight, self.weight[0], self.node.shape[0]
        right = weight - left
        bar = n * (least + weight * (1.0 - _ROUNDING)) * left * right
        return side.first * right + side.second * left > bar

    def side_impurities(self, side):
        weight_left = side.weight
        weight_right = self.weight[0] - weight_left
        if self.kept[0] in (SECOND_CLASS, SQUARES):
            squares_left = side.first
            squares_right = side.second
            if self.kept[0] == SECOND_CLASS:
                left = weight_left - side.first
                right = weight_right - (self.node[0, 1] - side.first)
                squares_left = left * left + side.first * side.first
                squares_right = right * right + (weight_right - right) * (weight_right - right)
            gini_left = 1.0 - squares_left / (weight_left * weight_left)
            gini_right = 1.0 - squares_right / (weight_right * weight_right)
            return gini_left, gini_right
        gini_left = 0.0
        gini_right = 0.0
        for k in range(self.node.shape[0]):
            squares_left = 0.0
            squares_right = 0.0
            for c in range(self.node.shape[1]):
                left = self.left[k, c]
                right = self.node[k, c] - left
                squares_left += left * left
                squares_right += right * right
            gini_left += 1.0 - squares_left / (weight_left * weight_left)
            gini_right += 1.0 - squares_right / (weight_right * weight_right)
        return _mean(gini_left, self.node.shape[0]), _mean(gini_right, self.node.shape[0])


class Entropy(ClassCounts):
    """- sum of p log2 p over the class shares p, the mean over outputs."""

    __slots__ = ()

    def impurity(self, records, keys, n):
        entropy = 0.0
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                entropy -= share_times_log(self.node[k, c], self.weight[0])
        return entropy / self.node.shape[0]

    def side_impurities(self, side):
        weight_left = side.weight
        weight_right = self.weight[0] - weight_left
        entropy_left = 0.0
        entropy_right = 0.0
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                left = count_left(self, side, k, c)
                entropy_left -= share_times_log(left, weight_left)
                entropy_right -= share_times_log(self.node[k, c] - left, weight_right)
        return _mean(entropy_left, self.node.shape[0]), _mean(entropy_right, self.node.shape[0])


@inline_kernel
def share_times_log(count, weight):
    if count <= 0.0:
        return 0.0
    share = count / weight
    return share * log2(share)
