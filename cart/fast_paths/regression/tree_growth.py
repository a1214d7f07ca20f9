"""A regression tree that is grown by squared error: its pending nodes and what it is written to.

A pending node has its rows and impurity in the stack, and its sums beside them:

    height       0              1
    stack   [ start end ... | start end ... ]      the top is grown next
    sums    [ W   S   Q     | W   S   Q     ]      weight, sum and squares of w, w y, w y**2
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import FastPath, NodeStack, may_be_split, push, write_leaf
from cart.fast_paths.regression.cut_score import WEIGHT
from cart.fast_paths.regression.node_sums import (
    SQUARES,
    TOTAL,
    SwapScratch,
    add_up_node,
    impurity_of,
)
from cart.fast_paths.regression.small_node import SmallNode, small_node_max
from cart.jit.decorators import inline_kernel
from cart.primitives.float_order import are_whole
from cart.splitting.criteria import SquaredError
from cart.splitting.feature_draw import Draw
from cart.tree.nodes import Grown, from_node
from cart.tree.recompute import SUMS, SUMS_MAX, WEIGHTS


class DrawnFeatures(NamedTuple):
    """The features of the node at hand that are to be searched, in the order of the draw."""

    feature: np.ndarray  # (n_features,) int64
    column: np.ndarray  # (n_features,) int64: of the table
    first: np.ndarray  # (n_features,) int64: where its entries begin

    @classmethod
    def create(cls, n_features):
        return cls(*np.empty((3, n_features), np.int64))


class TreeGrowth(NamedTuple):
    """A tree, or several one behind the other, and what all regression paths grow it with."""

    nodes: Grown
    cuts: np.ndarray  # (n_nodes,) uint64: see `cart.fast_paths.base.write_split`
    draw: Draw
    stack: NodeStack
    sums: np.ndarray  # (n_rows + 2, 3) float64: of pending nodes
    drawn: DrawnFeatures
    swap: SwapScratch
    small: SmallNode
    total_weight: float
    y_max: float  # the largest size of a target


class Node(NamedTuple):
    """A pending node, taken from the stack."""

    start: int
    end: int
    n: int
    tier: int
    depth: int
    n_constant: int
    impurity: float
    weight: float
    total: float


@inline_kernel
def begin_growth(growth, first_node, samples, targets, n):
    """The growth of a tree on samples[:n], whose nodes begin with `first_node`; its root waits."""
    stack, sums = growth.stack, growth.sums
    add_up_node(samples, targets, 0, n, sums[0])
    total_weight = sums[0, WEIGHT]
    push(stack, 0, 0, n, 0, 0, 0, impurity_of(total_weight, sums[0, TOTAL], sums[0, SQUARES]))
    return TreeGrowth(
        from_node(growth.nodes, first_node),
        growth.cuts[first_node:],
        growth.draw,
        stack,
        sums,
        growth.drawn,
        growth.swap,
        growth.small,
        total_weight,
        growth.y_max,
    )


@inline_kernel
def node_at(growth, height):
    """The pending node at that height of the stack."""
    stack, sums = growth.stack, growth.sums
    start, end = stack.start[height], stack.end[height]
    return Node(
        start,
        end,
        end - start,
        stack.tier[height],
        stack.depth[height],
        stack.n_constant[height],
        stack.impurity[height],
        sums[height, WEIGHT],
        sums[height, TOTAL],
    )


@inline_kernel
def write_mean(nodes, this, impurity, n, sums):
    """Write node `this` as a leaf, its mean included."""
    write_leaf(nodes, this, impurity, n, sums[WEIGHT])
    nodes.value[this, 0, 0] = sums[TOTAL] / sums[WEIGHT]


@inline_kernel
def place_children(growth, node, middle, halves, n_constant, height, n_nodes, limits):
    """Write the children of a split that are leaves, where their turn has come; the others wait.

    The left child has its sums in sums[height + 1], the right one in sums[height].
    Returns how many nodes wait and how many are written.
    """
    nodes, stack, sums = growth.nodes, growth.stack, growth.sums
    start, end, tier, depth = node.start, node.end, node.tier, node.depth + 1
    if may_be_split(middle - start, depth, halves.left, limits):
        push(stack, height, middle, end, tier, depth, n_constant, halves.right)
        push(stack, height + 1, start, middle, tier, depth, n_constant, halves.left)
        return height + 2, n_nodes
    write_mean(nodes, n_nodes, halves.left, middle - start, sums[height + 1])
    if may_be_split(end - middle, depth, halves.right, limits):
        push(stack, height, middle, end, tier, depth, n_constant, halves.right)
        return height + 1, n_nodes + 1
    write_mean(nodes, n_nodes + 1, halves.right, end - middle, sums[height])
    return height, n_nodes + 2


@inline_kernel
def decrease_of(node, halves, total_weight):
    """How much a split lessens the impurity of the whole tree."""
    left_weight, right_weight = halves.left_weight, node.weight - halves.left_weight
    return (node.weight / total_weight) * (
        node.impurity
        - (right_weight / node.weight * halves.right)
        - (left_weight / node.weight * halves.left)
    )


class MeanPath(FastPath):
    """Base class of the paths that grow regression trees by squared error."""

    criteria = (SquaredError,)
    _partial_max = 0  # rows of a small node, at most, where nodes look at some of the features

    def _flags(self, weights, is_whole):
        flags = super()._flags(weights, is_whole)
        heaviest, y_max = weights.sum(axis=1).max(), np.abs(self._y).max()
        is_exact = flags & WEIGHTS and heaviest * y_max**2 < SUMS_MAX
        return flags | SUMS if is_exact and are_whole(self._y) else flags

    def _create_scratch(self):
        n_features, n_rows = len(self._table.columns), len(self._y)
        n_max = small_node_max(self._plan.limits.max_features, n_features, self._partial_max)
        return (
            np.empty((n_rows + 2, 3)),
            DrawnFeatures.create(n_features),
            SwapScratch.create(n_rows),
            SmallNode.create(n_rows, len(self._table.codes), n_features, n_max),
            self._create_rows(),
        )

    def _grow(self, weights, seeds, first_node):
        *scratch, rows = self._scratch
        growth = TreeGrowth(self._nodes, self._cuts, *scratch, 0.0, np.abs(self._y).max())
        self._grow_trees(
            self._table, growth, rows, weights, self._y, seeds, self._plan.limits, first_node
        )
