"""Grow regression trees by squared error: the fast path of sums that depend on their order.

Sums over a node are taken over `samples`, which stand in scikit-learn's order: that of the last
feature looked at, then exchanged from both ends. What makes features quick to sort is kept beside
them (see `cart.fast_paths.regression.sorted_rows`).
"""

import numpy as np

from cart.fast_paths.base import (
    NO_CUT,
    Cut,
    FastPath,
    may_be_split,
    push,
    write_split,
)
from cart.fast_paths.regression.best_cut import N_LANES, Lanes, choose_mean_cut
from cart.fast_paths.regression.cut_score import WEIGHT, write_target
from cart.fast_paths.regression.node_sums import (
    SQUARES,
    TOTAL,
    DrawnFeatures,
    SwapScratch,
    add_up_children,
    add_up_node,
    decrease_of,
    flags_of,
    impurity_of,
    place_children,
    swap_across,
    write_mean,
)
from cart.fast_paths.regression.screening import (
    Screen,
    begin_screening,
    is_certain,
    is_worth_screening,
    screen_feature,
    slack_of,
)
from cart.fast_paths.regression.small_node import SMALL_NODE_MAX, SmallNode, small_node_max
from cart.fast_paths.regression.small_subtree import grow_small_subtree
from cart.fast_paths.regression.sorted_rows import (
    PresortedRows,
    RowsSortedOnDemand,
    begin_tree,
    code_at,
    divide_rows,
    hand_to_small_node,
    is_presorted,
    load_feature,
    mark_left,
    row_at,
)
from cart.jit.decorators import entry_kernel, inline_kernel
from cart.splitting.criteria import EPSILON, SquaredError
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
    restart,
)
from cart.table.table import same_value
from cart.tree.nodes import from_node

