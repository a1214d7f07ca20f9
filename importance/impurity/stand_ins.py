"""Surrogate importance, which also credits features that could replace the feature of a split.

A node is split on one feature. Its surrogates are splits of other features that send most rows the
same way; `adj` measures how well. Each gets `adj` times the improvement of the split:

    node          split on    improvement    surrogates               credit
    root          bmi         120            s5 (adj .4), bp (.2)     bmi 120, s5 48, bp 24
    its left      s5          50             bmi (adj .6)             s5   50, bmi 30

Definition: Breiman et al. 1984, section 5.3.4, as R's rpart sums it up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cart.primitives.progress import watched
from cart.primitives.threads import require_n_jobs
from cart.tree.packed import pack
from cart.tree.traversal import leaf_ids
from cart.tree.tree import parents_of
from forest.growing.workers import results_of
from importance.core.adoption import forest_or_tree
from importance.core.docs import with_shared_parameters
from importance.core.fitted_forest import check_forest, names_of, trees_of
from importance.core.groups import parse_groups
from importance.core.result import Importances, importances_over_trees
from importance.impurity.debiased import judge_splits

ROWS = ("training", "oob")
BIAS = (
    "Features that carry the same information all count in full, so values do not add up to the "
    "trees' improvement. On the rows that grew the trees, every feature gets something, even "
    "noise: splits overfit (as in mdi), and the best of many cuts agrees with a split by chance."
)
BIAS_OOB = (
    "Features that carry the same information all count in full, so values do not add up to the "
    "trees' improvement. Judged out of bag, splits on noise are worth 0 on average; as a surrogate "
    "noise is worth less than 0, because it sends fewer rows to the correct side than the majority "
    "rule. It measures {impurity} whatever criterion grew the trees."
)


@with_shared_parameters
def surrogate_importance(
    model: Any, X: Any = None, y: Any = None, *, on: str = "training", sample_weight: Any = None,
    groups: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Decrease in impurity, also credited to the features that could replace that of a split.

    Every split credits its improvement to its feature, and improvement times `adj` to the feature
    of each surrogate. The credits of a feature in a tree are summed up, and averaged over trees.
    For a single tree, this is `variable.importance` of R's rpart (whose entropy takes natural
    logarithms: its values are ours times ln 2). It reveals features that are hardly ever split on
    because a better one masks them.

    Parameters
    ----------
    model : fitted tree or forest
        Fitted with surrogates=k; "auto" is rpart's 5.
    X : array-like of shape (n_samples, n_features), default=None
        The table the forest was fitted on. X, y and `sample_weight` are only for on="oob".
    y : array-like of shape (n_samples,), default=None
    on : {"training", "oob"}, default="training"
        The rows that judge. With "oob", the improvement is that of `unbiased_mdi` ("ufi") times
        the weight of the root. `adj` is computed on the out-of-bag rows of the node whose value of
        the split's feature is known, relative to sending all of them to the side with more in-bag
        weight (or half of each to either side, if both have the same). It is 0 if all of these
        rows go to that side. Agreement is a share as `surrogate_style` of the fit says.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of out-of-bag rows, 1 by default.
    %(groups)s
    %(watched)s

    Returns
    -------
    Importances
        In units of rows x impurity, as `mdi(forest, normalize=False)`. For a single tree, the
        standard error is nan.

    Raises
    ------
    TypeError, ValueError
        If the model is not a fitted tree or forest, or has no surrogates; if a table is given with
        on="training"; with on="oob", whatever `unbiased_mdi` raises.

    See Also
    --------
    masking : which features can replace which.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, surrogate_importance
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, surrogates="auto", random_state=0)
    >>> result = surrogate_importance(forest.fit(X, y))
    >>> result
    <Importances surrogate_importance, ± over trees: bmi 963,000 ± 28,000, s5 888,000 ± 28,000, bp
     597,000 ± 18,000, s1 551,000 ± 16,000, s3 543,000 ± 17,000, ...>
    """
    require_n_jobs(n_jobs)
    if on not in ROWS:
        raise ValueError(f"on={on!r} is not known; use one of {ROWS}.")
    if on == "training" and any(table is not None for table in (X, y, sample_weight)):
        raise ValueError(
            'on="training" is read off the trees and takes no table: leave out X, y and '
            'sample_weight, or set on="oob" to judge on the rows that trees have not seen.'
        )
    given, trees = with_surrogates(model)
    columns = parse_groups(groups, names_of(given))
    words = {"unit": "weighted impurity decrease of a tree (rows x impurity), own and stood in for"}
    if on == "training":
        per_tree = np.array(
            [_credit(tree, tree.surrogates.primary, tree.surrogates.adj) for tree in trees]
        )
        words["bias"] = BIAS
    else:
        fitted = _check_rows(given, X, y, sample_weight)
        per_tree = np.full((len(trees), given.n_features_in_), np.nan)
        judged = list(judge_splits(fitted, "ufi", n_jobs))
        with results_of(((_judge, fitted, *each) for each in judged), n_jobs) as found:
            parts = list(watched(found, len(judged), "tree", verbose, callback))
        per_tree[[t for t, _ in judged]] = parts
        impurity = "Gini impurity" if fitted.is_classification else "squared error"
        words["bias"] = BIAS_OOB.format(impurity=impurity)
        words["unit"] += ", judged out of bag"
    measure = "surrogate_importance" + " (oob)" * (on == "oob")
    return importances_over_trees(measure, columns.sum(per_tree), columns.names, **words)


