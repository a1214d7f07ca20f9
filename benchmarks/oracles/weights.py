"""Weights of rows inside a tree, as fractions."""

from fractions import Fraction

import numpy as np


def row_weights(y, sample_weight=None, class_weight=None, draws=None, is_forest=False):
    """Exact weight of every row in one tree.

    Parameters
    ----------
    y : array of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array of shape (n_samples,), numbers
    class_weight : dict, list of dict or "balanced"
    draws : array of int
        Rows drawn for the tree; "balanced" balances the classes among them.
    is_forest : bool, default=False
        Without draws, a forest balances classes by the weight of their rows, a tree by the number
        of their rows.

    Returns
    -------
    ndarray of shape (n_samples,), Fraction
    """
    y = np.asarray(y).reshape(len(y), -1)
    weight = [Fraction(repr(w)) for w in _list(sample_weight, len(y))]
    if draws is not None:
        counts = np.bincount(draws, minlength=len(y)).tolist()
        weight = [w * n for w, n in zip(weight, counts, strict=True)]
    given = list(weight) if is_forest else [1] * len(y)
    for k, labels in enumerate(y.T):
        of_class = class_weight[k] if isinstance(class_weight, list) else class_weight
        if of_class == "balanced":
            rows = range(len(y)) if draws is None else draws
            of_class = _balance(labels[rows], [given[row] for row in rows])
        if of_class is not None:
            weight = [w * of_class.get(c, 1) for w, c in zip(weight, labels.tolist(), strict=True)]
    return np.array(weight, object)


def _balance(labels, weight):
    totals = {}
    for label, w in zip(labels.tolist(), weight, strict=True):
        totals[label] = totals.get(label, 0) + w
    every = sum(totals.values())
    return {label: Fraction(every) / (len(totals) * w) for label, w in totals.items() if w}


def _list(sample_weight, n):
    return [1] * n if sample_weight is None else np.asarray(sample_weight).tolist()
