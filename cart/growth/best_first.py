"""Growth that is best first: the leaf whose split lessens the impurity most is split next.

That is how trees with a limited number of leaves are grown. The heap is that of libstdc++, as in
scikit-learn (`BestFirstTreeBuilder` in `_tree.pyx`), so that ties are resolved as there.
"""

from typing import NamedTuple

import numpy as np

from cart.growth.depth_first import (
    divide,
    is_enough,
    load,
    move_row,
    search,
    write_leaf,
    write_split,
)
from cart.growth.frontier import PendingNode, may_split, pending_at, push
from cart.jit.decorators import inline_kernel, kernel
from cart.tree.nodes import LEAF, UNDEFINED


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
    row: np.ndarray  # int64: of the stack
    middle: np.ndarray  # int64: the first sample that goes right; -1: the node stays a leaf
    left: np.ndarray  # float64: impurities of the children
    right: np.ndarray  # float64
    decrease: np.ndarray  # float64

    @classmethod
    def create(cls, capacity):
        integers = (np.empty(capacity, np.int64) for _ in range(3))
        return cls(*integers, *(np.empty(capacity) for _ in range(3)))


def room_for_leaves(n_samples, limits):
    """How many nodes a tree may have, and so, and one, how many rows of the stack."""
    n_nodes = max(1, 2 * n_samples - 1)
    return min(n_nodes, 2 * limits.max_leaf_nodes - 1) if limits.max_leaf_nodes > 0 else n_nodes


@inline_kernel
def grow_best_first(way, tree, nodes, candidates):
    """Grow one tree, whose root waits in row 0 of the stack; return how many nodes it has.

    The path writes to `tree`, of which `nodes` are the node arrays.
    """
    candidates.row[0] = 0
    first, n_nodes, height = 0, 1, 0
    n_splits_left = way.limits.max_leaf_nodes - 1
    while first < n_nodes or height > 0:
        for new in range(first, n_nodes):
            _enter(way, tree, nodes, candidates, new)
        for new in range(first, n_nodes):
            _push_heap(candidates, height, new)
            height += 1
        first = n_nodes
        height -= 1
        this = _pop_heap(candidates, height)
        if candidates.middle[this] < 0 or n_splits_left <= 0:
            _undo_split(nodes, this)
            continue
        n_splits_left -= 1
        _push_children(way, candidates, this, n_nodes)
        nodes.children_left[this], nodes.children_right[this] = n_nodes, n_nodes + 1
        n_nodes += 2
    return n_nodes


@kernel
def _enter(way, tree, nodes, candidates, this):
    """Write node `this` with the split that it would get."""
    node = load(way, pending_at(way.stack, candidates.row[this]))
    _undo_split(nodes, this)
    write_leaf(way, tree, this, node)
    candidates.middle[this] = -1
    candidates.decrease[this] = 0.0
    if not may_split(node, way.limits):
        return
    node, cut, _ = search(way, node)
    if cut.feature < 0:
        return
    children = divide(way, node, cut)
    if not is_enough(children.decrease, way.limits):
        return
    write_split(way, tree, this, node, cut, children)
    candidates.middle[this] = children.middle
    candidates.left[this] = children.left
    candidates.right[this] = children.right
    candidates.decrease[this] = children.decrease


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
def _undo_split(nodes, this):
    """Turn a node that was written as a split into a leaf, as far as scikit-learn does."""
    nodes.children_left[this] = LEAF
    nodes.children_right[this] = LEAF
    nodes.feature[this] = UNDEFINED
    nodes.threshold[this] = UNDEFINED


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
