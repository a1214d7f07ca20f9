"""Importances that R's randomForest and ranger computed, on their own trees.

What does not depend on chance is compared exactly: the trees, and the importance by impurity. R's
permutation importance is one shuffle per tree (20 in randomForest's regression). Its expectation
on the same trees is exact here, so R's values less ours have mean 0 over the forests; the error of
that mean is known from how they vary from forest to forest.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from cart.tree.nodes import LEAF, UNDEFINED, Nodes
from cart.tree.tree import Tree, impurity_decrease
from forest.sampling.bootstrap import Bootstrap
from importance import oob_permutation
from importance.core.losses import LabelLoss
from importance.permutation.expectation import expected_increase
from importance.permutation.prepared_tree import prepare_tree

GOLDEN = Path(__file__).resolve().parent / "golden"
RANDOM_FOREST = ("randomForest_classification", "randomForest_regression")
RANGER = ("ranger_classification", "ranger_probability", "ranger_regression")
CLASSIFICATION = (RANDOM_FOREST[0], *RANGER[:2])
EVERY = pytest.mark.parametrize("name", [*RANDOM_FOREST, *RANGER])
# Some 100 means of 25 differences are tested: by chance none is so far from 0.
MOST_ERRORS = 4.5


class ForestOfR(BaseEstimator):
    """A forest as `importance.core.fitted_forest` takes it, of trees that R has grown."""

    def __init__(self, bootstrap=True, n_estimators=10, precision="float64"):
        self.bootstrap = bootstrap
        self.n_estimators = n_estimators
        self.precision = precision

    def fit(self, X, y, stored, n_classes):
        self.n_features_in_ = X.shape[1]
        self._n_samples = len(y)
        if n_classes:
            self.classes_ = np.arange(n_classes)
        counts = [np.array(list(digits), dtype=int) for digits in stored["in_bag"]]
        self.estimators_samples_ = [np.repeat(np.arange(len(y)), c) for c in counts]
        self._bootstrap = replace(Bootstrap.plain(len(y), None), given=np.array(counts))
        self.estimators_ = [
            TreeOfR(rebuild(tree, c, X, y, n_classes))
            for tree, c in zip(stored["trees"], counts, strict=True)
        ]
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if hasattr(self, "classes_") else "regressor"
        return tags


class TreeOfR(BaseEstimator):
    random_state = None

    def __init__(self, tree=None):
        self.tree_ = tree

    def get_params(self, deep=True):  # none that R and we both know
        return {}


def rebuild(stored, counts, X, y, n_classes):
    """Our form of a tree, filled by its in-bag rows as if it had just been grown."""
    n_nodes = len(stored["left"])
    nodes = Nodes.create(n_nodes, 1, n_classes or 1)
    nodes.children_left[:], nodes.children_right[:] = stored["left"], stored["right"]
    is_leaf = nodes.children_left == LEAF
    nodes.feature[:] = np.where(is_leaf, UNDEFINED, stored["feature"])
    nodes.threshold[:] = np.where(is_leaf, UNDEFINED, stored["threshold"])
    nodes.missing_go_to_left[:] = 0
    rows_of = {0: np.flatnonzero(counts)}
    for node in range(n_nodes):  # parents come first
        rows, weight = rows_of[node], counts[rows_of[node]]
        nodes.n_node_samples[node], nodes.weighted_n_node_samples[node] = len(rows), weight.sum()
        if n_classes:
            share = np.bincount(y[rows], weight, n_classes) / weight.sum()
            nodes.value[node], nodes.impurity[node] = share, 1.0 - (share**2).sum()
            if is_leaf[node] and np.ndim(stored["prediction"][node]) == 0:
                # Of classes with equal shares R takes any.
                assert share[stored["prediction"][node] - 1] == share.max()
                nodes.value[node, 0, stored["prediction"][node] - 1] += 1e-12
        else:
            mean = np.average(y[rows], weights=weight)
            nodes.value[node] = mean
            nodes.impurity[node] = np.average((y[rows] - mean) ** 2, weights=weight)
        if not is_leaf[node]:
            goes_left = X[rows, nodes.feature[node]] <= nodes.threshold[node]
            rows_of[nodes.children_left[node]] = rows[goes_left]
            rows_of[nodes.children_right[node]] = rows[~goes_left]
    return Tree(nodes, X.shape[1])


@cache
def load(name):
    """X, y, what R said, and its forests."""
    is_classification = name in CLASSIFICATION
    table = pd.read_csv(GOLDEN / ("iris.csv" if is_classification else "diabetes.csv"))
    X, y = table.drop(columns="target").to_numpy(float), table["target"].to_numpy()
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    n_classes = 3 if is_classification else 0
    forests = [ForestOfR().fit(X, y, stored, n_classes) for stored in golden["forests"]]
    return X, y, golden, forests


def of_every_forest(golden, what):
    return np.array([stored[what] for stored in golden["forests"]])


def assert_mean_is_zero(differences):
    """Of independent differences, (n_forests, ...): within its error, and not by its size."""
    n = len(differences)
    mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(n)
    assert (np.abs(mean) <= MOST_ERRORS * error + 1e-12).all(), (mean / error).round(1)


# ------------------------------------------------------------------------------------ exactly


@pytest.mark.parametrize("name", ["randomForest_regression", "ranger_probability", RANGER[2]])
def test_trees_are_rebuilt(name):
    """Filled by the rows in bag, the leaves hold what R says. (Of classes `rebuild` sees to it.)"""
    _, _, golden, forests = load(name)
    for stored, forest in zip(golden["forests"], forests, strict=True):
        for tree_of_r, estimator in zip(stored["trees"], forest.estimators_, strict=True):
            tree = estimator.tree_
            is_leaf = tree.children_left == LEAF
            said = np.array(tree_of_r["prediction"])[is_leaf]
            ours = tree.value[is_leaf, 0]
            np.testing.assert_allclose(ours, said.reshape(ours.shape), rtol=1e-12)


@EVERY
def test_importance_by_impurity(name):
    """Both packages: the weighted decrease of the impurity, in draws of rows, a tree's mean."""
    _, _, golden, forests = load(name)
    for said, forest in zip(of_every_forest(golden, "impurity"), forests, strict=True):
        decrease = [
            impurity_decrease(tree.tree_, normalize=False) * tree.tree_.weighted_n_node_samples[0]
            for tree in forest.estimators_
        ]
        np.testing.assert_allclose(np.mean(decrease, axis=0), said, rtol=1e-9)


