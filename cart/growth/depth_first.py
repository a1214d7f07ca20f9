"""Grow one tree depth first."""

import numpy as np

from cart.growth.frontier import push
from cart.growth.node_step import child_bounds, split_node, write_node
from cart.jit.decorators import entry_kernel
from cart.splitting.category_subsets import write_list
from cart.splitting.feature_draw import child_key, root_key
from cart.splitting.splitter import Bounds


@entry_kernel
def grow_depth_first(
    splitter, nodes, node, draw, frontier, criterion, table, records, samples, limits, keep_order,
    total_weight,
):  # fmt: skip
    no_bounds = Bounds(-np.inf, np.inf)
    root = root_key(draw)
    height = push(frontier, 0, 0, samples.shape[0], 0, -1, 0, 0, 0.0, no_bounds, root)
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
            height = push(
                frontier, height, middle, end, depth + 1, this, 0, found.n_constant,
                found.impurity_right, child_bounds(bounds, direction, found.middle, False),
                child_key(draw, key, False),
            )  # fmt: skip
            height = push(  # the left child on top: it is grown next
                frontier, height, start, middle, depth + 1, this, 1, found.n_constant,
                found.impurity_left, child_bounds(bounds, direction, found.middle, True),
                child_key(draw, key, True),
            )  # fmt: skip
    return n_nodes
