"""Interventional SHAP values of trees: each row against every reference row, exactly.

Take the features in a set S from the row x and all others from the reference z; then a leaf is
either reached or not. On every path a feature is in one of three states: both x and z pass all of
its conditions (BOTH), or only x does, or only z does. A leaf of value v whose path has a features
of x alone and b of z alone contributes, times v,

    (a - 1)! b! / (a + b)!   to each of the a,     -a! (b - 1)! / (a + b)!   to each of the b

(the same integral as in `path_dependent`, with shares of 0 or 1). There is more than one way to go
only where x and z part:

                  split on j, BOTH: x goes left, z right
                 /                                      \
    state of j: x alone                         state of j: z alone
    add what comes up for x to phi_j            subtract what comes up for z from phi_j
"""

from typing import NamedTuple

import numpy as np
from scipy.special import beta

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF
from importance.core.used_features import goes_left
from importance.shap.covered_trees import CoveredTrees, test_of, tree_at

BOTH, ROW_ALONE, REFERENCE_ALONE = 0, 1, 2


class Partings(NamedTuple):
    """The splits on the current path where row and reference part, and the sums from below them."""

    feature: np.ndarray  # (n_distinct,) int64: its number among those used
    other: np.ndarray  # (n_distinct,) int64: the child that the reference goes to
    has_turned: np.ndarray  # (n_distinct,) bool: whether that child is being visited
    came_up: np.ndarray  # (n_distinct + 1, 2, n_outputs) float64: for row and reference; the last
    # entry is what comes up at the moment
    state: np.ndarray  # (n_used,) int8
    share: np.ndarray  # (n_distinct + 1, n_distinct + 1) float64: (a - 1)! b! / (a + b)!
    phi: np.ndarray  # (n_used, n_outputs, n_rows) float64: of the tree

    @classmethod
    def create(cls, trees: CoveredTrees, n_rows: int) -> "Partings":
        """Buffers for up to `n_rows` rows."""
        n, n_outputs = int(trees.distinct.max()), trees.mean.shape[1]
        n_used = int(trees.n_used.max())
        mine, others = np.ogrid[: n + 1, : n + 1]
        share = beta(np.maximum(mine, 1), others + 1)  # what row 0 gives is not used
        return cls(
            np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, bool),
            np.empty((n + 1, 2, n_outputs)), np.empty(n_used, np.int8), share,
            np.empty((n_used, n_outputs, n_rows)),
        )  # fmt: skip


@kernel
def explain_tree_against(tree, columns, rows, references, partings):
    """Write phi of one tree for some rows, averaged over references, into partings.phi.

    Parameters
    ----------
    tree : CoveredTrees of one tree
    columns, references : (n_features, n_samples) float64
    rows : (n_rows,) int64
    partings : Partings
    """
    n_references = references.shape[1]
    for j in range(tree.features.shape[0]):
        partings.state[j] = BOTH
        for k in range(tree.mean.shape[1]):
            for i in range(rows.shape[0]):
                partings.phi[j, k, i] = 0.0
    for i in range(rows.shape[0]):
        for z in range(n_references):
            _explain_pair(tree, (columns, rows[i]), (references, z), partings, i)
        for j in range(tree.features.shape[0]):
            for k in range(tree.mean.shape[1]):
                partings.phi[j, k, i] /= n_references


@inline_kernel
def _explain_pair(tree, row, reference, partings, i):
    """Add to phi of row i its contributions against one reference."""
    node = np.int64(0)
    n, n_of_row = 0, 0  # partings on the path, and how many of them have the state ROW_ALONE
    n_outputs = tree.mean.shape[1]
    came_up = partings.came_up[partings.feature.shape[0]]
    while True:
        while tree.children[node, 0] != LEAF:
            j = np.int64(tree.feature[node])
            state = partings.state[j]
            child = _child_of(tree, node, reference if state == REFERENCE_ALONE else row)
            if state == BOTH:
                other = _child_of(tree, node, reference)
                if other != child:
                    partings.feature[n], partings.other[n] = j, other
                    partings.has_turned[n] = False
                    partings.state[j] = ROW_ALONE
                    n, n_of_row = n + 1, n_of_row + 1
            node = child
        for k in range(n_outputs):
            came_up[0, k] = tree.mean[node, k] * partings.share[n_of_row, n - n_of_row]
            came_up[1, k] = tree.mean[node, k] * partings.share[n - n_of_row, n_of_row]
        while n > 0 and partings.has_turned[n - 1]:
            n -= 1
            j = partings.feature[n]
            partings.state[j] = BOTH
            for k in range(n_outputs):
                partings.phi[j, k, i] -= came_up[1, k]
                came_up[0, k] += partings.came_up[n, 0, k]
                came_up[1, k] += partings.came_up[n, 1, k]
        if n == 0:
            return
        j = partings.feature[n - 1]
        for k in range(n_outputs):
            partings.phi[j, k, i] += came_up[0, k]
            partings.came_up[n - 1, 0, k] = came_up[0, k]
            partings.came_up[n - 1, 1, k] = came_up[1, k]
        partings.has_turned[n - 1] = True
        partings.state[j] = REFERENCE_ALONE
        n_of_row -= 1
        node = partings.other[n - 1]


@inline_kernel
def _child_of(tree, node, sample):
    """The child that a sample goes to; a sample is a table by columns and a row number."""
    columns, row = sample
    test = test_of(tree, columns[tree.features[tree.feature[node]]], node)
    return np.int64(tree.children[node, np.int64(not goes_left(test, row))])


@entry_kernel
def add_reference_values(trees, references, total):
    """Add the value of every tree at each reference to `total`, (n_trees, n_outputs)."""
    for t in range(trees.depth.shape[0]):
        tree = tree_at(trees, t)
        for z in range(references.shape[1]):
            node = np.int64(0)
            while tree.children[node, 0] != LEAF:
                node = _child_of(tree, node, (references, z))
            for k in range(total.shape[1]):
                total[t, k] += tree.mean[node, k]
