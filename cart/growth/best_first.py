"""The order that is best first: the leaf whose split lessens the impurity most is split next.

That is how trees with a limited number of leaves are grown. The heap is that of libstdc++, as in
scikit-learn (`BestFirstTreeBuilder` in `_tree.pyx`), so that ties are resolved as there.
"""

from typing import NamedTuple

import numpy as np

from cart.growth.frontier import PendingNode, pending_at, push
from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.tree.nodes import LEAF, UNDEFINED, Nodes


class Candidates(NamedTuple):
    """The split that every node would get, by numbers of nodes.

    `heap` is a max-heap of the leaves' numbers by `decrease`: a place is not below those two that
    it stands above.

                   heap[0]
              heap[1]   heap[2]
           [3]   [4]   [5]   [6]   ...

    A leaf has two rows of the stack, from an even one on: its own, which its right child would
    take, and the next, in which a path leaves what it keeps of the left one.
    """

    heap: np.ndarray  # int64
    height: np.ndarray  # (1,) int64: how many are in the heap
    child: np.ndarray  # int64: number of the left child, before the right one; 0 of a leaf
    row: np.ndarray  # int64: of the stack
    middle: np.ndarray  # int64: the first sample that goes right; -1: the node stays a leaf
    left: np.ndarray  # float64: impurities of the children
    right: np.ndarray  # float64
    decrease: np.ndarray  # float64

    @classmethod
    def create(cls, capacity):
        child, row, middle = (np.empty(capacity, np.int64) for _ in range(3))
        sizes = (np.empty(capacity) for _ in range(3))
        return cls(np.empty(capacity, np.int64), np.zeros(1, np.int64), child, row, middle, *sizes)


def room_for_leaves(n_samples, limits):
    """How many nodes a tree may have, and so, and one, how many rows of the stack."""
    n_nodes = max(1, 2 * n_samples - 1)
    return min(n_nodes, 2 * limits.max_leaf_nodes - 1) if limits.max_leaf_nodes > 0 else n_nodes


@dispatch
def move_row(way, row, to):
    """Move what the path keeps of a pending node to another row."""


@inline_kernel
def note(candidates, this, row):
    """Note a node, which waits in that row of the stack, as one that stays a leaf."""
    candidates.row[this], candidates.child[this] = row, 0
    candidates.middle[this], candidates.decrease[this] = -1, 0.0


@inline_kernel
def note_split(candidates, this, children):
    """Note what the split of a node would make of it."""
    candidates.middle[this] = children.middle
    candidates.left[this] = children.left
    candidates.right[this] = children.right
    candidates.decrease[this] = children.decrease


@kernel
def next_best(way, candidates, this, n_nodes):
    """The node to be noted after `this`, or -1 where the tree is grown; and how many there are.

    When both children of a split are noted, the best leaf is split.
    """
    if this + 1 < n_nodes:
        return this + 1, n_nodes
    height = np.int64(0) if this == 0 else candidates.height[0]
    for new in range(max(0, n_nodes - 2), n_nodes):
        _push_heap(candidates, height, new)
        height += 1
    is_full = n_nodes >= 2 * way.limits.max_leaf_nodes - 1
    while height > 0 and not is_full:
        height -= 1
        best = _pop_heap(candidates, height)
        if candidates.middle[best] >= 0:
            _push_children(way, candidates, best, n_nodes)
            candidates.child[best], candidates.height[0] = n_nodes, height
            return n_nodes, n_nodes + 2
    return np.int64(-1), n_nodes


def finished(candidates, n_nodes, *grown):
    """The nodes of a tree: what was not split is a leaf, as far as it is one in scikit-learn.

    Parameters
    ----------
    candidates : Candidates
    n_nodes : int
    *grown : ndarrays of shape (at least n_nodes, ...)
        From `feature` on, as in Nodes.

    Returns
    -------
    Nodes
        On the memory of `grown`, children excepted.
    """
    child = candidates.child[:n_nodes]
    is_leaf = child == 0
    left, right = (np.where(is_leaf, LEAF, child + k).astype(np.int32) for k in (0, 1))
    nodes = Nodes(left, right, *(array[:n_nodes] for array in grown))
    nodes.feature[is_leaf], nodes.threshold[is_leaf] = UNDEFINED, UNDEFINED
    return nodes


@kernel
def _push_children(way, candidates, this, left):
    """Make the nodes `left` and the next, of which the tree has so many, wait as children."""
    node, middle = pending_at(way.stack, candidates.row[this]), candidates.middle[this]
    row, depth, zero = np.int64(left + 1), node.depth + 1, np.int64(0)  # a leaf more: the next pair
    candidates.row[left], candidates.row[left + 1] = row, node.row
    move_row(way, node.row + 1, row)
    for at, start, end, impurity in (
        (row, node.start, middle, candidates.left[this]),
        (node.row, middle, node.end, candidates.right[this]),
    ):
        push(way.stack, PendingNode(at, start, end, zero, depth, zero, impurity, np.inf))


@kernel
def _push_heap(candidates, hole, node):
    """Put a node into the hole of the heap, or above; behind the last one it is added
    (std::push_heap)."""
    heap, decrease = candidates.heap, candidates.decrease
    above = (hole - 1) // 2
    while hole > 0 and decrease[heap[above]] < decrease[node]:
        heap[hole] = heap[above]
        hole = above
        above = (hole - 1) // 2
    heap[hole] = node


@kernel
def _pop_heap(candidates, last):
    """Take the best node out of the heap [0, last] (std::pop_heap)."""
    heap, decrease = candidates.heap, candidates.decrease
    best, node = heap[0], heap[last]
    if last == 0:
        return best
    hole = 0
    child = 0
    while child < (last - 1) // 2:
        child = 2 * (child + 1)
        if decrease[heap[child]] < decrease[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if last % 2 == 0 and child == (last - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    _push_heap(candidates, hole, node)
    return best
