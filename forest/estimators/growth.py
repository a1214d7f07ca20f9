"""Grow the trees of one fit: their seeds, their common attributes, and how many are grown."""

import dataclasses
from copy import deepcopy
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from cart.estimators.target import Target, warn_of_small_target
from cart.growth.plan import Plan
from cart.primitives.progress import ProgressReporter
from cart.primitives.user_warning import warn_user
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.columns import Columns
from cart.tree.packed import pack
from forest.estimators.parameters import TREE_PARAMETERS
from forest.growing.interruption import Interruption
from forest.growing.stopping import (
    MAX_TREES,
    MIN_TREES,
    Budget,
    StabilityEstimator,
    grow_until_stable,
)
from forest.growing.thread_pool import grow_trees
from forest.sampling.weights import in_bag_weight
from forest.voting.out_of_bag import outputs_out_of_bag


def grow_forest(
    forest: BaseEstimator, table: Any, plan: Plan, columns: Columns, target: Target,
    old_trees: list, interruption: Interruption,
) -> list:  # fmt: skip
    """Grow new trees, and return them after those that a warm start keeps.

    Parameters
    ----------
    forest : forest estimator
        Its bootstrap must be planned.
    table, plan, columns : see `forest.growing.thread_pool.grow_trees`
    target : cart.estimators.target.Target
    old_trees : list of estimators of `cart`
    interruption : forest.growing.interruption.Interruption
        Is told to keep the trees that were finished before Ctrl-C.

    Returns
    -------
    list of estimators of `cart`
    """
    example = empty_tree(forest, target, plan)

    def grow(seeds, reporter):
        weigh = _weights_of_trees(forest, seeds, target.codes)
        return grow_trees(
            table, target.codes, plan, seeds, weigh, interruption, forest.n_jobs, reporter, columns
        )

    if forest.n_estimators == "auto":
        grown = _grow_until_stable(forest, grow, columns.X, target, old_trees, interruption)
    else:
        grown = _grow_as_many(forest, grow, old_trees, interruption)
        vars(forest).pop("stability_", None)  # of the previous fit
    warn_of_small_target((tree for tree, _ in grown), target)
    return [*old_trees, *(example.holding(*pair) for pair in grown)]


def _new_seeds(forest, old_trees, n_at_once):
    """Yield the seeds of further trees: those that a single fit of all trees would use, in order.

    Seeds of trees that an interrupt left out come first, if all old trees have seeds of that fit.
    If some trees were put there by hand, as many seeds as there are old trees are skipped, as in
    scikit-learn. Seeds are drawn `n_at_once`.
    """
    random_state = check_random_state(forest.random_state)
    known = {tree.random_state for tree in old_trees}
    first = random_state.randint(DRAW_SEED_MAX, size=len(old_trees)).tolist()
    if not known.issuperset(first):
        ahead = deepcopy(random_state).randint(DRAW_SEED_MAX, size=MAX_TREES).tolist()
        if len(known) == len(first) and known.issubset([*first, *ahead]):
            yield from (seed for seed in first if seed not in known)
        else:
            known = set()
    while True:
        drawn = random_state.randint(DRAW_SEED_MAX, size=n_at_once).tolist()
        yield from (seed for seed in drawn if seed not in known)


def _grow_as_many(forest, grow, old_trees, interruption):
    """Grow trees up to `n_estimators`; return those that were finished, with their seeds."""
    n_old = len(old_trees)
    n_new = forest.n_estimators - n_old
    seeds = list(islice(_new_seeds(forest, old_trees, n_new), n_new))
    with ProgressReporter(n_new, "tree", forest.verbose, forest.callback) as reporter:
        trees = _without_gaps(forest, grow(seeds, reporter), n_old)
    grown = [pair for pair in zip(trees, seeds, strict=True) if pair[0]]
    if interruption.is_cut:
        if not grown:
            raise KeyboardInterrupt
        if len(grown) < n_new:
            interruption.keep(
                f"{n_old + len(grown)} of {forest.n_estimators} trees are finished and kept (fit "
                "again with warm_start=True to grow the others)"
            )
    return grown


