"""Gini impurity and entropy of classes whose weights are any numbers.

A row has its weight, and its class in place of a target. A node's sums are its weight and, after
the places of TOTAL, REST and the bounds, which are not used, the weight of each class:

    sums   [ W  .  .  .  . | T0 T1 T2 ... ]

Each of these is summed up separately, in the order of the rows, as in scikit-learn. Along sorted
rows, a bound of the score rules out most cuts. Let w be the weight left of a cut and l0 l1 ... the
weights of the classes there; sums are over the classes:

    spread = sum a (l - w T / W)**2 = sum a l**2 - 2 w / W sum a l T + (w / W)**2 sum a T**2

    Gini      a = 1         the decrease is  spread W / (w (W - w))
    entropy   a = 1 / T     it is at most    spread W**2 / (w (W - w) ln 2)

since log x <= x - 1. A row changes one term of both first sums, however many classes there are.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import is_cut_after, left_of_cut_before
from cart.fast_paths.regression.cut_score import (
    WEIGHT,
    slack_of,
    weight_at,
    y_at,
)
from cart.fast_paths.regression.node_sums import REST, TOTAL, UPPER, AnyCuts, Halves
from cart.fast_paths.regression.sorted_rows import code_at, row_at
from cart.jit.decorators import inline_kernel, kernel, like
from cart.splitting.class_criteria import share_times_log

MOST = 64  # classes
_CLASSES = UPPER + 1  # where the weights of the classes begin
_LN2 = math.log(2.0)
_LOGS = 64.0  # how much farther rounding may move scores with logarithms than sums


@like(AnyCuts)
class ClassWeightsCuts(NamedTuple):
    """Gini impurity or entropy."""

    is_entropy: bool
    left: np.ndarray  # (n_classes,) float64: weights left of the current cut
    right: np.ndarray  # (n_classes,) float64: weights right of it
    node: np.ndarray  # (n_classes,) float64: weights in the node
    factor: np.ndarray  # (n_classes,) float64: `a`, see the module

    @classmethod
    def create(cls, is_entropy, n_classes):
        return cls(is_entropy, *np.zeros((4, n_classes)))

    def sum_node(self, samples, targets, start, end, sums):
        _add_up(samples, targets, start, end, sums)

    def root_impurity(self, samples, targets, n, sums):
        return _impurity(self, sums[_CLASSES:], sums[WEIGHT])

    def sum_children(self, samples, targets, node, middle, sums):
        _take_up(self, sums[node.row])
        mine, n_left = samples[node.start : node.end], middle - node.start
        left_weight = _sum_left(self, mine, targets, n_left, self.node, node.weight)
        _add_up(samples, targets, middle, node.end, sums[node.row])
        _add_up(samples, targets, node.start, middle, sums[node.row + 1])
        left, right = _impurities(self, self.node, left_weight, node.weight)
        return Halves(left, right, left_weight, 0.0)

    def score_divided(self, samples, targets, n_left, sums):
        node, weight = sums[_CLASSES:], sums[WEIGHT]
        left_weight = _sum_left(self, samples, targets, n_left, node, weight)
        return left_weight, 0.0, _score(self, node, left_weight, weight)

    def write_value(self, value, sums):
        for c in range(value.shape[1]):
            value[0, c] = sums[_CLASSES + c] / sums[WEIGHT]

    def begin_search(self, samples, targets, sums, node):
        _take_up(self, sums[node.row])
        for c in range(self.node.shape[0]):
            own = self.node[c]
            self.factor[c] = 1.0 if not self.is_entropy else 1.0 / own if own > 0.0 else 0.0
        return 0.0

    def search_lanes(self, lanes, width, rows, table):
        bar = lanes.best[0]
        for k in range(width):
            if k == 0 or lanes.first[k] != lanes.first[0]:  # else the lane has no feature
                bar = _search_lane(self, lanes, k, rows, table, bar)

    def add_row_to_lane(self, lanes, k, row, rows):
        if lanes.left_weight[k] == 0.0:  # the first row
            self.left[:] = 0.0
        weight = weight_at(rows.targets, row)
        lanes.left_weight[k] += weight
        self.left[np.int64(y_at(rows.targets, row))] += weight

    def sum_lane_from_right(self, lanes, k, i, n, rows):
        first = lanes.first[k]
        right = rows.entries[first + i + 1 : first + n]
        lanes.left_weight[k] = _sum_side(self, right, rows.targets, True, self.node, rows.weight)

    def settled_score(self, lanes, k, rows):
        return _score(self, self.node, lanes.left_weight[k], rows.weight)


# ----------------------------------------------------------------------------- sorted rows


class _Bound(NamedTuple):
    """The bound of the scores of a node's cuts: base + scale * spread / (w (W - w)) + slack."""

    base: float  # the score of a cut without gain
    scale: float
    squares: float  # sum of a T**2
    doubt: float  # how far rounding may move `spread`
    slack: float  # how far rounding may move scores


@inline_kernel
def _least(bound, bar):
    """The least spread / (w (W - w)) that a cut must have to score more than the bar."""
    return (bar - bound.base - bound.slack) / bound.scale


@inline_kernel
def _take_up(self, sums):
    """Keep the weights of a node's classes in `node`."""
    for c in range(self.node.shape[0]):
        self.node[c] = sums[_CLASSES + c]


