"""One node of a tree: search its best split, divide its samples, write it."""

from typing import NamedTuple

from cart.jit.decorators import inline_kernel, kernel
from cart.splitting import criteria
from cart.splitting.criteria import EPSILON
from cart.splitting.splitter import NO_SPLIT, Bounds, Split, best_split, cut_at, divide
from cart.table.node_samples import load_node
from cart.tree.nodes import LEAF, UNDEFINED


class SplitOutcome(NamedTuple):
    """What came of examining a node."""

    split: Split  # column -1: the node is a leaf
    n_left: int
    impurity: float
    impurity_left: float
    impurity_right: float
    middle: float  # between the values of the children
    improvement: float  # weighted impurity decrease
    n_constant: int  # features known to be constant


@kernel
def may_split(n, weight, depth, impurity, limits):
    return not (
        depth >= limits.max_depth
        or n < limits.min_samples_split
        or n < 2 * limits.min_samples_leaf
        or weight < 2 * limits.min_weight_leaf
        or impurity <= EPSILON
    )


@kernel
def write_node(nodes, i, found, n, criterion, limits, bounds):
    """Write node i: a split, or a leaf where none was found."""
    split = found.split
    nodes.children_left[i] = LEAF
    nodes.children_right[i] = LEAF
    nodes.feature[i] = UNDEFINED
    nodes.threshold[i] = UNDEFINED
    nodes.missing_go_to_left[i] = 0
    if split.column >= 0:
        nodes.feature[i] = split.feature
        nodes.threshold[i] = split.threshold
        # Where none was missing in training, missing values follow the majority.
        majority_left = found.n_left > n - found.n_left
        nodes.missing_go_to_left[i] = split.missing_left if split.has_missing else majority_left
    nodes.impurity[i] = found.impurity
    nodes.n_node_samples[i] = n
    nodes.weighted_n_node_samples[i] = criterion.weight[0]
    value = nodes.value[i]
    criteria.write_value(criterion, value)
    if limits.is_monotonic:
        value[0, 0] = min(max(value[0, 0], bounds.lower), bounds.upper)
        if value.shape[1] == 2:
            value[0, 1] = 1.0 - value[0, 0]


@kernel
def write_leaf(nodes, i):
    """Turn a node that was written as a split into a leaf, as far as scikit-learn does."""
    nodes.children_left[i] = LEAF
    nodes.children_right[i] = LEAF
    nodes.feature[i] = UNDEFINED
    nodes.threshold[i] = UNDEFINED


@inline_kernel
def split_node(
    splitter, criterion, node, draw, key, table, records, samples, start, n, depth, impurity,
    n_constant, limits, bounds, keep_order, total_weight,
):  # fmt: skip
    """Load a node, search its best split and bring its samples into the order left | right.

    `impurity` is what the parent found, or infinite for the root.
    """
    load_node(node, records, samples, start, n, keep_order)
    criteria.load(criterion, node.records, node.keys, n, keep_order)
    if depth == 0:
        impurity = criteria.impurity(criterion, node.records, node.keys, n)
    split = NO_SPLIT
    n_left, left, right, middle, improvement = 0, impurity, impurity, 0.0, 0.0
    weight = criterion.weight[0]
    if may_split(n, weight, depth, impurity, limits):
        split, last_feature, n_constant = best_split(
            splitter, criterion, node, draw, key, table, samples, start, n, limits, bounds,
            n_constant, keep_order,
        )  # fmt: skip
        if split.column >= 0:
            n_left = divide(
                splitter, table, split, last_feature, node, samples, start, n, keep_order
            )
            side = cut_at(criterion, node, n_left, n)
            left, right = criteria.children_impurity(
                criterion, side, node.records, node.keys, n_left, n
            )
            value_left, value_right = criteria.side_values(criterion, side)
            middle = value_left / 2.0 + value_right / 2.0
            weight_right = weight - side.weight
            improvement = (weight / total_weight) * (
                impurity - (weight_right / weight * right) - (side.weight / weight * left)
            )
            if improvement + EPSILON < limits.min_impurity_decrease:
                split = NO_SPLIT
                improvement = 0.0
    return SplitOutcome(split, n_left, impurity, left, right, middle, improvement, n_constant)


@inline_kernel
def child_bounds(bounds, direction, middle, is_left):
    """Bounds of a child of a split on a feature with that monotonic constraint."""
    if direction == 0:
        return bounds
    if (direction > 0) == is_left:
        return Bounds(bounds.lower, middle)
    return Bounds(middle, bounds.upper)
