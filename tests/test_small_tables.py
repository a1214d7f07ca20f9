"""Every kind of tree, forest and importance on tables of at most a few hundred rows.

Quick enough to run with the JIT off, when kernels are plain Python: `make coverage` does, so that
their lines count.
"""

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from scipy.sparse import csc_array
from sklearn.datasets import make_classification, make_friedman1

import cart
import forest
from forest.partitioned.table.targets import fixed_point
from tests.agreement.same import assert_same_tree, assert_same_up_to_ties
from tests.forest.partitioned.same import assert_same_forest
from tests.forest.partitioned.test_identity import grow

N = 300


def two_classes(n=N):
    return make_classification(n, 6, n_informative=4, random_state=0)


def five_classes():
    return make_classification(N, 6, n_informative=5, n_redundant=0, n_classes=5, random_state=1)


def numbers(n=N):
    return make_friedman1(n, 6, random_state=0)


def counts():
    X, y = numbers()
    return X, np.floor(y)


def steps():
    """Few levels a column, so that codes are counted, and targets that are whole."""
    X, y = numbers()
    return np.floor(8 * X), np.floor(y)


def with_missing(make=two_classes):
    X, y = make()
    X = X.copy()
    X[::5, 0] = np.nan
    X[1::7, 3] = np.nan
    return X, y


def numbers_with_missing():
    return with_missing(numbers)


def sparse():
    X, y = two_classes()
    X[np.abs(X) < np.quantile(np.abs(X), 0.95)] = 0.0  # fewer would be made dense
    return csc_array(X), y


def sparse_numbers():
    X, y = numbers()
    X[X < 0.9] = 0.0
    return csc_array(X), y


def several_outputs():
    X, y = five_classes()
    return X, np.column_stack((y, y % 2))


def several_numbers():
    X, y = numbers()
    return X, np.column_stack((y, X[:, 0] - y))


def clustered():
    """Values so close that scikit-learn takes some of them for equal."""
    X, y = numbers()
    return 1.0 + 1e-6 * np.floor(5 * X) + 1e-3 * (X > 0.5), y


TREES = {
    "gini": ("DecisionTreeClassifier", {}, two_classes),
    "entropy": ("DecisionTreeClassifier", {"criterion": "entropy"}, two_classes),
    "five classes": ("DecisionTreeClassifier", {"max_features": 2}, five_classes),
    "entropy, five classes": ("DecisionTreeClassifier", {"criterion": "entropy"}, five_classes),
    "limits": ("DecisionTreeClassifier", {"min_samples_leaf": 5, "max_depth": 4}, two_classes),
    "decrease": ("DecisionTreeClassifier", {"min_impurity_decrease": 0.01}, two_classes),
    "best first": ("DecisionTreeClassifier", {"max_leaf_nodes": 12}, five_classes),
    "weight fraction": ("DecisionTreeClassifier", {"min_weight_fraction_leaf": 0.05}, two_classes),
    "class weights": ("DecisionTreeClassifier", {"class_weight": "balanced"}, five_classes),
    "pruned": ("DecisionTreeClassifier", {"ccp_alpha": 0.01}, two_classes),
    "monotonic classes": ("DecisionTreeClassifier", {"monotonic_cst": [1, -1, 0, 0, 0, 0]},
                          two_classes),
    "missing": ("DecisionTreeClassifier", {}, with_missing),
    "missing entropy": ("DecisionTreeClassifier", {"criterion": "entropy"}, with_missing),
    "sparse": ("DecisionTreeClassifier", {}, sparse),
    "outputs": ("DecisionTreeClassifier", {}, several_outputs),
    "extra": ("ExtraTreeClassifier", {"random_state": 1}, two_classes),
    "extra, missing": ("ExtraTreeClassifier", {"random_state": 1}, with_missing),
    "extra, sparse": ("ExtraTreeClassifier", {"random_state": 1}, sparse),
    "squared error": ("DecisionTreeRegressor", {}, numbers),
    "squared error, third": ("DecisionTreeRegressor", {"max_features": 1 / 3}, numbers),
    "squared error, limits": ("DecisionTreeRegressor", {"min_samples_leaf": 4}, numbers),
    "steps": ("DecisionTreeRegressor", {}, steps),
    "friedman": ("DecisionTreeRegressor", {"criterion": "friedman_mse"}, numbers),
    "absolute error": ("DecisionTreeRegressor", {"criterion": "absolute_error", "max_depth": 4},
                       numbers),
    "poisson": ("DecisionTreeRegressor", {"criterion": "poisson"}, counts),
    "monotonic": ("DecisionTreeRegressor", {"monotonic_cst": [1, 0, 0, 1, 0, -1]}, numbers),
    "monotonic classes, leaves": (
        "DecisionTreeClassifier", {"monotonic_cst": [1, -1, 0, 1, 0, -1], "max_leaf_nodes": 25},
        two_classes,
    ),
    "missing numbers": ("DecisionTreeRegressor", {}, numbers_with_missing),
    "sparse numbers": ("DecisionTreeRegressor", {"max_depth": 3}, sparse_numbers),
    "two numbers": ("DecisionTreeRegressor", {}, several_numbers),
    "leaves": ("DecisionTreeRegressor", {"max_leaf_nodes": 20, "ccp_alpha": 0.05}, numbers),
    "clustered": ("DecisionTreeRegressor", {"max_depth": 5}, clustered),
    "extra numbers": ("ExtraTreeRegressor", {"random_state": 2}, numbers),
    "extra counts": ("ExtraTreeRegressor", {"criterion": "poisson", "random_state": 2}, counts),
}  # fmt: skip

