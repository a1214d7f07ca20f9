"""Regression where most of a column's values are equal: the rows that have it are not listed."""

import numpy as np
import pytest
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.grower import Grower
from cart.fast_paths.regression.histograms.path import HistogramPath
from cart.fast_paths.regression.presorted_rows import PresortedRows
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.fast_paths.regression.sorted_rows import RowsSortedOnDemand
from cart.growth.plan import make_plan
from cart.splitting import criteria
from cart.splitting.criteria import SquaredError
from cart.table.bins import bin_table
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.ranking import MISSING
from forest import RandomForestRegressor
from tests.agreement.same import assert_same_nodes, assert_same_up_to_ties, paths
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)


def mostly_equal(rng, n, n_columns, missing=0.0):
    """Indicators, counts, numbers that are mostly 0, near ties, and plain numbers; with a
    share of missing values in half of the columns."""
    X = rng.normal(size=(n, n_columns))
    for x in X.T:
        is_rare = rng.random(n) < rng.choice([0.02, 0.2, 0.5, 0.8])
        values = rng.choice(5)
        if values == 0:
            x[:] = is_rare
        elif values == 1:
            x[~is_rare] = 0.0
        elif values == 2:
            x[:] = np.where(is_rare, rng.integers(-3, 4, n), 1)
        elif values == 3:
            x[:] = np.where(is_rare, rng.integers(0, 9, n) * 4e-8, 1e-7)
    if n_columns > 2:  # two features with the same cut, one of them with all its rows listed
        X[:, -2] = X[:, 0] + 0.3 * rng.random(n)
    X[(rng.random(X.shape) < missing) & (np.arange(n_columns) % 2 > 0)] = np.nan
    return X


KINDS = ("squared_error", "several outputs", "poisson", "gini", "gini of two", "entropy")


def criterion_of(kind):
    """The name of a criterion, and its class."""
    name = {"several outputs": "squared_error", "gini of two": "gini"}.get(kind, kind)
    return name, (criteria.CLASSIFICATION | criteria.REGRESSION)[name]


def targets_of(kind, rng, y):
    """Targets of shape (n, n_outputs) for one of KINDS, and how many classes there are."""
    if kind == "several outputs":
        return np.column_stack([y, rng.normal(size=len(y)), -y + rng.normal(size=len(y))]), 1
    if kind == "poisson":
        return np.abs(y)[:, None] + (y[:, None] == 0), 1
    if kind == "squared_error":
        return y[:, None], 1
    n_classes = 2 if kind == "gini of two" else 3
    return np.clip(np.round(y - np.median(y)) + 1, 0, n_classes - 1)[:, None], n_classes


def grow(X, y, weights, params, lists_all, kind="squared_error"):
    """A tree, and the rows that it was grown from."""
    y, n_values = targets_of(kind, np.random.default_rng(0), y)
    model = DecisionTreeRegressor(**params)
    plan = make_plan(model, criterion_of(kind)[1], "best", *X.shape, y.shape[1], n_values)
    grower, _ = paths(encode(Columns(X.astype(np.float32))), y, plan, SortedPath)
    with pytest.MonkeyPatch.context() as patched:
        for rows in (PresortedRows, RowsSortedOnDemand):
            patched.setattr(rows, "create", _with(rows.create, lists_all))
        (tree,) = grower.grow(weights, [1])
    return tree, grower._fast[0]._scratch[-1].rows


def _with(create, lists_all):
    return lambda table, **_: create(table, lists_all)


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_leaf_nodes": st.integers(2, 60),
        "max_depth": st.integers(1, 6),
        "min_impurity_decrease": st.just(0.01),
        "min_samples_leaf": st.sampled_from([2, 9, 70]),
        "min_weight_fraction_leaf": st.just(0.01),
    },
)


@examples(300)
@given(
    seed=seeds,
    n=st.one_of(st.integers(5, 160), st.integers(200, 1500)),
    share=st.sampled_from([1, 0.15, 0.3, 0.7, 1.0]),
    scale=st.sampled_from([1.0, 1.0, 1e4, 1e-3]),
    kind=st.sampled_from([*KINDS, "squared_error"]),
    params=LIMITS,
    is_monotonic=st.booleans(),
    is_weighted=st.booleans(),
    missing=st.sampled_from([0.0, 0.0, 0.1]),
)
def test_trees_do_not_depend_on_what_is_listed(
    seed, n, share, scale, kind, params, is_monotonic, is_weighted, missing
):
    """To the bit, in any targets and weights: cuts, impurities and the order of samples."""
    rng = np.random.default_rng(seed)
    X = mostly_equal(rng, n, rng.integers(10, 16), missing)
    y = scale + X[:, 0] + np.nan_to_num(X[:, -1]) ** 2 + rng.normal(size=n)
    y = np.round(y) if seed % 4 == 0 else y
    if kind == "squared_error" and is_monotonic:
        params = params | {"monotonic_cst": rng.integers(-1, 2, X.shape[1])}
    is_of_classes = criterion_of(kind)[0] in criteria.CLASSIFICATION
    weights = rng.random((1, n)) + 0.5 * rng.integers(0, 4, (1, n))
    weights = weights if is_weighted or is_of_classes else np.round(weights)
    weights[0, 0] = 0.5 if is_of_classes else 1.0  # classes of whole weights are counted
    params = params | {"max_features": share}
    ours, rows = grow(X, y, weights, params, False, kind)
    theirs, all_rows = grow(X, y, weights, params, True, kind)
    assert (all_rows.unlisted == MISSING).all()
    assert_same_nodes(ours, theirs)
    counts = [np.unique(x, return_counts=True)[1].max() for x in X.astype(np.float32).T]
    n_equal = np.where(np.isnan(X).any(axis=0), 0, counts)
    are_listed = rows.unlisted == MISSING
    if type(rows) is PresortedRows:
        are_most = 2 * n_equal >= n
        saves = n_equal[are_most].sum() >= 2 * n
        np.testing.assert_array_equal(~are_listed, are_most & saves)
    else:
        assert are_listed[4 * n_equal < n].all()
        if n >= 200:
            assert not are_listed[n_equal > 0.95 * n].any()