_PRESORT_SHARE = 1 / 8  # of the features that a node must look at for presorting to pay
_PARTIAL_MAX = SMALL_NODE_MAX // 2  # of a small node that looks at some features
_PRESORT_MAX = 2**25  # values of a table, for which presorted rows of a thread take 0.7 GB


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
    drawing = begin_draw(draw, np.uint64(0), n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = table.columns[feature]
        at, lowest, highest = load_feature(rows, table, column, n_drawn, start, n, depth)
        if lowest < highest:
            last = at
        if same_value(table, column, lowest, highest):
            drawing = mark_constant(draw, drawing, j)
        else:
            drawing = mark_searched(draw, drawing, j)
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
        j, drawing = next_feature(draw, drawing, limits.max_features)
    if screens and is_certain(screen, slack):
        best = Cut(screen.best[0], screen.best[1], screen.best[2], 0.0)
    else:
        for k in range(0, n_drawn, N_LANES):
            best = _search_lanes(
                lanes, drawn, k, min(k + N_LANES, n_drawn), rows.entries, targets, n, weight,
                total, best, table, limits,
            )  # fmt: skip
    return best, end_draw(draw, drawing), last


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


@entry_kernel
def _grow_trees(
    table, all_nodes, all_cuts, draw, stack, rows, small, samples, targets, is_left, drawn,
    swap, screen, lanes, sums, weights, y, seeds, limits, n_small, first_node,
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
            write_target(targets, row, weight, y[row])
            is_left[row] = weight > 0.0  # before there is a node: is it in bag?
            samples[n] = row
            n += weight > 0.0
        begin_tree(rows, table, samples, n, is_left)
        n_nodes = _grow(
            table, from_node(all_nodes, first_node[t]), all_cuts[first_node[t] :], draw, stack,
            rows, small, samples, targets, is_left, drawn, swap, screen, lanes, sums, n, farthest,
            limits, n_small,
        )  # fmt: skip
        first_node[t + 1] = first_node[t] + n_nodes


@inline_kernel
def _grow(
    table, nodes, cuts, draw, stack, rows, small, samples, targets, is_left, drawn, swap,
    screen, lanes, sums, n_rows, farthest, limits, n_small,
):  # fmt: skip
    """Grow one tree; return how many nodes it has."""
    add_up_node(samples, targets, 0, n_rows, sums[0])
    total_weight = sums[0, WEIGHT]
    impurity = impurity_of(total_weight, sums[0, TOTAL], sums[0, SQUARES])
    push(stack, 0, 0, n_rows, 0, 0, 0, impurity)
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        start, end, depth = stack.start[height], stack.end[height], stack.depth[height]
        impurity = stack.impurity[height]
        weight, total = sums[height, WEIGHT], sums[height, TOTAL]
        n = end - start
        may_split = may_be_split(n, depth, impurity, limits)
        n_constant = stack.n_constant[height]
        if may_split and n <= n_small:
            features = draw.features[n_constant:]
            if hand_to_small_node(
                rows, small, table, features, samples, start, n, depth, targets, total / weight
            ):
                n_nodes = grow_small_subtree(
                    small, table, nodes, draw, drawn, swap, stack, sums, cuts, samples,
                    height + 1, n_nodes, total_weight, farthest, limits,
                )  # fmt: skip
                continue
        this = n_nodes
        n_nodes += 1
        write_mean(nodes, this, impurity, n, sums[height])
        if not may_split:
            continue
        slack = slack_of(n, farthest)
        screens = (
            limits.min_samples_leaf == 1
            and is_presorted(rows)
            and is_worth_screening(n, slack, impurity)
        )
        cut, n_constant, last = _search(
            rows, table, targets, draw, drawn, screen, lanes, start, n, depth, n_constant, weight,
            total, slack, screens, limits,
        )  # fmt: skip
        if cut.feature < 0:
            continue
        entries = rows.entries[last : last + n]
        for i in range(n):
            samples[start + i] = row_at(entries, i)
        column = table.columns[cut.feature]
        n_left = mark_left(rows, table, column, cut.left_code, start, n, depth, is_left)
        swap_across(samples, start, end, n_left, is_left, swap)
        middle = start + n_left
        left, right, left_weight = add_up_children(
            samples, targets, start, middle, end, sums[height], sums[height + 1], sums[height]
        )
        decrease = decrease_of(weight, left_weight, impurity, left, right, total_weight)
        if decrease + EPSILON < limits.min_impurity_decrease:
            continue
        write_split(nodes, this, cut, cuts)
        if may_be_split(middle - start, depth + 1, left, limits) or may_be_split(
            end - middle, depth + 1, right, limits
        ):
            features = draw.features[n_constant:]
            divide_rows(rows, table, features, start, n, middle - start, depth, is_left)
        height, n_nodes = place_children(
            nodes, stack, sums, height, n_nodes, start, middle, end, 0, depth + 1,
            n_constant, left, right, limits,
        )  # fmt: skip
    return n_nodes


class SortedPath(FastPath):
    """Grows regression trees by squared error."""

    criteria = (SquaredError,)

    @classmethod
    def takes_narrow(cls, codes, plan):
        return False

    def _flags(self, weights, is_whole):
        return flags_of(super()._flags(weights, is_whole), self._y, weights)

    def _create_scratch(self):
        self._table = self._table.wide()  # compiled for one kind
        n_rows, n_features = len(self._y), len(self._table.columns)
        looks_at_many = self._plan.limits.max_features >= _PRESORT_SHARE * n_features
        kind = (
            PresortedRows
            if looks_at_many and self._table.codes.size <= _PRESORT_MAX
            else RowsSortedOnDemand
        )
        return (
            kind.create(self._table),
            SmallNode.create(n_rows, len(self._table.codes), n_features),
            np.empty(n_rows, np.uint32),
            np.empty(2 * n_rows),
            np.empty(n_rows, np.uint8),
            DrawnFeatures.create(n_features),
            SwapScratch.create(n_rows),
            Screen.create(n_rows),
            Lanes.create(),
            np.empty((n_rows + 2, 3)),
        )

    def _grow(self, weights, seeds, first_node):
        limits = self._plan.limits
        _grow_trees(
            self._table, self._nodes, self._cuts, *self._scratch, weights, self._y, seeds, limits,
            small_node_max(limits.max_features, len(self._table.columns), _PARTIAL_MAX), first_node,
        )  # fmt: skip
