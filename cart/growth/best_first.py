"""Growth that is best first: the leaf whose split lessens the impurity most is split next.

That is how trees with a limited number of leaves are grown. The heap is that of libstdc++, as in
scikit-learn (`BestFirstTreeBuilder` in `_tree.pyx`), so that ties are resolved as there.
"""

from typing import NamedTuple

import numpy as np

from cart.growth.depth_first import divide, is_enough, load, search
from cart.growth.frontier import PendingNode, may_split, pending_at, push, push_root
from cart.growth.node_step import begin_inheritance, inherit, make_split, write_node
from cart.jit.decorators import entry_kernel, kernel
from cart.tree.nodes import LEAF, UNDEFINED


class Candidates(NamedTuple):
    """The split that every node would get; rows are the numbers of nodes, as in the stack.

    `heap` is a max-heap of the leaves' numbers by `decrease`: a place is not below those two that
    it stands above.

                   heap[0]
              heap[1]   heap[2]
           [3]   [4]   [5]   [6]   ...
    """

    heap: np.ndarray  # int64
    middle: np.ndarray  # int64: the first sample that goes right; -1: the node stays a leaf
    left: np.ndarray  # float64: impurities of the children
    right: np.ndarray  # float64
    decrease: np.ndarray  # float64
    value: np.ndarray  # float64: between the values of the children

    @classmethod
    def create(cls, capacity):
        integers = (np.empty(capacity, np.int64) for _ in range(2))
        return cls(*integers, *(np.empty(capacity) for _ in range(4)))


@entry_kernel
def grow_best_first(way, nodes, candidates):
    """Grow one tree; return how many nodes it has."""
    begin_inheritance(way)
    push_root(way.stack, way.rows.samples.shape[0], 0.0)
    _enter(way, nodes, candidates, 0)
    _push_heap(candidates, 0, 0)
    height = 1
    n_nodes = 1
    n_splits_left = way.limits.max_leaf_nodes - 1
    while height > 0:
        height -= 1
        this = _pop_heap(candidates, height)
        if candidates.middle[this] < 0 or n_splits_left <= 0:
            _undo_split(nodes, this)
            continue
        n_splits_left -= 1
        _push_children(way, nodes, candidates, this, n_nodes)
        for child in range(n_nodes, n_nodes + 2):
            _enter(way, nodes, candidates, child)
        for child in range(n_nodes, n_nodes + 2):
            _push_heap(candidates, height, child)
            height += 1
        n_nodes += 2
    return n_nodes


@kernel
def _enter(way, nodes, candidates, this):
    """Write node `this` with the split that it would get."""
    node = load(way, pending_at(way.stack, this))
    write_node(way, nodes, this, node)
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
    make_split(way, nodes, this, node, cut, children.middle)
    candidates.middle[this] = children.middle
    candidates.left[this] = children.left
    candidates.right[this] = children.right
    candidates.decrease[this] = children.decrease
    candidates.value[this] = children.value


@kernel
def _push_children(way, nodes, candidates, this, left):
    """Make the nodes `left` and the next the children of node `this`."""
    right = left + 1
    nodes.children_left[this] = left
    nodes.children_right[this] = right
    inherit(way, this, this, nodes.feature[this], candidates.value[this], left, right)
    node, middle = pending_at(way.stack, this), candidates.middle[this]
    depth = node.depth + 1
    for child, start, end, impurity in (
        (left, node.start, middle, candidates.left[this]),
        (right, middle, node.end, candidates.right[this]),
    ):
        push(way.stack, PendingNode(child, start, end, 0, depth, 0, impurity, np.inf))


@kernel
def _undo_split(nodes, this):
    """Turn a node that was written as a split into a leaf, as far as scikit-learn does."""
    nodes.children_left[this] = LEAF
    nodes.children_right[this] = LEAF
    nodes.feature[this] = UNDEFINED
    nodes.threshold[this] = UNDEFINED


@kernel
def _push_heap(candidates, last, node):
    """Add a node to the heap [0, last) (std::push_heap)."""
    _rise(candidates.heap, candidates.decrease, last, node)


@kernel
def _rise(heap, decrease, hole, node):
    """Put a node into the hole of the heap, or above."""
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
    _rise(heap, decrease, hole, node)
    return best
