"""Grow regression trees by squared error: the fast path of sums that depend on their order.

Sums over a node are taken over `samples`, which stand in scikit-learn's order: that of the last
feature looked at, then exchanged from both ends. What makes features quick to sort is kept beside
them (see `cart.along`).
"""

import numpy as np

from cart.along import (
    Along,
    Lists,
    Sorter,
    begin_tree,
    bring_along,
    code_range,
    divide_rows,
    mark_left,
)
from cart.criteria import EPSILON, SquaredError
from cart.draw import begin_draw, end_draw, mark_constant, mark_searched, next_feature, restart
from cart.jit import entry_kernel, inline_kernel
from cart.mean_cuts import SQUARE, SUM, WEIGHT, Sums, choose_mean_cut
from cart.nodes import from_node
from cart.quick import NO_CUT, Cut, Quick, may_be_split, push, write_leaf, write_split
from cart.table import same_value

_LISTS_SHARE = 0.5  # of the features that a node must look at for sorted lists of all to pay
_LISTS_MAX = 2**26  # values of a table, for which the lists of a thread take 0.8 GB


@inline_kernel
def _search(rows, table, targets, draw, along, sums, start, n, n_constant, weight, total, limits):
    """Draw features and search each; return the best Cut and how many are constant.

    `along` has the rows in the order of the last feature that is not constant.
    """
    best = NO_CUT
    first = limits.min_samples_leaf - 1
    begin_draw(draw, np.uint64(0), n_constant)
    j = next_feature(draw, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = table.columns[feature]
        lowest, highest = code_range(rows, table, column, start, n)
        if lowest < highest:
            bring_along(rows, along, column, start, n, lowest, highest)
        if same_value(table, column, lowest, highest):
            mark_constant(draw, j)
        else:
            mark_searched(draw, j)
            score, i = choose_mean_cut(
                sums, along, targets, n, first, n - 1 - first, weight, total, best.score,
                table, column,
            )  # fmt: skip
            if i >= 0:
                left_code = np.int64(along.codes[i])
                best = Cut(feature, left_code, np.int64(along.codes[i + 1]), score)
        j = next_feature(draw, limits.max_features)
    return best, end_draw(draw)


@inline_kernel
def _divide_samples(samples, start, end, is_left):
    """scikit-learn's exchange from both ends; return the first that goes right."""
    while start < end:
        row = samples[start]
        if is_left[row]:
            start += 1
        else:
            end -= 1
            samples[start] = samples[end]
            samples[end] = row
    return start


@entry_kernel
def _grow_trees(
    table, all_nodes, draw, waiting, rows, samples, targets, is_left, along, sums, weights, y,
    seeds, limits, first_node,
):  # fmt: skip
    """Grow one tree per row of `weights`; tree t has the nodes from first_node[t] on."""
    for t in range(weights.shape[0]):
        restart(draw, seeds[t])
        n = 0
        for row in range(y.shape[0]):
            weight = weights[t, row]
            targets[row, WEIGHT] = weight
            targets[row, SUM] = weight * y[row]
            targets[row, SQUARE] = weight * y[row] * y[row]
            is_left[row] = weight > 0.0  # before there is a node: is it in bag?
            samples[n] = row
            n += weight > 0.0
        begin_tree(rows, table, samples, n, is_left)
        n_nodes = _grow(
            table, from_node(all_nodes, first_node[t]), draw, waiting, rows, samples, targets,
            is_left, along, sums, n, limits,
        )  # fmt: skip
        first_node[t + 1] = first_node[t] + n_nodes


@inline_kernel
def _grow(
    table, nodes, draw, waiting, rows, samples, targets, is_left, along, sums, n_rows, limits
):
    """Grow one tree; return how many nodes it has."""
    push(waiting, 0, 0, n_rows, 0, 0, -1, False, 0, 0.0)
    height = 1
    n_nodes = 0
    total_weight = 0.0
    while height > 0:
        height -= 1
        start, end, depth = waiting.start[height], waiting.end[height], waiting.depth[height]
        impurity = waiting.impurity[height]
        n = end - start
        weight = 0.0
        total = 0.0
        squares = 0.0
        for i in range(start, end):
            row = samples[i]
            weight += targets[row, WEIGHT]
            total += targets[row, SUM]
            squares += targets[row, SQUARE]
        this = n_nodes
        n_nodes += 1
        if this == 0:
            total_weight = weight
            impurity = squares / weight - (total / weight) * (total / weight)
        write_leaf(nodes, this, waiting, height, impurity, n, weight)
        nodes.value[this, 0, 0] = total / weight
        if not may_be_split(n, depth, impurity, limits):
            continue
        cut, n_constant = _search(
            rows, table, targets, draw, along, sums, start, n, waiting.n_constant[height], weight,
            total, limits,
        )  # fmt: skip
        if cut.feature < 0:
            continue
        for i in range(n):
            samples[start + i] = along.rows[i]
        column = table.columns[cut.feature]
        mark_left(rows, table, column, cut.left_code, start, n, is_left)
        middle = _divide_samples(samples, start, end, is_left)
        n_left = middle - start
        left_weight, left_sum, left_squares = _sum_up_left(
            samples, targets, start, middle, end, weight, total
        )
        right_weight = weight - left_weight
        mean_left = left_sum / left_weight
        mean_right = (total - left_sum) / right_weight
        left = left_squares / left_weight - mean_left * mean_left
        right = (squares - left_squares) / right_weight - mean_right * mean_right
        decrease = (weight / total_weight) * (
            impurity - (right_weight / weight * right) - (left_weight / weight * left)
        )
        if decrease + EPSILON < limits.min_impurity_decrease:
            continue
        write_split(nodes, this, cut, n_left, n - n_left, table)
        depth += 1
        if may_be_split(n_left, depth, left, limits) or may_be_split(
            n - n_left, depth, right, limits
        ):
            divide_rows(rows, table, column, start, n, is_left)
        push(waiting, height, middle, end, 0, depth, this, False, n_constant, right)
        push(waiting, height + 1, start, middle, 0, depth, this, True, n_constant, left)
        height += 2
    return n_nodes


@inline_kernel
def _sum_up_left(samples, targets, start, middle, end, weight, total):
    """Weight, sum and squares of samples[start:middle], the first two over the shorter way."""
    left_weight = 0.0
    left_sum = 0.0
    left_squares = 0.0
    for i in range(start, middle):
        row = samples[i]
        left_weight += targets[row, WEIGHT]
        left_sum += targets[row, SUM]
        left_squares += targets[row, SQUARE]
    if middle - start > end - middle:
        left_weight = weight
        left_sum = total
        for i in range(end - 1, middle - 1, -1):
            left_weight -= targets[samples[i], WEIGHT]
            left_sum -= targets[samples[i], SUM]
    return left_weight, left_sum, left_squares


class QuickMeans(Quick):
    """Grows regression trees by squared error."""

    criteria = (SquaredError,)

    def _create_scratch(self):
        n_rows = len(self._y)
        looks_at_most = self._plan.limits.max_features > _LISTS_SHARE * len(self._table.columns)
        kind = Lists if looks_at_most and self._table.codes.size <= _LISTS_MAX else Sorter
        return (
            kind.create(self._table),
            np.empty(n_rows, np.uint32),
            np.empty((n_rows, 3)),
            np.empty(n_rows, np.uint8),
            Along.create(n_rows),
            Sums.create(n_rows),
        )

    def _grow(self, weights, seeds, first_node):
        _grow_trees(
            self._table, self._nodes, *self._scratch, weights, self._y, seeds, self._plan.limits,
            first_node,
        )  # fmt: skip
