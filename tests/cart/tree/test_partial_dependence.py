"""Partial dependence of a tree by recursion: scikit-learn's, to the bit."""

import numpy as np
import pytest
import sklearn.tree
from sklearn.datasets import load_diabetes

import cart

X, Y = load_diabetes(return_X_y=True)
WEIGHT = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
POINTS = np.linspace(-0.1, 0.1, 21, dtype=np.float32)
PARAMETERS = [
    {"max_depth": 3},
    {"max_features": 3},
    {"criterion": "absolute_error", "max_leaf_nodes": 30},
    {"criterion": "poisson", "ccp_alpha": 0.1},
]


def dependence(tree, points, features, start=0.0):
    out = np.full(len(points), start)
    assert tree.compute_partial_dependence(points, np.array(features, np.intp), out) is None
    return out


@pytest.mark.parametrize("features", [[2], [8, 2], [2, 2], [], [99]], ids=str)
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_scikit_learns(parameters, features):
    ours, theirs = (
        home.DecisionTreeRegressor(random_state=0, **parameters).fit(X, Y, WEIGHT).tree_
        for home in (cart, sklearn.tree)
    )
    points = np.column_stack([np.roll(POINTS, 5 * j) for j in range(2)])[:, : len(features)].copy()
    expected = dependence(theirs, points, features, start=0.5)
    np.testing.assert_array_equal(dependence(ours, points, features, start=0.5), expected)


def test_the_mean_over_rows_where_features_do_not_meet():
    tree = cart.DecisionTreeRegressor(max_depth=1).fit(X, Y)
    over_rows = [tree.predict(np.where(np.arange(10) == 8, x, X)).mean() for x in POINTS]
    np.testing.assert_allclose(dependence(tree.tree_, POINTS[:, None], [8]), over_rows)


def test_values_go_where_rows_go():
    """All features are targets: every point goes one way, missing values and categories too."""
    rng = np.random.default_rng(0)
    table = np.column_stack((rng.normal(size=(300, 2)), rng.integers(0, 12, 300)))
    y = table[:, 0] + 2.0 * np.isin(table[:, 2], (1, 5, 7)) + (table[:, 1] > 0.5)
    table[rng.random(table.shape) < 0.2] = np.nan
    for precision in ("float32", "float64"):
        model = cart.DecisionTreeRegressor(categorical_features=[2], precision=precision)
        tree = model.fit(table, y).tree_
        assert tree.is_subset.any()
        assert tree.missing_go_to_left.any()
        points = table.astype(precision)
        np.testing.assert_array_equal(dependence(tree, points, [0, 1, 2]), model.predict(table))


@pytest.mark.parametrize(
    ("points", "features", "out", "error"),
    [
        (POINTS[:, None].astype(np.int64), np.array([2]), np.zeros(21), ValueError),
        (POINTS, np.array([2]), np.zeros(21), ValueError),
        (POINTS[:, None], np.array([2.0]), np.zeros(21), ValueError),
        (POINTS[:, None], np.array([2]), np.zeros(21, np.float32), ValueError),
        (POINTS[:, None], np.array([2]), np.zeros((21, 1)), ValueError),
        (POINTS[:, None].tolist(), np.array([2]), np.zeros(21), TypeError),
        (POINTS[:, None], [2], np.zeros(21), TypeError),
        (POINTS[:, None], np.array([2]), [0.0] * 21, TypeError),
    ],
)
@pytest.mark.parametrize("home", [cart, sklearn.tree], ids=["ours", "theirs"])
def test_other_arrays_are_refused(home, points, features, out, error):
    tree = home.DecisionTreeRegressor(max_depth=2).fit(X, Y).tree_
    with pytest.raises(error):
        tree.compute_partial_dependence(points, features, out)


def test_shapes_that_do_not_fit_are_refused():
    tree = cart.DecisionTreeRegressor(max_depth=2).fit(X, Y).tree_
    with pytest.raises(ValueError, match=r"X has shape \(21, 1\), but .* \(20, 1\)"):
        tree.compute_partial_dependence(POINTS[:, None], np.array([2]), np.zeros(20))
    with pytest.raises(ValueError, match=r"X has shape \(21, 1\), but .* \(21, 2\)"):
        tree.compute_partial_dependence(POINTS[:, None], np.array([2, 3]), np.zeros(21))


def test_several_values_of_a_leaf_are_refused():
    for model, y in (
        (cart.DecisionTreeClassifier(max_depth=2), Y > 100),
        (cart.DecisionTreeRegressor(max_depth=2), np.column_stack((Y, Y))),
    ):
        with pytest.raises(ValueError, match="needs a regression tree with a single output"):
            dependence(model.fit(X, y).tree_, POINTS[:, None], [2])


def test_scikit_learn_sends_missing_points_to_the_right():
    """The deviation: ours go where the tree sends missing values."""
    gaps = np.where(X > 0.05, X, np.nan)
    ours, theirs = (
        home.DecisionTreeRegressor(max_depth=1).fit(gaps, Y).tree_ for home in (cart, sklearn.tree)
    )
    assert ours.missing_go_to_left[0] == theirs.missing_go_to_left[0] == 1
    point, features = np.full((1, 1), np.nan, np.float32), [ours.feature[0]]
    left, right = ours.value[1:, 0, 0]
    assert dependence(theirs, point, features) == right
    assert dependence(ours, point, features) == left
