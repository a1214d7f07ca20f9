"""Pending nodes: what a loop of growth has to know of a node, and the stack of those that wait."""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.splitting.criteria import EPSILON


class PendingNode(NamedTuple):
    """A node before it is grown: samples [start, end) in the order of the tree's samples."""

    row: int  # of the stack; what a path keeps of pending nodes beside it has the same rows
    start: int
    end: int
    tier: int  # which copy of the samples has them (see `cart.fast_paths.cache_copies`), or 0
    depth: int
    n_constant: int  # features known to be constant
    impurity: float
    weight: float  # infinite until the node is loaded


class NodeStack(NamedTuple):
    """The stack of pending nodes. The node at hand has the row above them, and is not written.

    pending [ a b ]      at hand  c     which is split into l and r: r waits in the row of c
    pending [ a b r ]    at hand  l     which is a leaf, or is grown with all below it
    pending [ a b ]      at hand  r
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
    """Begin with the root, which has n samples."""
    zero = np.int64(0)
    push(stack, PendingNode(zero, zero, np.int64(n), zero, zero, zero, impurity, np.inf))


@inline_kernel
def with_weight(node, weight, impurity):
    """The node, loaded."""
    return PendingNode(
        node.row, node.start, node.end, node.tier, node.depth, node.n_constant, impurity, weight
    )


@inline_kernel
def moved(node, start, end, tier):
    """The node, whose samples are at another place."""
    return PendingNode(
        node.row, start, end, tier, node.depth, node.n_constant, node.impurity, node.weight
    )


@inline_kernel
def may_split(node, limits):
    """Do the limits, and its impurity, let a node be split?"""
    n = node.end - node.start
    return not (
        node.depth >= limits.max_depth
        or n < limits.min_samples_split
        or n < 2 * limits.min_samples_leaf
        or node.weight < 2 * limits.min_weight_leaf
        or node.impurity <= EPSILON  # not where it is nan: squares of targets overflow
    )
