"""What rows weigh inside a tree, as fractions."""

from fractions import Fraction

import numpy as np


def row_weights(y, sample_weight=None, class_weight=None, draws=None):
    """Exact weight of every row in one tree.

    Parameters
    ----------
    y : array of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array of shape (n_samples,), numbers
    class_weight : dict, list of dict or "balanced"
    draws : array of int
        Rows drawn for the tree; balanced classes are balanced among them.

    Returns
    -------
    ndarray of shape (n_samples,), Fraction
    """
    y = np.asarray(y).reshape(len(y), -1)
    weight = [Fraction(repr(w)) for w in _list(sample_weight, len(y))]
    if draws is not None:
        counts = np.bincount(draws, minlength=len(y)).tolist()
        weight = [w * n for w, n in zip(weight, counts, strict=True)]
    for k, labels in enumerate(y.T):
        of_class = class_weight[k] if isinstance(class_weight, list) else class_weight
        if of_class == "balanced":
            of_class = _balance(labels if draws is None else labels[draws])
        if of_class is not None:
            weight = [w * of_class.get(c, 1) for w, c in zip(weight, labels.tolist(), strict=True)]
    return np.array(weight, object)


def _balance(labels):
    found, counts = np.unique(labels, return_counts=True)
    shares = [Fraction(len(labels), len(found) * n) for n in counts.tolist()]
    return dict(zip(found.tolist(), shares, strict=True))


def _list(sample_weight, n):
    return [1] * n if sample_weight is None else np.asarray(sample_weight).tolist()
