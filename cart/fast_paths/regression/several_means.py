"""Squared error of several outputs: the mean of their variances.

The weight and the targets of a row are stored side by side. Of two or three outputs, these are
always three, so that one cache line holds them and vectors search several features at once; the
targets of a third output that does not exist are 0, which changes no sum:

    targets = [ w0 a0 b0 c0 | w1 a1 b1 c1 | ... ]

Of more outputs, rows have as many targets. A node's sums are its weight, a zero, the sum of all
weighted squares, the bounds of its value (infinite here), and the sums of w a, w b and so on.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import is_cut_after, searching
from cart.fast_paths.regression.cut_score import WEIGHT, sum_node
from cart.fast_paths.regression.node_sums import REST, TOTAL, UPPER, AnyCuts, Halves
from cart.fast_paths.regression.sorted_rows import row_at
from cart.jit.decorators import dispatch, inline_kernel, kernel, like

MOST = 32  # outputs
_MOST_IN_LANES = 3
_PER_ROW = 1 + _MOST_IN_LANES
_SUMS = UPPER + 1  # where the sums of all outputs begin


@dispatch
def _sum_side(criterion, samples, targets, is_right, weight):
    """Return the weight left of a cut, and write its sums to `left`, given all samples on one side.
    Those on the right are taken from the node's sums, the last one first."""


@like(AnyCuts)
class ManyMeansCuts(NamedTuple):
    """The mean variance of the targets of many outputs. A feature is searched at a time."""

    n_outputs: float
    totals: np.ndarray  # float64: sums of each output in the current node
    left: np.ndarray  # float64: sums left of the current cut

    def take_row(self, targets, row, weight, y):
        at = _place_of(self, row)
        targets[at] = weight
        for k in range(self.left.shape[0]):
            targets[at + 1 + k] = y[row, k] if k < y.shape[1] else 0.0

    def copy_row(self, targets, row, copied, i):
        at, to = _place_of(self, row), _place_of(self, i)
        for k in range(1 + self.left.shape[0]):
            copied[to + k] = targets[at + k]

    def sum_node(self, samples, targets, start, end, sums):
        _add_up(self, samples, targets, start, end, sums)

    def root_impurity(self, samples, targets, n, sums):
        return _variance(self, sums[WEIGHT], sums[REST], sums[_SUMS:])

    def sum_children(self, samples, targets, node, middle, sums):
        start, end, of_left, of_right = node.start, node.end, sums[node.row + 1], sums[node.row]
        _take_sums(of_right, self.totals)
        sum_node(self, samples, targets, middle, end, of_right)
        sum_node(self, samples, targets, start, middle, of_left)
        weight = of_left[WEIGHT]
        _take_sums(of_left, self.left)
        if middle - start > end - middle:
            weight = _sum_side(self, samples[middle:end], targets, True, node.weight)
        left = _variance(self, weight, of_left[REST], self.left)
        for k in range(self.left.shape[0]):
            self.left[k] = self.totals[k] - self.left[k]
        rest = node.rest - of_left[REST]
        right = _variance(self, node.weight - weight, rest, self.left)
        return Halves(left, right, weight, 0.0)

    def is_free_of_order(self):
        return False  # one sum takes the squares of all outputs in turn

    def write_value(self, value, sums):
        for k in range(value.shape[0]):
            value[k, 0] = sums[_SUMS + k] / sums[WEIGHT]

    def begin_search(self, samples, targets, sums, node):
        _take_sums(sums[node.row], self.totals)
        return 0.0

    def score_divided(self, samples, targets, n_left, sums):
        _take_sums(sums, self.totals)
        is_right = n_left > samples.shape[0] - n_left  # the shorter side
        mine = samples[n_left:] if is_right else samples[:n_left]
        weight = _sum_side(self, mine, targets, is_right, sums[WEIGHT])
        return weight, 0.0, _score_left(self, weight, sums[WEIGHT])

    def search_lanes(self, lanes, width, rows, table):
        bar = lanes.best[0]
        for k in range(width):
            if k == 0 or lanes.first[k] != lanes.first[0]:  # else the lane has no feature
                bar = _search_many(self, lanes, k, rows, table, bar)

    def add_row_to_lane(self, lanes, k, row, rows):
        if lanes.left_weight[k] == 0.0:  # the first row
            self.left[:] = 0.0
        lanes.left_weight[k] += _move(self, rows.targets, row, 1.0)

    def sum_lane_from_right(self, lanes, k, i, n, rows):
        first = lanes.first[k]
        right = rows.entries[first + i + 1 : first + n]
        lanes.left_weight[k] = _sum_side(self, right, rows.targets, True, rows.weight)

    def _sum_side(self, samples, targets, is_right, weight):
        return _sum_up(self, samples, targets, is_right, weight)

    def settled_score(self, lanes, k, rows):
        return _score_left(self, lanes.left_weight[k], rows.weight)


