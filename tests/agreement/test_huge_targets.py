"""Targets whose squares overflow: scikit-learn's models, and no warning of the arithmetic."""

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree

import cart
import forest
from tests.agreement.same import assert_same_tree

RNG = np.random.default_rng(0)
X = RNG.integers(0, 50, size=(300, 4)).astype(float)
Y = RNG.integers(0, 1000, 300) - 500.0
HUGE = (2.0**500, 2.0**700, 2.0**1003)
TREES = ("DecisionTreeRegressor", "ExtraTreeRegressor")
FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor")


def both(name, y, **parameters):
    """Ours and scikit-learn's, of few levels: below them absolute errors tie."""
    homes = (cart, sklearn.tree) if name in TREES else (forest, sklearn.ensemble)
    if name in FORESTS:
        parameters["n_estimators"] = 2
    return [
        getattr(home, name)(max_depth=3, random_state=0, **parameters).fit(X, y) for home in homes
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", HUGE, ids=lambda scale: f"{scale:.0e}")
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("name", [*TREES, *FORESTS])
def test_trees_and_importances(name, criterion, scale):
    models = both(name, Y * scale, criterion=criterion)
    ours, theirs = ([model] if name in TREES else [*model] for model in models)
    for tree, peer in zip(ours, theirs, strict=True):
        assert_same_tree(tree.tree_, peer.tree_)
    importances = [model.feature_importances_ for model in models]
    np.testing.assert_allclose(*importances, equal_nan=True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", TREES)
def test_impurities_that_are_no_numbers_prune_nothing(name):
    ours, theirs = both(name, Y * HUGE[1], ccp_alpha=0.01)
    assert ours.tree_.node_count > 1
    assert_same_tree(ours.tree_, theirs.tree_)
    path = ours.cost_complexity_pruning_path(X, Y * HUGE[1])
    assert path.ccp_alphas.tolist() == [0.0]


@pytest.mark.filterwarnings("error")
def test_sums_that_overflow_are_a_root():
    model = cart.DecisionTreeRegressor(criterion="absolute_error").fit(X, Y * 2.0**1014)
    assert model.tree_.node_count == 1


def test_of_the_scores_out_of_bag_only_r2_warns():
    """As in scikit-learn, whose it is."""
    model = forest.RandomForestRegressor(30, oob_score=True, random_state=0)
    with pytest.warns(RuntimeWarning) as said:
        model.fit(X, Y * HUGE[1])
    files = {each.filename.rpartition("/")[2] for each in said}
    assert files <= {"_regression.py", "fromnumeric.py"}
