"""The loop that grows a tree, for all paths, depth first and best first.

A path is given by a `way`: a NamedTuple of the buffers that it works on, `stack` and `limits` among
them, with the methods of the protocol below. What a path keeps about pending nodes (class counts,
sums) is in arrays that have the rows of the stack. `tree` is what it writes nodes to.
"""

from typing import NamedTuple

import numpy as np

from cart.growth.best_first import next_best, note, note_split
from cart.growth.frontier import PendingNode, may_split, pending_at, push
from cart.jit.decorators import dispatch, inline_kernel
from cart.splitting.criterion import EPSILON


class Children(NamedTuple):
    """The result of dividing a node at a cut."""

    middle: int  # the first sample that goes right
    left: float  # impurity of the left child
    right: float  # impurity of the right child
    decrease: float  # weighted impurity decrease
    value: float  # halfway between their predictions, where this bounds the nodes below


class FoundCut(NamedTuple):
    """The result of a search."""

    feature: int  # -1 if there is no cut
    cut: tuple  # as the path keeps it
    last: int | tuple  # the feature in whose order the samples are, or where these are listed


# ---------------------------------------------------------------------------- the protocol


@dispatch
def load(way, node):
    """Load a pending node; return it with its weight, and its impurity if that was unknown."""


@dispatch
def write_leaf(way, tree, this, node):
    """Write node number `this` as a leaf."""


@dispatch
def search(way, node):
    """Search the best cut; return the node, the cut, and how many features are constant.

    The search may move the node's samples to another place, which the caches hold; the node that is
    returned has the new place. The cut is a FoundCut, or another tuple with a `feature`.
    """


@dispatch
def divide(way, node, cut):
    """Divide the node's samples left | right; return the Children.

    What the path keeps about them goes to row `node.row` for the right child, and to the next row
    for the left child.
    """


@dispatch
def write_split(way, tree, this, node, cut, children):
    """Turn the leaf `this` into a split, and write what its children inherit."""


# -------------------------------------------------------------------------------- the loop


@inline_kernel
def grow(way, tree, candidates):
    """Grow the root, which waits in row 0 of the stack, and all below it.

    If the number of leaves is limited, growth is best first: the next node comes from `candidates`,
    not from the top of the stack. Returns how many nodes the tree has.
    """
    is_best_first = way.limits.max_leaf_nodes > 0
    this, n_nodes = np.int64(0), np.int64(1)
    node = pending_at(way.stack, 0)
    while True:
        node = load(way, node)
        write_leaf(way, tree, this, node)
        if is_best_first:
            note(candidates, this, node.row)
        if may_split(node, way.limits):
            node, cut, n_constant = search(way, node)
            if cut.feature >= 0:
                children = divide(way, node, cut)
                if is_enough(children.decrease, way.limits):
                    write_split(way, tree, this, node, cut, children)
                    if not is_best_first:
                        push(way.stack, right_child(node, children, n_constant))
                        node = left_child(node, children, n_constant)
                        this, n_nodes = n_nodes, n_nodes + 1
                        continue
                    note_split(candidates, this, children)
        if is_best_first:
            this, n_nodes = next_best(way, candidates, this, n_nodes)
            if this < 0:
                return n_nodes
            node = pending_at(way.stack, candidates.row[this])
        elif node.row > 0:
            node = pending_at(way.stack, node.row - 1)
            this, n_nodes = n_nodes, n_nodes + 1
        else:
            return n_nodes


@inline_kernel
def decrease_of(node, left, right, left_weight, total):
    """The weighted impurity decrease of a split, from the impurities of the children, the weight of
    the left one, and that of the tree."""
    right_weight = node.weight - left_weight
    return (node.weight / total) * (
        node.impurity - (right_weight / node.weight * right) - (left_weight / node.weight * left)
    )


@inline_kernel
def is_enough(decrease, limits):
    """Whether a split decreases the impurity enough."""
    return not decrease + EPSILON < limits.min_impurity_decrease


@inline_kernel
def left_child(node, children, n_constant):
    """The left child of a split, in the row above its parent's."""
    return PendingNode(
        node.row + 1, node.start, children.middle, node.tier, node.depth + 1, n_constant,
        children.left, np.inf,
    )  # fmt: skip


@inline_kernel
def right_child(node, children, n_constant):
    """The right child of a split, in its parent's row."""
    return PendingNode(
        node.row, children.middle, node.end, node.tier, node.depth + 1, n_constant,
        children.right, np.inf,
    )  # fmt: skip