@inline_kernel
def _place_of(self, row):
    """Where `targets` has the weight of a row; the targets of all outputs follow."""
    return (1 + self.left.shape[0]) * np.int64(row)


@inline_kernel
def _take_sums(sums, kept):
    """Keep a node's sums of all outputs."""
    for k in range(kept.shape[0]):
        kept[k] = sums[_SUMS + k]


@inline_kernel
def _move(self, targets, row, sign):
    """Add a row to `left`, or take it away; return its weight."""
    at = _place_of(self, row)
    weight = sign * targets[at]
    for k in range(self.left.shape[0]):
        self.left[k] += weight * targets[at + 1 + k]
    return weight


@kernel
def _add_up(self, samples, targets, start, end, sums):
    """Write weight, sums and squares of samples[start:end] to `sums`."""
    weight, squares = 0.0, 0.0
    sums[TOTAL] = 0.0
    sums[_SUMS:] = 0.0
    for i in range(start, end):
        at = _place_of(self, samples[i])
        weight += targets[at]
        for k in range(self.left.shape[0]):
            moved = targets[at] * targets[at + 1 + k]
            sums[_SUMS + k] += moved
            squares += moved * targets[at + 1 + k]
    sums[WEIGHT], sums[REST] = weight, squares


@inline_kernel
def _variance(self, weight, squares, sums):
    variance = squares / weight
    for k in range(sums.shape[0]):
        variance -= (sums[k] / weight) * (sums[k] / weight)
    return variance / self.n_outputs


@kernel
def _sum_up(self, samples, targets, is_right, weight):
    """See `_sum_side`."""
    n = samples.shape[0]
    first, step = (n - 1, -1) if is_right else (0, 1)
    for k in range(self.left.shape[0]):
        self.left[k] = self.totals[k] if is_right else 0.0
    left_weight = weight if is_right else 0.0
    for k in range(n):
        row = np.uint32(samples[first + k * step])
        left_weight += _move(self, targets, row, np.float64(step))
    return left_weight


@inline_kernel
def _score_left(self, left_weight, weight):
    """Score of a cut as scikit-learn calculates it, from the sums on its left."""
    squares_left, squares_right = 0.0, 0.0
    for k in range(self.left.shape[0]):
        right = self.totals[k] - self.left[k]
        squares_left += self.left[k] * self.left[k]
        squares_right += right * right
    return squares_left / left_weight + squares_right / (weight - left_weight)


@kernel
def _search_many(self, lanes, k, rows, table, bar):
    """Find the best cut of a lane that scores more than the bar; return its score, or the bar."""
    n, whole, column = rows.n, rows.weight, lanes.column[k]
    entries = rows.entries[lanes.first[k] :][:n]
    weight, previous = 0.0, np.int64(0)
    self.left[:] = 0.0
    for i in range(n - 1 - rows.n_beside):
        weight += _move(self, rows.targets, row_at(entries, i), 1.0)
        n_left = i + 1
        if n_left <= rows.n_beside or not is_cut_after(entries, i, table, column):
            continue
        if n_left - previous > n - n_left:
            weight = _sum_side(self, entries[n_left:], rows.targets, True, whole)
        previous = n_left
        if rows.is_bound and min(weight, whole - weight) < rows.min_weight:
            continue
        score = _score_left(self, weight, whole)
        if score > bar:
            bar = score
            lanes.best[k], lanes.place[k] = score, i
    return bar


# ------------------------------------------------------------------- two or three outputs


def _score_of_means(left_weight, left, weight, total):
    """Score of a cut as scikit-learn calculates it."""
    a, b, c = left
    squares_left = a * a + b * b + c * c
    a, b, c = total[0] - a, total[1] - b, total[2] - c
    return squares_left / left_weight + (a * a + b * b + c * c) / (weight - left_weight)


