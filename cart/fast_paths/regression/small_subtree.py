"""Grow the subtree of a small node by squared error, on the rows of `small_node`.

The rows have their numbers and words when this begins. Samples are kept in scikit-learn's order, as
in large nodes.
"""

import numpy as np

from cart.fast_paths.base import NO_CUT, Cut, may_be_split, write_split
from cart.fast_paths.regression.cut_score import WEIGHT, mean_score, weight_at, y_at
from cart.fast_paths.regression.node_sums import (
    SQUARES,
    TOTAL,
    add_up_children,
    decrease_of,
    impurity_of,
    place_children,
    swap_across,
    write_mean,
)
from cart.fast_paths.regression.screening import slack_of
from cart.fast_paths.regression.small_node import read_code
from cart.fast_paths.regression.small_node_cut import (
    best_small_node_cut,
    mark_small_node,
    number_at,
    rank_at,
    sort_small_node,
)
from cart.jit.decorators import inline_kernel
from cart.splitting.criteria import EPSILON
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
)


@inline_kernel
def grow_small_subtree(
    small, table, nodes, draw, drawn, swap, stack, sums, cuts, samples, height, n_nodes,
    total_weight, farthest, limits,
):  # fmt: skip
    """Grow the subtree of the node that waits on top of the stack; return how many nodes there are.

    Parameters
    ----------
    few : cart.fast_paths.regression.small_node.SmallNode
        With the words of the node's rows.
    table : Table
    nodes : cart.tree.nodes.Grown
    draw : Draw
    drawn : cart.fast_paths.regression.node_sums.Drawn
    exchange : cart.fast_paths.regression.node_sums.SwapScratch
    waiting : cart.fast_paths.base.NodeStack
    sums : ndarray of shape (n_waiting, 3), float64
        Weight, sum and squares of the nodes that wait.
    cuts : ndarray of uint64
        See `cart.fast_paths.base.write_split`.
    samples : ndarray of int
        The node's have numbers of `small` for rows.
    height : int
        Of the stack.
    n_nodes : int
        That are grown already.
    total_weight, farthest : float
        Of the tree; and how far from 0 its targets are at most.
    limits : Limits
    """
    base = height - 1
    targets, is_left = small.targets, small.is_left
    while height > base:
        height -= 1
        start, end, depth = stack.start[height], stack.end[height], stack.depth[height]
        impurity = stack.impurity[height]
        weight, total = sums[height, WEIGHT], sums[height, TOTAL]
        n = end - start
        this = n_nodes
        n_nodes += 1
        write_mean(nodes, this, impurity, n, sums[height])
        if not may_be_split(n, depth, impurity, limits):
            continue
        if n == 2:
            n_nodes = _split_two(
                small, table, nodes, draw, samples, start, stack.n_constant[height], this, impurity,
                cuts, sums, height, total_weight, limits,
            )  # fmt: skip
            continue
        cut, n_constant, last = _search(
            small, table, draw, drawn, samples, start, n, stack.n_constant[height], weight, total,
            slack_of(n, farthest), limits,
        )  # fmt: skip
        if cut.feature < 0:
            continue
        for i in range(n):
            samples[start + i] = number_at(small, i, last)
        n_left = mark_small_node(small, table.columns[cut.feature], cut.left_code, n)
        swap_across(samples, start, end, n_left, is_left, swap)
        middle = start + n_left
        left, right, left_weight = add_up_children(
            samples, targets, start, middle, end, sums[height], sums[height + 1], sums[height]
        )
        decrease = decrease_of(weight, left_weight, impurity, left, right, total_weight)
        if decrease + EPSILON < limits.min_impurity_decrease:
            continue
        write_split(nodes, this, cut, cuts)
        height, n_nodes = place_children(
            nodes, stack, sums, height, n_nodes, start, middle, end, 0, depth + 1,
            n_constant, left, right, limits,
        )  # fmt: skip
    return n_nodes


