"""Unbiased MDI: decreases in impurity judged by out-of-bag rows; and the optimism of MDI.

Here labels are vectors: one-hot classes, or a number. For a node with in-bag mean m and out-of-bag
mean m', the cross impurity of Zhou and Hooker (2021) is

    H' = (mean |y|^2 in bag + mean |y|^2 out of bag) / 2 - m . m'

which is 1 - sum_k p_k p'_k for classes, and (in-bag variance + mean out-of-bag (y - m)^2) / 2 for
numbers. With in-bag rows only, it is the Gini impurity or the variance.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cart.primitives.progress import watched
from cart.tree.nodes import LEAF, levels_of
from cart.tree.packed import pack
from cart.tree.traversal import leaf_ids, rows_for
from forest.growing.workers import results_of
from importance.core.adoption import of_fitted_forest
from importance.core.class_share import warn_of_rare_classes
from importance.core.fitted_forest import NO_ROW_COUNTS, FittedForest, check_forest, names_of
from importance.core.groups import parse_groups
from importance.core.result import Importances, importances_over_trees, known_trees, mean_and_error

METHODS = ("ufi", "mdi_oob")
_ROUNDING = 1e-14  # times the mean |y|^2 of a node: a smaller decrease is a rounding error
BIAS = (
    "0 on average for a feature that is independent of y in every node, so values can be negative "
    "(mdi_oob only if y is centred). "
    "It measures {impurity} whatever criterion grew the trees, and only the splits that were made: "
    "correlated features share it."
)


@dataclass(frozen=True, eq=False)
class Optimism:
    """The optimism of MDI: MDI minus its debiased version, by feature and by depth.

    Sums over depths are the values over all splits.

    Attributes
    ----------
    method : {"ufi", "mdi_oob"}
    feature_names : ndarray of shape (n_features,), str
    by_feature : ndarray of shape (n_features,), float64
        MDI minus its debiased version, averaged over trees.
    standard_error : ndarray of shape (n_features,), float64
        Standard error of `by_feature`, over trees.
    by_depth : ndarray of shape (n_depths, n_features), float64
        The optimism of the splits at each depth; the root has depth 0.
    mdi_by_depth : ndarray of shape (n_depths, n_features), float64
        MDI, not normalised, by Gini impurity or squared error.
    unjudged_by_depth : ndarray of shape (n_depths, n_features), float64
        The part of `by_depth` from splits that cannot be judged for lack of out-of-bag rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, optimism
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> found = optimism(forest, X, y)
    >>> bool((found.by_depth.sum(axis=0).round(6) == found.by_feature.round(6)).all())
    True
    """

    method: str
    feature_names: np.ndarray
    by_feature: np.ndarray
    standard_error: np.ndarray
    by_depth: np.ndarray
    mdi_by_depth: np.ndarray
    unjudged_by_depth: np.ndarray


@of_fitted_forest
def unbiased_mdi(
    forest: Any, X: Any, y: Any, *, method: str = "ufi", sample_weight: Any = None,
    groups: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Mean decrease in impurity, judged also on the out-of-bag rows.

    The value of a feature is the sum over the splits on it in a tree, averaged over the trees that
    have out-of-bag rows. The impurity is Gini in classification and squared error in regression,
    whatever criterion grew the trees. The means of nodes are computed from the draws, so it does
    not matter what the trees predict. Nothing is normalised.

    - "ufi" (Zhou and Hooker 2021): (w_t H'_t - w_l H'_l - w_r H'_r) / w_root with the in-bag
      weights w and the cross impurity H' of in-bag and out-of-bag labels: 1 - sum_k p_k p'_k, or
      (in-bag variance + mean out-of-bag squared error of the in-bag mean) / 2, including the factor
      1/2 that the authors' code leaves out. A split is skipped if one of its sides has no
      out-of-bag row.
    - "mdi_oob" (Li et al. 2019): the formula of the paper, the out-of-bag mean of f_j(x_i) . y_i,
      where f_j(x) is the sum, over the splits on j that x passes, of the mean of the side reached
      minus the mean of the node. (The code published with the paper computes something else.) It
      is 0 on average for noise only if y is centred. Classes of different sizes put noise below 0,
      by 0.002 per feature for classes of 70, 20 and 10 % and of 90 and 10 % (z = -20 and -24; by
      "ufi" -0.8 and 0.6: `python -m benchmarks calibration --only "off centre" --sets 1500`).

    Parameters
    ----------
    %(bootstrapped)s
    method : {"ufi", "mdi_oob"}, default="ufi"
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of out-of-bag rows, 1 by default. In-bag rows have their weights in the tree.
    %(groups)s
    %(watched)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If this is not a forest with out-of-bag rows, if (X, y) cannot be its training table, or if
        the method or a group is unknown.

    Warns
    -----
    UserWarning
        If the rows of a class are out of bag less than half as often as those of the others. If
        only one class ever is out of bag, every value of "ufi" is 0.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, unbiased_mdi
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> unbiased_mdi(forest, X, y)
    <Importances unbiased_mdi (ufi), ± over trees: bmi 958 ± 80, s5 779 ± 86, s4 279 ± 61, bp 261 ±
     37, s6 239 ± 31, ...>
    """
    fitted = check_forest(forest, X, y, sample_weight)
    columns = parse_groups(groups, names_of(forest))
    n_features = fitted.X.shape[1]
    per_tree = np.full((len(fitted.trees), n_features), np.nan)
    for t, splits in judge_splits(fitted, method, n_jobs, verbose, callback):
        per_tree[t] = np.bincount(splits.feature, splits.debiased, n_features)
    impurity = "Gini impurity" if fitted.is_classification else "squared error"
    return importances_over_trees(
        f"unbiased_mdi ({method})", columns.sum(per_tree), columns.names,
        unit=f"weighted decrease of the {impurity} of a tree, judged out of bag ({method})",
        bias=BIAS.format(impurity=impurity),
    )  # fmt: skip


