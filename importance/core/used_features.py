"""Restrict a tree to the features it uses, so that other columns cost nothing; tests of splits."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.tree.nodes import LEAF, Nodes, expanded_nodes_of, is_in_left_subset


def restrict_to_used(tree: Any, X: Any, rows: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Renumber the features of a tree among those that it uses.

    Returns a tree with scikit-learn's node arrays, the features used, ascending, and their values
    in `rows`, (n_rows, n_used) in C order.
    """
    nodes = expanded_nodes_of(tree)
    of_trees = ("node_count", "n_outputs", "max_n_classes", "categories", "is_subset")
    restricted = SimpleNamespace(**{name: getattr(tree, name, None) for name in of_trees})
    vars(restricted).update({name: getattr(nodes, name) for name in Nodes._fields})
    # scikit-learn's arrays have 64 bits and are not contiguous; kernels are compiled for one kind.
    for name in ("children_left", "children_right", "n_node_samples"):
        setattr(restricted, name, np.ascontiguousarray(getattr(nodes, name), np.int32))
    restricted.feature = np.array(nodes.feature, np.int32)
    features, number = np.empty(X.shape[1], np.int64), np.full(X.shape[1], -1)
    left = restricted.children_left
    restricted.n_features = _number_features(left, restricted.feature, number, features)
    features = features[: restricted.n_features]
    return restricted, features, values_of(X, rows, features)


@entry_kernel
def _number_features(left, feature, number, features):
    return number_features(left, feature, number, features)


@inline_kernel
def number_features(
    left: np.ndarray, feature: np.ndarray, number: np.ndarray, features: np.ndarray
) -> int:
    """Number the features that splits use, in ascending order; return how many there are.

    The numbers replace the features in `feature` (0 in leaves), and the features are written to
    `features`. `number` is scratch with an entry for each feature, -1 before and after the call.
    """
    for node in range(feature.shape[0]):
        if left[node] != LEAF:
            number[feature[node]] = 0
    n = 0
    for j in range(number.shape[0]):
        if number[j] == 0:
            features[n], number[j] = j, n
            n += 1
    for node in range(feature.shape[0]):
        feature[node] = 0 if left[node] == LEAF else number[feature[node]]
    for k in range(n):
        number[features[k]] = -1
    return n


class Test(NamedTuple):
    """The test by which a split sends rows left or right."""

    values: np.ndarray  # (n_rows,): values of the split's feature
    threshold: float
    missing_left: bool
    first: int  # where its list of categories begins, see cart.tree.nodes.Categories.in_one; or -1
    lists: np.ndarray


@inline_kernel
def goes_left(test: Test, row: int) -> bool:
    """Whether a row goes left."""
    x = test.values[row]
    if np.isnan(x):
        return test.missing_left
    if test.first >= 0:
        return is_in_left_subset(test.lists, test.first, x)
    return x <= test.threshold


def values_of(X: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Values of some rows in some columns of a table or csr_matrix, in C order."""
    if issparse(X):
        return X[rows][:, columns].toarray()
    if len(columns) == X.shape[1]:  # all columns, in order
        return X.take(rows, axis=0)
    if 3 * len(columns) > X.shape[1]:
        return X.take(rows, axis=0).take(columns, axis=1)
    return X[rows[:, np.newaxis], columns]
