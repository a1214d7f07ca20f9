"""Permutation importance conditional on the features that a feature is associated with."""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import effective_n_threads
from cart.primitives.user_warning import warn_user
from forest.growing.workers import each_step, results_of, shares_memory
from importance.conditional import donors
from importance.conditional.association import Association
from importance.conditional.exchange import increase_by, row_losses
from importance.core.adoption import of_fitted_forest
from importance.core.class_share import warn_of_rare_classes
from importance.core.fitted_forest import NO_ROW_COUNTS, check_forest, names_of
from importance.core.given import require_count
from importance.core.groups import Groups, parse_groups, positions_of
from importance.core.losses import choose_loss
from importance.core.result import Importances, importances_over_trees
from importance.permutation.prepared_tree import prepare_tree

METHODS = ("cells", "neighbours")
BIAS = (
    "Between permuting a feature and dropping it: cells are coarse, so it keeps some of what "
    "correlated features carry, and rows that are alone in their cell count as no loss at all, "
    "which pulls values towards 0."
)
_FEATURES_AT_ONCE = 16  # features whose neighbours are held at once


@of_fitted_forest
def conditional_permutation(
    forest: Any, X: Any, y: Any, *, condition: dict | None = None, threshold: float = 0.2,
    method: str = "cells", n_neighbors: int = 20, loss: str | None = None, groups: Any = None,
    sample_weight: Any = None, random_state: Any = None, n_jobs: int | None = None,
    verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Increase in trees' out-of-bag loss when a feature is permuted among similar rows.

    Like `oob_permutation`, but a row receives values of x_j only from rows that resemble it in the
    features that x_j is associated with, the conditioning set. So it measures what x_j says beyond
    them (Strobl et al. 2008). The expectation over all permutations is computed exactly. A feature
    that no tree uses has exactly 0; one with an empty conditioning set has its marginal value.

    The conditioning set of j consists of the columns whose association with j
    (`importance.conditional.association`; for numbers, the absolute Spearman correlation in the
    training table) is at least `threshold`.

    - "cells": the out-of-bag rows of a tree are permuted within the cells of a grid. The grid is
      cut at all thresholds of that tree on the conditioning set, wherever they are in the tree,
      each through the whole space (Strobl et al. 2008; R's party and permimp with asParty=TRUE). A
      column that the tree does not split on is not cut. Discrete columns (at most 20 values, each
      with ten rows on average) are cut between all their values, used or not, so that a feature
      that is exchangeable given them has an importance of 0. Missing values are a part of their
      own.
    - "neighbours": the donors of a row are those of its `n_neighbors` nearest rows in the
      conditioning set that are out of bag too, except the row itself. The distance is Euclidean
      between ranks scaled to [0, 1]; different categories are 1 apart.

    Parameters
    ----------
    %(bootstrapped)s
    condition : dict of feature to list of columns, default=None
        Conditioning sets, by name or position of the feature or by name of the group; with an empty
        list a feature is permuted freely. Features not named here are decided by `threshold`.
    threshold : float, default=0.2
        Between 0 and 1; 0 conditions on all other columns.
    method : {"cells", "neighbours"}, default="cells"
    n_neighbors : int, default=20
        For "neighbours": number of nearest rows, about a third of which are out of bag.
    loss : str, default=None
        Loss of a single tree, see `oob_permutation`.
    groups : dict of str to list of columns, or list of lists of columns, default=None
        Sets of columns that are permuted together, by the same permutation. Their conditioning set
        has the columns outside the group that are associated with any column of it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row in the loss. All donors are equally likely.
    random_state : int, RandomState instance or None, default=None
        For "neighbours": breaks ties between rows that are equally far.
    %(watched)s

    Returns
    -------
    Importances
        `movable` is the share of out-of-bag rows that could get another row's value, in the trees
        that use the feature; `conditioned_on` names the conditioning sets of the features that
        trees use, or that `condition` names.

    Warns
    -----
    UserWarning
        If fewer than half of the rows could move for some feature: its value is then close to 0
        because nothing was permuted. Also if the rows of one class are out of bag less than half as
        often as those of the others.

    Raises
    ------
    TypeError, ValueError
        If the forest has no out-of-bag rows, (X, y) cannot be its training table, the loss does not
        fit the task, or a parameter is not valid.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, conditional_permutation
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, min_samples_leaf=20, random_state=0)
    >>> conditional_permutation(forest.fit(X, y), X, y, threshold=0.6)
    <Importances conditional_permutation, squared_error, ± over trees: bmi 1,420 ± 120, s5 850 ±
     120, bp 290 ± 44, s4 148 ± 39, s6 147 ± 26, ...>
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known; use one of {METHODS}.")
    if not (isinstance(threshold, Real) and 0.0 <= threshold <= 1.0):
        raise ValueError(f"threshold={threshold!r} must lie between 0 and 1.")
    require_count("n_neighbors", n_neighbors)
    if condition is not None and not isinstance(condition, dict):
        raise TypeError(f"condition must map features to lists of columns, got {condition!r}.")
    fitted = check_forest(forest, X, y, sample_weight)
    name, make_loss = choose_loss(loss, forest)
    names = names_of(forest)
    columns = parse_groups(groups, names)
    is_categorical = getattr(forest, "is_categorical_", np.zeros(fitted.X.shape[1], bool))
    association = Association(fitted.X, is_categorical)
    is_used = np.zeros(len(names), bool)
    for tree in fitted.trees:
        is_used[tree.feature[tree.feature >= 0]] = True
    sets = find_conditions(condition, threshold, columns, names, association, is_used)
    # By tree and group: the increase of the loss, nan for trees without out-of-bag rows; how many
    # rows could get another row's value; and of how many, 0 if the tree does not use the group.
    increase, n_movable, n_rows = found = np.zeros((3, len(fitted.trees), len(columns)))
    if method == "cells":
        levels = donors.find_levels(fitted.X, np.unique(np.concatenate(sets)))
        parts, finders = [np.arange(len(sets))], iter([partial(_donors_in_cells, levels, sets)])
    else:
        parts, stream = _parts_of(sets), check_random_state(random_state)
        finders = _neighbors(fitted.X, sets, parts, is_categorical, n_neighbors, stream)
    given = fitted, columns, make_loss, n_jobs
    with ProgressReporter(len(fitted.trees) * len(parts), "tree", verbose, callback) as watch:
        for chosen, find_donors in zip(parts, finders, strict=True):
            found[:, :, chosen] = _over_trees(*given, chosen, find_donors, watch)
    if np.isnan(increase).all():
        raise ValueError(NO_ROW_COUNTS)
    warn_of_rare_classes(fitted)
    with np.errstate(invalid="ignore"):
        movable = n_movable.sum(axis=0) / n_rows.sum(axis=0)
    _warn_of_few_movable(movable, columns.names, method)
    return importances_over_trees(
        "conditional_permutation", increase, columns.names, bias=BIAS,
        unit=f"increase in out-of-bag {name.replace('_', '-')} loss of a tree", loss=name,
        movable=movable, conditioned_on=[names[of_set] for of_set in sets],
    )  # fmt: skip


def _parts_of(sets):
    """Numbers of the groups that are judged at a time; freely permuted ones are a separate part.

    Parts are small because the neighbours of all groups of a part are held in memory.
    """
    is_free = np.array([len(columns) == 0 for columns in sets])
    filled = np.flatnonzero(~is_free)
    n_parts = max(-(-len(filled) // _FEATURES_AT_ONCE), 1)
    parts = (np.flatnonzero(is_free), *np.array_split(filled, n_parts))
    return [part for part in parts if len(part)]


def _neighbors(X, sets, parts, is_categorical, n_neighbors, stream):
    """Yield, for each part of the groups, a function that finds donors among neighbours."""
    for part in parts:
        nearest = {
            g: donors.find_neighbors(X, sets[g], is_categorical, n_neighbors, stream)
            for g in part
            if len(sets[g])
        }
        yield partial(_donors_among_neighbors, nearest)


def find_conditions(
    condition: dict | None, threshold: float, groups: Groups, names: np.ndarray,
    association: Association, is_used: np.ndarray,
) -> list[np.ndarray]:  # fmt: skip
    """Conditioning sets of the groups: columns, ascending, that each is permuted given.

    Groups of which no column is in `is_used`, (n_features,), have an empty set: their importance is
    0, and the sets of all columns of a wide table would not fit into memory.
    Raises ValueError if a column is unknown, or a group is named twice or conditioned on itself.
    """
    given = {}
    for key, columns in (condition or {}).items():
        known = [g for g, group in enumerate(groups) if key == group.name]
        if not known:
            column = positions_of(key, names)
            if len(column) != 1:
                raise ValueError(
                    f"condition: {key!r} is neither a single feature nor the name of a group."
                )
            known = [g for g, group in enumerate(groups) if column[0] in group.columns]
        if known[0] in given:
            raise ValueError(f"condition contains {groups[known[0]].name!r} twice.")
        given[known[0]] = positions_of(columns, names)
    sets = []
    for g, group in enumerate(groups):
        conditioned = given.get(g)
        if conditioned is None and not is_used[group.columns].any():
            conditioned = np.empty(0, np.int64)
        elif conditioned is None:
            closest = np.max([association.with_all(column) for column in group.columns], axis=0)
            closest[group.columns] = -1.0
            conditioned = np.flatnonzero(closest >= threshold)
        elif np.isin(conditioned, group.columns).any():
            raise ValueError(f"condition: {group.name!r} cannot be conditioned on itself.")
        sets.append(conditioned)
    return sets


def _over_trees(fitted, groups, make_loss, n_jobs, chosen, find_donors, watch):
    """The results of every tree for the chosen groups, (3, n_trees, n_chosen)."""
    n_trees = len(fitted.trees)
    batches = np.array_split(np.arange(n_trees), min(n_trees, 4 * effective_n_threads(n_jobs)))
    given = groups, chosen, make_loss, find_donors, watch if shares_memory() else None
    with results_of(((_of_batch, fitted, batch, *given) for batch in batches), n_jobs) as parts:
        return np.concatenate(list(parts), axis=1)


def _of_batch(fitted, batch, groups, chosen, make_loss, find_donors, watch):
    """The results of some trees for the chosen groups, (3, n_batch, n_chosen)."""
    increase, n_movable, n_rows = found = np.zeros((3, len(batch), len(chosen)))
    for i, t in enumerate(each_step(batch, watch)):
        rows = fitted.out_of_bag(t)
        weight = fitted.weight[rows]
        if not weight.any():
            increase[i] = np.nan
            continue
        prepared, values = prepare_tree(fitted.trees[t], fitted.X, rows)
        loss = make_loss(values, fitted.codes[rows])
        row_loss = row_losses(prepared, loss, len(rows))
        used, cuts = set(prepared.groups), {}  # of this tree; cuts by column
        for k, g in enumerate(chosen):
            if not used.isdisjoint(groups[g].columns):
                segments = find_donors(g, fitted.trees[t], rows, prepared, cuts)
                n_rows[i, k] = len(rows)
                n_movable[i, k] = len(segments.rows)
                total = increase_by(segments, prepared, loss, row_loss, weight, groups[g].columns)
                increase[i, k] = total / weight.sum()
    return found


def _donors_in_cells(levels, sets, g, tree, rows, prepared, cuts):
    """DonorSegments of group g in a tree: rows of a cell exchange values."""
    for column in sets[g]:
        if column not in cuts:
            cuts[column] = _cut(levels, column, tree, rows, prepared)
    bins = [cuts[column] for column in sets[g]]
    return donors.exchange_within([cut for cut in bins if cut is not None], len(rows))


def _cut(levels, column, tree, rows, prepared):
    """Bins of a column, or None if it is neither discrete nor used by the tree."""
    if column in levels:
        return levels[column]._replace(number=levels[column].number[rows])
    used = np.flatnonzero(prepared.groups == column)
    return donors.cut_by_tree(tree, column, prepared.columns[used[0]]) if len(used) else None


def _donors_among_neighbors(nearest, g, tree, rows, prepared, cuts):
    """DonorSegments of group g: a row gets values of its neighbours; see `_donors_in_cells`."""
    if g not in nearest:
        return donors.exchange_within([], len(rows))
    return donors.exchange_with(nearest[g], rows)


def _warn_of_few_movable(movable, names, method):
    few = np.flatnonzero(movable < 0.5)
    if len(few) == 0:
        return
    few = few[np.argsort(movable[few], kind="stable")]
    listed = ", ".join(f"{names[j]} {movable[j]:.0%}" for j in few[:5])
    more = f" and {len(few) - 5} more" if len(few) > 5 else ""
    remedy = (
        "Fit shallower trees (a larger min_samples_leaf, a max_depth), raise threshold, name "
        "fewer columns in condition, or use method='neighbours'."
        if method == "cells"
        else "Raise n_neighbors, or draw fewer rows for each tree with max_samples."
    )
    reason = "are alone in their cell" if method == "cells" else "have no neighbour out of bag"
    warn_user(
        f"Most out-of-bag rows {reason}, so they could not get another value (share that could: "
        f"{listed}{more}); these importances are near 0 because little was permuted. {remedy}"
    )
