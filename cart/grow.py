"""Grow one tree: depth first, or best node first when the number of leaves is limited.

Node numbering, the order of the random draws and the priority queue are scikit-learn's
(`DepthFirstTreeBuilder`, `BestFirstTreeBuilder` in `_tree.pyx`; the heap is that of libstdc++).
"""

from typing import NamedTuple

import numpy as np

from cart import criteria
from cart.draw import Draw
from cart.jit import entry_kernel, kernel
from cart.nodes import LEAF, UNDEFINED, Nodes
from cart.split import (
    NO_SPLIT,
    Node,
    best_split,
    copy_records,
    cut_at,
    load_node,
    partition,
)
from cart.tree import Tree

# A node is pure up to rounding when its impurity is no more; the same slack is given to
# `min_impurity_decrease` (EPSILON in scikit-learn's `_tree.pyx`).
EPSILON = np.finfo(np.float64).eps


class Frontier(NamedTuple):
    """Nodes that wait to be grown: a stack, or a heap by `improvement`. One row per node."""

    start: np.ndarray  # int64: first of the node's samples
    end: np.ndarray  # int64: behind the last
    middle: np.ndarray  # int64: first that goes right (best first)
    depth: np.ndarray  # int64
    parent: np.ndarray  # int64: depth first: the parent; best first: the node itself
    side: np.ndarray  # int64: 1 is the left child; best first: 1 is a leaf
    n_constant: np.ndarray  # int64: features known to be constant
    impurity: np.ndarray  # float64
    impurity_left: np.ndarray  # float64 (best first)
    impurity_right: np.ndarray  # float64 (best first)
    improvement: np.ndarray  # float64 (best first)

    @classmethod
    def create(cls, capacity):
        integers = (np.empty(capacity, np.int64) for _ in range(7))
        return cls(*integers, *(np.empty(capacity) for _ in range(4)))


class Workspace(NamedTuple):
    """Everything a thread writes to while it grows trees, one after another."""

    nodes: Nodes
    node: Node
    draw: Draw
    frontier: Frontier
    criterion: tuple


def create_workspace(plan, n_samples, n_features):
    """Room for trees on up to `n_samples` in-bag rows."""
    limits = plan.limits
    n_nodes = max(1, 2 * n_samples - 1)
    if limits.max_leaf_nodes > 0:
        n_nodes = min(n_nodes, 2 * limits.max_leaf_nodes - 1)
    if limits.max_depth < 30:
        n_nodes = min(n_nodes, 2 ** (limits.max_depth + 1) - 1)
    return Workspace(
        Nodes.create(n_nodes, plan.n_outputs, plan.n_values),
        Node.create(n_samples, plan.n_outputs),
        Draw.create(n_features),
        Frontier.create(n_nodes + 3),
        plan.criterion.create(plan.n_outputs, plan.n_values),
    )


def grow_tree(table, records, plan, seed, workspace=None):
    """Grow one tree.

    Parameters
    ----------
    table : Table
    records : ndarray of shape (n_samples, 1 + n_outputs), float64, C order
        Weight and targets (class codes or numbers) of every row; weight 0 is out of the tree.
    plan : Plan
    seed : int
        Start of the feature draw's random stream, in [0, 2**31 - 1).
    workspace : Workspace, optional
        From `create_workspace`, for at least as many rows as have a weight.

    Returns
    -------
    Tree
    """
    weight = np.ascontiguousarray(records[:, 0])
    samples = np.flatnonzero(weight)
    if workspace is None:
        workspace = create_workspace(plan, len(samples), len(table.columns))
    workspace.draw.restart(seed)
    follow = sums_depend_on_order(plan, weight)
    grow = _grow_depth_first if plan.limits.max_leaf_nodes < 0 else _grow_best_first
    limits = plan.limits._replace(min_weight_leaf=plan.min_weight_fraction_leaf * weight.sum())
    n_nodes = grow(*workspace, table, records, samples, limits, follow)
    nodes = Nodes(*(array[:n_nodes].copy() for array in workspace.nodes))
    return Tree(nodes, len(table.columns))