def test_scaled_importances_are_raw_ones_over_the_standard_error():
    for name in RANDOM_FOREST:
        golden = load(name)[2]
        raw, scaled, error = (
            of_every_forest(golden, what) for what in ("raw", "scaled", "standard_error")
        )
        np.testing.assert_allclose(raw / np.where(error > 0, error, 1), scaled, rtol=1e-9)


# ----------------------------------------------------------------------- within chance: expected


@EVERY
def test_permutation_importance(name):
    X, y, golden, forests = load(name)
    if name == "ranger_probability":  # 1 less the share of the row's class, squared
        ours = [np.mean(per_tree(forest, X, y, square_of_true_class), axis=0) for forest in forests]
    else:
        ours = [oob_permutation(forest, X, y, loss=loss_of(forest)).values for forest in forests]
    said = of_every_forest(golden, "raw")
    assert_mean_is_zero(said - ours)
    with pytest.raises(AssertionError):  # a tenth would be seen
        assert_mean_is_zero(1.1 * said - ours)


def square_of_true_class(values, codes):
    return LabelLoss((1.0 - values) ** 2, codes.astype(np.int64))


def per_tree(forest, X, y, make_loss):
    """Expected increase of each tree's loss on its out-of-bag rows, (n_trees, n_features)."""
    out = np.zeros((len(forest.estimators_), X.shape[1]))
    for d, estimator, drawn in zip(
        out, forest.estimators_, forest.estimators_samples_, strict=True
    ):
        rows = np.setdiff1d(np.arange(len(y)), drawn)
        prepared, values = prepare_tree(estimator.tree_, X, rows)
        loss = make_loss(values, y[rows])
        d[prepared.groups] = expected_increase(prepared, loss)[0] / len(rows)
    return out


@pytest.mark.parametrize("name", RANDOM_FOREST)
def test_standard_errors_of_random_forest(name):
    """sqrt((mean d^2 - mean(d)^2) / T), where d is of as many shuffles as R makes."""
    X, y, golden, forests = load(name)
    n_repeats, n_times = (1, 3) if name in CLASSIFICATION else (20, 1)
    ours = squared_errors(forests, X, y, n_repeats, n_times)
    assert_mean_is_zero(of_every_forest(golden, "standard_error") ** 2 - ours)


@pytest.mark.parametrize("name", ["ranger_classification", "ranger_regression"])
def test_scaled_importances_of_ranger(name):
    """Over the same standard error as in randomForest."""
    X, y, golden, forests = load(name)
    raw, scaled = of_every_forest(golden, "raw"), of_every_forest(golden, "scaled")
    said = np.divide(raw, scaled, out=np.zeros_like(raw), where=raw != 0.0) ** 2
    assert_mean_is_zero(said - squared_errors(forests, X, y, 1))


