"""A tree on the features it uses only, so that a wide or sparse table costs what they cost."""

import numpy as np
from scipy.sparse import issparse

from cart.traverse import pack


def narrow(tree, X, rows):
    """Pack a tree whose features are numbered among those that it uses.

    Parameters
    ----------
    tree : object with scikit-learn's node arrays
    X : ndarray of shape (n_samples, n_features), float32 or float64, or csr_matrix
    rows : ndarray of shape (n_rows,), int64

    Returns
    -------
    packed : cart.traverse.Packed or PackedSubsets
    features : ndarray of shape (n_used,), int64
        The features used, ascending.
    X_used : ndarray of shape (n_rows, n_used), C order
        Their values in `rows`.
    """
    packed = pack([tree])
    feature, left = packed.words[::4], packed.words[2::4]
    is_split = left != np.arange(len(left))
    used, feature[is_split] = np.unique(feature[is_split], return_inverse=True)
    features = used.astype(np.int64)
    if issparse(X):
        return packed, features, X[rows][:, features].toarray()
    return packed, features, X[rows[:, np.newaxis], features]
