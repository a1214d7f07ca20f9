"""Worked numbers of the field's books and tutorials, by our own code."""

import numpy as np
import pytest
from sklearn.datasets import fetch_california_housing
from sklearn.model_selection import train_test_split

from benchmarks.oracles.splitter import best_split, impurity, thresholds
from cart import DecisionTreeClassifier, DecisionTreeRegressor
from forest import RandomForestClassifier
from tests.data import load


def node_importances(tree):
    """Weighted impurity decrease of every split, as a share of the root's weight, by level."""
    burden = tree.weighted_n_node_samples * tree.impurity / tree.weighted_n_node_samples[0]
    level, decreases = [0], []
    while level:
        children = []
        for node in level:
            if tree.children_left[node] >= 0:
                pair = [tree.children_left[node], tree.children_right[node]]
                decreases.append(burden[node] - burden[pair].sum())
                children += pair
        level = children
    return decreases


@pytest.mark.california
def test_california_tree_of_depth_three():
    """California housing (Pace and Barry 1997): the tutorials' tree of depth three.

    Its node importances are those of Breiman, Friedman, Olshen and Stone (1984), section 5.3.
    """
    table = fetch_california_housing(as_frame=True, download_if_missing=False)
    X = table.data.drop(columns=["Latitude", "Longitude", "Population"])
    X, _, y, _ = train_test_split(X, table.target, test_size=0.25, random_state=0)
    model = DecisionTreeRegressor(max_depth=3, min_samples_split=4, random_state=0).fit(X, y)
    assert model.tree_.n_node_samples.tolist() == [
        15480, 12163, 5869, 2454, 3415, 6294, 1372, 4922, 3317, 2317, 958, 1359, 1000, 423, 577,
    ]  # fmt: skip
    importances = dict(zip(X.columns, model.feature_importances_, strict=True))
    published = {"MedInc": 0.854, "AveOccup": 0.120, "AveRooms": 0.027}
    published |= {"HouseAge": 0, "AveBedrms": 0}
    assert importances == pytest.approx(published, abs=6e-4)
    np.testing.assert_allclose(
        node_importances(model.tree_),
        [0.421, 0.108, 0.076, 0.019, 0.061, 0.025, 0.013],
        rtol=0,
        atol=6e-4,
    )


@pytest.mark.parametrize(("max_depth", "shares"), [(2, [0, 0.907, 0.093]), (3, [0, 0.333, 0.667])])
def test_iris_petals(max_depth, shares):
    """Geron, Hands-On Machine Learning with Scikit-Learn, chapter 6: iris, petals only."""
    X, y = load("iris")
    model = DecisionTreeClassifier(max_depth=max_depth, random_state=42).fit(X[:, 2:], y)
    tree = model.tree_
    right = tree.children_right[0]
    node = tree.children_left[right]
    assert tree.threshold[0] == pytest.approx(2.45)
    assert tree.threshold[right] == pytest.approx(1.75)
    assert tree.impurity[node] == pytest.approx(0.168, abs=5e-4)
    assert tree.n_node_samples[node] == 54
    np.testing.assert_allclose(model.predict_proba([[5, 1.5]])[0], shares, atol=5e-4)


def test_decrease_of_a_split_by_the_formula():
    """0.5 - 0.375 = 0.125: 200/200 split into 150/50 and 50/150.

    The shares are those of Raschka, Python Machine Learning, chapter 3 (40/40 there).
    """
    X = np.repeat([[0.0], [1.0]], 200, axis=0)
    y = np.repeat([0, 1, 0, 1], [150, 50, 50, 150])
    tree = DecisionTreeClassifier().fit(X, y).tree_
    assert tree.impurity.tolist() == [0.5, 0.375, 0.375]
    assert tree.compute_feature_importances(normalize=False).tolist() == [0.125]
    assert impurity(y, np.ones(400), "gini") == 0.5


@pytest.mark.parametrize("name", ["iris", "wine", "diabetes"])
def test_cart_cost_is_the_minimum_over_all_cuts(name):
    """Geron, chapter 6: J = m_left/m G_left + m_right/m G_right, least over (feature, threshold).

    For regression G is the mean squared error; Breiman et al. (1984), section 8.
    """
    X, y = load(name)
    is_regression = name == "diabetes"
    model = (DecisionTreeRegressor if is_regression else DecisionTreeClassifier)(max_depth=1)
    tree = model.fit(X, y).tree_
    criterion = "squared_error" if is_regression else "gini"
    weight = np.ones(len(y))
    costs = []
    for feature in range(X.shape[1]):
        for threshold in thresholds(X[:, feature]):
            is_left = np.float32(X[:, feature]) <= threshold
            costs.append(
                sum(
                    side.sum() / len(y) * impurity(y[side], weight[side], criterion)
                    for side in (is_left, ~is_left)
                )
            )
    share = tree.n_node_samples[1:] / tree.n_node_samples[0]
    assert share @ tree.impurity[1:] == pytest.approx(min(costs), rel=1e-12)
    _, gain = best_split(np.float32(X), y, weight, criterion)
    assert tree.impurity[0] - min(costs) == pytest.approx(gain, rel=1e-9)


def test_tied_classes_predict_the_lower():
    """scikit-learn, user guide 1.10.1: the class with the lowest index among the most probable."""
    X, y = np.zeros((4, 1)), ["b", "c", "c", "b"]
    assert DecisionTreeClassifier().fit(X, y).predict([[0]]) == ["b"]
    forest = RandomForestClassifier(3, bootstrap=False).fit(X, y)
    assert forest.predict([[0]]) == ["b"]


@pytest.mark.parametrize("n", [20, 150, 1797])
def test_share_of_rows_out_of_bag(n):
    """(1 - 1/n)**n, about 1/e: Breiman (1996), Out-of-bag estimation."""
    X = np.random.default_rng(0).random((n, 2))
    forest = RandomForestClassifier(200, max_depth=1, random_state=0).fit(X, X[:, 0] > 0.5)
    shares = [1 - len(np.unique(draws)) / n for draws in forest.estimators_samples_]
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) == pytest.approx((1 - 1 / n) ** n, abs=4 * error)
