"""Presorted rows of columns most of whose values are equal: those rows are not listed."""

import numpy as np
import pytest
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeRegressor
from cart.estimators.grower import Grower
from cart.fast_paths.regression.histograms.path import HistogramPath
from cart.fast_paths.regression.presorted_rows import PresortedRows
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.fast_paths.regression.sorted_rows import RowsSortedOnDemand
from cart.growth.plan import make_plan
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
    X[(rng.random(X.shape) < missing) & (np.arange(n_columns) % 2 > 0)] = np.nan
    return X


def grow(X, y, weights, params, lists_all):
    """A tree, and whether each column lists all rows."""
    plan = make_plan(DecisionTreeRegressor(**params), SquaredError, "best", *X.shape, 1, 1)
    grower, _ = paths(encode(Columns(X.astype(np.float32))), y[:, None], plan, SortedPath)
    create = PresortedRows.create
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PresortedRows, "create", lambda table, _: create(table, lists_all))
        (tree,) = grower.grow(weights, [1])
    return tree, grower._fast[0]._scratch[-1].rows.unlisted == MISSING


@examples(200)
@given(
    seed=seeds,
    n=st.one_of(st.integers(120, 140), st.integers(200, 1500)),
    share=st.sampled_from([0.3, 0.7, 1.0]),
    scale=st.sampled_from([1.0, 1.0, 1e4, 1e-3]),
    params=st.fixed_dictionaries(
        {},
        optional={
            "max_leaf_nodes": st.integers(2, 60),
            "max_depth": st.integers(1, 6),
            "min_impurity_decrease": st.just(0.01),
            "min_samples_leaf": st.sampled_from([2, 9, 70]),
            "min_weight_fraction_leaf": st.just(0.01),
            "monotonic_cst": st.integers(0, 2**32 - 1),
        },
    ),
    is_weighted=st.booleans(),
    missing=st.sampled_from([0.0, 0.0, 0.1]),
)
def test_trees_do_not_depend_on_what_is_listed(seed, n, share, scale, params, is_weighted, missing):
    """To the bit, in any targets and weights: cuts, impurities and the order of samples."""
    rng = np.random.default_rng(seed)
    X = mostly_equal(rng, n, rng.integers(10, 16), missing)
    y = scale + X[:, 0] + np.nan_to_num(X[:, -1]) ** 2 + rng.normal(size=n)
    y = np.round(y) if seed % 4 == 0 else y
    if "monotonic_cst" in params:
        signs = np.random.default_rng(params["monotonic_cst"]).integers(-1, 2, X.shape[1])
        params = params | {"monotonic_cst": signs}
    weights = rng.random((1, n)) if is_weighted else rng.integers(0, 4, (1, n)).astype(float)
    params = params | {"max_features": share}
    ours, lists_all = grow(X, y, weights, params, False)
    theirs, is_whole = grow(X, y, weights, params, True)
    assert is_whole.all()
    assert_same_nodes(ours, theirs)
    n_equal = [np.unique(x, return_counts=True)[1].max() for x in X.astype(np.float32).T]
    are_most = (2 * np.array(n_equal) >= n) & ~np.isnan(X).any(axis=0)
    saved = np.sum(np.array(n_equal)[are_most])
    np.testing.assert_array_equal(~lists_all, are_most & (saved >= 2 * n))


@examples(100)
@given(
    seed=seeds,
    n=st.integers(120, 800),
    share=st.sampled_from([1, 0.3, 1.0]),
    leaf=st.sampled_from([1, 1, 2, 9, 70]),
    missing=st.sampled_from([0.0, 0.0, 0.1]),
)
def test_trees_are_the_general_ones(seed, n, share, leaf, missing):
    """To the bit, where sums are exact in every order."""
    rng = np.random.default_rng(seed)
    X, y = mostly_equal(rng, n, 8, missing), rng.integers(-50, 50, n) + 2.0**-4
    weights = rng.integers(0, 5, (2, n)).astype(float)
    model = DecisionTreeRegressor(max_features=share, min_samples_leaf=leaf)
    plan = make_plan(model, SquaredError, "best", *X.shape, 1, 1)
    fast, general = paths(encode(Columns(X.astype(np.float32))), y[:, None], plan, SortedPath)
    trees = (grower.grow(weights, range(1, 3)) for grower in (fast, general))
    for ours, theirs in zip(*trees, strict=True):
        assert_same_nodes(ours, theirs)


@examples(30)
@given(seed=seeds, n=st.integers(150, 600), max_features=st.sampled_from([0.4, None]))
def test_trees_are_scikit_learns(seed, n, max_features):
    rng = np.random.default_rng(seed)
    X, y = mostly_equal(rng, n, 6), rng.normal(size=n)
    params = {"max_features": max_features, "max_depth": 8, "random_state": seed % 1000}
    ours, theirs = (
        tree(**params).fit(X, y)
        for tree in (DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor)
    )
    assert_same_up_to_ties(ours, theirs, X, y, np.ones(n))


@pytest.mark.parametrize(
    ("n_rows", "not_equal", "max_features", "expected"),
    [
        (3000, 0.05, "sqrt", PresortedRows),
        (3000, 1.0, "sqrt", RowsSortedOnDemand),
        (3000, 0.05, 3, RowsSortedOnDemand),
        (2000, 0.05, "sqrt", RowsSortedOnDemand),
        (3000, np.nan, "sqrt", RowsSortedOnDemand),
    ],
)
def test_where_presorting_pays(n_rows, not_equal, max_features, expected):
    """Where lists are short, it pays for nodes that look at a tenth of the features. Trees are the
    same, to the bit."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n_rows, 40)) < not_equal, rng.normal(size=(n_rows, 40)), 0.0)
    if np.isnan(not_equal):
        X = np.where(rng.random(X.shape) < 0.9, np.nan, rng.normal(size=X.shape))
    y, table = rng.integers(-50, 50, n_rows) + 2.0**-4, encode(Columns(X.astype(np.float32)))
    model = DecisionTreeRegressor(max_features=max_features)
    plan = make_plan(model, SquaredError, "best", *X.shape, 1, 1)
    fast, general = paths(table, y[:, None], plan, SortedPath)
    trees = [grower.grow([np.ones(n_rows)], [1])[0] for grower in (fast, general)]
    assert type(fast._fast[0]._scratch[-1].rows) is expected
    assert_same_nodes(*trees)


@pytest.mark.parametrize(
    ("not_equal", "max_features", "max_bins", "expected"),
    [
        (0.05, None, None, SortedPath),
        (0.05, 0.3, None, SortedPath),
        (0.05, "sqrt", None, HistogramPath),
        (0.05, None, 255, HistogramPath),
        (0.3, None, None, HistogramPath),
    ],
)
def test_lists_are_preferred_to_histograms(not_equal, max_features, max_bins, expected):
    """On whole targets, if nodes look at many features. Trees are the same, to the bit."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 40)) < not_equal, 1.0, 0.0)
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
