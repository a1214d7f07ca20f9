"""Turn an estimator's parameters into a Plan, which says how to grow its trees."""

import numbers
from math import ceil
from typing import NamedTuple

import numpy as np

from cart.splitting.feature_draw import hash_names
from cart.splitting.splitter import BestSplitter, RandomSplitter

UNLIMITED = np.iinfo(np.int32).max
AUTO_SURROGATES = 5  # as in rpart
SPLITTERS = {"best": BestSplitter(), "random": RandomSplitter()}


class Limits(NamedTuple):
    """When and how a node may be split, as kernels take it."""

    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    max_features: int
    max_leaf_nodes: int  # -1: unlimited
    min_impurity_decrease: float
    min_category_ratio: float
    is_monotonic: bool  # whether any feature may be constrained
    monotonic: np.ndarray  # (n_features,) int8: constraint on the first class's share, or the mean


class Alternatives(NamedTuple):
    """What to find beside the split of a node, and where rows without its value go."""

    missing: str = "learned"  # the rule for rows that lack the value
    n_surrogates: int = 0
    style: str = "all"  # which rows agreement is a share of
    n_drawn: int = 0  # how many features a node searches for surrogates
    n_competitors: int = 0
    # (n_values,) float64: the factors by which priors and losses alter the weights of each class,
    # without which agreement is counted. None: no alteration.
    class_factor: np.ndarray | None = None

    @property
    def by_known_rows(self):
        """Whether splits are searched without the rows that lack a feature's value."""
        return self.missing in ("surrogate", "majority")

    @property
    def are_asked_for(self):
        """Whether anything is asked for that plain trees do without."""
        return self.by_known_rows or self.n_surrogates > 0 or self.n_competitors > 0


class Plan(NamedTuple):
    """Everything that defines a tree but its data and its seed."""

    criterion: type  # a class of cart.splitting.criteria
    splitter: tuple  # one of SPLITTERS
    limits: Limits  # min_weight_leaf is filled in per tree
    min_weight_fraction_leaf: float
    ccp_alpha: float
    n_outputs: int
    n_values: int  # largest number of classes of an output; 1 in regression
    hashed_names: np.ndarray | None  # (n_features,) uint64: for keyed draws
    is_binned: bool  # whether the table has bins, at most cart.table.bins.MAX_BINS per column
    alternatives: Alternatives = Alternatives()


def make_plan(params, criterion, splitter, n_samples, n_features, n_outputs, n_values):
    """Make a Plan; fractions and names are resolved as in scikit-learn.

    Parameters
    ----------
    params : object with valid parameters of a decision tree as attributes
        And with `feature_names_in_`, if the features have names.
    criterion : a class of cart.splitting.criteria
    splitter : {"best", "random"}
    n_samples, n_features, n_outputs : int
        Of the training data.
    n_values : int
        Largest number of classes of an output; 1 in regression.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If the monotonic constraints do not fit the data.
    """
    # It may be 0 if parameters are not validated, but kernels need a row in every leaf.
    min_samples_leaf = max(1, _count(params.min_samples_leaf, n_samples))
    min_samples_split = max(2, _count(params.min_samples_split, n_samples), 2 * min_samples_leaf)
    limits = Limits(
        max_depth=UNLIMITED if params.max_depth is None else int(params.max_depth),
        min_samples_split=min(min_samples_split, np.iinfo(np.int64).max),
        min_samples_leaf=min_samples_leaf,
        min_weight_leaf=0.0,
        max_features=resolve_max_features(params.max_features, n_features),
        max_leaf_nodes=-1 if params.max_leaf_nodes is None else int(params.max_leaf_nodes),
        min_impurity_decrease=float(params.min_impurity_decrease),
        min_category_ratio=float(getattr(params, "min_category_ratio", 0.0)),
        is_monotonic=params.monotonic_cst is not None,
        monotonic=_resolve_monotonic(params.monotonic_cst, n_features, n_outputs, n_values),
    )
    return Plan(
        criterion, SPLITTERS[splitter], limits, float(params.min_weight_fraction_leaf),
        float(params.ccp_alpha), n_outputs, n_values, _resolve_names(params, n_features),
        getattr(params, "max_bins", None) is not None,
        _resolve_alternatives(params, limits.max_features, n_features),
    )  # fmt: skip


def resolve_max_features(max_features, n_features):
    """The number of features that a split looks at."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    is_number = isinstance(max_features, numbers.Integral)
    return max(1, int(max_features if is_number else max_features * n_features))


def _resolve_monotonic(constraints, n_features, n_outputs, n_values):
    """The constraints on what is bounded: the mean, or the share of the first of two classes."""
    if constraints is None:
        return np.zeros(n_features, np.int8)
    constraints = np.asarray(constraints)
    if n_outputs > 1:
        raise ValueError("Monotonicity constraints are not supported with multiple outputs.")
    if constraints.shape != (n_features,):
        shape = len(constraints) if constraints.ndim == 1 else constraints.shape
        raise ValueError(
            f"monotonic_cst has shape {shape} but the input data X has {n_features} features."
        )
    if not np.isin(constraints, (-1, 0, 1)).all():
        raise ValueError(
            "monotonic_cst must be None or an array-like of -1, 0 or 1, but got "
            f"{np.unique(constraints)}"
        )
    if n_values > 2:
        raise ValueError(
            "Monotonicity constraints are not supported with multiclass classification"
        )
    sign = -1 if n_values == 2 else 1  # users constrain the second of two classes
    return sign * constraints.astype(np.int8)


def _resolve_alternatives(params, max_features, n_features):
    """The Alternatives that are asked for; scikit-learn's estimators ask for none."""
    n_surrogates = getattr(params, "surrogates", 0)
    is_drawn = getattr(params, "surrogate_features", "all") == "drawn"
    return Alternatives(
        getattr(params, "missing", "learned"),
        AUTO_SURROGATES if n_surrogates == "auto" else int(n_surrogates),
        getattr(params, "surrogate_style", "all"),
        max_features if is_drawn else n_features,
        int(getattr(params, "competitors", 0)),
    )


def _resolve_names(params, n_features):
    """Hashes by which keyed draws know the features: of their names, else of their positions."""
    if params.feature_draw != "keyed":
        return None
    return hash_names(getattr(params, "feature_names_in_", range(n_features)))


def _count(number_or_fraction, n_samples):
    if isinstance(number_or_fraction, numbers.Integral):
        return int(number_or_fraction)
    return ceil(number_or_fraction * n_samples)
