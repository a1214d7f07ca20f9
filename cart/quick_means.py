"""Grow regression trees by squared error: the fast path of sums that depend on their order.

Sums over a node are taken over `samples`, which stand in scikit-learn's order: that of the last
feature looked at, then exchanged from both ends. What makes features quick to sort is kept beside
them (see `cart.along`).
"""

from typing import NamedTuple

import numpy as np

from cart.along import (
    Lists,
    Sorter,
    begin_tree,
    bring_along,
    code_at,
    divide_rows,
    hand_to_few,
    keeps_all_in_order,
    mark_left,
    row_at,
)
from cart.criteria import EPSILON, SquaredError
from cart.draw import begin_draw, end_draw, mark_constant, mark_searched, next_feature, restart
from cart.few import (
    FEW,
    Few,
    choose_few_cut,
    mark_few,
    number_at,
    order_few,
    rank_at,
)
from cart.jit import entry_kernel, inline_kernel
from cart.mean_cuts import N_LANES, Lanes, choose_mean_cut
from cart.mean_score import WEIGHT, Y
from cart.mean_screen import (
    Screen,
    begin_screening,
    is_certain,
    is_worth_screening,
    screen_feature,
    slack_of,
)
from cart.nodes import from_node
from cart.quick import (
    NO_CUT,
    Cut,
    Quick,
    may_be_split,
    push,
    write_leaf,
    write_split,
    write_thresholds,
)
from cart.table import same_value

_LISTS_SHARE = 1 / 8  # of the features that a node must look at for lists of all to pay
_LISTS_MAX = 2**25  # values of a table, for which the lists of a thread take 0.7 GB

TOTAL, SQUARES = 1, 2  # of a node that waits, beside its WEIGHT


class Drawn(NamedTuple):
    """The features of the node at hand that are to be searched, in the order of the draw."""

    feature: np.ndarray  # (n_features,) int64
    column: np.ndarray  # (n_features,) int64: of the table
    first: np.ndarray  # (n_features,) int64: where its entries begin

    @classmethod
    def create(cls, n_features):
        return cls(*np.empty((3, n_features), np.int64))


