"""Importance with surrogates, and masking: against loops over nodes, and where two features say the
same."""

import numpy as np
import pytest

from forest import RandomForestClassifier, RandomForestRegressor
from importance import masking, mdi, surrogate_importance, unbiased_mdi

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
X[:, 1] = X[:, 0]  # says the same
Y = X[:, 0] + 0.3 * X[:, 2] + 0.3 * RNG.normal(size=200)
FOREST = RandomForestRegressor(
    8, max_features=1.0, max_depth=4, surrogates=3, random_state=0
).fit(X, Y)  # fmt: skip


def test_it_is_the_sum_over_nodes_and_their_surrogates():
    expected = np.zeros((len(FOREST.estimators_), 4))
    for t, estimator in enumerate(FOREST.estimators_):
        tree = estimator.tree_
        for node in np.flatnonzero(tree.children_left >= 0):
            below = [tree.children_left[node], tree.children_right[node]]
            burden = tree.weighted_n_node_samples * tree.impurity
            gain = burden[node] - burden[below].sum()
            expected[t, tree.feature[node]] += gain
            for surrogate in tree.surrogates.of(node):
                expected[t, surrogate.feature] += gain * surrogate.adj
    found = surrogate_importance(FOREST)
    assert np.allclose(found.per_tree, expected)
    assert np.allclose(found.values, expected.mean(axis=0))


def test_two_features_that_say_the_same_both_show():
    """Nearly equal: nodes of three rows have no surrogates."""
    plain, found = mdi(FOREST).values, surrogate_importance(FOREST).values
    assert np.isclose(found[0], found[1], rtol=0.01)
    assert abs(plain[0] - plain[1]) > 0.1
    assert min(found[:2]) > 2 * max(found[2:])


def test_out_of_bag_it_has_what_unbiased_mdi_says_of_splits():
    alone = unbiased_mdi(FOREST, X, Y)
    found = surrogate_importance(FOREST, X, Y, out_of_bag=True)
    assert (found.values > alone.values).all()
    assert np.isclose(found.values[0], found.values[1], rtol=0.01)


def test_masking_names_the_twin():
    found = masking(FOREST)
    assert np.allclose(np.diag(found.matrix), 1.0)
    assert found.matrix[0, 1] > 0.98
    assert found.matrix[1, 0] > 0.98
    assert found.matrix[0, 3] < 0.3
    assert found.plot().images
    assert found.to_frame().shape == (4, 4)


def test_forests_without_surrogates_are_refused():
    plain = RandomForestRegressor(2, random_state=0).fit(X, Y)
    for measure in (surrogate_importance, masking):
        with pytest.raises(ValueError, match="keep no surrogates"):
            measure(plain)


def test_rows_that_surrogates_send_are_refused_where_trees_are_walked_without_them():
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    forest = RandomForestClassifier(3, surrogates=2, missing="surrogate", random_state=0)
    forest.fit(gaps, Y > 0)
    with pytest.raises(ValueError, match="sends by surrogates"):
        unbiased_mdi(forest, gaps, Y > 0)
    assert surrogate_importance(forest).values.sum() > 0
