"""Grow the subtree of a small node by squared error, on the words of its rows.

Samples are kept in scikit-learn's order, as in large nodes, but as numbers within the small node:

    samples  [ 812 7 344 90 | ... ]   rows of the table
    samples  [   3 0   2  1 | ... ]   from here on, to the end of the subtree
"""

import numpy as np

from cart.fast_paths.base import MISSING_RIGHT, NO_CUT, NONE_MISSING, cut_between
from cart.fast_paths.regression.cut_score import (
    WEIGHT,
    halves_of,
    mean_score,
    slack_of,
    weight_at,
    y_at,
)
from cart.fast_paths.regression.node_sums import REST, TOTAL, swap_across
from cart.fast_paths.regression.small_nodes.cut import (
    best_small_node_cut,
    mark_small_node,
)
from cart.fast_paths.regression.small_nodes.missing import column_of_words, leave_in_order
from cart.fast_paths.regression.small_nodes.node import (
    code_of,
    draw_and_sort,
    is_bit,
    number_at,
)
from cart.fast_paths.regression.tree_growth import (
    add_up_split,
    children_with,
    node_at,
    place_children,
    split_node,
    write_mean,
)
from cart.growth.frontier import may_split
from cart.growth.loop import is_enough, left_child, right_child
from cart.jit.decorators import inline_kernel
from cart.splitting.feature_draw import begin_draw, end_draw, mark, next_feature
from cart.table.ranking import MISSING


@inline_kernel
def grow_small_subtree(growth, table, samples, height, n_nodes, limits):
    """Grow the subtree of the node on top of the stack.

    Parameters
    ----------
    growth : cart.fast_paths.regression.tree_growth.TreeGrowth
        Its `small` holds the words of the node's rows.
    table : Table
    samples : ndarray of int
        Those of the node are numbers of `small`, not rows of the table.
    height : int
        Of the stack, the node included.
    n_nodes : int
        Number of nodes grown so far.
    limits : Limits

    Returns
    -------
    n_nodes : int
        Number of nodes, the subtree included.
    """
    small, base = growth.small, height - 1
    while height > base:
        height -= 1
        node = node_at(growth, height)
        this = n_nodes
        n_nodes += 1
        write_mean(growth, this, node)
        if not may_split(node, limits):
            continue
        if node.n == 2:
            n_nodes = _split_two(growth, table, samples, node, this, limits)
            continue
        cut, n_constant, n_drawn = _search(growth, table, samples, node, limits)
        if cut.feature < 0:
            continue
        leave_in_order(small, samples, node, growth.drawn, n_drawn)
        n_left = mark_small_node(small, table, samples, node, cut)
        swap_across(samples, node.start, node.end, small.is_left, growth.swap)
        children = add_up_split(growth, samples, small.targets, node, node.start + n_left)
        if not is_enough(children.decrease, limits):
            continue
        split_node(growth, this, node, cut, children, limits)
        height, n_nodes = place_children(growth, node, children, n_constant, n_nodes, limits)
    return n_nodes


@inline_kernel
def _split_two(growth, table, samples, node, this, limits):
    """Split a node of two rows, just written as a leaf, into leaves; return the number of nodes.

    There are only two cuts to compare: either row may be on the left.
    """
    small, sums = growth.small, growth.sums
    one, other = np.int64(samples[node.start]), np.int64(samples[node.start + 1])
    first, one_left, other_left = _draw_for_two(growth, table, one, other, node, limits)
    if first < 0:
        return this + 1
    feature = first
    if one_left >= 0 and other_left >= 0:
        score = _score_of_one(small, one, node.weight, node.total)
        other_score = _score_of_one(small, other, node.weight, node.total)
        if first == one_left and other_score > score:
            feature = other_left
        elif first == other_left and score > other_score:
            feature = one_left
    if feature == other_left:
        one, other = other, one
    left_sums, middle = sums[node.row + 1], node.start + 1
    _sum_of_one(small, one, left_sums)
    _sum_of_one(small, other, sums[node.row])
    left = left_sums[WEIGHT], left_sums[TOTAL], 0.0, left_sums[REST]
    halves = halves_of(growth.criterion, samples, small.targets, node, middle, left)
    children = children_with(growth, node, middle, halves)
    if not is_enough(children.decrease, limits):
        return this + 1
    column = np.int64(table.columns[feature])
    one_code, other_code = code_of(small, table, one, column), code_of(small, table, other, column)
    missing = MISSING_RIGHT if other_code == MISSING else NONE_MISSING
    cut = cut_between(table, feature, one_code, other_code, 0.0, missing)
    split_node(growth, this, node, cut, children, limits)
    write_mean(growth, this + 1, left_child(node, children, node.n_constant))
    write_mean(growth, this + 2, right_child(node, children, node.n_constant))
    return this + 3


@inline_kernel
def _draw_for_two(growth, table, one, other, node, limits):
    """Draw features for a node of two rows.

    Returns the first feature that can part them, the first that has `one` on the left, and the
    first that has `other` on the left; -1 where there is none.
    """
    small, draw = growth.small, growth.draw
    first, one_left, other_left = np.int64(-1), np.int64(-1), np.int64(-1)
    drawing = begin_draw(draw, node.row, node.n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = np.int64(table.columns[feature])
        step = code_of(small, table, one, column) - code_of(small, table, other, column)
        drawing = mark(draw, drawing, j, step == 0)
        if step < 0 and one_left < 0:
            one_left = feature
        if step > 0 and other_left < 0:
            other_left = feature
        if step != 0 and first < 0:
            first = feature
        j, drawing = next_feature(draw, drawing, limits.max_features)
    end_draw(draw, drawing)
    return first, one_left, other_left


@inline_kernel
def _score_of_one(small, row, weight, total):
    left_sum = weight_at(small.targets, row) * y_at(small.targets, row)
    return mean_score(weight_at(small.targets, row), left_sum, weight, total)


@inline_kernel
def _sum_of_one(small, row, sums):
    weight, y = weight_at(small.targets, row), y_at(small.targets, row)
    sums[WEIGHT] = weight
    sums[TOTAL] = 0.0 + weight * y  # a sum from 0.0, so never -0.0
    sums[REST] = weight * y * y


@inline_kernel
def _search(growth, table, samples, node, limits):
    """Draw features and search them.

    Returns the best Cut, the number of constant features, and how many columns were searched.
    """
    small, drawn = growth.small, growth.drawn
    drawing, n_drawn = draw_and_sort(small, growth, table, samples, node, limits)
    best = NO_CUT
    if n_drawn > 0:
        slack, first = slack_of(node.n, growth.y_max), limits.min_samples_leaf - 1
        k, i = best_small_node_cut(small, samples, node, drawn, n_drawn, first, slack)
        if k >= 0:
            feature, along = drawn.feature[k], column_of_words(small, drawn.column[k])
            column, left, right = np.int64(table.columns[feature]), np.int64(0), np.int64(1)
            if not is_bit(small.bits, along):
                left = code_of(small, table, number_at(small, i, along), column)
                right = code_of(small, table, number_at(small, i + 1, along), column)
            best = cut_between(table, feature, left, right, 0.0, drawn.missing[k])
    return best, end_draw(growth.draw, drawing), n_drawn