_mean_score = inline_kernel(_score_of_means)
_search = searching(_score_of_means, n_outputs=_MOST_IN_LANES)


@like(ManyMeansCuts)
class SeveralMeansCuts(NamedTuple):
    """The mean variance of the targets of two or three outputs. Sums are kept in registers."""

    n_outputs: float
    totals: np.ndarray  # (_MOST_IN_LANES,) float64
    left: np.ndarray

    def copy_row(self, targets, row, copied, i):
        for k in range(_PER_ROW):
            copied[_PER_ROW * i + k] = targets[_PER_ROW * np.int64(row) + k]

    def sum_node(self, samples, targets, start, end, sums):
        sums[TOTAL] = 0.0
        sums[WEIGHT], sums[_SUMS], sums[_SUMS + 1], sums[_SUMS + 2], sums[REST] = _add_rows(
            samples[start:end], targets, False, (0.0, 0.0, 0.0, 0.0)
        )

    def score_divided(self, samples, targets, n_left, sums):
        of_node = sums[WEIGHT], sums[_SUMS], sums[_SUMS + 1], sums[_SUMS + 2]
        if n_left > samples.shape[0] - n_left:  # the right side is shorter
            weight, a, b, c, _ = _add_rows(samples[n_left:], targets, True, of_node)
        else:
            weight, a, b, c, _ = _add_rows(samples[:n_left], targets, False, of_node)
        return weight, 0.0, _mean_score(weight, (a, b, c), sums[WEIGHT], of_node[1:])

    def _sum_side(self, samples, targets, is_right, weight):
        left, totals = self.left, self.totals
        of_node = weight, totals[0], totals[1], totals[2]
        weight, left[0], left[1], left[2], _ = _add_rows(samples, targets, is_right, of_node)
        return weight

    def search_lanes(self, lanes, width, rows, table):
        for k in range(_MOST_IN_LANES):
            lanes.totals[k] = self.totals[k]
        _search(lanes, width, rows, table)

    def add_row_to_lane(self, lanes, k, row, rows):
        at = _place_of(self, row)
        weight = rows.targets[at]
        lanes.left_weight[k] += weight
        lanes.left_sum[k] += weight * rows.targets[at + 1]
        lanes.left_second[k] += weight * rows.targets[at + 2]
        lanes.left_third[k] += weight * rows.targets[at + 3]

    def sum_lane_from_right(self, lanes, k, i, n, rows):
        first, left = lanes.first[k], self.left
        right = rows.entries[first + i + 1 : first + n]
        lanes.left_weight[k] = _sum_side(self, right, rows.targets, True, rows.weight)
        lanes.left_sum[k], lanes.left_second[k], lanes.left_third[k] = left[0], left[1], left[2]

    def settled_score(self, lanes, k, rows):
        left = lanes.left_sum[k], lanes.left_second[k], lanes.left_third[k]
        totals = self.totals[0], self.totals[1], self.totals[2]
        return _mean_score(lanes.left_weight[k], left, rows.weight, totals)


@inline_kernel
def _add_rows(samples, targets, is_right, of_node):
    """The weight and sums left of a cut, given all samples on one side, see `_sum_side`; and the
    sum of their squares."""
    n = samples.shape[0]
    first, step = (n - 1, -1) if is_right else (0, 1)
    weight, a, b, c = of_node if is_right else (0.0, 0.0, 0.0, 0.0)
    squares = 0.0
    for k in range(n):
        at = _PER_ROW * np.int64(np.uint32(samples[first + k * step]))
        here = np.float64(step) * targets[at]
        wa, wb, wc = here * targets[at + 1], here * targets[at + 2], here * targets[at + 3]
        weight += here
        a += wa
        b += wb
        c += wc
        squares += wa * targets[at + 1]
        squares += wb * targets[at + 2]
        squares += wc * targets[at + 3]
    return weight, a, b, c, squares


def means_of(n_outputs):
    """The criterion of so many outputs."""
    kind = ManyMeansCuts if n_outputs > _MOST_IN_LANES else SeveralMeansCuts
    return kind(float(n_outputs), *np.zeros((2, max(n_outputs, _MOST_IN_LANES))))


def sizes_of(n_outputs):
    """How many numbers that criterion keeps of a row, and how many sums besides those of all."""
    kept = max(n_outputs, _MOST_IN_LANES)
    return 1 + kept, kept
