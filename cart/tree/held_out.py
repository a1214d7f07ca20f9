"""The risk of all nested subtrees of a tree at once, on rows that it was not grown on.

A row reaches a leaf of the whole tree. Pruned at alpha the tree ends higher up, at the highest node
above the leaf that has collapsed by then (see `cart.tree.pruning.collapse_alphas`):

    alpha       0    .1   .2   .5        the row climbs as alpha rises, and is judged
    row is at   leaf leaf  4    0        wherever it stands
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.tree.nodes import LEAF

CLASSES, SQUARES, ABSOLUTE = range(3)  # what a row loses: see `_loss`


class Rows(NamedTuple):
    """Rows to be judged."""

    leaf: np.ndarray  # (n_rows,) int64: where each ends
    truth: np.ndarray  # (n_rows,) float64: its class, or number
    weight: np.ndarray  # (n_rows,) float64
    factor: np.ndarray  # (n_rows,) float64: of what it loses


class Pruned(NamedTuple):
    """What the rows meet."""

    parent: np.ndarray  # (n_nodes,) int64; -1 of the root
    collapse: np.ndarray  # (n_nodes,) float64: alphas
    answer: np.ndarray  # (n_nodes,) float64: the class that a node predicts, or the number
    loss: np.ndarray  # (n_classes, n_classes) float64: of truth and answer; CLASSES only
    kind: int  # of losses


def parents_of(tree):
    """Number of each node's parent, (node_count,) int64; -1 of the root."""
    parent = np.full(tree.node_count, -1)
    split = np.flatnonzero(tree.children_left != LEAF)
    parent[tree.children_left[split]] = split
    parent[tree.children_right[split]] = split
    return parent


@inline_kernel
def _loss(pruned, truth, node):
    answer = pruned.answer[node]
    if pruned.kind == CLASSES:
        return pruned.loss[int(truth), int(answer)]
    if pruned.kind == SQUARES:
        return (truth - answer) * (truth - answer)
    return abs(truth - answer)


@entry_kernel
def add_risks(rows, pruned, alphas, sums):
    """Add what the rows lose at each alpha, and its square.

    Parameters
    ----------
    rows : Rows
    pruned : Pruned
    alphas : ndarray of shape (n_alphas,), float64
        Descending.
    sums : ndarray of shape (2, n_alphas), float64
        Added to.
    """
    for i in range(rows.leaf.shape[0]):
        node = rows.leaf[i]
        weight = rows.weight[i]
        lost = rows.factor[i] * _loss(pruned, rows.truth[i], node)
        for a in range(alphas.shape[0] - 1, -1, -1):
            above = pruned.parent[node]
            if above >= 0 and pruned.collapse[above] <= alphas[a]:
                while above >= 0 and pruned.collapse[above] <= alphas[a]:
                    node = above
                    above = pruned.parent[node]
                lost = rows.factor[i] * _loss(pruned, rows.truth[i], node)
            sums[0, a] += weight * lost
            sums[1, a] += weight * lost * lost
