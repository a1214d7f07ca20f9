"""Pending nodes: what the loop of growth has to know of a node, and the stack of waiting nodes."""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.splitting.criterion import EPSILON


class PendingNode(NamedTuple):
    """A node before it is grown: samples [start, end) in the order of the tree's samples."""

    row: int  # of the stack, and of the arrays in which a path keeps more about pending nodes
    start: int
    end: int
    tier: int  # which copy of the samples to read (see `cart.fast_paths.cache_copies`), or 0
    depth: int
    n_constant: int  # features known to be constant
    impurity: float
    weight: float  # infinite until the node is loaded


class NodeStack(NamedTuple):
    """The stack of pending nodes. The current node owns the row above them, but is not stored.

    pending [ a b ]      current  c     c is split into l and r; r waits in the row of c
    pending [ a b r ]    current  l     l is a leaf, or is grown with all below it
    pending [ a b ]      current  r
    """

    start: np.ndarray  # int64: as in PendingNode
    end: np.ndarray  # int64
    tier: np.ndarray  # int64
    depth: np.ndarray  # int64
    n_constant: np.ndarray  # int64
    impurity: np.ndarray  # float64

    @classmethod
    def create(cls, capacity):
        return cls(*(np.empty(capacity, np.int64) for _ in range(5)), np.empty(capacity))


@inline_kernel
def push(stack, node):
    """Write a pending node to its row of the stack."""
    stack.start[node.row] = node.start
    stack.end[node.row] = node.end
    stack.tier[node.row] = node.tier
    stack.depth[node.row] = node.depth
    stack.n_constant[node.row] = node.n_constant
    stack.impurity[node.row] = node.impurity


@inline_kernel
def pending_at(stack, row):
    """The pending node in a row of the stack."""
    return PendingNode(
        row, stack.start[row], stack.end[row], stack.tier[row], stack.depth[row],
        stack.n_constant[row], stack.impurity[row], np.inf,
    )  # fmt: skip


@inline_kernel
def push_root(stack, n, impurity):
    """Push the root, which has n samples."""
    zero = np.int64(0)
    push(stack, PendingNode(zero, zero, np.int64(n), zero, zero, zero, impurity, np.inf))


@inline_kernel
def with_weight(node, weight, impurity):
    """Return the node with its weight and impurity, which are known once it is loaded."""
    return PendingNode(
        node.row, node.start, node.end, node.tier, node.depth, node.n_constant, impurity, weight
    )


@inline_kernel
def moved(node, start, end, tier):
    """Return the node with its samples at another place."""
    return PendingNode(
        node.row, start, end, tier, node.depth, node.n_constant, node.impurity, node.weight
    )


@inline_kernel
def may_split(node, limits):
    """Whether its impurity and the limits allow a node to be split."""
    n = node.end - node.start
    return not (
        node.depth >= limits.max_depth
        or n < limits.min_samples_split
        or n < 2 * limits.min_samples_leaf
        or node.weight < 2 * limits.min_weight_leaf
        or node.impurity <= EPSILON  # false for nan, which overflow of squared targets leaves
    )
