"""Pickles: every bit comes back, and they are small."""

import copy
import pickle

import numpy as np
import pytest
import sklearn.ensemble
from hypothesis import given, settings
from hypothesis import strategies as st

from cart import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from cart.compact import expand, shrink
from cart.nodes import Nodes
from forest import RandomForestClassifier, RandomForestRegressor

MODELS = {
    "gini": DecisionTreeClassifier(),
    "entropy": DecisionTreeClassifier(criterion="entropy"),
    "classes of fractional weight": DecisionTreeClassifier(class_weight={0: 0.3, 1: 2.1}),
    "best first": DecisionTreeClassifier(max_leaf_nodes=7),
    "pruned": DecisionTreeClassifier(ccp_alpha=0.01),
    "a leaf": DecisionTreeClassifier(max_depth=1, min_samples_leaf=0.6),
    "extra tree": ExtraTreeClassifier(),
    "means": DecisionTreeRegressor(),
    "medians": DecisionTreeRegressor(criterion="absolute_error", max_depth=4),
    "constrained": DecisionTreeRegressor(monotonic_cst=[1, 0, -1]),
    "categories": DecisionTreeClassifier(categorical_features=[1]),
}


def make_table(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 80)
    X = rng.normal(size=(n, 3))
    X[:, 1] = rng.integers(0, 12, n)
    return X, rng.integers(0, 3, n), rng


def assert_every_bit_is_back(tree, nodes):
    for name in Nodes._fields:
        before, after = getattr(tree, name), getattr(nodes, name)
        assert (before.dtype, before.shape) == (after.dtype, after.shape), name
        assert before.tobytes() == after.tobytes(), name


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), is_weighted=st.booleans(), has_gaps=st.booleans())
@pytest.mark.parametrize("model", MODELS)
def test_every_bit_comes_back(model, seed, is_weighted, has_gaps):
    X, y, rng = make_table(seed)
    if has_gaps and model not in ("constrained", "medians"):
        X[rng.random(len(X)) < 0.2, 0] = np.nan
    weight = rng.random(len(y)) * 10.0 ** rng.integers(-30, 30) if is_weighted else None
    tree = copy.deepcopy(MODELS[model]).set_params(random_state=seed % 1000)
    tree.fit(X, y, sample_weight=weight)
    assert_every_bit_is_back(tree.tree_, expand(shrink(tree.tree_.nodes)))
    loaded = pickle.loads(pickle.dumps(tree))
    assert_every_bit_is_back(tree.tree_, loaded.tree_)
    np.testing.assert_array_equal(loaded.predict(X), tree.predict(X))


def test_several_outputs_come_back():
    X, y, rng = make_table(0)
    for kind, Y in (
        (DecisionTreeClassifier, np.column_stack((y, rng.integers(0, 2, len(y))))),
        (DecisionTreeRegressor, np.column_stack((y, rng.normal(size=len(y))))),
    ):
        tree = kind(random_state=0).fit(X, Y)
        assert_every_bit_is_back(tree.tree_, pickle.loads(pickle.dumps(tree)).tree_)


@pytest.mark.parametrize(
    ("kind", "share"), [(RandomForestClassifier, 1 / 4), (RandomForestRegressor, 1 / 2)]
)
@pytest.mark.parametrize("n", [100, 3000])
def test_pickles_are_small(kind, share, n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    y = X[:, 0] + rng.normal(size=n)
    if kind is RandomForestClassifier:
        y = y > 0
    theirs = getattr(sklearn.ensemble, kind.__name__)(10, random_state=0).fit(X, y)
    ours = kind(10, random_state=0).fit(X, y)
    assert len(pickle.dumps(ours)) < share * len(pickle.dumps(theirs))