def sums_depend_on_order(plan, weight):
    """Whether rounding can enter the sums: never for class counts of whole weights."""
    if plan.criterion not in criteria.CLASSIFICATION.values():
        return True
    return bool((weight != np.floor(weight)).any())


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
def write_node(nodes, i, table, split, impurity, n, n_left, criterion):
    """Write node i: a split, or a leaf where `split` found nothing."""
    nodes.children_left[i] = LEAF
    nodes.children_right[i] = LEAF
    nodes.feature[i] = UNDEFINED
    nodes.threshold[i] = UNDEFINED
    nodes.missing_go_to_left[i] = 0
    if split.column >= 0:
        first = table.level_start[split.column]
        low = np.float64(table.levels[first + split.left_code])
        high = np.float64(table.levels[first + split.right_code])
        nodes.feature[i] = split.feature
        nodes.threshold[i] = low / 2.0 + high / 2.0
        nodes.missing_go_to_left[i] = n_left > n - n_left
    nodes.impurity[i] = impurity
    nodes.n_node_samples[i] = n
    nodes.weighted_n_node_samples[i] = criterion.weight[0]
    criteria.write_value(criterion, nodes.value[i])


@kernel
def examine_node(
    criterion, node, draw, table, records, samples, start, n, depth, impurity, n_constant,
    limits, follow, total_weight,
):  # fmt: skip
    """Load a node, search its best split and bring its samples into the order left | right.

    `impurity` is what the parent found, or infinite for the root. Returns the split (column -1
    for a leaf), its number of samples on the left, the node's impurity, those of the children,
    the weighted impurity decrease and the number of features known to be constant.
    """
    load_node(criterion, node, records, samples, start, n)
    if impurity == np.inf:
        impurity = criteria.impurity(criterion)
    split = NO_SPLIT
    n_left, left, right, improvement = 0, impurity, impurity, 0.0
    if may_split(n, criterion.weight[0], depth, impurity, limits):
        split, n_constant = best_split(
            criterion, node, draw, table, samples, start, n, limits, n_constant, follow
        )
        if split.column >= 0:
            n_left = partition(table, split, node, samples, start, n, follow)
            copy_records(node, records, samples, start, n)
            cut_at(criterion, node, n, n_left)
            left, right = criteria.children_impurity(criterion, node.records, n_left)
            weight = criterion.weight[0]
            weight_left = criterion.weight[1]
            weight_right = weight - weight_left
            improvement = (weight / total_weight) * (
                impurity - (weight_right / weight * right) - (weight_left / weight * left)
            )
            if improvement + EPSILON < limits.min_impurity_decrease:
                split = NO_SPLIT
                improvement = 0.0
    return split, n_left, impurity, left, right, improvement, n_constant


@entry_kernel
def _grow_depth_first(
    nodes, node, draw, frontier, criterion, table, records, samples, limits, follow
):
    total_weight = _sum_of_weights(records)
    frontier.start[0] = 0
    frontier.end[0] = samples.shape[0]
    frontier.depth[0] = 0
    frontier.parent[0] = -1
    frontier.side[0] = 0
    frontier.impurity[0] = np.inf
    frontier.n_constant[0] = 0
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        start = frontier.start[height]
        end = frontier.end[height]
        depth = frontier.depth[height]
        parent = frontier.parent[height]
        n = end - start
        split, n_left, impurity, left, right, _, n_constant = examine_node(
            criterion, node, draw, table, records, samples, start, n, depth,
            frontier.impurity[height], frontier.n_constant[height], limits, follow, total_weight,
        )  # fmt: skip
        this = n_nodes
        n_nodes += 1
        if parent >= 0:
            if frontier.side[height] == 1:
                nodes.children_left[parent] = this
            else:
                nodes.children_right[parent] = this
        write_node(nodes, this, table, split, impurity, n, n_left, criterion)
        if split.column >= 0:
            for side in range(2):  # the left child on top: it is grown next
                frontier.start[height] = start if side == 1 else start + n_left
                frontier.end[height] = start + n_left if side == 1 else end
                frontier.depth[height] = depth + 1
                frontier.parent[height] = this
                frontier.side[height] = side
                frontier.impurity[height] = left if side == 1 else right
                frontier.n_constant[height] = n_constant
                height += 1
    return n_nodes


