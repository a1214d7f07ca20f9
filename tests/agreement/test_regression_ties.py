"""Where rounding decides, trees are scikit-learn's up to ties shown in exact arithmetic.

Sums of floats depend on their order. A tree is then either identical to scikit-learn's, or the
first node that differs is a tie between equally good splits or a node of impurity zero, and every
split of the tree is the exact best among the features that its node drew.
"""

from fractions import Fraction

import numpy as np
import pytest
import sklearn.tree

import cart
from benchmarks.oracles.ties import Training, first_difference
from tests.agreement.same import CRITERIA, assert_same_up_to_ties
from tests.data import CALIFORNIA, REGRESSION, SMALL_CLASSIFICATION, load


def check_regressor(name, weight=None, **params):
    X, y = load(name)
    ours = cart.DecisionTreeRegressor(**params).fit(X, y, weight)
    theirs = sklearn.tree.DecisionTreeRegressor(**params).fit(X, y, weight)
    assert_same_up_to_ties(ours, theirs, X, y, np.ones(len(y)) if weight is None else weight)


@pytest.mark.parametrize("max_features", [None, 0.33, 1])
@pytest.mark.parametrize("seed", range(3))
def test_diabetes(seed, max_features):
    check_regressor("diabetes", max_features=max_features, random_state=seed)


@pytest.mark.parametrize("max_features", [None, 0.33])
@pytest.mark.parametrize("name", [CALIFORNIA, "friedman1"])
@pytest.mark.parametrize("seed", range(2))
def test_large_table(seed, name, max_features):
    check_regressor(name, max_features=max_features, random_state=seed)


@pytest.mark.parametrize(
    "params",
    [
        {"max_depth": 6},
        {"min_samples_leaf": 20},
        {"min_samples_split": 0.05},
        {"min_weight_fraction_leaf": 0.01, "max_features": "sqrt"},
        {"min_impurity_decrease": 1e-3},
    ],
    ids=lambda params: next(iter(params)),
)
@pytest.mark.parametrize("name", REGRESSION)
def test_regularised(name, params):
    check_regressor(name, random_state=0, **params)


@pytest.mark.parametrize("name", REGRESSION)
def test_best_first(name):
    check_regressor(name, max_leaf_nodes=50, random_state=0)


def test_whole_sample_weights():
    weight = np.random.default_rng(0).integers(0, 4, 442)
    check_regressor("diabetes", weight, max_features=0.5, random_state=0)


def test_float_sample_weights():
    weight = np.random.default_rng(0).random(442).round(3)
    check_regressor("diabetes", weight, max_features=0.5, random_state=0)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_balanced_classes(name, criterion):
    X, y = load(name)
    counts = np.bincount(y)
    weight = np.array([Fraction(len(y), len(counts) * int(counts[c])) for c in y])
    for seed in range(5):
        params = {"criterion": criterion, "class_weight": "balanced", "random_state": seed}
        ours = cart.DecisionTreeClassifier(max_features=0.5, **params).fit(X, y)
        theirs = sklearn.tree.DecisionTreeClassifier(max_features=0.5, **params).fit(X, y)
        assert_same_up_to_ties(ours, theirs, X, y, weight)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_float_weights_of_a_classifier(name, criterion):
    X, y = load(name)
    for seed in range(3):
        weight = np.random.default_rng(seed).random(len(y)).round(2)
        params = {"criterion": criterion, "max_features": 0.5, "random_state": seed}
        ours = cart.DecisionTreeClassifier(**params).fit(X, y, weight)
        theirs = sklearn.tree.DecisionTreeClassifier(**params).fit(X, y, weight)
        assert_same_up_to_ties(ours, theirs, X, y, weight)


@pytest.mark.parametrize("seed", [3770, 4660, 5832, 7371])
def test_poisson_cuts_that_gain_nothing(seed):
    """Both sides have the same mean; rounding decides whether their gain is below -2e-16."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((60, 1)) < 0.2, np.nan, rng.integers(0, 3, (60, 1)))
    y = rng.poisson(1.0, 60)
    params = {"criterion": "poisson", "monotonic_cst": [1], "random_state": 0}
    ours = cart.DecisionTreeRegressor(**params).fit(X, y)
    theirs = sklearn.tree.DecisionTreeRegressor(**params).fit(X, y)
    assert_same_up_to_ties(ours, theirs, X, y, np.ones(60))
    found = first_difference(ours.tree_, theirs.tree_, Training(X, y, np.ones(60), ours))
    assert found.verdict == "limit"
    split = max(ours, theirs, key=lambda model: model.tree_.feature[found.node])
    sides = split.tree_.children_left[found.node], split.tree_.children_right[found.node]
    is_in = split.decision_path(X).toarray()[:, sides] > 0
    sums, n_rows = y @ is_in, is_in.sum(axis=0)
    assert sums[0] * n_rows[1] == sums[1] * n_rows[0]


@pytest.mark.parametrize("seed", range(6))
def test_poisson_trees_part_no_zeros(seed):
    """A side of zeros has a sum above 0 where total less left is rounded: scikit-learn takes such a
    cut for the best, and makes the node a leaf, though another one is legal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (400, 4)).astype(float)
    y = np.where(rng.random(400) < 0.6, 0.0, rng.lognormal(0.0, 1.0, 400).round(3))
    params = {"criterion": "poisson", "random_state": 0}
    ours = cart.DecisionTreeRegressor(**params).fit(X, y)
    theirs = sklearn.tree.DecisionTreeRegressor(**params).fit(X, y)
    leaf = ours.apply(X)
    assert not any(_can_be_split(X[leaf == i], y[leaf == i]) for i in np.unique(leaf))
    assert_same_up_to_ties(ours, theirs, X, y, np.ones(400))


def _can_be_split(X, y):
    """Is there a cut with targets above 0 on either side, which are not all the same?"""
    return np.ptp(y) > 0 and any(
        y[x <= cut].any() and y[x > cut].any() for x in X.T for cut in np.unique(x)[:-1]
    )
