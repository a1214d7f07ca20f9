"""Row weights of a forest, combined from sample weights and class weights.

With a bootstrap they give the probabilities of the draws; without one they are weights inside the
trees (scikit-learn 1.9). Inside bootstrapped trees, rows are only weighted by "balanced_subsample",
and by priors and losses if draws do not go by weights (groups, in_bag, strata, keyed draws).
"""

from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight, compute_sample_weight

from forest.sampling.bootstrap import Draws


def combine_weights(
    class_weight: Any,
    sample_weight: np.ndarray | None,
    y: np.ndarray,
    labels: list,
    bootstrap: bool,
) -> np.ndarray | None:
    """Combine class weights and sample weights; None if all rows weigh the same.

    Parameters
    ----------
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None
    sample_weight : ndarray of shape (n_samples,), float64, or None
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    labels : list of ndarray of shape (n_classes,), one per output
    bootstrap : bool

    Returns
    -------
    ndarray of shape (n_samples,), float64, or None

    Raises
    ------
    ValueError
        If classes are to be balanced and one of them has no weight.
    """
    if class_weight is None or (class_weight == "balanced_subsample" and bootstrap):
        return sample_weight
    if isinstance(class_weight, str):
        class_weight = [
            dict(zip(of_output, _balance(of_output, column, sample_weight), strict=True))
            for of_output, column in zip(labels, y.reshape(len(y), -1).T, strict=True)
        ]
        class_weight = class_weight[0] if len(labels) == 1 else class_weight
    weight = compute_sample_weight(class_weight, y)
    return weight if sample_weight is None else sample_weight * weight


def _balance(classes, y, sample_weight):
    """Weight of each class that gives all classes the same total; refuses classes of weight 0."""
    with np.errstate(divide="ignore"):
        of_class = compute_class_weight(
            "balanced", classes=classes, y=y, sample_weight=sample_weight
        )
    if not np.isfinite(of_class).all():
        label = classes[~np.isfinite(of_class)][:1].tolist()[0]
        raise ValueError(
            f'class_weight="balanced" cannot weigh class {label!r}, because all its rows have '
            "weight 0; leave them out."
        )
    return of_class


def balance_subsample(counts: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """In-bag counts of one tree, times the weights that balance the classes among its draws.

    The weights are those of scikit-learn's `compute_sample_weight`, bit for bit.

    Parameters
    ----------
    counts : ndarray of shape (n_samples,), int64
    codes : ndarray of shape (n_samples, n_outputs) or (n_samples,), float64
        Class of every row.

    Returns
    -------
    ndarray of shape (n_samples,), float64
    """
    weight = np.ones(len(codes))
    for column in codes.reshape(len(codes), -1).T.astype(np.int64):
        drawn = np.bincount(column, counts)
        share = drawn.sum() / (np.count_nonzero(drawn) * np.where(drawn > 0, drawn, np.inf))
        weight = weight * share[column]
    return counts * weight


def in_bag_weight(
    draws: Draws, tree: int, codes: np.ndarray, class_weight: Any, class_factor: np.ndarray | None
) -> np.ndarray:
    """Weight of each row in a tree; 0 for rows out of bag.

    Parameters
    ----------
    draws : Draws
    tree : int
    codes : ndarray of shape (n_samples, n_outputs) or (n_samples,), float64
        Class of every row, or numbers.
    class_weight : dict, list of dict, str or None
        The forest's; only "balanced_subsample" matters here.
    class_factor : ndarray of shape (n_classes,), float64, or None
        Factor of each class's weights for priors and losses, if these are not in the draws.

    Returns
    -------
    ndarray of shape (n_samples,), float64
    """
    counts = draws.counts(tree)
    if class_weight == "balanced_subsample":
        return balance_subsample(counts, codes)
    if class_factor is None:
        return counts.astype(np.float64)
    return counts * class_factor[codes.reshape(-1).astype(np.int64)]