def _grow_until_stable(forest, grow, X, target, old_trees, interruption):
    """Grow trees until more of them would hardly change the result (n_estimators="auto")."""
    _require_out_of_bag_rows(forest._bootstrap.of_trees(range(MIN_TREES)))
    costs = getattr(forest, "loss_", None)
    judge = StabilityEstimator(target.codes, target.n_values, costs)

    def ask(trees, seeds):
        bootstrap = forest._bootstrap.of_trees(seeds)
        return outputs_out_of_bag(
            pack(trees, X.dtype), X, target.n_outputs,
            lambda t: judge.rows[bootstrap.counts(t)[judge.rows] == 0],
        )  # fmt: skip

    kept = [estimator.tree_ for estimator in old_trees]
    if kept:
        judge.add(kept, ask(kept, [estimator.random_state for estimator in old_trees]))
    with ProgressReporter(None, "tree", forest.verbose, forest.callback) as reporter:
        budget = Budget(forest.max_time, forest.max_memory, kept, reporter)
        grown, stability = grow_until_stable(
            partial(grow, reporter=reporter), ask, _new_seeds(forest, old_trees, 1), judge, budget,
            interruption,
        )  # fmt: skip
    forest.stability_ = stability
    if stability.stopped_by == "interrupt":
        interruption.keep(
            f"{judge.n_trees} trees are finished and kept, see stability_ (fit again with "
            "warm_start=True to continue)"
        )
    elif not stability.is_stable:
        what = "loss" if not stability.is_loss_settled else "order of the importances"
        so_many = f"{judge.n_trees} tree{'s' * (judge.n_trees > 1)}"
        warn_user(
            f"Growth was stopped by {stability.stopped_by} at {so_many}, before the out-of-bag "
            f"{what} was stable; see stability_. Fit again with warm_start=True to continue."
        )
    return grown


def _require_out_of_bag_rows(bootstrap):
    """Raise a ValueError if no draw leaves a row out, as with a single group."""
    if not any(len(bootstrap.out_of_bag(i)) for i in range(MIN_TREES)):
        raise ValueError(
            'n_estimators="auto" judges the trees on out-of-bag rows, but every draw has all rows '
            "or all groups. Set a number of trees, a smaller max_samples or more groups."
        )


def _without_gaps(forest, trees, n_old):
    """If in-bag counts were given, drop the trees after the first gap: counts go by tree number."""
    given = forest._bootstrap.given
    if given is None or None not in trees:
        return trees
    n = trees.index(None)
    forest._bootstrap = dataclasses.replace(forest._bootstrap, given=given[: n_old + n])
    return trees[:n] + [None] * (len(trees) - n)


def _weights_of_trees(forest, seeds, codes):
    """A function that returns the weights of the rows in new trees, given the trees' numbers."""
    if not forest.bootstrap:
        weight = 1.0 if forest._row_weight is None else forest._row_weight
        return partial(_same_weight, weight)
    bootstrap = forest._bootstrap.of_trees(seeds)
    class_weight, factor = forest.class_weight, forest._class_factor
    if factor is not None or class_weight == "balanced_subsample":
        return partial(_weights_by_class, bootstrap, codes, class_weight, factor)
    return bootstrap.counts_of


# Not lambdas, which cannot be pickled for other processes.
def _same_weight(weight, numbers):
    return [weight] * len(numbers)


def _weights_by_class(bootstrap, codes, class_weight, factor, numbers):
    return [in_bag_weight(bootstrap, i, codes, class_weight, factor) for i in numbers]


@cache
def shared_parameters(tree_class):
    """Names of the parameters that a forest passes to its trees."""
    return TREE_PARAMETERS.intersection(tree_class._get_param_names())


def empty_tree(forest, target, plan):
    """A tree estimator with the attributes that all trees of a forest share, but no tree yet."""
    shared = shared_parameters(forest._tree_class)
    tree = forest._tree_class(**{name: getattr(forest, name) for name in shared})
    tree._grown_in, tree.max_features_ = forest.precision, plan.limits.max_features
    kept = ["n_features_in_", "n_outputs_", "n_merged_values_"]
    kept += ["_are_dates"] if hasattr(forest, "_are_dates") else []
    if forest.categorical_features is not None:
        kept += ["_category_encoder", "is_categorical_", "categories_"]
    for name in kept:
        setattr(tree, name, getattr(forest, name))
    if target.labels is not None:
        classes = [np.arange(len(labels), dtype=np.float64) for labels in target.labels]
        tree.classes_ = classes if forest.n_outputs_ > 1 else classes[0]
        n_classes = forest.n_classes_
        tree.n_classes_ = np.array(n_classes) if forest.n_outputs_ > 1 else n_classes
        if hasattr(forest, "loss_"):
            tree.loss_ = forest.loss_
    return tree