def with_surrogates(model: Any) -> tuple[Any, list]:
    """The tree or adopted forest in a model, and its trees, which must have surrogates.

    Raises
    ------
    TypeError, ValueError
        If the model is not a fitted tree or forest, or has no surrogates.
    """
    given = forest_or_tree(model)
    trees = [given.tree_] if hasattr(given, "tree_") else trees_of(given)
    if any(getattr(tree, "surrogates", None) is None for tree in trees):
        name = getattr(given, "name", type(given).__name__)
        raise ValueError(
            f"{name} was fitted without surrogates, so no feature stands in for another. Fit "
            'a tree or forest of Cartwood with surrogates="auto" or a number; with the default '
            'missing="learned" this does not change the splits.'
        )
    return given, trees


def _check_rows(given, X, y, sample_weight):
    if hasattr(given, "tree_"):
        raise ValueError(
            f'on="oob" needs rows that a tree was not grown on, but a single '
            f"{type(given).__name__} has none; fit a random forest."
        )
    if X is None or y is None:
        raise ValueError('on="oob" needs the table that the forest was fitted on: give X and y.')
    return check_forest(given, X, y, sample_weight)


def _credit(tree, improvement, adj):
    """Credit of each feature in a tree, for its splits and as a surrogate, (n_features,)."""
    is_split = tree.feature >= 0
    own = np.bincount(tree.feature[is_split], improvement[is_split], tree.n_features)
    lent = np.repeat(improvement, np.diff(tree.surrogates.start)) * adj
    return own + np.bincount(tree.surrogates.feature, lent, tree.n_features)


def _judge(fitted, t, splits):
    """Credit of each feature in a tree, judged by its out-of-bag rows, (n_features,)."""
    tree = fitted.trees[t]
    improvement = np.zeros(tree.node_count)
    improvement[splits.node] = splits.debiased * tree.weighted_n_node_samples[0]
    rows = fitted.out_of_bag(t)
    style = fitted.forest.surrogate_style
    adj = adj_on_rows(tree, fitted.X[rows].astype(np.float64), fitted.weight[rows], style)
    return _credit(tree, improvement, adj)


def adj_on_rows(tree: Any, X: np.ndarray, weight: np.ndarray, style: str) -> np.ndarray:
    """Compute `adj` of all surrogates of a tree on rows other than those it was grown on.

    Parameters
    ----------
    tree : Tree, or any object with its arrays
        With surrogates.
    X : ndarray of shape (n_rows, n_features), float64
    weight : ndarray of shape (n_rows,), float64
    style : {"all", "known"}
        The rows of which agreement is a share, see `surrogate_style` of trees.

    Returns
    -------
    ndarray of shape (n_surrogates,), float64
        0 if no row goes to the side with less in-bag weight.
    """
    surrogates = tree.surrogates
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    heavy = tree.weighted_n_node_samples
    # The part of a row that the majority rule sends left: 1, 0, or 1/2 if both sides weigh as much.
    by_majority = (1.0 + np.sign(heavy[left] - heavy[right])) / 2.0
    counts = np.diff(surrogates.start)
    n_splits = len(surrogates.feature)
    agree, majority, total = np.zeros((3, n_splits))
    parent = parents_of(tree)
    child, row = leaf_ids(pack([tree], X.dtype), 0, X), np.arange(len(X))
    while True:  # rows climb from their leaves to the root, a level at a time
        row, child = row[parent[child] >= 0], child[parent[child] >= 0]
        if len(row) == 0:
            break
        node = parent[child]
        goes_left = left[node] == child
        is_sent = ~np.isnan(X[row, feature[node]])
        for k in range(counts[node].max()):
            asked = np.flatnonzero(is_sent & (counts[node] > k))
            split = surrogates.start[node[asked]] + k
            side = _sides_of(surrogates, split, X[row[asked], surrogates.feature[split]])
            counted = weight[row[asked]] * ((side >= 0) | (style == "all"))
            way = goes_left[asked]
            agree += np.bincount(split, counted * (side == way), n_splits)
            right_by_it = np.abs(by_majority[node[asked]] - ~way)
            majority += np.bincount(split, counted * right_by_it, n_splits)
            total += np.bincount(split, counted, n_splits)
        child = node
    return np.divide(agree - majority, total - majority, out=total * 0.0, where=total > majority)


def _sides_of(surrogates, split, values):
    """The sides to which surrogates send values: 1 is left, 0 is right, -1 is neither."""
    low_left = surrogates.low_left[split] == 1
    side = ((values <= surrogates.threshold[split]) == low_left).astype(np.int64)
    for listing in np.unique(split[np.isnan(surrogates.threshold[split])]):
        listed = surrogates.listed[slice(*surrogates.list_start[listing : listing + 2])]
        here = np.flatnonzero(split == listing)
        at = np.searchsorted(listed >> 1, values[here]).clip(max=len(listed) - 1)
        is_listed = (listed[at] >> 1) == values[here]
        side[here] = np.where(is_listed, (listed[at] & 1).astype(np.int64), -1)
    side[np.isnan(values)] = -1
    return side
