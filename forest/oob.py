"""Out-of-bag predictions: every row judged by the trees that have not seen it."""

from typing import NamedTuple
from warnings import warn

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

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


def add_out_of_bag(answers, shape):
    """Sum of what estimators say of their out-of-bag rows.

    Parameters
    ----------
    answers : iterable of (rows, answer)
        Out-of-bag rows of an estimator and what it says of them, one per row.
    shape : tuple of int
        Of the sum: n_samples, then the shape of the answer for one row.

    Returns
    -------
    total : ndarray of shape `shape`, float64
        0 in rows that were never out of bag.
    n_judges : ndarray of shape (n_samples,), int64
        For how many estimators the row is out of bag.
    """
    total = np.zeros(shape)
    n_judges = np.zeros(shape[0], np.int64)
    for rows, answer in answers:
        total[rows] += answer
        n_judges[rows] += 1
    return total, n_judges


def default_score(estimator):
    """The function that scores out-of-bag predictions: accuracy of a classifier, else R2."""
    from sklearn.metrics import accuracy_score, r2_score  # as scikit-learn's mixins: slow to import

    return accuracy_score if is_classifier(estimator) else r2_score


def score_out_of_bag(score, truth, guess, is_known, stacklevel):
    """Score of the rows that were ever out of bag.

    Parameters
    ----------
    score : callable
        `score(y_true, y_pred)`.
    truth, guess : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    is_known : ndarray of shape (n_samples,), bool
        Was the row ever out of bag?
    stacklevel : int
        Of the warning, 1 is the caller.

    Returns
    -------
    float
        nan where no row was.

    Warns
    -----
    UserWarning
        If some rows never were, with their number.
    """
    if not is_known.all():
        warn(
            f"{np.count_nonzero(~is_known)} of {len(is_known)} rows were never out of bag: they "
            "are nan in the out-of-bag predictions and left out of oob_score_. "
            "More estimators make this rarer.",
            stacklevel=stacklevel + 1,
        )
    return score(truth[is_known], guess[is_known]) if is_known.any() else np.nan
