"""Out-of-bag predictions: every row judged by the trees that have not seen it."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from cart.packed import Rows
from cart.traverse import sum_of_values


class OutOfBag(NamedTuple):
    """What the trees say of the rows of their own training table."""

    values: (
        np.ndarray
    )  # (n_samples, n_outputs * n_values) float64: mean over trees; NaN where there is none
    n_trees: np.ndarray  # (n_samples,) int64: for how many trees the row is out of bag

    @property
    def is_known(self):
        """(n_samples,) bool: was the row ever out of bag?"""
        return self.n_trees > 0


def predict_out_of_bag(packed, X, out_of_bag):
    """Mean of the soft votes of the trees for which a row is out of bag.

    Parameters
    ----------
    packed : cart.packed.Packed
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order
        The training table.
    out_of_bag : callable
        `out_of_bag(t)` gives the out-of-bag rows of tree t.

    Returns
    -------
    OutOfBag
    """
    values = np.zeros((X.shape[0], packed.value.shape[1]))
    n_trees = np.zeros(X.shape[0], np.int64)
    X = X if issparse(X) else Rows.of(packed, X)
    for tree in range(len(packed.start) - 1):
        rows = out_of_bag(tree)
        sum_of_values(packed, X, tree, tree + 1, rows, values)
        n_trees[rows] += 1
    with np.errstate(invalid="ignore"):
        values /= n_trees[:, np.newaxis]
    return OutOfBag(values, n_trees)