@inline_kernel
def _split_two(
    small, table, nodes, draw, samples, start, n_constant, this, impurity, cuts, sums, height,
    total_weight, limits,
):  # fmt: skip
    """Split a node of two rows, just written, into leaves; return how many nodes there are.

    There are two cuts only: either row may be on the left.
    """
    one, other = np.int64(samples[start]), np.int64(samples[start + 1])
    one_left = np.int64(-1)  # the first feature to have the one on the left
    other_left = np.int64(-1)
    first = np.int64(-1)
    drawing = begin_draw(draw, np.uint64(0), n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = np.int64(table.columns[feature])
        step = read_code(small, one, column) - read_code(small, other, column)
        if step == 0:
            drawing = mark_constant(draw, drawing, j)
        else:
            drawing = mark_searched(draw, drawing, j)
            if step < 0 and one_left < 0:
                one_left = feature
            if step > 0 and other_left < 0:
                other_left = feature
            if first < 0:
                first = feature
        j, drawing = next_feature(draw, drawing, limits.max_features)
    end_draw(draw, drawing)
    if first < 0:
        return this + 1
    weight, total, squares = sums[height, WEIGHT], sums[height, TOTAL], sums[height, SQUARES]
    feature = first
    if one_left >= 0 and other_left >= 0:
        score = _score_of_one(small, one, weight, total)
        other_score = _score_of_one(small, other, weight, total)
        if first == one_left and other_score > score:
            feature = other_left
        elif first == other_left and score > other_score:
            feature = one_left
    if feature == other_left:
        one, other = other, one
    left_sums, right_sums = sums[height + 1], sums[height]
    _sum_of_one(small, one, left_sums)
    _sum_of_one(small, other, right_sums)
    left_weight, left_sum, left_squares = left_sums[WEIGHT], left_sums[TOTAL], left_sums[SQUARES]
    left = impurity_of(left_weight, left_sum, left_squares)
    right = impurity_of(weight - left_weight, total - left_sum, squares - left_squares)
    decrease = decrease_of(weight, left_weight, impurity, left, right, total_weight)
    if decrease + EPSILON < limits.min_impurity_decrease:
        return this + 1
    column = np.int64(table.columns[feature])
    cut = Cut(feature, read_code(small, one, column), read_code(small, other, column), 0.0)
    write_split(nodes, this, cut, cuts)
    write_mean(nodes, this + 1, left, 1, left_sums)
    write_mean(nodes, this + 2, right, 1, right_sums)
    return this + 3


@inline_kernel
def _score_of_one(small, row, weight, total):
    left_sum = weight_at(small.targets, row) * y_at(small.targets, row)
    return mean_score(weight_at(small.targets, row), left_sum, weight, total)


@inline_kernel
def _sum_of_one(small, row, sums):
    weight, y = weight_at(small.targets, row), y_at(small.targets, row)
    sums[WEIGHT] = weight
    sums[TOTAL] = 0.0 + weight * y  # a sum: never -0.0
    sums[SQUARES] = weight * y * y


@inline_kernel
def _search(small, table, draw, drawn, samples, start, n, n_constant, weight, total, slack, limits):
    """Draw features and search them.

    Returns the best Cut, how many features are constant, and the column of the last that is not.
    """
    sort_small_node(small, samples, start, n)
    last = np.int64(-1)
    n_drawn = 0
    drawing = begin_draw(draw, np.uint64(0), n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = np.int64(table.columns[feature])
        if rank_at(small, 0, column) == rank_at(small, n - 1, column):
            drawing = mark_constant(draw, drawing, j)
        else:
            drawing = mark_searched(draw, drawing, j)
            drawn.feature[n_drawn] = feature
            drawn.column[n_drawn] = column
            n_drawn += 1
            last = column
        j, drawing = next_feature(draw, drawing, limits.max_features)
    best = NO_CUT
    if n_drawn > 0:
        k, i = best_small_node_cut(
            small, drawn.column, n_drawn, n, limits.min_samples_leaf - 1, weight, total, slack
        )
        if k >= 0:
            column = drawn.column[k]
            left = read_code(small, number_at(small, i, column), column)
            right = read_code(small, number_at(small, i + 1, column), column)
            best = Cut(drawn.feature[k], left, right, 0.0)
    return best, end_draw(draw, drawing), last
