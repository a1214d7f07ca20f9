"""Regression trees by squared error from sorted rows: the path of sums that depend on their order.

Sums over a node are taken over `samples`, which stand in scikit-learn's order: that of the last
feature looked at, then swapped across the cut. Sorted rows are kept beside them:

    samples         node [ 9 4 0 7 3 ]             any order, to the bit scikit-learn's
    entries         node [ 0 3 4 7 9 ] feature 0   ascending codes along each feature
                         [ 4 0 9 3 7 ] feature 1
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NO_CUT, Cut, may_be_split, write_split
from cart.fast_paths.regression.best_cut import N_LANES, Lanes, SearchedRows, choose_mean_cut
from cart.fast_paths.regression.cut_score import slack_of, write_target
from cart.fast_paths.regression.node_sums import add_up_children, swap_across
from cart.fast_paths.regression.screening import (
    Screen,
    begin_screening,
    is_certain,
    is_worth_screening,
    screen_feature,
)
from cart.fast_paths.regression.small_node import SMALL_NODE_MAX
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
from cart.fast_paths.regression.tree_growth import (
    MeanPath,
    begin_growth,
    decrease_of,
    node_at,
    place_children,
    write_mean,
)
from cart.jit.decorators import entry_kernel, inline_kernel
from cart.splitting.criteria import EPSILON
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
    restart,
)
from cart.table.table import same_value

_PRESORT_SHARE = 1 / 8  # of the features that a node must look at for presorting to pay
_PRESORT_MAX = 2**25  # values of a table, for which presorted rows of a thread take 0.7 GB


class SortedScratch(NamedTuple):
    """The rows of the tree, and what a node is searched and divided with."""

    rows: NamedTuple  # PresortedRows or RowsSortedOnDemand
    samples: np.ndarray  # (n_rows,) uint32: in scikit-learn's order
    targets: np.ndarray  # (2 * n_rows,) float64: see `cart.fast_paths.regression.cut_score`
    is_left: np.ndarray  # (n_rows,) uint8
    screen: Screen
    lanes: Lanes


@inline_kernel
def _search(scratch, growth, table, node, limits):
    """Draw features and search them.

    Returns the best Cut, how many features are constant, and where the entries begin of the last
    that is not.
    """
    rows, screen, draw, drawn = scratch.rows, scratch.screen, growth.draw, growth.drawn
    searched = SearchedRows(
        rows.entries, scratch.targets, node.n, limits.min_samples_leaf - 1, node.weight, node.total
    )
    slack = slack_of(node.n, growth.y_max)
    screens = is_presorted(rows) and is_worth_screening(searched, slack, node.impurity)
    best = NO_CUT
    last = -1
    n_drawn = 0
    begin_screening(screen)
    drawing = begin_draw(draw, np.uint64(0), node.n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        column = table.columns[draw.features[j]]
        at, lowest, highest = load_feature(rows, table, column, n_drawn, node)
        if lowest < highest:
            last = at
        if same_value(table, column, lowest, highest):
            drawing = mark_constant(draw, drawing, j)
        else:
            drawn.feature[n_drawn] = draw.features[j]
            drawn.column[n_drawn] = column
            drawn.first[n_drawn] = at
            drawing = mark_searched(draw, drawing, j)
            if screens:
                screen_feature(screen, searched, drawn, n_drawn, slack, table)
            n_drawn += 1
            if not screens and n_drawn == N_LANES:
                best = _search_lanes(scratch.lanes, drawn, 0, n_drawn, searched, best, table)
                n_drawn = 0
        j, drawing = next_feature(draw, drawing, limits.max_features)
    if screens and is_certain(screen, slack):
        best = Cut(screen.best[0], screen.best[1], screen.best[2], 0.0)
    else:
        for k in range(0, n_drawn, N_LANES):
            end = min(k + N_LANES, n_drawn)
            best = _search_lanes(scratch.lanes, drawn, k, end, searched, best, table)
    return best, end_draw(draw, drawing), last


@inline_kernel
def _search_lanes(lanes, drawn, begin, end, searched, best, table):
    """Search the features drawn from `begin` to `end` (excluded) side by side."""
    for k in range(begin, end):
        lanes.column[k - begin] = drawn.column[k]
        lanes.first[k - begin] = drawn.first[k]
    score, lane, i = choose_mean_cut(lanes, end - begin, searched, best.score, table)
    if lane < 0:
        return best
    at = lanes.first[lane] + i
    left, right = (
        np.int64(code_at(searched.entries, at)),
        np.int64(code_at(searched.entries, at + 1)),
    )
    return Cut(drawn.feature[begin + lane], left, right, score)


@entry_kernel
def _grow_trees(table, growth, scratch, weights, y, seeds, limits, first_node):
    """Grow one tree per row of `weights`; tree t has the nodes from first_node[t] on."""
    samples, targets, is_left = scratch.samples, scratch.targets, scratch.is_left
    for t in range(weights.shape[0]):
        restart(growth.draw, seeds[t])
        n = 0
        for row in range(y.shape[0]):
            weight = weights[t, row]
            write_target(targets, row, weight, y[row])
            is_left[row] = weight > 0.0  # before there is a node: is it in bag?
            samples[n] = row
            n += weight > 0.0
        begin_tree(scratch.rows, table, samples, n, is_left)
        tree = begin_growth(growth, first_node[t], samples, targets, n)
        first_node[t + 1] = first_node[t] + _grow(tree, table, scratch, limits)


@inline_kernel
def _grow(growth, table, scratch, limits):
    """Grow one tree, whose root waits; return how many nodes it has."""
    small, sums, draw, rows = growth.small, growth.sums, growth.draw, scratch.rows
    samples, targets, is_left = scratch.samples, scratch.targets, scratch.is_left
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        node = node_at(growth, height)
        may_split = may_be_split(node.n, node.depth, node.impurity, limits)
        if may_split and node.n <= small.n_max:
            features = draw.features[node.n_constant :]
            if hand_to_small_node(rows, small, table, features, samples, targets, node):
                n_nodes = grow_small_subtree(growth, table, samples, height + 1, n_nodes, limits)
                continue
        this = n_nodes
        n_nodes += 1
        write_mean(growth.nodes, this, node.impurity, node.n, sums[height])
        if not may_split:
            continue
        cut, n_constant, last = _search(scratch, growth, table, node, limits)
        if cut.feature < 0:
            continue
        n_left = _divide_samples(scratch, growth.swap, table, node, cut, last)
        middle = node.start + n_left
        halves = add_up_children(samples, targets, node, middle, sums, height)
        decrease = decrease_of(node, halves, growth.total_weight)
        if decrease + EPSILON < limits.min_impurity_decrease:
            continue
        write_split(growth.nodes, this, cut, growth.cuts)
        if may_be_split(n_left, node.depth + 1, halves.left, limits) or may_be_split(
            node.n - n_left, node.depth + 1, halves.right, limits
        ):
            divide_rows(rows, table, draw.features[n_constant:], node, cut, n_left, is_left)
        height, n_nodes = place_children(
            growth, node, middle, halves, n_constant, height, n_nodes, limits
        )
    return n_nodes


@inline_kernel
def _divide_samples(scratch, swap, table, node, cut, last):
    """Divide the node's samples, from the order of the feature whose entries begin at `last`;
    return how many go left."""
    samples, is_left = scratch.samples, scratch.is_left
    entries = scratch.rows.entries[last : last + node.n]
    for i in range(node.n):
        samples[node.start + i] = row_at(entries, i)
    column = table.columns[cut.feature]
    n_left = mark_left(scratch.rows, table, column, cut.left_code, node, is_left)
    swap_across(samples, node.start, node.end, n_left, is_left, swap)
    return n_left


class SortedPath(MeanPath):
    """Grows regression trees by squared error on any columns, weights and targets."""

    _partial_max = SMALL_NODE_MAX // 2
    _grow_trees = staticmethod(_grow_trees)

    @classmethod
    def takes_narrow(cls, codes, plan):
        return False

    def _create_scratch(self):
        self._table = self._table.wide()  # compiled for one kind
        return super()._create_scratch()

    def _create_rows(self):
        n_rows, n_features = len(self._y), len(self._table.columns)
        looks_at_many = self._plan.limits.max_features >= _PRESORT_SHARE * n_features
        pays = looks_at_many and self._table.codes.size <= _PRESORT_MAX
        kind = PresortedRows if pays else RowsSortedOnDemand
        return SortedScratch(
            kind.create(self._table),
            np.empty(n_rows, np.uint32),
            np.empty(2 * n_rows),
            np.empty(n_rows, np.uint8),
            Screen.create(n_rows),
            Lanes.create(),
        )
