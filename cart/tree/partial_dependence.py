"""Partial dependence of a tree by recursion: points go both ways at splits on other features."""

from typing import Any

import numpy as np

from cart.tree.nodes import LEAF


def add_partial_dependence(
    tree: Any, X: np.ndarray, target_features: np.ndarray, out: np.ndarray
) -> None:
    """Add the tree's partial dependence, at points of some target features, to `out`.

    At a split on a target feature, a point goes left or right by its value; at any other split it
    goes both ways, weighted by the shares of the training rows. All points walk together, and sums
    are taken in scikit-learn's order.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n_points, n_target_features), float32 or float64
    target_features : ndarray of shape (n_target_features,), intp
    out : ndarray of shape (n_points,), float64

    Raises
    ------
    TypeError
        If one of them is not an array.
    ValueError
        If its shape or dtype is wrong, or if the tree has several outputs or classes.
    """
    _require(X, "X", 2, np.float32, np.float64)
    _require(target_features, "target_features", 1, np.intp)
    _require(out, "out", 1, np.float64)
    if X.shape != (len(out), len(target_features)):
        raise ValueError(
            f"X has shape {X.shape}, but out and target_features need "
            f"{len(out), len(target_features)}."
        )
    if (tree.n_outputs, tree.max_n_classes) != (1, 1):
        raise ValueError(
            "Partial dependence by recursion needs a regression tree with a single output."
        )
    nodes = tree.nodes
    shares = nodes.weighted_n_node_samples[nodes.children_left] / nodes.weighted_n_node_samples
    open_nodes = [(0, np.arange(len(X)), np.ones(len(X)))]
    while open_nodes:
        node, points, weight = open_nodes.pop()
        children = nodes.children_left[node], nodes.children_right[node]
        columns = np.flatnonzero(target_features == nodes.feature[node])
        if children[0] == LEAF:
            out[points] += weight * nodes.value[node, 0, 0]
        elif len(columns):
            is_left = _goes_left(nodes, tree.categories, node, X[points, columns[0]])
            for child, goes in zip(children, (is_left, ~is_left), strict=True):
                if goes.any():
                    open_nodes.append((child, points[goes], weight[goes]))
        else:
            for child, share in zip(children, (shares[node], 1.0 - shares[node]), strict=True):
                open_nodes.append((child, points, weight * share))


def _goes_left(nodes, categories, node, values):
    """Whether a node sends each of these values of its feature to the left."""
    threshold = nodes.threshold[node]
    if np.isnan(threshold):
        listed, listed_left = categories.of(node)
        is_left = np.isin(values, listed) == listed_left
    else:
        is_left = values <= threshold
    return np.where(np.isnan(values), nodes.missing_go_to_left[node] != 0, is_left)


def _require(array, name, ndim, *dtypes):
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be an array, not {type(array).__name__!r}.")
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, but has {array.ndim}.")
    if array.dtype not in dtypes:
        expected = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        raise ValueError(f"{name} must have dtype {expected}, but has {array.dtype}.")
