"""From an estimator's parameters to a Plan: how to grow its trees."""

import numbers
from math import ceil
from typing import NamedTuple

import numpy as np

UNLIMITED = np.iinfo(np.int32).max


class Limits(NamedTuple):
    """When a node may be split, as the kernels take it."""

    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    max_features: int
    max_leaf_nodes: int  # -1: unlimited
    min_impurity_decrease: float


class Plan(NamedTuple):
    """Everything about a tree but its data and its seed."""

    criterion: type  # a class of cart.criteria
    limits: Limits  # min_weight_leaf is filled in per tree
    min_weight_fraction_leaf: float
    n_outputs: int
    n_values: int  # number of classes; 1 in regression


def make_plan(params, criterion, n_samples, n_features, n_values):
    """Resolve fractions and names as scikit-learn does.

    Parameters
    ----------
    params : object with the parameters of a decision tree as attributes, valid ones
    criterion : a class of cart.criteria
    n_samples, n_features : int
        Shape of the training data.
    n_values : int
        Number of classes; 1 in regression.

    Returns
    -------
    Plan
    """
    min_samples_leaf = _count(params.min_samples_leaf, n_samples)
    min_samples_split = max(2, _count(params.min_samples_split, n_samples), 2 * min_samples_leaf)
    limits = Limits(
        max_depth=UNLIMITED if params.max_depth is None else int(params.max_depth),
        min_samples_split=min_samples_split,
        min_samples_leaf=min_samples_leaf,
        min_weight_leaf=0.0,
        max_features=resolve_max_features(params.max_features, n_features),
        max_leaf_nodes=-1 if params.max_leaf_nodes is None else int(params.max_leaf_nodes),
        min_impurity_decrease=float(params.min_impurity_decrease),
    )
    return Plan(criterion, limits, float(params.min_weight_fraction_leaf), 1, n_values)


def resolve_max_features(max_features, n_features):
    """How many features a split looks at."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(max_features, numbers.Integral):
        return int(max_features)
    return max(1, int(max_features * n_features))


def _count(number_or_fraction, n_samples):
    if isinstance(number_or_fraction, numbers.Integral):
        return int(number_or_fraction)
    return ceil(number_or_fraction * n_samples)
