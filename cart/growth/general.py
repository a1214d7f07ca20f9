"""Grow one tree: depth first, or best node first when the number of leaves is limited.

Node numbering, the order of the random draws and the priority queue are scikit-learn's
(`DepthFirstTreeBuilder`, `BestFirstTreeBuilder` in `_tree.pyx`; the heap is that of libstdc++).
"""

import math
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.splitting import criteria
from cart.splitting.category_subsets import write_list
from cart.splitting.criteria import EPSILON
from cart.splitting.feature_draw import Draw, KeyedDraw, child_key, root_key
from cart.splitting.splitter import (
    NO_SPLIT,
    Bounds,
    SearchContext,
    Split,
    best_split,
    cut_at,
    divide,
)
from cart.table.node_samples import NodeSamples, load_node
from cart.tree.compact import compress_if_large
from cart.tree.nodes import LEAF, UNDEFINED, Nodes
from cart.tree.pruning import prune
from cart.tree.tree import Tree


class Frontier(NamedTuple):
    """Nodes that wait to be grown: a stack, or a heap by `improvement`. One row per node."""

    start: np.ndarray  # int64: first of the node's samples
    end: np.ndarray  # int64: behind the last
    end_left: np.ndarray  # int64: first that goes right (best first)
    depth: np.ndarray  # int64
    parent: np.ndarray  # int64: depth first: the parent; best first: the node itself
    side: np.ndarray  # int64: 1 is the left child; best first: 1 is a leaf
    n_constant: np.ndarray  # int64: features known to be constant
    impurity: np.ndarray  # float64
    lower: np.ndarray  # float64: bounds of the prediction, see Bounds
    upper: np.ndarray  # float64
    impurity_left: np.ndarray  # float64 (best first, like the rest)
    impurity_right: np.ndarray  # float64
    middle: np.ndarray  # float64: between the values of the children
    direction: np.ndarray  # float64: of the split's monotonic constraint
    improvement: np.ndarray  # float64
    key: np.ndarray  # uint64: of the node's draws

    @classmethod
    def create(cls, capacity):
        integers = (np.empty(capacity, np.int64) for _ in range(7))
        floats = (np.empty(capacity) for _ in range(8))
        return cls(*integers, *floats, np.empty(capacity, np.uint64))


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


class Workspace(NamedTuple):
    """Everything a thread writes to while it grows trees, one after another."""

    nodes: Nodes
    node: NodeSamples
    draw: Draw | KeyedDraw
    frontier: Frontier
    criterion: tuple
    table: tuple


def create_workspace(plan, n_samples, n_rows, table):
    """Room for trees on up to `n_samples` in-bag rows of the `n_rows` of a table."""
    limits = plan.limits
    n_nodes = max(1, 2 * n_samples - 1)
    if limits.max_leaf_nodes > 0:
        n_nodes = min(n_nodes, 2 * limits.max_leaf_nodes - 1)
    if limits.max_depth < 30:
        n_nodes = min(n_nodes, 2 ** (limits.max_depth + 1) - 1)
    return Workspace(
        Nodes.create(n_nodes, plan.n_outputs, plan.n_values),
        NodeSamples.create(n_samples, plan.n_outputs),
        _create_draw(plan, len(table.columns)),
        Frontier.create(n_nodes + 3),
        plan.criterion.create(plan.n_outputs, plan.n_values, n_samples),
        table.with_room(n_samples, n_rows, n_nodes, plan.n_outputs, plan.n_values),
    )


def _create_draw(plan, n_features):
    if plan.feature_keys is None:
        return Draw.create(n_features)
    return KeyedDraw.create(plan.feature_keys)


def make_records(codes, weight):
    """Weight and targets of every row side by side, as the kernels take them.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_outputs) or (n_samples,), float64
    weight : ndarray of shape (n_samples,) or scalar

    Returns
    -------
    ndarray of shape (n_samples, 1 + n_outputs), float64
    """
    codes = codes.reshape(len(codes), -1)
    records = np.empty((len(codes), 1 + codes.shape[1]))
    records[:, 0] = weight
    records[:, 1:] = codes
    return records


