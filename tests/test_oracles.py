"""The oracles themselves: they accept scikit-learn's trees and refuse wrong ones."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.class_weight import compute_class_weight

import cart
from benchmarks.oracles import splitter
from benchmarks.oracles.nodes import largest_errors
from benchmarks.oracles.ties import Training, first_difference, replay
from benchmarks.oracles.weights import row_weights
from tests.data import load

ARRAYS = (
    *("children_left", "children_right", "feature", "threshold", "impurity"),
    "missing_go_to_left",
)


def fitted(name, **params):
    X, y = load(name)
    kind = DecisionTreeRegressor if name == "diabetes" else DecisionTreeClassifier
    theirs = kind(random_state=0, **params).fit(X, y)
    weight = np.ones(len(y), int)
    return X, y, theirs, Training(X, y, weight, theirs)


def copy_of(tree):
    """A tree that can be falsified."""
    return SimpleNamespace(**{name: getattr(tree, name).copy() for name in ARRAYS})


@pytest.mark.parametrize("max_features", [None, 2])
@pytest.mark.parametrize(
    ("name", "criterion"),
    [("diabetes", "squared_error"), ("wine", "gini"), ("breast_cancer", "entropy")],
)
def test_replay_accepts_scikit_learn(name, criterion, max_features):
    _, _, theirs, training = fitted(name, criterion=criterion, max_features=max_features)
    verdicts = {judged.verdict for judged in replay(theirs.tree_, training)}
    assert "best" in verdicts
    assert verdicts <= {"best", "tie", "leaf", "pure"}


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer"])
def test_replay_finds_a_second_best_split(name):
    X, _, theirs, training = fitted(name, max_depth=1)
    tree = copy_of(theirs.tree_)
    cuts = np.unique(np.float32(X[:, tree.feature[0]]))
    above = cuts[cuts > tree.threshold[0]][:2].astype(float)
    tree.threshold[0] = above.sum() / 2
    assert replay(theirs.tree_, training)[0].verdict != "wrong"
    assert replay(tree, training)[0].verdict == "wrong"
    assert first_difference(tree, theirs.tree_, training).verdict == "wrong"


def test_replay_finds_another_draw():
    X, y, theirs, _ = fitted("diabetes", max_features=1)
    theirs.random_state = 1
    judged = replay(theirs.tree_, Training(X, y, np.ones(len(y), int), theirs))
    assert any(node.verdict == "wrong" for node in judged)


def test_replay_finds_a_leaf_too_many():
    _, _, theirs, training = fitted("diabetes", max_depth=1)
    tree = SimpleNamespace(**{name: getattr(theirs.tree_, name)[:1].copy() for name in ARRAYS})
    tree.children_left[0] = tree.children_right[0] = -1
    assert replay(tree, training)[0].verdict == "wrong"


def test_a_tie_is_a_tie():
    X = np.array([[0, 0], [1, 2], [2, 1], [3, 3]], float)
    y = np.array([0.1, 0.3, 0.3, 0.5])
    ours = cart.DecisionTreeRegressor(max_depth=1, random_state=0).fit(X, y)
    tree = copy_of(ours.tree_)
    training = Training(X, y, np.ones(4, int), ours)
    tree.threshold[0] = {0.5: 2.5, 2.5: 0.5}[tree.threshold[0]]
    assert first_difference(ours.tree_, tree, training).verdict == "tie"
    assert replay(tree, training)[0].verdict == "tie"


def test_a_cut_at_a_limit_is_not_judged_by_one_that_is_none():
    """The means are the same, which a constraint just allows; no Poisson mean may be 0, as that of
    the known values of the other feature is."""
    X = np.array([[1, 1], [0, np.nan], [1, 3], [0, 2], [0, np.nan], [1, np.nan]])
    y = np.array([0, 0, 0, 0, 1, 1])
    theirs = DecisionTreeRegressor(
        criterion="poisson", monotonic_cst=[-1, 1], max_depth=1, random_state=0
    ).fit(X, y)
    assert theirs.tree_.feature[0] == 0
    (root, *_) = replay(theirs.tree_, Training(X, y, np.ones(6, int), theirs))
    assert root.verdict == "tie"


@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_definition_and_proxy_choose_alike(name):
    X, y = load(name)
    X, y = X[::5].astype(np.float32), y[::5].astype(int)
    criterion = "squared_error" if name == "diabetes" else "gini"
    for seed in range(5):
        weight = np.random.default_rng(seed).integers(1, 5, len(y))
        _, gain = splitter.best_split(X, y, weight, criterion)
        other, _ = splitter.best_split(X, y, weight, criterion, splitter.proxy)
        is_left = X[:, other[0]] <= other[1]
        assert gain == pytest.approx(splitter.decrease(y, weight, is_left, criterion))


def test_replay_finds_a_split_that_gains_too_little():
    X, y, theirs, _ = fitted("wine")
    theirs.min_impurity_decrease = 0.02
    judged = replay(theirs.tree_, Training(X, y, np.ones(len(y), int), theirs))
    assert any(node.verdict == "wrong" for node in judged)


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("diabetes", "squared_error"), ("diabetes", "poisson"), ("wine", "gini"),
        ("breast_cancer", "entropy"),
    ],
)  # fmt: skip
def test_errors_of_nodes_are_those_that_were_made(name, criterion):
    X, y, theirs, _ = fitted(name, criterion=criterion, max_depth=3)
    weight = row_weights(y)
    tree = copy_of(theirs.tree_)
    tree.value = theirs.tree_.value.copy()
    impurity, value = largest_errors(tree, X, y, weight, criterion)
    assert impurity < 1e-10 * theirs.tree_.impurity.max()
    assert value < 1e-10 * abs(theirs.tree_.value).max()
    tree.impurity[2] += 0.25
    tree.value[1, 0, 0] += 0.5
    found = largest_errors(tree, X, y, weight, criterion)
    np.testing.assert_allclose(found, (0.25, 0.5), rtol=1e-6)


def test_weights_of_rows_are_scikit_learns():
    """A forest without draws balances weights, a tree counts of rows."""
    y, given = np.array([0, 0, 1, 2, 2, 2]), np.array([1.0, 2.0, 4.0, 1.0, 1.0, 8.0])
    for is_forest in (False, True):
        of_class = compute_class_weight(
            "balanced", classes=np.arange(3), y=y, sample_weight=given if is_forest else None
        )
        found = row_weights(y, given, "balanced", is_forest=is_forest).astype(float)
        np.testing.assert_allclose(found, given * of_class[y])
