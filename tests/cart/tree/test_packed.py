"""Packed trees send rows as a walk in plain NumPy does: whatever the nodes are kept as, in either
precision of the rows, and over the blocks that rows are prepared in."""

import numpy as np
import pytest

import cart
from cart.tree.compact import Compact
from cart.tree.tree import Tree


def walk(tree, X):
    """The leaf of every row."""
    X, at, rows = X.astype(np.float32), np.zeros(len(X), int), np.arange(len(X))
    while np.any(is_split := tree.children_left[at] >= 0):
        x = X[rows, np.maximum(tree.feature[at], 0)]
        goes_left = np.where(np.isnan(x), tree.missing_go_to_left[at] == 1, x <= tree.threshold[at])
        following = np.where(goes_left, tree.children_left[at], tree.children_right[at])
        at = np.where(is_split, following, at)
    return at


def make(kind, missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = {"classes": X[:, 0] > 0, "numbers": X[:, 1], "whole": np.round(3 * X[:, 0])}[kind]
    y = y + (rng.integers(0, 2, 300) if kind != "numbers" else 0)
    Z = rng.normal(size=(20_000, 3))
    if missing:
        X[rng.random(X.shape) < 0.1], Z[rng.random(Z.shape) < 0.1] = np.nan, np.nan
    model = cart.DecisionTreeClassifier if kind == "classes" else cart.DecisionTreeRegressor
    return model(random_state=0).fit(X, y), Z


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers", "whole"])
def test_rows_go_where_a_plain_walk_sends_them(kind, missing):
    model, Z = make(kind, missing)
    nodes = model.tree_.nodes
    leaves = walk(model.tree_, Z)
    gaps = np.where(np.random.default_rng(1).random(Z.shape) < 0.1, np.nan, Z).astype(np.float32)
    for tree in (model.tree_, Tree(nodes, 3), Tree(Compact.of(nodes), 3)):
        np.testing.assert_array_equal(tree.apply(Z.astype(np.float32)), leaves)
        np.testing.assert_array_equal(tree.predict_all(Z, np.float32), nodes.value[leaves])
        np.testing.assert_array_equal(tree.apply(gaps), walk(model.tree_, gaps))
    expected = model.predict(Z)
    for same in (Z.astype(np.float32), np.asfortranarray(Z), Z[:, ::-1].copy()[:, ::-1]):
        np.testing.assert_array_equal(model.predict(same), expected)
    if kind != "classes":
        np.testing.assert_array_equal(expected, nodes.value[leaves, 0, 0])


@pytest.mark.parametrize("value", [1e39, -1e39, np.inf])
def test_rows_that_single_precision_does_not_have_are_refused(value):
    model, Z = make("numbers", missing=False)
    Z[-1, 1] = value
    with (
        pytest.raises(ValueError, match="infinity or a value too large"),
        np.errstate(over="ignore"),
    ):
        model.predict(Z)
