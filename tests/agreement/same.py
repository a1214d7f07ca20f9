"""Are two models the same? And the parameters to try."""

import numpy as np

from benchmarks.oracles.ties import Training, why_different
from cart.estimators.grower import Grower
from cart.table.distinct_values import Levels, Ties
from cart.tree.nodes import Nodes

SEEDS = range(5)
CRITERIA = ("gini", "entropy")
REGULARISERS = {
    "default": {},
    "max_depth": {"max_depth": 4},
    "min_samples_split": {"min_samples_split": 25},
    "min_samples_split_share": {"min_samples_split": 0.15},
    "min_samples_leaf": {"min_samples_leaf": 7},
    "min_samples_leaf_share": {"min_samples_leaf": 0.04},
    "min_weight_fraction_leaf": {"min_weight_fraction_leaf": 0.06},
    "max_features": {"max_features": 2},
    "max_features_share": {"max_features": 0.4},
    "max_features_sqrt": {"max_features": "sqrt"},
    "max_features_log2": {"max_features": "log2"},
    "max_leaf_nodes": {"max_leaf_nodes": 12},
    "max_leaf_nodes_sqrt": {"max_leaf_nodes": 60, "max_features": "sqrt"},
    "min_impurity_decrease": {"min_impurity_decrease": 0.01},
    "class_weight": {"class_weight": {0: 3, 1: 2}},
    "several": {
        "max_leaf_nodes": 15,
        "max_depth": 6,
        "min_samples_leaf": 3,
        "min_samples_split": 12,
        "max_features": 0.6,
        "min_impurity_decrease": 0.002,
        "min_weight_fraction_leaf": 0.01,
    },
}

EXACT = ("children_left", "children_right", "feature", "threshold", "n_node_samples")
CLOSE = ("impurity", "value", "weighted_n_node_samples")
TOLERANCE = 1e-12


def trees_of(model):
    """The `tree_` of a single tree, or of every tree of a forest."""
    return [each.tree_ for each in getattr(model, "estimators_", [model])]


def same_structure(ours, theirs):
    """Whether two trees have the same nodes, thresholds bit for bit."""
    return all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in EXACT)


def assert_same_tree(ours, theirs):
    """The same nodes; what they hold agrees to 1e-12."""
    for name in EXACT:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)
    for name in CLOSE:
        a, b = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)
    split = ours.feature >= 0  # in a leaf, scikit-learn leaves what a split not taken had
    a, b = ours.missing_go_to_left, theirs.missing_go_to_left
    np.testing.assert_array_equal(a[split], b[split], "missing_go_to_left")


def assert_same_nodes(ours, theirs):
    """Two ways of ours to grow a tree agree in every bit of its node arrays."""
    for name in Nodes._fields:
        a, b = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_array_equal(a, b, name)
        np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]), name)


def assert_same_tables(ours, theirs):
    """Tables of ranks, field by field."""
    for found, expected in zip(ours, theirs, strict=True):
        if isinstance(expected, Levels):
            found, expected = found.array, expected.array
        if isinstance(expected, Ties):
            assert_same_tables(found, expected)
            continue
        np.testing.assert_array_equal(found, expected)


def paths(table, y, plan, expected):
    """A Grower with that fast path alone, which must not hand on its trees, and a general one."""
    fast, general = (Grower(table, y, plan, is_fast=is_fast) for is_fast in (True, False))
    fast._fast = [path for path in fast._fast if type(path) is expected]
    assert fast._fast
    fast._grow_in_general = None
    return fast, general


def assert_same_outputs(ours, theirs, X):
    """Two single trees say the same about rows X, and of themselves."""
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    assert (ours.decision_path(X) != theirs.decision_path(X)).nnz == 0
    assert ours.get_depth() == theirs.get_depth()
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    np.testing.assert_allclose(
        ours.feature_importances_, theirs.feature_importances_, rtol=0, atol=TOLERANCE
    )


def assert_same_up_to_ties(ours, theirs, X, y, weight):
    """Two trees are identical, or differ first in a tie and ours is the exact best throughout."""
    if same_structure(ours.tree_, theirs.tree_):
        return assert_same_tree(ours.tree_, theirs.tree_)
    verdict = why_different(ours.tree_, theirs.tree_, Training(X, y, weight, theirs))
    assert verdict in ("tie", "pure", "limit"), verdict
