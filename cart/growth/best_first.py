"""Grow one tree best node first, where the number of leaves is limited.

The heap is that of libstdc++, as in scikit-learn (`BestFirstTreeBuilder` in `_tree.pyx`).
"""

import numpy as np

from cart.growth.frontier import push
from cart.growth.node_step import child_bounds, split_node, write_leaf, write_node
from cart.jit.decorators import entry_kernel, kernel
from cart.splitting.category_subsets import write_list
from cart.splitting.feature_draw import child_key, root_key
from cart.splitting.splitter import Bounds


@entry_kernel
def grow_best_first(
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
    push(frontier, row, start, end, depth, this, found.split.column < 0, 0, 0.0, bounds, key)
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
