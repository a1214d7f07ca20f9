"""y as the kernels take it, class codes or numbers, and back to what users see."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets


class Target(NamedTuple):
    """A training target."""

    codes: np.ndarray  # (n_samples,) float64: position of the label in `labels`, or the number
    labels: np.ndarray | None  # (n_classes,): distinct labels, ascending; None in regression

    @property
    def n_values(self):
        """How many numbers a leaf holds."""
        return 1 if self.labels is None else len(self.labels)


def encode_labels(y):
    """Target of a classifier.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels of any type that sorts.

    Raises
    ------
    ValueError
        If y holds continuous numbers.
    """
    check_classification_targets(y)
    labels, codes = np.unique(y, return_inverse=True)
    return Target(codes.ravel().astype(np.float64), labels)


def encode_numbers(y):
    """Target of a regressor: y as float64 of shape (n_samples,)."""
    return Target(np.ascontiguousarray(y, dtype=np.float64), None)


def make_records(codes, weight):
    """Weight and target of every row side by side, as the kernels take them.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), float64
    weight : ndarray of shape (n_samples,) or scalar

    Returns
    -------
    ndarray of shape (n_samples, 2), float64
    """
    records = np.empty((len(codes), 2))
    records[:, 0] = weight
    records[:, 1] = codes
    return records
