"""Best-first growth: the leaf whose split decreases the impurity most is split next.

Trees with a limited number of leaves are grown in this order. The heap works like that of
libstdc++, which scikit-learn uses (`BestFirstTreeBuilder` in `_tree.pyx`), so that ties are
resolved as there.
"""

from typing import NamedTuple

import numpy as np

from cart.growth.frontier import PendingNode, pending_at, push
from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.tree.nodes import LEAF, UNDEFINED, Nodes


class Candidates(NamedTuple):
    """The split that each node would get; arrays other than `heap` are indexed by node number.

    `heap` is a max-heap of the numbers of leaves by `decrease`: no leaf has a smaller decrease than
    the two below it.

                   heap[0]
              heap[1]   heap[2]
           [3]   [4]   [5]   [6]   ...

    A leaf has two rows of the stack, the first of them even: its own, which its right child would
    take, and the next, where the path puts what it keeps of the left child.
    """

    heap: np.ndarray  # int64
    height: np.ndarray  # (1,) int64: how many leaves are in the heap
    child: np.ndarray  # int64: number of the left child (the right one is next); 0 in a leaf
    row: np.ndarray  # int64: the node's row of the stack
    middle: np.ndarray  # int64: the first sample that goes right; -1: the node stays a leaf
    left: np.ndarray  # float64: impurities of the children
    right: np.ndarray  # float64
    decrease: np.ndarray  # float64

    @classmethod
    def create(cls, capacity):
        child, row, middle = (np.empty(capacity, np.int64) for _ in range(3))
        sizes = (np.empty(capacity) for _ in range(3))
        return cls(np.empty(capacity, np.int64), np.zeros(1, np.int64), child, row, middle, *sizes)


def most_nodes(n_samples, limits):
    """How many nodes a tree may have; the stack of pending nodes needs one more row."""
    n_nodes = max(1, 2 * n_samples - 1)
    return min(n_nodes, 2 * limits.max_leaf_nodes - 1) if limits.max_leaf_nodes > 0 else n_nodes


@dispatch
def move_row(way, row, to):
    """Move what the path keeps of a pending node to another row."""


@inline_kernel
def note(candidates, this, row):
    """Record a node, which waits in a row of the stack, as one that stays a leaf."""
    candidates.row[this], candidates.child[this] = row, 0
    candidates.middle[this], candidates.decrease[this] = -1, 0.0


@inline_kernel
def note_split(candidates, this, children):
    """Record the split that a node would get."""
    candidates.middle[this] = children.middle
    candidates.left[this] = children.left
    candidates.right[this] = children.right
    candidates.decrease[this] = children.decrease


@kernel
def next_best(way, candidates, this, n_nodes):
    """Return the node to load after `this`, or -1 if the tree is grown, and the number of nodes.

    Once both children of a split are recorded, the best leaf is split.
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
    """Return the nodes of a tree, in which nodes that were not split become leaves.

    As in scikit-learn, these get no children, feature and threshold, but keep the
    `missing_go_to_left` of the split that they would have got.

    Parameters
    ----------
    candidates : Candidates
    n_nodes : int
    *grown : ndarrays of shape (at least n_nodes, ...)
        The fields of Nodes from `feature` on.

    Returns
    -------
    Nodes
        In the memory of `grown`, except for the children.
    """
    child = candidates.child[:n_nodes]
    is_leaf = child == 0
    left, right = (np.where(is_leaf, LEAF, child + k).astype(np.int32) for k in (0, 1))
    nodes = Nodes(left, right, *(array[:n_nodes] for array in grown))
    nodes.feature[is_leaf], nodes.threshold[is_leaf] = UNDEFINED, UNDEFINED
    return nodes


@kernel
def _push_children(way, candidates, this, left):
    """Push the children of node `this`, numbers `left` and `left` + 1."""
    node, middle = pending_at(way.stack, candidates.row[this]), candidates.middle[this]
    row, depth, zero = np.int64(left + 1), node.depth + 1, np.int64(0)  # the next free pair of rows
    candidates.row[left], candidates.row[left + 1] = row, node.row
    move_row(way, node.row + 1, row)
    for at, start, end, impurity in (
        (row, node.start, middle, candidates.left[this]),
        (node.row, middle, node.end, candidates.right[this]),
    ):
        push(way.stack, PendingNode(at, start, end, zero, depth, zero, impurity, np.inf))


@kernel
def _push_heap(candidates, hole, node):
    """Move a node up from `hole`, the free place of the heap, to its own place (std::push_heap)."""
    heap, decrease = candidates.heap, candidates.decrease
    above = (hole - 1) // 2
    while hole > 0 and decrease[heap[above]] < decrease[node]:
        heap[hole] = heap[above]
        hole = above
        above = (hole - 1) // 2
    heap[hole] = node


@kernel
def _pop_heap(candidates, last):
    """Remove the best node from the heap [0, last] and return it (std::pop_heap)."""
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