def grow_tree(table, records, plan, seed, workspace=None):
    """Grow one tree, and prune it.

    Parameters
    ----------
    table : Table
    records : ndarray of shape (n_samples, 1 + n_outputs), float64, C order
        Weight and targets (class codes or numbers) of every row; weight 0 is out of the tree.
    plan : Plan
    seed : int
        Of the draws, in [0, 2**31 - 1).
    workspace : Workspace, optional
        From `create_workspace`, for at least as many rows as have a weight.

    Returns
    -------
    Tree
    """
    weight = np.ascontiguousarray(records[:, 0])
    samples = np.flatnonzero(weight).astype(np.uint64)
    if workspace is None:
        workspace = create_workspace(plan, len(samples), len(records), table)
    workspace.draw.restart(seed)
    workspace.table.begin_tree(samples.astype(np.int64))
    keep_order = sums_depend_on_order(plan, weight)
    if not keep_order:
        distinct_records, kinds = number_distinct_records(records, plan.n_values)
        samples |= kinds[samples] << np.uint64(32)
        workspace = workspace._replace(node=workspace.node._replace(records=distinct_records))
    grow = _grow_depth_first if plan.limits.max_leaf_nodes < 0 else _grow_best_first
    total_weight = weight.sum()
    limits = plan.limits._replace(min_weight_leaf=plan.min_weight_fraction_leaf * total_weight)
    n_nodes = grow(plan.splitter, *workspace, records, samples, limits, keep_order, total_weight)
    nodes = Nodes(*(array[:n_nodes] for array in workspace.nodes))
    tree = Tree(compress_if_large(nodes), len(table.columns), workspace.table.end_tree(nodes))
    return prune(tree, plan.ccp_alpha) if plan.ccp_alpha > 0.0 else tree


def sums_depend_on_order(plan, weight):
    """Whether rounding can enter the sums: never for class counts of whole weights."""
    if plan.criterion not in criteria.CLASSIFICATION.values():
        return True
    return bool((weight != np.floor(weight)).any())


def number_distinct_records(records, n_values):
    """Number the kinds of samples that differ in weight or class.

    Parameters
    ----------
    records : ndarray of shape (n_samples, 1 + n_outputs), float64
        Whole numbers: weight and class codes.
    n_values : int
        Codes are smaller.

    Returns
    -------
    distinct_records : ndarray of shape (n_kinds, 1 + n_outputs), float64
        `records` itself, every sample its own kind, where the kinds would be no fewer.
    kinds : ndarray of shape (n_samples,), uint64
    """
    n_samples, width = records.shape
    shape = (int(records[:, 0].max()) + 1,) + (n_values,) * (width - 1)
    if math.prod(shape) >= n_samples:
        return records, np.arange(n_samples, dtype=np.uint64)
    kinds = records[:, 0]
    for k in range(1, width):
        kinds = kinds * n_values + records[:, k]
    distinct_records = np.indices(shape).reshape(width, -1).T.astype(np.float64, order="C")
    return distinct_records, kinds.astype(np.uint64)


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
        context = SearchContext(splitter, criterion, node, draw, table, limits, bounds, keep_order)
        split, last_feature, n_constant = best_split(context, samples, start, n, key, n_constant)
        if split.column >= 0:
            n_left = divide(context, split, last_feature, samples, start, n)
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


# ------------------------------------------------------------------------------ depth first


@kernel
def _push(
    frontier, height, start, end, depth, parent, side, n_constant, impurity, bounds, key
):  # fmt: skip
    frontier.start[height] = start
    frontier.end[height] = end
    frontier.depth[height] = depth
    frontier.parent[height] = parent
    frontier.side[height] = side
    frontier.n_constant[height] = n_constant
    frontier.impurity[height] = impurity
    frontier.lower[height] = bounds.lower
    frontier.upper[height] = bounds.upper
    frontier.key[height] = key
    return height + 1


@entry_kernel
def _grow_depth_first(
    splitter, nodes, node, draw, frontier, criterion, table, records, samples, limits, keep_order,
    total_weight,
):  # fmt: skip
    no_bounds = Bounds(-np.inf, np.inf)
    root = root_key(draw)
    height = _push(frontier, 0, 0, samples.shape[0], 0, -1, 0, 0, 0.0, no_bounds, root)
    n_nodes = 0
    while height > 0:
        height -= 1
        start = frontier.start[height]
        end = frontier.end[height]
        depth = frontier.depth[height]
        parent = frontier.parent[height]
        bounds = Bounds(frontier.lower[height], frontier.upper[height])
        key = frontier.key[height]
        n = end - start
        found = split_node(
            splitter, criterion, node, draw, key, table, records, samples, start, n, depth,
            frontier.impurity[height], frontier.n_constant[height], limits, bounds, keep_order,
            total_weight,
        )  # fmt: skip
        this = n_nodes
        n_nodes += 1
        if parent >= 0:
            if frontier.side[height] == 1:
                nodes.children_left[parent] = this
            else:
                nodes.children_right[parent] = this
        write_node(nodes, this, found, n, criterion, limits, bounds)
        write_list(table, node, this, found.split.column)
        if found.split.column >= 0:
            direction = limits.monotonic[found.split.feature]
            middle = start + found.n_left
            height = _push(
                frontier, height, middle, end, depth + 1, this, 0, found.n_constant,
                found.impurity_right, child_bounds(bounds, direction, found.middle, False),
                child_key(draw, key, False),
            )  # fmt: skip
            height = _push(  # the left child on top: it is grown next
                frontier, height, start, middle, depth + 1, this, 1, found.n_constant,
                found.impurity_left, child_bounds(bounds, direction, found.middle, True),
                child_key(draw, key, True),
            )  # fmt: skip
    return n_nodes


