"""The risk of all nested subtrees of a tree at once, on rows that it was not grown on.

A row reaches a leaf of the whole tree. If the tree is pruned at alpha, the row ends higher up, at
the highest node above the leaf that has collapsed by then (see
`cart.tree.pruning.collapse_alphas`):

    alphas      .5   .2   .1   0         the row climbs as alpha rises, and is judged
    row is at   0    4    leaf leaf      at each node where it stops
    until       1    2    4              number of alphas, from the left, at which it has collapsed
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel

CLASSES, SQUARES, ABSOLUTE = range(3)  # what a row loses: see `_loss`


class Rows(NamedTuple):
    """Rows to be judged."""

    leaf: np.ndarray  # (n_rows,) int64: the leaf that each row reaches
    truth: np.ndarray  # (n_rows,) float64: its class, or number
    weight: np.ndarray  # (n_rows,) float64
    factor: np.ndarray  # (n_rows,) float64: by which its loss is multiplied


class Pruned(NamedTuple):
    """The nested subtrees, and how they are judged."""

    parent: np.ndarray  # (n_nodes,) int64; -1 for the root
    until: np.ndarray  # (n_nodes,) int64: how many alphas, the largest first, collapse the node
    answer: np.ndarray  # (n_nodes,) float64: the class that a node predicts, or the number
    loss: np.ndarray  # (n_classes, n_classes) float64: of truth and answer; CLASSES only
    kind: int  # of the loss: CLASSES, SQUARES or ABSOLUTE


@inline_kernel
def _loss(pruned, truth, node):
    answer = pruned.answer[node]
    if pruned.kind == CLASSES:
        return pruned.loss[int(truth), int(answer)]
    if pruned.kind == SQUARES:
        return (truth - answer) * (truth - answer)
    return abs(truth - answer)


@entry_kernel
def add_risks(rows, pruned, changes):
    """Add the losses of the rows, and their squares, as changes from alpha to alpha.

    Parameters
    ----------
    rows : Rows
    pruned : Pruned
    changes : ndarray of shape (2, n_alphas + 1), float64
        Is added to. Its cumulative sums are the losses at each alpha; the last column is unused.
    """
    for i in range(rows.leaf.shape[0]):
        node = rows.leaf[i]
        end = np.int64(changes.shape[1] - 1)
        while node >= 0:
            above = pruned.parent[node]
            first = np.int64(0) if above < 0 else pruned.until[above]
            if first < end:
                lost = rows.factor[i] * _loss(pruned, rows.truth[i], node)
                changes[0, first] += rows.weight[i] * lost
                changes[0, end] -= rows.weight[i] * lost
                changes[1, first] += rows.weight[i] * lost * lost
                changes[1, end] -= rows.weight[i] * lost * lost
                end = first
            node = above