@of_fitted_forest
def optimism(
    forest: Any, X: Any, y: Any, *, method: str = "ufi", sample_weight: Any = None,
    groups: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Optimism:  # fmt: skip
    """The part of each feature's MDI, at each depth, that out-of-bag rows do not confirm.

    Parameters
    ----------
    %(bootstrapped)s
    method : {"ufi", "mdi_oob"}, default="ufi"
        The debiased version to compare with, see `unbiased_mdi`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of out-of-bag rows, 1 by default. In-bag rows have their weights in the tree.
    %(groups)s
    %(watched)s

    Returns
    -------
    Optimism

    Raises
    ------
    TypeError, ValueError
        See `unbiased_mdi`.

    Warns
    -----
    UserWarning
        See `unbiased_mdi`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, optimism
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> found = optimism(forest, X, y)
    >>> found.by_feature.round(-1)  # the part of MDI that does not hold out of bag
    array([350.,  50., 410., 440., 340., 350., 280., 160., 400., 380.])
    """
    fitted = check_forest(forest, X, y, sample_weight)
    columns = parse_groups(groups, names_of(forest))
    n_features = fitted.X.shape[1]
    per_tree = np.full((len(fitted.trees), n_features), np.nan)
    by_depth = np.zeros((3, 0, n_features))  # optimism, MDI, optimism of unjudged splits
    for t, splits in judge_splits(fitted, method, n_jobs, verbose, callback):
        excess = splits.plain - splits.debiased
        per_tree[t] = np.bincount(splits.feature, excess, n_features)
        n_deeper = max(0, 1 + splits.depth.max(initial=-1) - by_depth.shape[1])
        by_depth = np.pad(by_depth, ((0, 0), (0, n_deeper), (0, 0)))
        cell = splits.depth * n_features + splits.feature
        parts = (excess, splits.plain, excess * ~splits.is_judged)
        for sums, part in zip(by_depth, parts, strict=True):
            sums += np.bincount(cell, part, sums.size).reshape(sums.shape)
    return Optimism(
        method, columns.names, *mean_and_error(columns.sum(per_tree)),
        *columns.sum(by_depth / len(known_trees(per_tree))),
    )  # fmt: skip


class Splits(NamedTuple):
    """The splits of a tree, from the root down."""

    node: np.ndarray  # (n_splits,) int64
    feature: np.ndarray  # (n_splits,) int64
    depth: np.ndarray  # (n_splits,) int64
    plain: np.ndarray  # (n_splits,) float64: decrease in bag
    debiased: np.ndarray  # (n_splits,) float64: decrease judged out of bag
    is_judged: np.ndarray  # (n_splits,) bool: whether there are the out-of-bag rows for it


def judge_splits(
    fitted: FittedForest, method: str, n_jobs: int | None, verbose: int = 0,
    callback: Callable | None = None,
) -> Iterator[tuple[int, Splits]]:  # fmt: skip
    """Yield the number and the Splits of each tree that has out-of-bag rows.

    Raises ValueError if the method is unknown, or if there is no such tree.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known; use one of {METHODS}.")
    trees = [t for t in range(len(fitted.trees)) if fitted.weight[fitted.out_of_bag(t)].sum() > 0.0]
    if not trees:
        raise ValueError(NO_ROW_COUNTS)
    warn_of_rare_classes(fitted)
    packed = pack(fitted.trees, fitted.X.dtype)
    X = rows_for(packed, fitted.X)
    tasks = ((_evaluate_splits, fitted, packed, X, t, method) for t in trees)
    with results_of(tasks, n_jobs) as splits:
        steps = watched(splits, len(trees), "tree", verbose, callback)
        yield from zip(trees, steps, strict=True)


def _evaluate_splits(fitted, packed, X, t, method):
    """The Splits of one tree."""
    tree = fitted.trees[t]
    leaves = leaf_ids(packed, t, X)
    levels = split_levels(tree)
    # Shifting y does not change impurities; with the zero near the mean, sums lose no digits.
    zero = 0.0 if fitted.is_classification else fitted.codes.mean()
    out_weight = fitted.weight * (fitted.counts(t) == 0)
    inside, outside = (
        sum_labels(tree, levels, leaves, weight, fitted.codes - zero, fitted.n_classes)
        for weight in (fitted.weight_in_tree(t), out_weight)
    )
    node = np.concatenate((np.empty(0, np.int64), *levels))
    left, right = tree.children_left[node], tree.children_right[node]

    def decrease(impurity):
        burden = inside.weight / inside.weight[0] * impurity
        return burden[node] - burden[left] - burden[right]

    plain = decrease(inside.squares - _dot(inside.mean, inside.mean))
    if method == "ufi":
        is_judged = (outside.weight[left] > 0.0) & (outside.weight[right] > 0.0)
        cross = (inside.squares + outside.squares) / 2.0 - _dot(inside.mean, outside.mean)
        debiased = np.where(is_judged, decrease(cross), 0.0)
    else:
        is_judged = (outside.weight[left] > 0.0) | (outside.weight[right] > 0.0)
        sums = (outside.mean + zero) * (outside.weight / outside.weight[0])[:, np.newaxis]
        debiased = _dot(inside.mean[left] - inside.mean[node], sums[left])
        debiased += _dot(inside.mean[right] - inside.mean[node], sums[right])
    share = np.maximum(inside.weight / inside.weight[0], outside.weight / outside.weight[0])
    least = _ROUNDING * (share * (inside.squares + outside.squares))[node]
    plain, debiased = (np.where(np.abs(part) <= least, 0.0, part) for part in (plain, debiased))
    depth = np.repeat(np.arange(len(levels)), [len(level) for level in levels])
    return Splits(node, tree.feature[node].astype(np.int64), depth, plain, debiased, is_judged)


def _dot(a, b):
    return np.einsum("ij,ij->i", a, b)


def split_levels(tree: Any) -> list[np.ndarray]:
    """The nodes that split, level by level from the root: a list of arrays."""
    levels = levels_of(tree.children_left, tree.children_right)
    split = [level[tree.children_left[level] != LEAF] for level in levels]
    return split[:-1]  # the last level has leaves only


class Labels(NamedTuple):
    """Statistics of the labels in each node; 0 for a node without rows."""

    weight: np.ndarray  # (n_nodes,): total weight of the rows
    mean: np.ndarray  # (n_nodes, n_classes): class shares, or the mean (one column)
    squares: np.ndarray  # (n_nodes,): mean |y|^2


def sum_labels(
    tree: Any, levels: list[np.ndarray], leaves: np.ndarray, weight: np.ndarray,
    codes: np.ndarray, n_classes: int,
) -> Labels:  # fmt: skip
    """Sum up labels in the leaves, and from the leaves up to the root.

    `leaves`, `weight` and `codes` have an entry for each row; codes are class codes, or numbers if
    n_classes is 1. `levels` come from `split_levels`.
    """
    n_nodes = tree.node_count
    if n_classes > 1:
        cell = leaves * n_classes + codes.astype(np.int64)
        sums = np.bincount(cell, weight, n_nodes * n_classes).reshape(n_nodes, n_classes)
    else:
        powers = (weight * codes, weight, weight * codes**2)
        sums = np.stack([np.bincount(leaves, part, n_nodes) for part in powers], axis=1)
    for level in reversed(levels):
        sums[level] = sums[tree.children_left[level]] + sums[tree.children_right[level]]
    total = squares = sums.sum(axis=1)
    if n_classes == 1:
        sums, total, squares = sums[:, :1], sums[:, 1], sums[:, 2]
    known = np.maximum(total, np.finfo(float).tiny)
    return Labels(total, sums / known[:, np.newaxis], squares / known)