@examples(150)
@given(
    seed=seeds,
    n=st.one_of(st.integers(20, 160), st.integers(160, 800)),
    share=st.sampled_from([1, 0.3, 1.0]),
    leaf=st.sampled_from([1, 1, 2, 9, 70]),
    kind=st.sampled_from(["squared_error", "several outputs", "gini", "gini of two"]),
    missing=st.sampled_from([0.0, 0.0, 0.1]),
)
def test_trees_are_the_general_ones(seed, n, share, leaf, kind, missing):
    """To the bit, where sums are exact in every order."""
    rng = np.random.default_rng(seed)
    X, y = mostly_equal(rng, n, 8, missing), rng.integers(-50, 50, n) + 2.0**-4
    weights = rng.integers(0, 5, (2, n)).astype(float)
    y, n_values = targets_of(kind, rng, y)
    if kind == "several outputs":
        y = np.round(y)
    if n_values > 1:
        weights[:, 0] = 0.5
    model = DecisionTreeRegressor(max_features=share, min_samples_leaf=leaf)
    plan = make_plan(model, criterion_of(kind)[1], "best", *X.shape, y.shape[1], n_values)
    fast, general = paths(encode(Columns(X.astype(np.float32))), y, plan, SortedPath)
    trees = (grower.grow(weights, range(1, 3)) for grower in (fast, general))
    for ours, theirs in zip(*trees, strict=True):
        assert_same_nodes(ours, theirs)


@examples(60)
@given(
    seed=seeds,
    n=st.integers(60, 600),
    max_features=st.sampled_from([1, 0.4, None]),
    kind=st.sampled_from(["squared_error", "several outputs", "poisson", "gini", "entropy"]),
    leaf=st.sampled_from([1, 1, 4]),
)
def test_trees_are_scikit_learns(seed, n, max_features, kind, leaf):
    rng = np.random.default_rng(seed)
    X = mostly_equal(rng, n, 6)
    y, n_values = targets_of(kind, rng, rng.normal(size=n))
    params = {"max_features": max_features, "max_depth": 8, "min_samples_leaf": leaf}
    params = params | {"criterion": criterion_of(kind)[0], "random_state": seed % 1000}
    weights, kinds = rng.random(n), (DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor)
    if n_values > 1:
        kinds = DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier
    ours, theirs = (tree(**params).fit(X, y, weights) for tree in kinds)
    assert_same_up_to_ties(ours, theirs, X, y, weights)


@pytest.mark.parametrize(
    ("not_equal", "max_features", "max_bins", "expected"),
    [
        (0.05, None, None, SortedPath),
        (0.05, 0.3, None, SortedPath),
        (0.05, "sqrt", None, SortedPath),
        (0.05, None, 255, HistogramPath),
        (0.21, None, None, SortedPath),
        (0.21, "sqrt", None, HistogramPath),
        (0.3, None, None, HistogramPath),
    ],
)
def test_lists_are_preferred_to_histograms(not_equal, max_features, max_bins, expected):
    """On whole targets, if few cells differ. Trees are the same, to the bit."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 40)) < not_equal, rng.integers(1, 3, (1000, 40)), 0.0)
    y, table = rng.integers(-50, 50, 1000).astype(float), encode(Columns(X.astype(np.float32)))
    table = table.narrow() if max_bins is None else bin_table(table, max_bins)
    model = DecisionTreeRegressor(max_features=max_features, max_bins=max_bins)
    plan = make_plan(model, SquaredError, "best", *X.shape, 1, 1)
    fast, general = paths(table, y[:, None], plan, expected)
    assert type(Grower(table, y[:, None], plan)._fast[0]) is expected
    assert_same_nodes(*(grower.grow([np.ones(1000)], [1])[0] for grower in (fast, general)))


def test_threads_share_large_nodes_of_mostly_equal_columns():
    rng, n = np.random.default_rng(0), 20_000
    X = np.where(rng.random((n, 12)) < 0.05, rng.normal(size=(n, 12)), 0.0)
    y = X.sum(axis=1) + rng.normal(size=n)
    one, two = (
        RandomForestRegressor(1, max_depth=9, random_state=0, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    assert_same_nodes(one.estimators_[0].tree_, two.estimators_[0].tree_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
