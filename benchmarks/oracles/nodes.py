"""Errors of a tree's impurities and node values, compared with exact arithmetic."""

from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

DIGITS = 60
_MEAN = ("squared_error", "poisson")


def largest_errors(tree, X, y, weight, criterion):
    """Largest error of an impurity, and of a value, over the nodes of a tree.

    Parameters
    ----------
    tree : object with the arrays of scikit-learn's `tree_`
    X, y : arrays of shape (n_samples, n_features), and (n_samples,) or (n_samples, n_outputs)
    weight : array of shape (n_samples,), Fraction
    criterion : str
        Not "absolute_error".

    Returns
    -------
    impurity, value : float
    """
    X, outputs = np.asarray(X, np.float32), np.asarray(y).reshape(len(X), -1)
    labels = [np.unique(output).tolist() for output in outputs.T]
    largest = [0.0, 0.0]
    rows = _rows_of_nodes(tree, X, np.flatnonzero(weight != 0))
    for node, here in rows.items():
        weights = weight[here].tolist()
        exact = [_node(output[here].tolist(), weights, criterion) for output in outputs.T]
        if np.isfinite(tree.impurity[node]):  # with a mean of 0 the deviance is infinite
            off = Fraction(float(tree.impurity[node])) - sum(part[0] for part in exact) / len(exact)
            largest[0] = max(largest[0], abs(float(off)))
        for k, (_, value) in enumerate(exact):
            value = [value] if criterion in _MEAN else [value[label] for label in labels[k]]
            said = tree.value[node, k].tolist()[
                : len(value)
            ]  # another output may have more classes
            off = (abs(float(Fraction(a) - b)) for a, b in zip(said, value, strict=True))
            largest[1] = max(largest[1], *off)
    return tuple(largest)


def _rows_of_nodes(tree, X, rows):
    found = {0: rows}
    for node in np.flatnonzero(tree.children_left >= 0):
        x = X[found[node], tree.feature[node]].astype(np.float64)
        left = np.where(np.isnan(x), tree.missing_go_to_left[node] == 1, x <= tree.threshold[node])
        found[tree.children_left[node]] = found[node][left]
        found[tree.children_right[node]] = found[node][~left]
    return found


def _node(y, weight, criterion):
    """Exact impurity and value of one output; the value is a mean, or the shares of labels."""
    total = sum(weight)
    if criterion in _MEAN:
        y = [Fraction(repr(v)) for v in y]
        mean = sum(w * v for w, v in zip(weight, y, strict=True)) / total
        if criterion == "squared_error":
            off = sum(w * (v - mean) ** 2 for w, v in zip(weight, y, strict=True))
        else:
            off = sum(w * v * _log(v / mean) for w, v in zip(weight, y, strict=True) if v)
        return off / total, mean
    totals = Counter()
    for label, w in zip(y, weight, strict=True):
        totals[label] += w / total
    shares = [share for share in totals.values() if share]
    if criterion == "gini":
        return 1 - sum(share * share for share in shares), totals
    return -sum(share * _log(share) for share in shares) / _log(2), totals


def _log(x):
    x = Fraction(x)
    with localcontext(prec=DIGITS):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).ln())