def loss_of(forest):
    """The loss that R's packages take by default."""
    return "zero_one" if hasattr(forest, "classes_") else "squared_error"


def squared_errors(forests, X, y, n_repeats, n_times=3):
    """Squared standard errors over trees with so many shuffles each, the mean of several times."""
    return np.array(
        [
            np.mean(
                [
                    oob_permutation(
                        forest, X, y, loss=loss_of(forest), n_repeats=n_repeats, random_state=seed
                    ).errors["over trees"]
                    ** 2
                    for seed in range(n_times)
                ],
                axis=0,
            )
            for forest in forests
        ]
    )


# ------------------------------------------------------- within chance: by row and by class


@cache
def increases(name, of_rows_of_random_forest=False):
    """What each out-of-bag row loses when its donor is any of the tree's out-of-bag rows.

    Returns
    -------
    mean, variance : ndarray of shape (n_forests, n_trees, n_samples, n_features)
        Over donors; nan where the row is in bag.
    """
    X, y, _, forests = load(name)
    mean, variance = np.full((2, len(forests), 10, *X.shape), np.nan)
    for f, forest in enumerate(forests):
        for t, tree in enumerate(estimator.tree_ for estimator in forest.estimators_):
            rows = np.setdiff1d(np.arange(len(y)), forest.estimators_samples_[t])
            losses = by_every_donor(tree, X[rows], y[rows], name, of_rows_of_random_forest)
            mean[f, t, rows] = losses.mean(axis=1).T
            variance[f, t, rows] = losses.var(axis=1).T
    return mean, variance


def by_every_donor(tree, X, y, name, of_rows_of_random_forest):
    """What rows lose by donor, (n_features, n_donors, n_rows)."""
    n = len(X)
    out = np.empty((X.shape[1], n, n))
    label, share = tree.value[:, 0].argmax(axis=1), tree.value[:, 0]
    leaves = tree.apply(X)
    for feature, losses in enumerate(out):
        permuted = np.tile(X, (n, 1))
        permuted[:, feature] = np.repeat(X[:, feature], n)
        reached = tree.apply(permuted).reshape(n, n)
        if name == "ranger_probability":
            losses[:] = (1.0 - share[reached, y]) ** 2 - (1.0 - share[leaves, y]) ** 2
        else:
            losses[:] = (label[reached] != y) * 1.0 - (label[leaves] != y)
            if of_rows_of_random_forest:
                losses[(label[reached] != y) & (label[reached] != label[leaves])] = 1.0
    return out


def test_by_class():
    """randomForest: over the class's out-of-bag rows, 0 where a tree has none; mean over trees."""
    _, y, golden, _ = load(RANDOM_FOREST[0])
    mean, _ = increases(RANDOM_FOREST[0])
    with np.errstate(invalid="ignore"):
        ours = np.stack([np.nanmean(mean[:, :, y == k], axis=2) for k in range(3)], axis=2)
    assert_mean_is_zero(of_every_forest(golden, "by_class") - np.nan_to_num(ours).mean(axis=1))


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_by_row(name):
    """randomForest divides a row's sum by the trees it is out of bag for, ranger by all trees.

    And randomForest counts 1 where a row goes from one wrong class to another. The variance of
    every row's value is known: its donor is drawn anew in every tree.
    """
    said = np.array(load(name)[2]["casewise"])
    mean, variance = increases(name, of_rows_of_random_forest=name in RANDOM_FOREST)
    n_judges = np.count_nonzero(~np.isnan(mean), axis=1)
    n_trees = n_judges if name in RANDOM_FOREST else np.full_like(n_judges, 10)
    is_judged = n_trees > 0
    n_forests = is_judged.sum(axis=0)
    share = np.where(is_judged, 1.0 / np.maximum(n_trees, 1), 0.0)
    ours = (np.nansum(mean, axis=1) * share).sum(axis=0) / n_forests
    error = np.sqrt((np.nansum(variance, axis=1) * share**2).sum(axis=0)) / n_forests
    is_sure = error < 1e-12
    np.testing.assert_allclose(said[is_sure], ours[is_sure], atol=1e-12)
    z = (said - ours)[~is_sure] / error[~is_sure]
    assert len(z) > 200
    assert np.abs(z).max() < 6.0
    assert np.mean(z**2) == pytest.approx(1.0, abs=0.2)