@kernel
def _bound_of(self, rows):
    """The _Bound of the cuts of a node, whose class weights are in `node`."""
    whole, squares = rows.weight, 0.0
    for c in range(self.node.shape[0]):
        squares += self.factor[c] * self.node[c] * self.node[c]
    base, scale = squares / whole - whole, whole
    if self.is_entropy:
        base, scale = -whole * _impurity(self, self.node, whole), whole * whole / _LN2
    slack = slack_of(rows.n, 1.0)
    return _Bound(base, scale, squares, slack * squares, _LOGS * slack * whole)


@kernel
def _search_lane(self, lanes, k, rows, table, bar):
    """Find the best cut of a lane that scores more than the bar; return its score, or the bar."""
    left, node, factor, n, whole = self.left, self.node, self.factor, rows.n, rows.weight
    column, tie_span = lanes.column[k], lanes.tie_span[k]
    entries, targets = rows.entries[lanes.first[k] :][:n], rows.targets
    bound = _bound_of(self, rows)
    least, per_weight = _least(bound, bar), 1.0 / whole
    weight, squares, products, previous = 0.0, 0.0, 0.0, np.int64(0)
    for c in range(left.shape[0]):
        left[c] = 0.0
    n_left, end = np.int64(0), n - 1 - rows.n_beside
    while n_left < end:
        is_asked = is_due = False
        while n_left < end and not is_asked:  # an inner loop: sums stay in registers
            row = row_at(entries, n_left)
            here, c = weight_at(targets, row), np.int64(y_at(targets, row))
            before, moved = left[c], factor[c] * here
            left[c] = before + here
            weight += here
            squares += moved * (before + before + here)
            products += moved * node[c]
            gap = np.int64(code_at(entries, n_left + 1)) - np.int64(code_at(entries, n_left))
            n_left += 1
            if gap == 0 or n_left <= rows.n_beside:
                continue
            share = weight * per_weight
            spread = squares - share * (2.0 * products - share * bound.squares)
            is_due = n_left - previous > n - n_left  # see `best_cut`
            is_asked = is_due or not spread + bound.doubt < least * (weight * (whole - weight))
            if not is_asked and gap > tie_span:
                previous = n_left
        i = n_left - 1
        if not is_asked or not is_cut_after(entries, i, table, column):
            continue
        if is_due and n_left - left_of_cut_before(entries, i, rows, table, column) > n - n_left:
            weight = _sum_left(self, entries, targets, n_left, node, whole)
            squares, products = 0.0, 0.0
            for c in range(left.shape[0]):
                squares += factor[c] * left[c] * left[c]
                products += factor[c] * left[c] * node[c]
        previous = n_left
        if rows.is_bound and min(weight, whole - weight) < rows.min_weight:
            continue
        score = _score(self, node, weight, whole)
        if score > bar:
            bar, least = score, _least(bound, score)
            lanes.best[k], lanes.place[k] = score, i
    return bar


# ------------------------------------------------------------------------------------ sums


@kernel
def _add_up(samples, targets, start, end, sums):
    """Write the weight of samples[start:end], and that of each class, to `sums`."""
    whole = 0.0  # stays in a register, while `sums` is written for every row
    sums[TOTAL] = sums[REST] = 0.0
    sums[_CLASSES:] = 0.0
    for i in range(start, end):
        row = samples[i]
        weight = weight_at(targets, row)
        whole += weight
        sums[_CLASSES + np.int64(y_at(targets, row))] += weight
    sums[WEIGHT] = whole


@kernel
def _sum_left(self, samples, targets, n_left, node, weight):
    """Return the weight left of a cut, and write that of each class to `left`; from the shorter
    side: over samples[:n_left], or as the node's less the other samples, last one first."""
    if n_left > samples.shape[0] - n_left:
        return _sum_side(self, samples[n_left:], targets, True, node, weight)
    return _sum_side(self, samples[:n_left], targets, False, node, weight)


@kernel
def _sum_side(self, samples, targets, is_right, node, weight):
    """As `_sum_left`, given all samples on one side of the cut: the left or the right."""
    n, left = samples.shape[0], self.left
    first, step = (n - 1, -1) if is_right else (0, 1)
    sign, left_weight = np.float64(step), weight if is_right else 0.0
    for c in range(left.shape[0]):
        left[c] = node[c] if is_right else 0.0
    for k in range(n):
        row = np.uint32(samples[first + k * step])
        here = sign * weight_at(targets, row)
        left_weight += here
        left[np.int64(y_at(targets, row))] += here
    return left_weight


@inline_kernel
def _score(self, node, left_weight, weight):
    """Score of a cut as scikit-learn calculates it, with the weights `left` on its left."""
    left, right = _impurities(self, node, left_weight, weight)
    return -(weight - left_weight) * right - left_weight * left


@kernel
def _impurities(self, node, left_weight, weight):
    """Impurity left and right of a cut, from the weights `left` and those of the node."""
    left, right = self.left, self.right
    for c in range(left.shape[0]):
        right[c] = node[c] - left[c]
    return _impurity(self, left, left_weight), _impurity(self, right, weight - left_weight)


@inline_kernel
def _impurity(self, weights, weight):
    """Impurity of classes with these weights, of which `weight` is the sum."""
    if self.is_entropy:
        entropy = 0.0
        for c in range(weights.shape[0]):
            entropy -= share_times_log(weights[c], weight)
        return entropy
    squares = 0.0
    for c in range(weights.shape[0]):
        squares += weights[c] * weights[c]
    return 1.0 - squares / (weight * weight)
