"""Our trees are scikit-learn's, node for node."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import cart

ARRAYS = ("children_left", "children_right", "feature", "threshold", "n_node_samples")
PARAMS = [{}, {"max_features": 3}, {"max_leaf_nodes": 9}, {"min_samples_leaf": 7, "max_depth": 4}]


def assert_same(ours, theirs):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_allclose(ours.value, theirs.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_classifier(load, criterion, params):
    X, y = load(return_X_y=True)
    params = {"criterion": criterion, "random_state": 0, **params}
    ours = cart.DecisionTreeClassifier(**params).fit(X, y)
    theirs = DecisionTreeClassifier(**params).fit(X, y)
    assert_same(ours.tree_, theirs.tree_)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


@pytest.mark.parametrize("params", PARAMS)
def test_regressor(params):
    X, y = load_diabetes(return_X_y=True)
    ours = cart.DecisionTreeRegressor(random_state=0, **params).fit(X, y)
    theirs = DecisionTreeRegressor(random_state=0, **params).fit(X, y)
    assert_same(ours.tree_, theirs.tree_)