@entry_kernel
def _grow_best_first(
    nodes, node, draw, frontier, criterion, table, records, samples, limits, follow
):
    total_weight = _sum_of_weights(records)
    n_nodes = 0
    height = 0  # frontier rows [0, height) are the heap; row `height` holds the node at hand
    n_splits_left = limits.max_leaf_nodes - 1
    _enter(
        nodes, node, draw, frontier, criterion, table, records, samples, limits, follow,
        total_weight, 0, samples.shape[0], 0, np.inf, n_nodes, height,
    )  # fmt: skip
    n_nodes += 1
    height += 1
    while height > 0:
        height -= 1
        _heap_pop(frontier, height)
        this = frontier.parent[height]
        if frontier.side[height] == 1 or n_splits_left <= 0:
            nodes.children_left[this] = LEAF
            nodes.children_right[this] = LEAF
            nodes.feature[this] = UNDEFINED
            nodes.threshold[this] = UNDEFINED
            nodes.missing_go_to_left[this] = 0
            continue
        n_splits_left -= 1
        start = frontier.start[height]
        middle = frontier.middle[height]
        end = frontier.end[height]
        depth = frontier.depth[height] + 1
        impurity_left = frontier.impurity_left[height]
        impurity_right = frontier.impurity_right[height]
        nodes.children_left[this] = n_nodes
        nodes.children_right[this] = n_nodes + 1
        _enter(
            nodes, node, draw, frontier, criterion, table, records, samples, limits, follow,
            total_weight, start, middle, depth, impurity_left, n_nodes, height,
        )  # fmt: skip
        _enter(
            nodes, node, draw, frontier, criterion, table, records, samples, limits, follow,
            total_weight, middle, end, depth, impurity_right, n_nodes + 1, height + 1,
        )  # fmt: skip
        _heap_push(frontier, height)
        _heap_push(frontier, height + 1)
        n_nodes += 2
        height += 2
    return n_nodes


@kernel
def _enter(
    nodes, node, draw, frontier, criterion, table, records, samples, limits, follow,
    total_weight, start, end, depth, impurity, this, row,
):  # fmt: skip
    """Write node `this` with the split it would get, and its frontier record into `row`."""
    n = end - start
    split, n_left, impurity, left, right, improvement, _ = examine_node(
        criterion, node, draw, table, records, samples, start, n, depth, impurity, 0,
        limits, follow, total_weight,
    )  # fmt: skip
    write_node(nodes, this, table, split, impurity, n, n_left, criterion)
    frontier.start[row] = start
    frontier.end[row] = end
    frontier.middle[row] = start + n_left
    frontier.depth[row] = depth
    frontier.parent[row] = this
    frontier.side[row] = split.column < 0
    frontier.impurity_left[row] = left
    frontier.impurity_right[row] = right
    frontier.improvement[row] = improvement


@kernel
def _move_record(frontier, source, target):
    frontier.start[target] = frontier.start[source]
    frontier.end[target] = frontier.end[source]
    frontier.middle[target] = frontier.middle[source]
    frontier.depth[target] = frontier.depth[source]
    frontier.parent[target] = frontier.parent[source]
    frontier.side[target] = frontier.side[source]
    frontier.impurity_left[target] = frontier.impurity_left[source]
    frontier.impurity_right[target] = frontier.impurity_right[source]
    frontier.improvement[target] = frontier.improvement[source]


@kernel
def _heap_push(frontier, last):
    """Let the record in row `last` rise to its place in the heap [0, last] (std::push_heap)."""
    spare = frontier.start.shape[0] - 1
    _move_record(frontier, last, spare)
    _rise(frontier, last, 0, spare)


@kernel
def _rise(frontier, hole, top, record):
    above = (hole - 1) // 2
    while hole > top and frontier.improvement[above] < frontier.improvement[record]:
        _move_record(frontier, above, hole)
        hole = above
        above = (hole - 1) // 2
    _move_record(frontier, record, hole)


@kernel
def _heap_pop(frontier, last):
    """Move the best record of the heap [0, last] into row `last` (std::pop_heap)."""
    if last == 0:
        return
    spare = frontier.start.shape[0] - 1
    _move_record(frontier, last, spare)
    _move_record(frontier, 0, last)
    hole = 0
    child = 0
    while child < (last - 1) // 2:
        child = 2 * (child + 1)
        if frontier.improvement[child] < frontier.improvement[child - 1]:
            child -= 1
        _move_record(frontier, child, hole)
        hole = child
    if last % 2 == 0 and child == (last - 2) // 2:
        child = 2 * (child + 1)
        _move_record(frontier, child - 1, hole)
        hole = child - 1
    _rise(frontier, hole, 0, spare)


@kernel
def _sum_of_weights(records):
    total = 0.0
    for i in range(records.shape[0]):
        total += records[i, 0]
    return total
