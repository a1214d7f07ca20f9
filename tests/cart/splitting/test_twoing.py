"""Twoing and ordered twoing against their formulas, cut by cut."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier
from cart.tree.nodes import LEAF
from tests.data import load
from tests.examples import examples

RULES = pytest.mark.parametrize("rule", ["twoing", "ordered_twoing"])


def quality(rule, left, right):
    """Of a cut, from the class weights on its sides: section 4.3.2 of the book, and 11.8."""
    share_left = left.sum() / (left.sum() + right.sum())
    balance = share_left * (1.0 - share_left)
    difference = left / left.sum() - right / right.sum()
    if rule == "twoing":
        return balance / 4.0 * np.abs(difference).sum() ** 2
    return balance * (np.cumsum(difference)[:-1] ** 2).max(initial=0.0)  # of one class


def best_quality_by_superclasses(left, right):
    """The largest decrease of Gini over all ways to part the classes in two: the book's theorem
    4.10 says that it is twice the twoing criterion."""

    def gini(one, other):
        total = one + other
        return 2.0 * (one / total) * (other / total)

    n, best = len(left), 0.0
    total = left.sum() + right.sum()
    for mask in range(1, 2 ** (n - 1)):
        first = np.array([(mask >> c) & 1 for c in range(n)], bool)
        sides = [(side[first].sum(), side[~first].sum()) for side in (left, right)]
        whole = np.sum(sides, axis=0)
        after = sum(sum(side) / total * gini(*side) for side in sides)
        best = max(best, gini(*whole) - after)
    return best


def qualities(rule, X, y, weight, min_leaf):
    """Of every cut: its quality over all outputs, feature, and the values beside it."""
    indicators = [(labels[:, np.newaxis] == np.unique(labels)).astype(float) for labels in y.T]
    outputs = [indicator * weight[:, np.newaxis] for indicator in indicators]
    found = []
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for low, high in itertools.pairwise(values):
            goes_left = X[:, feature] <= low
            if min_leaf <= goes_left.sum() <= len(y) - min_leaf:
                sides = [(c[goes_left].sum(axis=0), c[~goes_left].sum(axis=0)) for c in outputs]
                total = sum(quality(rule, left, right) for left, right in sides)
                found.append((total, feature, (low + high) / 2))
    return found


@RULES
@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_no_cut_is_better(rule, seed, n_outputs):
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(4, 40)), int(rng.integers(2, 6))
    X = rng.integers(0, rng.choice([3, 50]), (n, 3)).astype(float)
    y = rng.integers(0, n_classes, (n, n_outputs))
    weight = rng.integers(1, 4, n) if rng.random() < 0.5 else rng.random(n) + 0.1
    min_leaf = int(rng.integers(1, 3))
    model = DecisionTreeClassifier(criterion=rule, max_depth=1, min_samples_leaf=min_leaf)
    tree = model.fit(X, y if n_outputs > 1 else y[:, 0], weight).tree_
    cuts = qualities(rule, X, y, weight, min_leaf)
    if (y == y[0]).all() or not cuts:
        assert tree.node_count == 1
        return
    best = max(cuts)[0]
    chosen = [q for q, j, t in cuts if j == tree.feature[0] and np.isclose(t, tree.threshold[0])]
    assert chosen[0] == pytest.approx(best, rel=1e-9, abs=1e-12)
    counts = tree.value[:, 0] * tree.weighted_n_node_samples[:, np.newaxis]
    if rule == "twoing" and n_outputs == 1:
        assert best_quality_by_superclasses(*counts[1:]) == pytest.approx(2 * best, abs=1e-9)


@RULES
def test_impurity_is_that_of_gini(rule):
    """Also of what is pruned and counted by it."""
    X, y = load("wine")
    tree = DecisionTreeClassifier(criterion=rule, random_state=0).fit(X, y).tree_
    np.testing.assert_allclose(tree.impurity, 1.0 - (tree.value[:, 0] ** 2).sum(axis=1), atol=1e-12)
    assert (tree.impurity[tree.children_left == LEAF] == 0.0).all()


@RULES
def test_two_classes_are_cut_as_by_gini(rule):
    X, y = load("breast_cancer")
    ours, gini = (
        DecisionTreeClassifier(criterion=c, max_depth=3, random_state=0).fit(X, y).tree_
        for c in (rule, "gini")
    )
    np.testing.assert_array_equal(ours.feature, gini.feature)
    np.testing.assert_array_equal(ours.threshold, gini.threshold)


def test_the_order_of_the_classes_counts_where_it_is_asked_for():
    """A feature that parts middle classes from outer ones is of no use to ordered twoing."""
    X = np.array([[0, 0], [1, 0], [1, 1], [0, 1]] * 5, float)
    y = np.array([0, 1, 2, 3] * 5)  # column 0: {0, 3} and {1, 2}; column 1: {0, 1} and {2, 3}
    for seed in range(5):
        params = {"criterion": "ordered_twoing", "max_depth": 1, "random_state": seed}
        assert DecisionTreeClassifier(**params).fit(X, y).tree_.feature[0] == 1
    either = {
        int(DecisionTreeClassifier(criterion="twoing", random_state=s).fit(X, y).tree_.feature[0])
        for s in range(20)
    }
    assert either == {0, 1}
