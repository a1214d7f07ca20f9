"""Squared error of two or three outputs: the mean of their variances.

The weight and three targets of a row are stored side by side, so that one cache line holds them.
The targets of a third output that does not exist are 0, which changes no sum:

    targets = [ w0 a0 b0 c0 | w1 a1 b1 c1 | ... ]

A node's sums are its weight, the sum of w a, the sum of all weighted squares, the bounds of its
value (infinite here), and the sums of w b and w c.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import searching
from cart.fast_paths.regression.cut_score import WEIGHT
from cart.fast_paths.regression.node_sums import REST, TOTAL, UPPER, AnyCuts, Halves
from cart.jit.decorators import inline_kernel, kernel, like

MOST = 3  # outputs
PER_ROW = 1 + MOST


def _score_of_means(left_weight, left, weight, total):
    """Score of a cut as scikit-learn calculates it."""
    a, b, c = left
    squares_left = a * a + b * b + c * c
    a, b, c = total[0] - a, total[1] - b, total[2] - c
    return squares_left / left_weight + (a * a + b * b + c * c) / (weight - left_weight)


_mean_score = inline_kernel(_score_of_means)
_search = searching(_score_of_means, n_outputs=MOST)


@like(AnyCuts)
class SeveralMeansCuts(NamedTuple):
    """The mean variance of the targets of up to MOST outputs."""

    n_outputs: float
    totals: np.ndarray  # (MOST,) float64: sums of each output in the current node

    @classmethod
    def create(cls, n_outputs):
        return cls(float(n_outputs), np.zeros(MOST))

    def take_row(self, targets, row, weight, y):
        targets[PER_ROW * row] = weight
        for k in range(MOST):
            targets[PER_ROW * row + 1 + k] = y[row, k] if k < y.shape[1] else 0.0

    def copy_row(self, targets, row, copied, i):
        for k in range(PER_ROW):
            copied[PER_ROW * i + k] = targets[PER_ROW * np.int64(row) + k]

    def sum_node(self, samples, targets, start, end, sums):
        _add_up(samples, targets, start, end, sums)

    def root_impurity(self, samples, targets, n, sums):
        first, second, third = sums[TOTAL], sums[UPPER + 1], sums[UPPER + 2]
        return _mean_variance(self, sums[WEIGHT], sums[REST], first, second, third)

    def sum_children(self, samples, targets, node, middle, sums):
        _take_totals(self, sums[node.row])
        return _sum_children(self, samples, targets, node, middle, sums)

    def is_free_of_order(self):
        return False  # one sum takes the squares of all outputs in turn

    def write_value(self, value, sums):
        for k in range(value.shape[0]):
            value[k, 0] = sums[TOTAL if k == 0 else UPPER + k] / sums[WEIGHT]

    def begin_search(self, samples, targets, sums, node):
        _take_totals(self, sums[node.row])
        return 0.0

    def score_divided(self, samples, targets, n_left, sums):
        _take_totals(self, sums)
        totals = self.totals
        weight, a, b, c = _sums_left(samples, targets, n_left, sums[WEIGHT], totals)
        of_node = totals[0], totals[1], totals[2]
        return weight, a, _mean_score(weight, (a, b, c), sums[WEIGHT], of_node)

    def search_lanes(self, lanes, width, rows, table):
        for k in range(MOST):
            lanes.totals[k] = self.totals[k]
        _search(lanes, width, rows, table)

    def add_row_to_lane(self, lanes, k, row, rows):
        at = PER_ROW * np.int64(row)
        weight = rows.targets[at]
        lanes.left_weight[k] += weight
        lanes.left_sum[k] += weight * rows.targets[at + 1]
        lanes.left_second[k] += weight * rows.targets[at + 2]
        lanes.left_third[k] += weight * rows.targets[at + 3]

    def sum_lane_from_right(self, lanes, k, i, n, rows):
        first = lanes.first[k]
        mine = rows.entries[first : first + n]
        weight, one, two, three = _left_from_right(
            mine, rows.targets, i + 1, n, rows.weight, self.totals
        )
        lanes.left_weight[k], lanes.left_sum[k] = weight, one
        lanes.left_second[k], lanes.left_third[k] = two, three

    def settled_score(self, lanes, k, rows):
        left = lanes.left_sum[k], lanes.left_second[k], lanes.left_third[k]
        totals = self.totals[0], self.totals[1], self.totals[2]
        return _mean_score(lanes.left_weight[k], left, rows.weight, totals)


@inline_kernel
def _take_totals(self, sums):
    """Keep a node's sums of all outputs in `totals`."""
    for k in range(MOST):
        self.totals[k] = sums[TOTAL if k == 0 else UPPER + k]


@inline_kernel
def _add_up(samples, targets, start, end, sums):
    """Write weight, sums and squares of samples[start:end] to `sums`."""
    weight, first, second, third, squares = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, end):
        at = PER_ROW * np.int64(samples[i])
        here = targets[at]
        wa, wb, wc = here * targets[at + 1], here * targets[at + 2], here * targets[at + 3]
        weight += here
        first += wa
        second += wb
        third += wc
        squares += wa * targets[at + 1]
        squares += wb * targets[at + 2]
        squares += wc * targets[at + 3]
    sums[WEIGHT], sums[TOTAL], sums[REST] = weight, first, squares
    sums[UPPER + 1], sums[UPPER + 2] = second, third


@inline_kernel
def _mean_variance(self, weight, squares, first, second, third):
    variance = squares / weight
    variance -= (first / weight) * (first / weight)
    variance -= (second / weight) * (second / weight)
    variance -= (third / weight) * (third / weight)
    return variance / self.n_outputs


@inline_kernel
def _sums_left(samples, targets, n_left, weight, totals):
    """Weight and sums of samples[:n_left], added up from the shorter side."""
    if n_left > samples.shape[0] - n_left:
        return _left_from_right(samples, targets, n_left, samples.shape[0], weight, totals)
    left, first, second, third = 0.0, 0.0, 0.0, 0.0
    for i in range(n_left):
        at = PER_ROW * np.int64(samples[i])
        here = targets[at]
        left += here
        first += here * targets[at + 1]
        second += here * targets[at + 2]
        third += here * targets[at + 3]
    return left, first, second, third


@inline_kernel
def _left_from_right(rows, targets, middle, end, weight, totals):
    """Weight and sums left of `middle`: the node's less rows[middle:end], the last row first."""
    first, second, third = totals[0], totals[1], totals[2]
    for i in range(end - 1, middle - 1, -1):
        at = PER_ROW * np.int64(np.uint32(rows[i]))
        here = targets[at]
        weight -= here
        first -= here * targets[at + 1]
        second -= here * targets[at + 2]
        third -= here * targets[at + 3]
    return weight, first, second, third


@kernel
def _sum_children(self, samples, targets, node, middle, sums):
    of_left, of_right, totals = sums[node.row + 1], sums[node.row], self.totals
    start, end = node.start, node.end
    _add_up(samples, targets, middle, end, of_right)
    _add_up(samples, targets, start, middle, of_left)
    weight, first = of_left[WEIGHT], of_left[TOTAL]
    second, third = of_left[UPPER + 1], of_left[UPPER + 2]
    if middle - start > end - middle:
        weight, first, second, third = _left_from_right(
            samples, targets, middle, end, node.weight, totals
        )
    squares = of_left[REST]
    left = _mean_variance(self, weight, squares, first, second, third)
    right = _mean_variance(
        self, node.weight - weight, node.rest - squares, totals[0] - first, totals[1] - second,
        totals[2] - third,
    )  # fmt: skip
    return Halves(left, right, weight, 0.0)
