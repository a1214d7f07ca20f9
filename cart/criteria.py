"""Split criteria: what a node's impurity is, and what a cut makes of it.

A criterion is a NamedTuple of small arrays and the methods of the protocol below. A node's
samples come as `records`, float64 of shape (n, 1 + n_outputs): the weight, then the targets.
Sums are taken in the order in which samples arrive, and the right side of a cut is the node
minus its left side, as in scikit-learn, so that floating-point sums agree with it.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.jit import dispatch, inline_kernel

_LN2 = math.log(2.0)

# ---------------------------------------------------------------------------- the protocol


@dispatch
def clear(criterion):
    """Forget every sample."""
    criterion.clear()


@dispatch
def add(criterion, records, i):
    """Count sample i as part of the node."""
    criterion.add(records, i)


@dispatch
def all_right(criterion):
    """Put the cut before the first sample."""
    criterion.all_right()


@dispatch
def all_left(criterion):
    """Put the cut behind the last sample."""
    criterion.all_left()


@dispatch
def move_left(criterion, records, i):
    """Move sample i from the right of the cut to its left."""
    criterion.move_left(records, i)


@dispatch
def move_right(criterion, records, i):
    """Move sample i from the left of the cut to its right."""
    criterion.move_right(records, i)


@dispatch
def score(criterion):
    """Quality of the cut: higher is better, comparable within one node only."""
    return criterion.score()


@dispatch
def impurity(criterion):
    """Impurity of the node."""
    return criterion.impurity()


@dispatch
def children_impurity(criterion, records, n_left):
    """Impurities left and right of the cut; the first `n_left` records lie left."""
    return criterion.children_impurity(records, n_left)


@dispatch
def write_value(criterion, value):
    """Write what the node predicts into `value`, (n_outputs, n_values)."""
    criterion.write_value(value)


@inline_kernel
def _mean(total, n_outputs):
    return total if n_outputs == 1 else total / n_outputs  # a division saved in every cut


# --------------------------------------------------------------------------- classification


class ClassCounts(NamedTuple):
    """What the classification criteria share: weighted class counts of the node and its sides."""

    node: np.ndarray  # (n_outputs, n_classes) float64
    left: np.ndarray  # (n_outputs, n_classes) float64
    weight: np.ndarray  # (2,) float64: of the node, and of its left side

    @classmethod
    def create(cls, n_outputs, n_values):
        return cls(np.zeros((n_outputs, n_values)), np.zeros((n_outputs, n_values)), np.zeros(2))

    def clear(self):
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.node[k, c] = 0.0
        self.weight[0] = 0.0

    def add(self, records, i):
        w = records[i, 0]
        for k in range(self.node.shape[0]):
            self.node[k, int(records[i, k + 1])] += w
        self.weight[0] += w

    def all_right(self):
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.left[k, c] = 0.0
        self.weight[1] = 0.0

    def all_left(self):
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.left[k, c] = self.node[k, c]
        self.weight[1] = self.weight[0]

    def move_left(self, records, i):
        w = records[i, 0]
        for k in range(self.left.shape[0]):
            self.left[k, int(records[i, k + 1])] += w
        self.weight[1] += w

    def move_right(self, records, i):
        w = records[i, 0]
        for k in range(self.left.shape[0]):
            self.left[k, int(records[i, k + 1])] -= w
        self.weight[1] -= w

    def write_value(self, value):
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                value[k, c] = self.node[k, c] / self.weight[0]


class Gini(ClassCounts):
    """1 - sum of squared class shares, the mean over outputs."""

    __slots__ = ()

    def impurity(self):
        gini = 0.0
        for k in range(self.node.shape[0]):
            squares = 0.0
            for c in range(self.node.shape[1]):
                squares += self.node[k, c] * self.node[k, c]
            gini += 1.0 - squares / (self.weight[0] * self.weight[0])
        return gini / self.node.shape[0]

    def children_impurity(self, records, n_left):
        weight_left = self.weight[1]
        weight_right = self.weight[0] - weight_left
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

    def score(self):
        left, right = children_impurity(self, self.left, 0)
        return -(self.weight[0] - self.weight[1]) * right - self.weight[1] * left


class Entropy(ClassCounts):
    """- sum of p log2 p over the class shares p, the mean over outputs."""

    __slots__ = ()

    def impurity(self):
        entropy = 0.0
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                entropy -= _share_times_log(self.node[k, c], self.weight[0])
        return entropy / self.node.shape[0]

    def children_impurity(self, records, n_left):
        weight_left = self.weight[1]
        weight_right = self.weight[0] - weight_left
        entropy_left = 0.0
        entropy_right = 0.0
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                left = self.left[k, c]
                entropy_left -= _share_times_log(left, weight_left)
                entropy_right -= _share_times_log(self.node[k, c] - left, weight_right)
        return _mean(entropy_left, self.node.shape[0]), _mean(entropy_right, self.node.shape[0])

    def score(self):
        left, right = children_impurity(self, self.left, 0)
        return -(self.weight[0] - self.weight[1]) * right - self.weight[1] * left


@inline_kernel
def _share_times_log(count, weight):
    if count <= 0.0:
        return 0.0
    share = count / weight
    return share * (math.log(share) / _LN2)


# ------------------------------------------------------------------------------- regression


class TargetSums(NamedTuple):
    """What the regression criteria share: weighted target sums of the node and its sides."""

    node: np.ndarray  # (n_outputs,) float64
    left: np.ndarray  # (n_outputs,) float64
    weight: np.ndarray  # (2,) float64: of the node, and of its left side
    squares: np.ndarray  # (1,) float64: weighted sum of squares of the node, over all outputs

    @classmethod
    def create(cls, n_outputs, n_values):
        return cls(np.zeros(n_outputs), np.zeros(n_outputs), np.zeros(2), np.zeros(1))

    def clear(self):
        for k in range(self.node.shape[0]):
            self.node[k] = 0.0
        self.weight[0] = 0.0
        self.squares[0] = 0.0

    def add(self, records, i):
        w = records[i, 0]
        for k in range(self.node.shape[0]):
            wy = w * records[i, k + 1]
            self.node[k] += wy
            self.squares[0] += wy * records[i, k + 1]
        self.weight[0] += w

    def all_right(self):
        for k in range(self.node.shape[0]):
            self.left[k] = 0.0
        self.weight[1] = 0.0

    def all_left(self):
        for k in range(self.node.shape[0]):
            self.left[k] = self.node[k]
        self.weight[1] = self.weight[0]

    def move_left(self, records, i):
        w = records[i, 0]
        for k in range(self.left.shape[0]):
            self.left[k] += w * records[i, k + 1]
        self.weight[1] += w

    def move_right(self, records, i):
        w = records[i, 0]
        for k in range(self.left.shape[0]):
            self.left[k] -= w * records[i, k + 1]
        self.weight[1] -= w

    def write_value(self, value):
        for k in range(self.node.shape[0]):
            value[k, 0] = self.node[k] / self.weight[0]


class SquaredError(TargetSums):
    """Variance of the targets, the mean over outputs."""

    __slots__ = ()

    def impurity(self):
        variance = self.squares[0] / self.weight[0]
        for k in range(self.node.shape[0]):
            variance -= (self.node[k] / self.weight[0]) * (self.node[k] / self.weight[0])
        return variance / self.node.shape[0]

    def children_impurity(self, records, n_left):
        weight_left = self.weight[1]
        weight_right = self.weight[0] - weight_left
        squares = 0.0
        for i in range(n_left):
            for k in range(self.node.shape[0]):
                squares += records[i, 0] * records[i, k + 1] * records[i, k + 1]
        variance_left = squares / weight_left
        variance_right = (self.squares[0] - squares) / weight_right
        for k in range(self.node.shape[0]):
            mean_left = self.left[k] / weight_left
            mean_right = (self.node[k] - self.left[k]) / weight_right
            variance_left -= mean_left * mean_left
            variance_right -= mean_right * mean_right
        return variance_left / self.node.shape[0], variance_right / self.node.shape[0]

    def score(self):
        left = 0.0
        right = 0.0
        for k in range(self.node.shape[0]):
            rest = self.node[k] - self.left[k]
            left += self.left[k] * self.left[k]
            right += rest * rest
        return left / self.weight[1] + right / (self.weight[0] - self.weight[1])


# The names a user types.
CLASSIFICATION = {"gini": Gini, "entropy": Entropy, "log_loss": Entropy}
REGRESSION = {"squared_error": SquaredError}
