"""Squared error, Poisson deviance and the Gini impurity of two classes, for the paths on sums.

A row has a weight w, any positive number, and a target y; of two classes, y is 1 for the first. A
node has its weight W, the sum S of w y, and a third sum R (REST):

    squared error   sum of w y**2      variance = R / W - (S / W)**2
    Poisson         none               deviance, by a pass over the rows
    Gini            sum of w (1 - y)   the weight of the second class

The criteria implement the protocol of `cart.fast_paths.regression.cut_score`.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import searching
from cart.fast_paths.regression.class_weights import ClassWeightsCuts
from cart.fast_paths.regression.cut_score import (
    WEIGHT,
    mean_score,
    score_of,
    slack_of,
    weight_at,
    y_at,
)
from cart.fast_paths.regression.median_cuts import AbsoluteErrorCuts
from cart.fast_paths.regression.node_sums import REST, TOTAL, AnyCuts, halves_with
from cart.fast_paths.regression.several_means import means_of
from cart.fast_paths.regression.small_nodes.subtree import grow_small_subtree
from cart.fast_paths.regression.sorted_rows import hand_to_small_node
from cart.jit.decorators import inline_kernel, kernel, like
from cart.splitting.criteria import AbsoluteError, Entropy, Gini, SquaredError
from cart.splitting.criterion import log2
from cart.splitting.mean_criteria import NO_SUM, have_sums

_LN2 = math.log(2.0)
_N_KNOWN = 16  # terms of the deviance to cache


@inline_kernel
def _variance(weight, total, squares):
    mean = total / weight
    return squares / weight - mean * mean


def _score_by_mean(left_weight, left_sum, left_rest, weight, total, rest):
    return score_of(left_weight, left_sum, weight, total)


_search_squared_error = searching(_score_by_mean)


@like(AnyCuts)
class SquaredErrorCuts(NamedTuple):
    """Variance of the targets."""

    name: int = 0  # numba wants a field

    def rest_of(self, weight, y):
        return weight * y * y

    def root_impurity(self, samples, targets, n, sums):
        return _variance(sums[WEIGHT], sums[TOTAL], sums[REST])

    def halves_of(self, samples, targets, node, middle, left):
        weight, total, _, squares = left  # squares: those added up on the left side itself
        right = node.weight - weight, node.total - total, node.rest - squares
        return halves_with(
            _variance(weight, total, squares), _variance(*right), node, weight, total
        )

    def write_value(self, value, sums):
        value[0, 0] = sums[TOTAL] / sums[WEIGHT]

    def search_lanes(self, lanes, width, rows, table):
        _search_squared_error(lanes, width, rows, table)

    def score_left(self, left, node):
        return mean_score(left[0], left[1], node[0], node[1])

    def is_by_gain(self):
        return True

    def grow_if_small(self, growth, table, scratch, node, height, n_nodes, limits):
        small, samples = growth.small, scratch.samples
        if node.n > small.n_max:
            return np.int64(-1)
        features = growth.draw.features[node.n_constant :]
        if hand_to_small_node(scratch.rows, small, table, features, samples, scratch.targets, node):
            return grow_small_subtree(growth, table, samples, height + 1, n_nodes, limits)
        return np.int64(-1)


@inline_kernel
def _gini(first, second, weight):
    return 1.0 - (first * first + second * second) / (weight * weight)


def _score_by_gini(left_weight, left_sum, left_rest, weight, total, rest):
    right_weight, right_sum, right_rest = weight - left_weight, total - left_sum, rest - left_rest
    left = (left_sum * left_sum + left_rest * left_rest) / (left_weight * left_weight)
    right = (right_sum * right_sum + right_rest * right_rest) / (right_weight * right_weight)
    left, right = left * -1.0 + 1.0, right * -1.0 + 1.0
    return right_weight * right * -1.0 - left_weight * left


_gini_score = inline_kernel(_score_by_gini)
_search_gini = searching(_score_by_gini, keeps_rest=True)


@like(AnyCuts)
class GiniOfTwoCuts(NamedTuple):
    """Gini impurity of two classes. Its gain is proportional to that of squared error."""

    name: int = 1

    is_by_gain = SquaredErrorCuts.is_by_gain

    def rest_of(self, weight, y):
        return weight - weight * y

    def root_impurity(self, samples, targets, n, sums):
        return _gini(sums[TOTAL], sums[REST], sums[WEIGHT])

    def halves_of(self, samples, targets, node, middle, left):
        weight, first, second, _ = left
        right = _gini(node.total - first, node.rest - second, node.weight - weight)
        return halves_with(_gini(first, second, weight), right, node, weight, first)

    def write_value(self, value, sums):
        value[0, 0] = sums[TOTAL] / sums[WEIGHT]
        value[0, 1] = sums[REST] / sums[WEIGHT]

    def search_lanes(self, lanes, width, rows, table):
        _search_gini(lanes, width, rows, table)

    def score_left(self, left, node):
        return _gini_score(*left, *node)


def _highest_by_poisson(left_weight, left_sum, left_rest, weight, total, least):
    """An upper bound of a cut's score, which is s log2(1 + x) over both sides plus a constant.

    Here s is the sum of a side, and x how far its mean is above the node's, relative to the latter.
    The bound is log(1 + x) <= x (6 + x) / (6 + 4 x), which is off by x**4 / 36 near 0: the
    difference has the derivative 4 x**3 / ((1 + x) (6 + 4 x)**2). The constant is in `least`.
    """

    def gain_at_most(sum_here, expected):
        above = (sum_here - expected) * (expected * 5.0 + sum_here)
        return sum_here * above / ((sum_here * 4.0 + expected * 2.0) * expected)

    mean = total / weight
    expected, right_expected = left_weight * mean, (weight - left_weight) * mean
    gain = gain_at_most(left_sum, expected) + gain_at_most(total - left_sum, right_expected)
    return gain * ((1.0 + 1e-9) / _LN2) + least


_most_by_poisson = inline_kernel(_highest_by_poisson)
_search_poisson = searching(_highest_by_poisson, is_settled=False)


@kernel
def _deviance(known, samples, targets, start, end, weight, total):
    """Half the mean Poisson deviance of samples[start:end], which have these sums.

    Counts take few distinct values: `known` caches values with their terms.
    """
    if total <= NO_SUM:
        return np.inf
    deviance = 0.0
    mean = total / weight
    for k in range(known.shape[0]):
        known[k, 0] = -1.0
    for i in range(start, end):
        y = y_at(targets, samples[i])
        if y > 0.0:
            k = np.int64(y) & (_N_KNOWN - 1)
            if known[k, 0] != y:
                known[k, 0], known[k, 1] = y, y * math.log(y / mean)
            deviance += weight_at(targets, samples[i]) * known[k, 1]
    return deviance / weight


@like(AnyCuts)
class PoissonCuts(NamedTuple):
    """Half the mean Poisson deviance.

    In place of a third sum, a search has the score of a cut without gain plus a bound of how far
    rounding may move scores (see `begin_search`).
    """

    y_max: float
    known: np.ndarray  # (_N_KNOWN, 2) float64

    write_value = SquaredErrorCuts.write_value

    @classmethod
    def create(cls, y):
        return cls(y.max(), np.empty((_N_KNOWN, 2)))

    def rest_of(self, weight, y):
        return 0.0

    def root_impurity(self, samples, targets, n, sums):
        return _deviance(self.known, samples, targets, 0, n, sums[WEIGHT], sums[TOTAL])

    def halves_of(self, samples, targets, node, middle, left):
        weight, total = left[0], left[1]
        right = node.weight - weight, node.total - total
        return halves_with(
            _deviance(self.known, samples, targets, node.start, middle, weight, total),
            _deviance(self.known, samples, targets, middle, node.end, *right), node, weight, total,
        )  # fmt: skip

    def search_lanes(self, lanes, width, rows, table):
        _search_poisson(lanes, width, rows, table)

    def may_score(self, lanes, k, rows, bar):
        left = lanes.left_weight[k], lanes.left_sum[k], 0.0
        return _most_by_poisson(*left, rows.weight, rows.total, rows.rest) >= bar

    def score_left(self, left, node):
        left_sum, right_sum = left[1], node[1] - left[1]
        if not have_sums(left_sum, right_sum):
            return -np.inf
        score = left_sum * log2(left_sum / left[0])
        return score + right_sum * log2(right_sum / (node[0] - left[0]))

    def begin_search(self, samples, targets, sums, node):
        mean = node.total / node.weight
        size = abs(log2(mean)) + 2.0 + (self.y_max / mean) ** 2
        return node.total * (log2(mean) + slack_of(node.n, 1.0) * size)


def cuts_of(plan, y):
    """The criterion of a plan, for these targets, as the paths on sums know it."""
    if plan.n_outputs > 1:
        return means_of(plan.n_outputs)
    if plan.criterion is Gini and plan.n_values == 2:
        return GiniOfTwoCuts()
    if plan.criterion in (Gini, Entropy):
        return ClassWeightsCuts.create(plan.criterion is Entropy, plan.n_values)
    if plan.criterion is AbsoluteError:
        return AbsoluteErrorCuts.create(y)
    return SquaredErrorCuts() if plan.criterion is SquaredError else PoissonCuts.create(y)
