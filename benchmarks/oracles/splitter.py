"""Slow, obvious impurities, best splits and trees, by definition and by enumeration."""

from itertools import pairwise
from math import ceil, log
from numbers import Integral

import numpy as np
from scipy.special import xlogy

from benchmarks.oracles.draw import FeatureDraw

EPSILON = np.finfo(float).eps  # a node with at most this impurity is a leaf
SAME = np.float32(1e-7)  # neighbouring values that differ by at most this are one value


def impurity(y, weight, criterion):
    """Impurity by definition; the mean over outputs.

    Gini is 1 - sum p**2, entropy - sum p log2 p. For numbers it is the variance, the mean absolute
    difference from the median, or half the Poisson deviance from the mean.
    """
    if y.ndim == 2:
        return np.mean([impurity(output, weight, criterion) for output in y.T])
    total = weight.sum()
    if criterion == "absolute_error":
        return (weight * abs(y - weighted_median(y, weight))).sum() / total
    if criterion in ("squared_error", "poisson"):
        mean = (weight * y).sum() / total
        if criterion == "squared_error":
            return (weight * (y - mean) ** 2).sum() / total
        return (weight * xlogy(y, y / mean)).sum() / total if mean > 0 else np.inf
    shares = [weight[y == label].sum() / total for label in np.unique(y[weight > 0])]
    if criterion == "gini":
        return 1 - sum(p * p for p in shares)
    return -sum(p * (log(p) / log(2)) for p in shares)


def weighted_median(y, weight):
    """Midpoint of the lowest and the highest weighted median."""
    y, weight = y[weight > 0], weight[weight > 0]
    half = weight.sum() / 2
    low = min(v for v in y if weight[y <= v].sum() >= half)
    high = max(v for v in y if weight[y >= v].sum() >= half)
    return low / 2 + high / 2


def decrease(y, weight, is_left, criterion):
    """Impurity of a node minus the weighted mean of its children's."""
    left = weight[is_left].sum() / weight.sum()
    return (
        impurity(y, weight, criterion)
        - left * impurity(y[is_left], weight[is_left], criterion)
        - (1 - left) * impurity(y[~is_left], weight[~is_left], criterion)
    )


def proxy(y, weight, is_left, criterion):
    """A score that ranks like the decrease, by scikit-learn's formula to the last bit.

    Sums must be exact, as they are for whole numbers; then ties are broken as in scikit-learn.
    """
    sides = [(y[side], weight[side], weight[side].sum()) for side in (is_left, ~is_left)]
    if criterion == "squared_error":
        return sum((v * w).sum() ** 2 / total for v, w, total in sides)
    (left, w_left, total_left), (right, w_right, total_right) = sides
    return -total_right * _impurity_from_counts(right, w_right, criterion) - (
        total_left * _impurity_from_counts(left, w_left, criterion)
    )


def _impurity_from_counts(y, weight, criterion):
    counts, total = np.bincount(y, weight), weight.sum()
    if criterion == "gini":
        return 1 - sum(n * n for n in counts) / (total * total)
    result = 0.0
    for n in counts[counts > 0]:
        result -= n / total * (log(n / total) / log(2))
    return result


def thresholds(values):
    """Midpoints between distinct values."""
    for low, high in pairwise(np.sort(np.float32(values))):
        if high > low + SAME:
            yield float(low) / 2 + float(high) / 2


def ways(values):
    """All ways to split a node on a feature, with missing values on either side.

    Yields
    ------
    is_left : ndarray of bool
    threshold : float
    missing_left : bool, or None if no value is missing
    """
    missing = np.isnan(values)
    cuts = list(thresholds(values[~missing]))
    for missing_left in (False, True) if missing.any() else (None,):
        for threshold in cuts:
            yield (
                np.where(missing, missing_left is True, values <= threshold),
                threshold,
                missing_left,
            )
    if missing.any() and not missing.all():
        yield ~missing, np.inf, False


def best_split(
    X, y, weight, criterion, score=decrease, features=None, min_samples_leaf=1, min_weight_leaf=0.0
):
    """The first (feature, threshold) with the highest score, and that score.

    (None, -inf) if there is no cut.
    """
    best, best_score = None, -np.inf
    for feature in range(X.shape[1]) if features is None else features:
        for threshold in thresholds(X[:, feature]):
            is_left = X[:, feature] <= threshold
            n_left, weight_left = is_left.sum(), weight[is_left].sum()
            if min(n_left, len(y) - n_left) < min_samples_leaf:
                continue
            if min(weight_left, weight.sum() - weight_left) < min_weight_leaf:
                continue
            value = score(y, weight, is_left, criterion)
            if value > best_score:
                best, best_score = (feature, threshold), value
    return best, best_score


def grow(
    X, y, weight, criterion, seed,
    max_depth=None, min_samples_split=2, min_samples_leaf=1, min_weight_fraction_leaf=0.0,
    max_features=None, min_impurity_decrease=0.0,
):  # fmt: skip
    """Grow a tree depth first; labels are 0, 1, ...

    Returns
    -------
    list of (feature, threshold, n_samples, impurity); feature and threshold are -2 in a leaf
    """
    X = np.asarray(X, np.float32)
    min_samples_leaf = resolve_count(min_samples_leaf, len(X))
    min_samples_split = resolve_count(min_samples_split, len(X))
    min_weight_leaf = min_weight_fraction_leaf * weight.sum()
    draw = FeatureDraw(X.shape[1], max_features or X.shape[1], seed)
    nodes = []

    def grow_node(rows, depth, n_known):
        x, target, w = X[rows], y[rows], weight[rows]
        node_impurity = impurity(target, w, criterion)
        cut = None
        if (
            node_impurity > 1e-12
            and depth != max_depth
            and len(rows) >= max(min_samples_split, 2 * min_samples_leaf)
            and w.sum() >= 2 * min_weight_leaf
        ):
            is_constant = x.max(axis=0) <= x.min(axis=0) + SAME
            features, n_known = draw.draw(is_constant, n_known)
            cut, _ = best_split(
                x, target, w, criterion, proxy, features, min_samples_leaf, min_weight_leaf
            )
        if cut:
            is_left = x[:, cut[0]] <= cut[1]
            share = w.sum() / weight.sum()
            if share * decrease(target, w, is_left, criterion) + EPSILON < min_impurity_decrease:
                cut = None
        nodes.append((*(cut or (-2, -2.0)), len(rows), node_impurity))
        if cut:
            grow_node(rows[is_left], depth + 1, n_known)
            grow_node(rows[~is_left], depth + 1, n_known)

    grow_node(np.flatnonzero(weight), 0, 0)
    return nodes


def resolve_count(number_or_share, n_samples):
    """A number of rows, given as a number or as a share."""
    if isinstance(number_or_share, Integral):
        return number_or_share
    return ceil(number_or_share * n_samples)
