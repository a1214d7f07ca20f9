"""A tree on the features it uses only, so that a wide or sparse table costs what they cost."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cart.jit.decorators import entry_kernel
from cart.tree.nodes import LEAF, Nodes, expanded_nodes_of


def restrict_to_used(tree: Any, X: Any, rows: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Number the features of a tree among those that it uses.

    Returns a tree with scikit-learn's node arrays, the features used, ascending, and their values
    in `rows`, (n_rows, n_used) in C order.
    """
    nodes = expanded_nodes_of(tree)
    of_trees = ("node_count", "n_outputs", "max_n_classes", "categories", "is_subset")
    restricted = SimpleNamespace(**{name: getattr(tree, name, None) for name in of_trees})
    vars(restricted).update({name: getattr(nodes, name) for name in Nodes._fields})
    number = np.full(X.shape[1], -1, np.int32)
    restricted.feature = np.empty(tree.node_count, np.int32)
    # scikit-learn's are 64 bits wide, and views with gaps: kernels are compiled for one kind.
    _renumber(
        np.ascontiguousarray(nodes.children_left, np.int32),
        np.ascontiguousarray(nodes.feature, np.int32), number, restricted.feature,
    )  # fmt: skip
    features = np.flatnonzero(number >= 0)
    restricted.n_features = len(features)
    return restricted, features, values_of(X, rows, features)


@entry_kernel
def _renumber(left, feature, number, renumbered):
    """Number the features that splits use, ascending; 0 stands in the leaves."""
    for node in range(left.shape[0]):
        if left[node] != LEAF:
            number[feature[node]] = 0
    n_used = 0
    for j in range(number.shape[0]):
        if number[j] == 0:
            number[j] = n_used
            n_used += 1
    for node in range(left.shape[0]):
        renumbered[node] = 0 if left[node] == LEAF else number[feature[node]]


def values_of(X: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Values of some rows in some columns of a table or csr_matrix, in C order."""
    if issparse(X):
        return X[rows][:, columns].toarray()
    if len(columns) == X.shape[1]:  # in order: each is there once
        return X.take(rows, axis=0)
    if 3 * len(columns) > X.shape[1]:
        return X.take(rows, axis=0).take(columns, axis=1)
    return X[rows[:, np.newaxis], columns]
