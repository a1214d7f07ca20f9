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
    is_split = tree.children_left != LEAF
    features, slots = np.unique(tree.feature[is_split], return_inverse=True)
    narrow_tree.feature = tree.feature.copy()
    narrow_tree.feature[is_split] = slots
    narrow_tree.n_features = max(1, len(features))
    features = features.astype(np.int64)
    if issparse(X):
        return narrow_tree, features, X[rows][:, features].toarray()
    return narrow_tree, features, X[rows[:, np.newaxis], features]
