"""Regression criteria on means: squared error and Poisson deviance, from weighted target sums."""

import math
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel, kernel, like
from cart.primitives.sort_keys import record_of
from cart.splitting.criterion import EPSILON, AnyCriterion, Side, log2

# A sum of targets up to this counts as 0 (EPSILON in scikit-learn's `_criterion.pyx`).
NO_SUM = 10 * EPSILON
# So does a side's sum up to this share of the node's: it may be the rounding error of a difference.
_NO_SHARE = 1e-12


@like(AnyCriterion)
class TargetSums(NamedTuple):
    """Base of the criteria on means: weighted target sums of the node and its left side.

    The Side holds the sum of the first output, `left` those of the others.
    """

    node: np.ndarray  # (n_outputs,) float64
    left: np.ndarray  # (n_outputs,) float64
    weight: np.ndarray  # (1,) float64: of the node
    squares: np.ndarray  # (1,) float64: weighted sum of squares of the node, over all outputs

    @classmethod
    def create(cls, n_outputs, n_values, n_samples):
        return cls(np.zeros(n_outputs), np.zeros(n_outputs), np.zeros(1), np.zeros(1))

    def load(self, records, keys, n, keep_order):
        for k in range(1, self.node.shape[0]):
            self.node[k] = 0.0
        weight, first, squares = 0.0, 0.0, 0.0  # in registers: to add in memory takes twice as long
        for j in range(n):
            i = record_of(keys[j])
            w = records[i, 0]
            wy = w * records[i, 1]
            first += wy
            squares += wy * records[i, 1]
            for k in range(1, self.node.shape[0]):
                wy = w * records[i, k + 1]
                self.node[k] += wy
                squares += wy * records[i, k + 1]
            weight += w
        self.weight[0], self.node[0], self.squares[0] = weight, first, squares

    def all_right(self):
        for k in range(1, self.node.shape[0]):
            self.left[k] = 0.0
        return Side(0.0, 0.0, 0.0)

    def all_left(self):
        for k in range(1, self.node.shape[0]):
            self.left[k] = self.node[k]
        return Side(self.weight[0], self.node[0], 0.0)

    def move(self, side, records, i, sign):
        w = sign * records[i, 0]
        for k in range(1, self.left.shape[0]):
            self.left[k] += w * records[i, k + 1]
        return Side(side.weight + w, side.first + w * records[i, 1], 0.0)

    def side_values(self, side):
        right = self.node[0] - side.first
        return side.first / side.weight, right / (self.weight[0] - side.weight)

    def write_value(self, value):
        for k in range(self.node.shape[0]):
            value[k, 0] = self.node[k] / self.weight[0]


@inline_kernel
def _sum_left(criterion, side, k):
    return side.first if k == 0 else criterion.left[k]


class SquaredError(TargetSums):
    """Variance of the targets, the mean over outputs."""

    __slots__ = ()

    def impurity(self, records, keys, n):
        variance = self.squares[0] / self.weight[0]
        for k in range(self.node.shape[0]):
            variance -= (self.node[k] / self.weight[0]) * (self.node[k] / self.weight[0])
        return variance / self.node.shape[0]

    def children_impurity(self, side, records, keys, n_left, n):
        weight_right = self.weight[0] - side.weight
        squares = 0.0
        for j in range(n_left):
            i = record_of(keys[j])
            for k in range(self.node.shape[0]):
                squares += records[i, 0] * records[i, k + 1] * records[i, k + 1]
        variance_left = squares / side.weight
        variance_right = (self.squares[0] - squares) / weight_right
        for k in range(self.node.shape[0]):
            left = _sum_left(self, side, k)
            mean_left = left / side.weight
            mean_right = (self.node[k] - left) / weight_right
            variance_left -= mean_left * mean_left
            variance_right -= mean_right * mean_right
        return variance_left / self.node.shape[0], variance_right / self.node.shape[0]

    def score(self, side):
        rest = self.node[0] - side.first
        left = side.first * side.first
        right = rest * rest
        for k in range(1, self.node.shape[0]):
            rest = self.node[k] - self.left[k]
            left += self.left[k] * self.left[k]
            right += rest * rest
        return left / side.weight + right / (self.weight[0] - side.weight)


class Poisson(TargetSums):
    """Half the mean Poisson deviance from the mean, y log(y / mean), the mean over outputs.

    A side whose targets sum to 0 cannot be predicted by a Poisson mean: its impurity is infinite,
    and no cut may lead to it (see `have_sums`).
    """

    __slots__ = ()

    def impurity(self, records, keys, n):
        deviance = 0.0
        for k in range(self.node.shape[0]):
            if self.node[k] <= NO_SUM:
                return np.inf
            mean = self.node[k] / self.weight[0]
            for j in range(n):
                deviance += _deviance(records, record_of(keys[j]), k, mean)
        return deviance / (self.weight[0] * self.node.shape[0])

    def children_impurity(self, side, records, keys, n_left, n):
        weight_right = self.weight[0] - side.weight
        left = 0.0
        right = 0.0
        for k in range(self.node.shape[0]):
            sum_left = _sum_left(self, side, k)
            sum_right = self.node[k] - sum_left
            left += _deviance_of(sum_left, side.weight, records, keys, k, 0, n_left)
            right += _deviance_of(sum_right, weight_right, records, keys, k, n_left, n)
        n_outputs = self.node.shape[0]
        return left / (side.weight * n_outputs), right / (weight_right * n_outputs)

    def score(self, side):
        weight_right = self.weight[0] - side.weight
        left = 0.0
        right = 0.0
        for k in range(self.node.shape[0]):
            sum_left = _sum_left(self, side, k)
            sum_right = self.node[k] - sum_left
            if not have_sums(sum_left, sum_right):
                return -np.inf
            left -= sum_left * log2(sum_left / side.weight)
            right -= sum_right * log2(sum_right / weight_right)
        return -left - right


@inline_kernel
def have_sums(left, right):
    """Whether both sides of a node have targets above 0, judged by their sums."""
    return min(left, right) > max(NO_SUM, _NO_SHARE * (left + right))


@inline_kernel
def _deviance(records, i, k, mean):
    y = records[i, k + 1]
    return records[i, 0] * (y * math.log(y / mean)) if y > 0.0 else 0.0


@kernel
def _deviance_of(total, weight, records, keys, k, first, end):
    """Sum of the deviances of keys[first:end], whose targets sum to `total`."""
    if total <= NO_SUM:
        return np.inf
    deviance = 0.0
    for j in range(first, end):
        deviance += _deviance(records, record_of(keys[j]), k, total / weight)
    return deviance
