"""A tree on the features it uses only, so that a wide or sparse table costs what they cost."""

from types import SimpleNamespace

import numpy as np
from scipy.sparse import issparse

from cart.nodes import LEAF, Nodes


def narrow(tree, X, rows):
    """Number the features of a tree among those that it uses.

    Parameters
    ----------
    tree : object with scikit-learn's node arrays
    X : ndarray of shape (n_samples, n_features), float32 or float64, or csr_matrix
    rows : ndarray of shape (n_rows,), int64

    Returns
    -------
    narrow_tree : object with scikit-learn's node arrays
    features : ndarray of shape (n_used,), int64
        The features used, ascending.
    X_used : ndarray of shape (n_rows, n_used), C order
        Their values in `rows`.
    """
    kept = (*Nodes._fields, "node_count", "categories", "is_subset")
    narrow_tree = SimpleNamespace(**{name: getattr(tree, name, None) for name in kept})
    is_split = narrow_tree.children_left != LEAF
    is_used = np.zeros(X.shape[1], bool)
    is_used[narrow_tree.feature[is_split]] = True
    features = np.flatnonzero(is_used)
    slot = (np.cumsum(is_used) - 1).astype(np.int32)
    narrow_tree.feature = slot[np.where(is_split, narrow_tree.feature, 0)]
    narrow_tree.n_features = max(1, len(features))
    return narrow_tree, features, values_of(X, rows, features)


def values_of(X, rows, columns):
    """Values of some rows in some columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64, or csr_matrix
    rows : ndarray of shape (n_rows,), int64
    columns : ndarray of shape (n_columns,), int64

    Returns
    -------
    ndarray of shape (n_rows, n_columns), C order
    """
    if issparse(X):
        return X[rows][:, columns].toarray()
    if len(columns) == X.shape[1]:  # in order: each is there once
        return X.take(rows, axis=0)
    return X[rows[:, np.newaxis], columns]