@inline_kernel
def _search(
    rows, table, targets, draw, drawn, screen, lanes, start, n, depth, n_constant, weight, total,
    slack, screens, limits,
):  # fmt: skip
    """Draw features and search them.

    Returns the best Cut, how many features are constant, and where the entries begin of the last
    that is not.
    """
    best = NO_CUT
    last = -1
    n_drawn = 0
    mean = total / weight
    begin_screening(screen)
    begin_draw(draw, np.uint64(0), n_constant)
    j = next_feature(draw, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = table.columns[feature]
        at, lowest, highest = bring_along(rows, table, column, n_drawn, start, n, depth)
        if lowest < highest:
            last = at
        if same_value(table, column, lowest, highest):
            mark_constant(draw, j)
        else:
            mark_searched(draw, j)
            drawn.feature[n_drawn] = feature
            drawn.column[n_drawn] = column
            drawn.first[n_drawn] = at
            n_drawn += 1
            if screens:
                entries = rows.entries[at : at + n]
                screen_feature(
                    screen, entries, targets, n, weight, mean, slack, table, feature, column
                )
            elif n_drawn == N_LANES:
                best = _search_lanes(
                    lanes, drawn, 0, n_drawn, rows.entries, targets, n, weight, total, best, table,
                    limits,
                )  # fmt: skip
                n_drawn = 0
        j = next_feature(draw, limits.max_features)
    if screens and is_certain(screen, slack):
        best = Cut(screen.best[0], screen.best[1], screen.best[2], 0.0)
    else:
        for k in range(0, n_drawn, N_LANES):
            best = _search_lanes(
                lanes, drawn, k, min(k + N_LANES, n_drawn), rows.entries, targets, n, weight,
                total, best, table, limits,
            )  # fmt: skip
    return best, end_draw(draw), last


@inline_kernel
def _search_lanes(
    lanes, drawn, begin, end, entries, targets, n, weight, total, best, table, limits
):
    """Search the features drawn from `begin` to `end` (excluded) side by side."""
    for k in range(begin, end):
        lanes.column[k - begin] = drawn.column[k]
        lanes.first[k - begin] = drawn.first[k]
    score, lane, i = choose_mean_cut(
        lanes, end - begin, entries, targets, n, limits.min_samples_leaf - 1, weight, total,
        best.score, table,
    )  # fmt: skip
    if lane < 0:
        return best
    at = lanes.first[lane] + i
    left, right = np.int64(code_at(entries, at)), np.int64(code_at(entries, at + 1))
    return Cut(drawn.feature[begin + lane], left, right, score)


@inline_kernel
def _search_few(
    few, table, draw, drawn, samples, start, n, n_constant, weight, total, slack, limits
):
    """The same among few rows, with ranks for codes, and the column of the last feature."""
    order_few(few, samples, start, n)
    last = np.int64(-1)
    n_drawn = 0
    begin_draw(draw, np.uint64(0), n_constant)
    j = next_feature(draw, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = np.int64(table.columns[feature])
        if rank_at(few, 0, column) == rank_at(few, n - 1, column):
            mark_constant(draw, j)
        else:
            mark_searched(draw, j)
            drawn.feature[n_drawn] = feature
            drawn.column[n_drawn] = column
            n_drawn += 1
            last = column
        j = next_feature(draw, limits.max_features)
    best = NO_CUT
    if n_drawn > 0:
        score, k, i = choose_few_cut(
            few, drawn.column, n_drawn, n, limits.min_samples_leaf - 1, weight, total, slack
        )
        if k >= 0:
            left, right = rank_at(few, i, drawn.column[k]), rank_at(few, i + 1, drawn.column[k])
            best = Cut(drawn.feature[k], left, right, score)
    return best, end_draw(draw), last


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
    table, all_nodes, draw, waiting, cuts, rows, few, samples, targets, is_left, drawn, screen,
    lanes, waiting_sums, weights, y, seeds, limits, first_node,
):  # fmt: skip
    """Grow one tree per row of `weights`; tree t has the nodes from first_node[t] on."""
    farthest = 0.0
    for row in range(y.shape[0]):
        farthest = max(farthest, abs(y[row]))
    for t in range(weights.shape[0]):
        restart(draw, seeds[t])
        n = 0
        for row in range(y.shape[0]):
            weight = weights[t, row]
            targets[row, WEIGHT] = weight
            targets[row, Y] = y[row]
            is_left[row] = weight > 0.0  # before there is a node: is it in bag?
            samples[n] = row
            n += weight > 0.0
        begin_tree(rows, table, samples, n, is_left)
        n_nodes = _grow(
            table, from_node(all_nodes, first_node[t]), draw, waiting, cuts, rows, few, samples,
            targets, is_left, drawn, screen, lanes, waiting_sums, n, farthest, limits,
        )  # fmt: skip
        first_node[t + 1] = first_node[t] + n_nodes


@inline_kernel
def _grow(
    table, nodes, draw, waiting, cuts, rows, few, samples, all_targets, all_is_left, drawn, screen,
    lanes, waiting_sums, n_rows, farthest, limits,
):  # fmt: skip
    """Grow one tree; return how many nodes it has."""
    _add_up(samples, all_targets, 0, n_rows, waiting_sums, 0)
    total_weight = waiting_sums[0, WEIGHT]
    mean = waiting_sums[0, TOTAL] / total_weight
    impurity = waiting_sums[0, SQUARES] / total_weight - mean * mean
    push(waiting, 0, 0, n_rows, 0, 0, -1, False, 0, impurity)
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        start, end, depth = waiting.start[height], waiting.end[height], waiting.depth[height]
        impurity = waiting.impurity[height]
        weight = waiting_sums[height, WEIGHT]
        total = waiting_sums[height, TOTAL]
        squares = waiting_sums[height, SQUARES]
        n = end - start
        this = n_nodes
        n_nodes += 1
        write_leaf(nodes, this, waiting, height, impurity, n, weight)
        nodes.value[this, 0, 0] = total / weight
        if not may_be_split(n, depth, impurity, limits):
            continue
        level = waiting.level[height]
        if level == 0 and n <= FEW:
            features = draw.features[waiting.n_constant[height] :]
            level += hand_to_few(
                rows, few, table, features, samples, start, n, depth, all_targets, total / weight
            )
        targets = all_targets if level == 0 else few.targets
        is_left = all_is_left if level == 0 else few.is_left
        slack = slack_of(n, farthest)
        n_constant = waiting.n_constant[height]
        if level == 0:
            screens = (
                limits.min_samples_leaf == 1
                and keeps_all_in_order(rows)
                and is_worth_screening(n, slack, impurity)
            )
            cut, n_constant, last = _search(
                rows, table, targets, draw, drawn, screen, lanes, start, n, depth, n_constant,
                weight, total, slack, screens, limits,
            )  # fmt: skip
            if cut.feature < 0:
                continue
            entries = rows.entries[last : last + n]
            for i in range(n):
                samples[start + i] = row_at(entries, i)
            column = table.columns[cut.feature]
            mark_left(rows, table, column, cut.left_code, start, n, depth, is_left)
        else:
            cut, n_constant, last = _search_few(
                few, table, draw, drawn, samples, start, n, n_constant, weight, total, slack, limits
            )
            if cut.feature < 0:
                continue
            for i in range(n):
                samples[start + i] = number_at(few, i, last)
            column = table.columns[cut.feature]
            mark_few(few, column, cut.left_code, n)
            left_code = np.int64(few.codes[column, cut.left_code])
            right_code = np.int64(few.codes[column, cut.right_code])
            cut = Cut(cut.feature, left_code, right_code, cut.score)
        middle = _divide_samples(samples, start, end, is_left)
        n_left = middle - start
        _add_up(samples, targets, middle, end, waiting_sums, height)
        _add_up(samples, targets, start, middle, waiting_sums, height + 1)
        left_weight = waiting_sums[height + 1, WEIGHT]
        left_sum = waiting_sums[height + 1, TOTAL]
        left_squares = waiting_sums[height + 1, SQUARES]
        if n_left > n - n_left:  # scikit-learn takes the shorter way
            left_weight = weight
            left_sum = total
            for i in range(end - 1, middle - 1, -1):
                row = samples[i]
                left_weight -= targets[row, WEIGHT]
                left_sum -= targets[row, WEIGHT] * targets[row, Y]
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
        write_split(nodes, this, cut, n_left, n - n_left, cuts)
        if level == 0 and (
            may_be_split(n_left, depth + 1, left, limits)
            or may_be_split(n - n_left, depth + 1, right, limits)
        ):
            features = draw.features[n_constant:]
            divide_rows(rows, table, features, start, n, n_left, depth, is_left)
        depth += 1
        push(waiting, height, middle, end, level, depth, this, False, n_constant, right)
        push(waiting, height + 1, start, middle, level, depth, this, True, n_constant, left)
        height += 2
    write_thresholds(nodes, n_nodes, cuts, table)
    return n_nodes


@inline_kernel
def _add_up(samples, targets, start, end, waiting_sums, height):
    """Weight, sum and squares of samples[start:end], of a node that is to wait."""
    weight = 0.0
    total = 0.0
    squares = 0.0
    for i in range(start, end):
        row = samples[i]
        here = targets[row, WEIGHT]
        y = targets[row, Y]
        weight += here
        total += here * y
        squares += here * y * y
    waiting_sums[height, WEIGHT] = weight
    waiting_sums[height, TOTAL] = total
    waiting_sums[height, SQUARES] = squares


class QuickMeans(Quick):
    """Grows regression trees by squared error."""

    criteria = (SquaredError,)

    def _create_scratch(self):
        n_rows, n_features = len(self._y), len(self._table.columns)
        looks_at_many = self._plan.limits.max_features >= _LISTS_SHARE * n_features
        kind = Lists if looks_at_many and self._table.codes.size <= _LISTS_MAX else Sorter
        return (
            kind.create(self._table),
            Few.create(n_rows, len(self._table.codes), n_features),
            np.empty(n_rows, np.uint32),
            np.empty((n_rows, 2)),
            np.empty(n_rows, np.uint8),
            Drawn.create(n_features),
            Screen.create(n_rows),
            Lanes.create(),
            np.empty((n_rows + 2, 3)),
        )

    def _grow(self, weights, seeds, first_node):
        _grow_trees(
            self._table, self._nodes, *self._scratch, weights, self._y, seeds, self._plan.limits,
            first_node,
        )  # fmt: skip
