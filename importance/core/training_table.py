"""Is a table the one that trees were grown on? Exactly, from what their leaves say of their rows.

             rows in bag    class shares, mean
leaf 4       12 = 12        .25 = .25           a row's y is seen where its leaf is pure
leaf 5        3 =  3        1.0 = 1.0           all three are
"""

from typing import Any

import numpy as np

from cart.tree.nodes import LEAF
from cart.tree.packed import pack
from cart.tree.traversal import leaf_ids

# Two rows that changed places are missed by a tree that drew both as often, in one leaf: one tree
# of three. So many trees miss them with a probability of 1e-15.
MOST_TREES = 32
SLACK = 1e-9  # of the largest value


def grew_on(fitted: Any) -> bool:
    """Did the trees of a FittedForest grow on its table? Trees are asked until it is certain."""
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
    """Do the rows of a FittedForest, whatever their y, fill the leaves of its trees as they did?"""
    return all(
        _are_as_many(fitted.trees[t], _leaves(fitted, fitted.trees[t], fitted.grown_on(t)))
        for t in range(min(len(fitted.trees), MOST_TREES))
    )


def has_rows_of(fitted: Any) -> bool:
    """Does the table of a FittedForest hold the rows that its trees grew on, in any order?

    Every leaf then has as many rows as it was grown on, at least. So it has by chance where rows
    are many, or leaves large; True is said where fresh rows would do so once in a million times.
    """
    from scipy.stats import poisson  # slow to import

    n_rows, log_chance = len(fitted.codes), 0.0
    for tree in fitted.trees[:MOST_TREES]:
        is_leaf = tree.children_left == LEAF
        grown = tree.n_node_samples[is_leaf]
        found = np.bincount(_leaves(fitted, tree), minlength=tree.node_count)[is_leaf]
        if (found < grown).any():
            return False
        # As if fresh rows came to each leaf independently of the others.
        log_chance += poisson.logsf(grown - 1, n_rows / grown.sum() * grown).sum()
    return bool(log_chance < np.log(1e-6))


def _leaves(fitted, tree, rows=None):
    return leaf_ids(pack([tree], fitted.X.dtype), 0, fitted.X, rows)


def _rows_seen(fitted, t, rows):
    """Which of the rows that tree t grew on are in pure leaves, or None where it grew on others."""
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
    """Are there as many rows in each leaf as the tree says?"""
    is_leaf = tree.children_left == LEAF
    n_rows = np.bincount(leaves, minlength=tree.node_count)
    return np.array_equal(n_rows[is_leaf], tree.n_node_samples[is_leaf])


def _are_medians(values, leaves, codes, weight, weights):
    """Does half of each leaf's weight lie on either side of its value?"""
    slack = SLACK * np.abs(codes).max()
    for is_beyond in (codes < values - slack, codes > values + slack):
        beyond = np.bincount(leaves, weight * is_beyond, len(weights))
        if (beyond > weights * (0.5 + SLACK)).any():
            return False
    return True


def _equal(a, b, scale=None):
    scale = np.abs(b).max(initial=0.0) if scale is None else scale
    return bool((np.abs(a - b) <= SLACK * scale).all())