TIED = ("clustered", "steps")  # equally good cuts of targets whose sums are rounded


@pytest.mark.filterwarnings("ignore:.*friedman_mse.*:FutureWarning")
@pytest.mark.parametrize("name", TREES)
def test_trees_are_scikit_learns(name):
    kind, params, make = TREES[name]
    X, y = make()
    params = {"random_state": 0, **params}
    ours = getattr(cart, kind)(**params).fit(X, y)
    theirs = getattr(sklearn.tree, kind)(**params).fit(X, y)
    if name in TIED:
        assert_same_up_to_ties(ours, theirs, X, y, None)
        return
    assert_same_tree(ours.tree_, theirs.tree_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))


WEIGHTED = ("gini", "entropy", "five classes", "entropy, five classes", "squared error", "steps")


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("max_features", [2, 6])
@pytest.mark.parametrize("factor", [1.0, 3.0, 0.3])
def test_weighted_trees_are_scikit_learns(name, max_features, factor):
    kind, params, make = TREES[name]
    X, y = make()
    params = {"random_state": 0, "max_depth": 5, **params, "max_features": max_features}
    weight = factor * np.random.default_rng(0).integers(0, 3, len(X))
    ours = getattr(cart, kind)(**params).fit(X, y, weight)
    theirs = getattr(sklearn.tree, kind)(**params).fit(X, y, weight)
    assert_same_up_to_ties(ours, theirs, X, y, weight)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 15, 40, 130, 2000])
@pytest.mark.parametrize("name", ["gini", "squared error"])
def test_trees_of_any_size(name, n):
    kind, params, _ = TREES[name]
    X, y = numbers(n)
    y = y if name == "squared error" else (y > 14).astype(int)
    params = {"random_state": 0, "max_features": 3, **params}
    ours = getattr(cart, kind)(**params).fit(X, y)
    theirs = getattr(sklearn.tree, kind)(**params).fit(X, y)
    assert_same_tree(ours.tree_, theirs.tree_)


FORESTS = {
    "classes": ("RandomForestClassifier", {}, two_classes),
    "five classes": ("RandomForestClassifier", {"criterion": "entropy"}, five_classes),
    "balanced": ("RandomForestClassifier", {"class_weight": "balanced_subsample"}, five_classes),
    "numbers": ("RandomForestRegressor", {}, numbers),
    "numbers, third": ("RandomForestRegressor", {"max_features": 1 / 3}, numbers),
    "steps": ("RandomForestRegressor", {"max_samples": 0.7}, steps),
    "outputs": ("RandomForestClassifier", {}, several_outputs),
    "missing": ("RandomForestClassifier", {}, with_missing),
    "sparse": ("RandomForestClassifier", {}, sparse),
    "extra": ("ExtraTreesClassifier", {}, two_classes),
    "extra numbers": ("ExtraTreesRegressor", {"bootstrap": True}, numbers),
}


