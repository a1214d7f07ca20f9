"""Weights that are whole numbers only because they are large: their sums are rounded."""

import numpy as np
import pytest
import sklearn.tree

import cart
from tests.agreement.same import assert_same_tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
WEIGHTS = RNG.random(300)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e90, 1e150, 1e300])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_trees_of_classes(criterion, splitter, n_classes, scale):
    y = np.random.default_rng(n_classes).integers(0, n_classes, 300)
    ours, theirs = (
        home.DecisionTreeClassifier(criterion=criterion, splitter=splitter, random_state=0)
        for home in (cart, sklearn.tree)
    )
    weights = WEIGHTS * scale
    assert_same_tree(ours.fit(X, y, weights).tree_, theirs.fit(X, y, weights).tree_)