# ------------------------------------------------------------------------------- best first


@entry_kernel
def _grow_best_first(
    splitter, nodes, node, draw, frontier, criterion, table, records, samples, limits, keep_order,
    total_weight,
):  # fmt: skip
    n_nodes = 0
    height = 0  # frontier rows [0, height) are the heap; row `height` holds the node at hand
    n_splits_left = limits.max_leaf_nodes - 1
    _enter(
        splitter, nodes, node, draw, frontier, criterion, table, records, samples, limits,
        keep_order, total_weight, 0, samples.shape[0], 0, 0.0, Bounds(-np.inf, np.inf),
        root_key(draw), n_nodes, height,
    )  # fmt: skip
    n_nodes += 1
    height += 1
    while height > 0:
        height -= 1
        _heap_pop(frontier, height)
        this = frontier.parent[height]
        if frontier.side[height] == 1 or n_splits_left <= 0:
            write_leaf(nodes, this)
            continue
        n_splits_left -= 1
        start = frontier.start[height]
        end_left = frontier.end_left[height]
        end = frontier.end[height]
        depth = frontier.depth[height] + 1
        impurity_left = frontier.impurity_left[height]
        impurity_right = frontier.impurity_right[height]
        bounds = Bounds(frontier.lower[height], frontier.upper[height])
        key = frontier.key[height]
        direction = frontier.direction[height]
        middle = frontier.middle[height]
        nodes.children_left[this] = n_nodes
        nodes.children_right[this] = n_nodes + 1
        _enter(
            splitter, nodes, node, draw, frontier, criterion, table, records, samples, limits,
            keep_order, total_weight, start, end_left, depth, impurity_left,
            child_bounds(bounds, direction, middle, True), child_key(draw, key, True),
            n_nodes, height,
        )  # fmt: skip
        _enter(
            splitter, nodes, node, draw, frontier, criterion, table, records, samples, limits,
            keep_order, total_weight, end_left, end, depth, impurity_right,
            child_bounds(bounds, direction, middle, False), child_key(draw, key, False),
            n_nodes + 1, height + 1,
        )  # fmt: skip
        _heap_push(frontier, height)
        _heap_push(frontier, height + 1)
        n_nodes += 2
        height += 2
    return n_nodes


@kernel
def _enter(
    splitter, nodes, node, draw, frontier, criterion, table, records, samples, limits, keep_order,
    total_weight, start, end, depth, impurity, bounds, key, this, row,
):  # fmt: skip
    """Write node `this` with the split it would get, and its frontier record into `row`."""
    n = end - start
    found = split_node(
        splitter, criterion, node, draw, key, table, records, samples, start, n, depth, impurity, 0,
        limits, bounds, keep_order, total_weight,
    )  # fmt: skip
    write_node(nodes, this, found, n, criterion, limits, bounds)
    write_list(table, node, this, found.split.column)
    _push(frontier, row, start, end, depth, this, found.split.column < 0, 0, 0.0, bounds, key)
    frontier.end_left[row] = start + found.n_left
    frontier.impurity_left[row] = found.impurity_left
    frontier.impurity_right[row] = found.impurity_right
    frontier.middle[row] = found.middle
    frontier.direction[row] = 0
    if found.split.column >= 0:
        frontier.direction[row] = limits.monotonic[found.split.feature]
    frontier.improvement[row] = found.improvement


@kernel
def _move_record(frontier, source, target):
    frontier.start[target] = frontier.start[source]
    frontier.end[target] = frontier.end[source]
    frontier.end_left[target] = frontier.end_left[source]
    frontier.depth[target] = frontier.depth[source]
    frontier.parent[target] = frontier.parent[source]
    frontier.side[target] = frontier.side[source]
    frontier.lower[target] = frontier.lower[source]
    frontier.upper[target] = frontier.upper[source]
    frontier.impurity_left[target] = frontier.impurity_left[source]
    frontier.impurity_right[target] = frontier.impurity_right[source]
    frontier.middle[target] = frontier.middle[source]
    frontier.direction[target] = frontier.direction[source]
    frontier.improvement[target] = frontier.improvement[source]
    frontier.key[target] = frontier.key[source]


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