@pytest.mark.parametrize("name", FORESTS)
def test_forests_are_scikit_learns(name):
    kind, params, make = FORESTS[name]
    X, y = make()
    params = {"n_estimators": 5, "random_state": 0, **params}
    ours = getattr(forest, kind)(**params).fit(X, y)
    theirs = getattr(sklearn.ensemble, kind)(**params).fit(X, y)
    for a, b in zip(ours.estimators_, theirs.estimators_, strict=True):
        assert_same_tree(a.tree_, b.tree_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))


@pytest.mark.parametrize("max_features", [2, 30])
def test_many_columns_of_which_a_node_looks_at_few(max_features):
    """Rows are then sorted in every node, not once for the tree."""
    X, y = make_friedman1(250, 60, random_state=0)
    params = {"max_features": max_features, "random_state": 0}
    ours = cart.DecisionTreeRegressor(**params).fit(X, y)
    theirs = sklearn.tree.DecisionTreeRegressor(**params).fit(X, y)
    assert_same_tree(ours.tree_, theirs.tree_)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("ExtraTreeClassifier", {"missing": "majority"}),
        ("ExtraTreeRegressor", {"missing": "surrogate", "surrogates": 3}),
    ],
)
def test_rows_lie_where_growth_counted_them(kind, params):
    """Categories in two columns, and values that are missing: no twin in scikit-learn."""
    is_class = kind == "ExtraTreeClassifier"
    X, y = with_missing(numbers)
    X[:, 1:3] = np.floor([5, 40] * X[:, 1:3])
    y = (y > 14).astype(int) if is_class else y
    model = getattr(cart, kind)(
        random_state=1, categorical_features=[1, 2], max_depth=6, **params
    ).fit(X, y)
    tree, leaves = model.tree_, model.apply(X)
    is_leaf = tree.children_left < 0
    counts = np.bincount(leaves, minlength=tree.node_count)
    assert is_leaf.sum() > 10
    np.testing.assert_array_equal(counts[is_leaf], tree.n_node_samples[is_leaf])
    for leaf in np.flatnonzero(is_leaf):
        own = y[leaves == leaf]
        value = np.bincount(own, minlength=2) / len(own) if is_class else own.mean()
        np.testing.assert_allclose(tree.value[leaf, 0], value, rtol=1e-12)


PARTITIONED = {
    "two classes": ("RandomForestClassifier", {}, lambda X: (X.sum(axis=1) > 3).astype(int)),
    "entropy, four classes": (
        "RandomForestClassifier", {"criterion": "entropy"},
        lambda X: np.floor(X.sum(axis=1) * 7).astype(int) % 4,
    ),
    "numbers": ("RandomForestRegressor", {}, lambda X: fixed_point(100.0 * X[:, 0] + X[:, 3])),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTITIONED)
@pytest.mark.parametrize("categorical_features", [None, [1, 2]])
def test_forests_of_partitions_are_those_of_the_table(name, categorical_features):
    kind, params, target = PARTITIONED[name]
    X = np.random.default_rng(0).random((150, 4))
    X[:, 1:3] = np.floor([3, 12] * X[:, 1:3])
    y = target(X)
    X[::9, 0] = X[4::11, 1] = np.nan
    model = getattr(forest, kind)(
        2, max_bins=20, feature_draw="keyed", random_state=0,
        categorical_features=categorical_features, **params,
    )  # fmt: skip
    local = model.fit(X, y)
    for small_rows in (0, 30):  # nodes that all workers grow together, and then one alone
        assert_same_forest(grow(model, X, y, [40, 40, 90], small_rows), local)
