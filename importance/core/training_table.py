"""Tell from the leaves of trees, exactly, whether a table is the one that they were grown on.

             rows in bag    class shares, mean
leaf 4       12 = 12        .25 = .25           verifies its rows as a whole
leaf 5        3 =  3        1.0 = 1.0           is pure, and so verifies y of each of its rows
"""

from typing import Any

import numpy as np

from cart.tree.nodes import LEAF
from cart.tree.packed import pack
from cart.tree.traversal import leaf_ids

# If two rows of one leaf are exchanged, a tree that drew both equally often does not notice. That
# is one tree in three, so 32 trees do not notice with a probability of 1e-15.
MOST_TREES = 32
SLACK = 1e-9  # tolerance, as a share of the largest value


def grew_on(fitted: Any) -> bool:
    """Whether the trees of a FittedForest were grown on its table, checked until it is certain."""
    is_seen = np.zeros(len(fitted.codes), bool)
    for t in range(min(len(fitted.trees), MOST_TREES)):
        rows = fitted.grown_on(t)
        seen = _rows_seen(fitted, t, rows)
        if seen is None:
            return False
        is_seen[rows[seen]] = True
        if is_seen.all():
            break
    return True


def fills_leaves(fitted: Any) -> bool:
    """Whether the leaves of a FittedForest's trees get as many rows as in growth, whatever y is."""
    return all(
        _are_as_many(fitted.trees[t], _leaves(fitted, fitted.trees[t], fitted.grown_on(t)))
        for t in range(min(len(fitted.trees), MOST_TREES))
    )


def has_rows_of(fitted: Any) -> bool:
    """Whether the table of a FittedForest contains the rows its trees grew on, in any order.

    Every leaf then gets at least as many rows as it was grown on. With many rows or large leaves,
    this may happen by chance, so True is only returned if the probability that fresh rows do so is
    less than one in a million.
    """
    from scipy.stats import poisson  # slow to import

    n_rows, log_chance = len(fitted.codes), 0.0
    for tree in fitted.trees[:MOST_TREES]:
        is_leaf = tree.children_left == LEAF
        grown = tree.n_node_samples[is_leaf]
        found = np.bincount(_leaves(fitted, tree), minlength=tree.node_count)[is_leaf]
        if (found < grown).any():
            return False
        # Approximation: fresh rows come to each leaf independently of the other leaves.
        log_chance += poisson.logsf(grown - 1, n_rows / grown.sum() * grown).sum()
    return bool(log_chance < np.log(1e-6))


def _leaves(fitted, tree, rows=None):
    return leaf_ids(pack([tree], fitted.X.dtype), 0, fitted.X, rows)


def _rows_seen(fitted, t, rows):
    """Which rows that tree t grew on are in pure leaves; None if it grew on another table."""
    tree, weight = fitted.trees[t], fitted.weight_in_tree(t)[rows]
    leaves, codes, n = _leaves(fitted, tree, rows), fitted.codes[rows], tree.node_count
    is_leaf = tree.children_left == LEAF
    weights = np.bincount(leaves, weight, n)
    if not _are_as_many(tree, leaves):
        return None
    if not _equal(weights[is_leaf], tree.weighted_n_node_samples[is_leaf]):
        return None
    seen = tree.impurity[leaves] <= 0.0
    if getattr(fitted.forest, "monotonic_cst", None) is not None:  # values may have been clipped
        return seen
    values = tree.value.reshape(n, -1)[leaves[:, np.newaxis], np.arange(tree.value.shape[-1])]
    if fitted.is_classification:
        said = values / values.sum(axis=1, keepdims=True)
        own = np.bincount(leaves * fitted.n_classes + codes.astype(np.int64), weight,
                          n * fitted.n_classes).reshape(n, -1)  # fmt: skip
        is_same = _equal(own[leaves] / weights[leaves, np.newaxis], said)
    elif getattr(fitted.forest, "criterion", None) == "absolute_error":
        is_same = _are_medians(values[:, 0], leaves, codes, weight, weights)
    else:
        is_same = _equal(np.bincount(leaves, weight * codes, n)[leaves] / weights[leaves],
                         values[:, 0], np.abs(fitted.codes).max())  # fmt: skip
    return seen if is_same else None


def _are_as_many(tree, leaves):
    """Whether there are as many rows in each leaf as the tree says."""
    is_leaf = tree.children_left == LEAF
    n_rows = np.bincount(leaves, minlength=tree.node_count)
    return np.array_equal(n_rows[is_leaf], tree.n_node_samples[is_leaf])


def _are_medians(values, leaves, codes, weight, weights):
    """Whether at most half of each leaf's weight lies on either side of its value."""
    slack = SLACK * np.abs(codes).max()
    sides, most = (codes < values - slack, codes > values + slack), weights * (0.5 + SLACK)
    return all((np.bincount(leaves, weight * side, len(most)) <= most).all() for side in sides)


def _equal(a, b, scale=None):
    scale = np.abs(b).max(initial=0.0) if scale is None else scale
    return bool((np.abs(a - b) <= SLACK * scale).all())
