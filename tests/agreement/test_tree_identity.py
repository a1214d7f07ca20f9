"""Classification trees are scikit-learn's, node for node."""

import numpy as np
import pytest
import sklearn.tree

import cart
from tests.agreement.same import (
    CRITERIA,
    REGULARISERS,
    SEEDS,
    assert_same_outputs,
    assert_same_tree,
)
from tests.data import LARGE_CLASSIFICATION, SMALL_CLASSIFICATION, load, unseen_rows


def fit_both(X, y, sample_weight=None, **params):
    ours = cart.DecisionTreeClassifier(**params).fit(X, y, sample_weight)
    theirs = sklearn.tree.DecisionTreeClassifier(**params).fit(X, y, sample_weight)
    return ours, theirs


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_same_tree(name, criterion, regulariser):
    X, y = load(name)
    for seed in SEEDS:
        params = {"criterion": criterion, "random_state": seed, **REGULARISERS[regulariser]}
        ours, theirs = fit_both(X, y, **params)
        assert_same_tree(ours.tree_, theirs.tree_)
        assert_same_outputs(ours, theirs, unseen_rows(X))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", LARGE_CLASSIFICATION)
def test_same_large_tree(name, criterion):
    X, y = load(name)
    for seed in SEEDS:
        ours, theirs = fit_both(X, y, criterion=criterion, max_features=5, random_state=seed)
        assert_same_tree(ours.tree_, theirs.tree_)
    assert_same_outputs(ours, theirs, unseen_rows(X))


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("name", LARGE_CLASSIFICATION)
def test_same_large_tree_regularised(name, regulariser):
    X, y = load(name)
    for seed in SEEDS:
        params = {"criterion": CRITERIA[seed % 2], "random_state": seed}
        ours, theirs = fit_both(X, y, **params, **REGULARISERS[regulariser])
        assert_same_tree(ours.tree_, theirs.tree_)
    assert_same_outputs(ours, theirs, unseen_rows(X))


@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_whole_sample_weights(name):
    X, y = load(name)
    for seed in SEEDS:
        weight = np.random.default_rng(seed).integers(0, 4, len(y))
        ours, theirs = fit_both(X, y, weight, random_state=seed, max_features="sqrt")
        assert_same_tree(ours.tree_, theirs.tree_)
        ours, theirs = fit_both(
            X, y, weight, random_state=seed, min_weight_fraction_leaf=0.02, class_weight={0: 2}
        )
        assert_same_tree(ours.tree_, theirs.tree_)


def test_log_loss_is_entropy():
    X, y = load("wine")
    ours, theirs = fit_both(X, y, criterion="log_loss", random_state=0)
    assert_same_tree(ours.tree_, theirs.tree_)
    assert_same_tree(ours.tree_, fit_both(X, y, criterion="entropy", random_state=0)[0].tree_)


def test_neighbours_within_1e7_are_one_value():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (300, 4)) * np.float32(6e-8) + rng.integers(0, 3, (300, 1))
    y = rng.integers(0, 3, 300)
    for seed in SEEDS:
        ours, theirs = fit_both(X, y, random_state=seed)
        assert_same_tree(ours.tree_, theirs.tree_)


def test_constant_features_are_not_drawn_again():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 30)).astype(float)
    X[:, ::3] = 1.0
    y = rng.integers(0, 4, 400)
    for seed in SEEDS:
        for limit in (None, 40):
            params = {"max_features": 2, "max_leaf_nodes": limit, "random_state": seed}
            ours, theirs = fit_both(X, y, **params)
            assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
def test_many_labels_at_once(weights):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)).round(1)
    y = (X[:, [0, 1, 2, 3, 4, 0, 1, 2, 3]] + rng.normal(size=(400, 9)) > 0.5).astype(int)
    y[:, 4] += X[:, 5] > 1.0
    weight = {"whole": rng.integers(1, 4, 400), "fractions": rng.random(400)}.get(weights)
    for seed in SEEDS:
        for limit in (None, 30):
            params = {"max_features": 3, "max_leaf_nodes": limit, "random_state": seed}
            ours, theirs = fit_both(X, y, weight, **params)
            assert_same_tree(ours.tree_, theirs.tree_)


def test_labels_and_frames():
    X, y = load("iris")
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    ours, theirs = fit_both(X, labels, random_state=0)
    assert_same_outputs(ours, theirs, X)
    assert_same_tree(ours.tree_, fit_both(X.tolist(), list(y), random_state=0)[0].tree_)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda X: X[::-1][::-1], np.float32])
def test_layout_of_x(layout):
    X, y = load("wine")
    ours = cart.DecisionTreeClassifier(random_state=0)
    first = ours.fit(X, y).tree_
    assert_same_tree(ours.fit(layout(X), y).tree_, first)


@pytest.mark.parametrize("kind", ["DecisionTreeClassifier", "ExtraTreeClassifier"])
def test_a_class_of_a_thousand_million_hides_no_other(kind):
    """Squares of such weights are rounded: what is left of one class beside them was noise."""
    X, y = np.arange(8.0)[:, None], np.array([1, 1, 1, 2, 2, 3, 3, 0])
    weight = np.where(y == 1, 1e9, 1.0)
    ours, theirs = (
        getattr(home, kind)(random_state=0).fit(X, y, sample_weight=weight).tree_
        for home in (cart, sklearn.tree)
    )
    np.testing.assert_array_equal(ours.threshold, theirs.threshold)
    np.testing.assert_allclose(ours.impurity, theirs.impurity, rtol=1e-12, atol=1e-16)
