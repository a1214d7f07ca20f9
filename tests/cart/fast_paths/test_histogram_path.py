"""Sums per code: the trees are the general ones where sums are exact in any order."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cart
from cart.estimators.encoding import encode_columns
from cart.estimators.grower import Grower, prepare_for_growth
from cart.fast_paths import cache_copies as near
from cart.fast_paths.regression.histograms.histogram import CODES_MAX
from cart.fast_paths.regression.histograms.path import CACHE_COPY_BYTES, HistogramPath
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.growth.plan import make_plan
from cart.splitting.criteria import Gini, Poisson, SquaredError
from cart.table.columns import Columns
from cart.table.encoding import encode
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)


def growers(X, y, **params):
    """The fast path of sums and the general one, on the same table."""
    model = cart.DecisionTreeRegressor(**params)
    plan = make_plan(model, SquaredError, "best", *X.shape, 1, 1)
    table = encode_columns(model, X.astype(np.float32), "best")
    return paths(table, y[:, None], plan, HistogramPath)


@examples(200)
@given(
    seed=seeds, n=st.one_of(st.integers(1, 60), st.integers(60, 3000)),
    bins=st.sampled_from([(None, True), *itertools.product([2, 10, 255], [True, False])]),
    params=st.fixed_dictionaries(
        {"max_features": st.sampled_from([1, 2, 1.0])},
        optional={
            "max_depth": st.integers(1, 6), "min_samples_split": st.integers(2, 10),
            "min_samples_leaf": st.integers(1, 8), "ccp_alpha": st.just(0.01),
            "min_impurity_decrease": st.sampled_from([0.013, 0.11]),
        },
    ),
)  # fmt: skip
def test_sums_per_code_grow_the_general_trees(seed, n, bins, params):
    """To the bit where sums are exact in every order; else as good in the first split."""
    max_bins, is_exact = bins
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * rng.choice([1.0, 1e-7])
    X[:, 2] = rng.integers(0, 400, n) * rng.choice([1.0, 4e-8])
    X[:, 3] = rng.integers(0, 3, n)
    y = np.rint(9 * X[:, 0] / X[:, 0].std() + rng.normal(size=n)) if n > 1 else np.ones(1)
    y += 0.0 if is_exact else rng.normal(size=n)
    weights = rng.integers(0, rng.choice([4, 50]), (3, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    fast, general = growers(X, y, max_bins=max_bins, **params)
    pairs = zip(fast.grow(weights, range(3)), general.grow(weights, range(3)), strict=True)
    for ours, theirs in pairs:
        if is_exact:
            assert_same_nodes(ours, theirs)
            continue
        for name in ("impurity", "value"):
            a, b = getattr(ours, name)[0], getattr(theirs, name)[0]
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        decreases = [decrease_of_root(tree) for tree in (ours, theirs)]
        assert decreases[0] == pytest.approx(decreases[1], rel=1e-9, abs=1e-9)


def decrease_of_root(tree):
    if tree.node_count == 1:
        return 0.0
    sides = [tree.children_left[0], tree.children_right[0]]
    weights = tree.weighted_n_node_samples[sides]
    return tree.impurity[0] - np.average(tree.impurity[sides], weights=weights)


@pytest.mark.parametrize("max_features", [1, 0.4, 1.0])
def test_a_large_tree(max_features, monkeypatch):
    """Most of a column's codes occur in large nodes, few in small ones; rows are copied twice."""
    monkeypatch.setattr(near, "_HELD_ANYWAY", 0)
    rng = np.random.default_rng(0)
    n = CACHE_COPY_BYTES[1]
    X = np.column_stack([rng.integers(0, m, n) for m in (3, 12, 64, 65, 1000, CODES_MAX)])
    y = np.rint(X[:, 0] + X[:, 4] / 300 + rng.normal(0.0, 9.0, n))
    weights = np.bincount(rng.integers(0, n, n), minlength=n)[None].astype(float)
    (ours,), (theirs,) = (
        grower.grow(weights, [7]) for grower in growers(X, y, max_features=max_features)
    )
    assert ours.node_count > 10_000
    assert_same_nodes(ours, theirs)


@pytest.mark.parametrize(
    ("y", "weight", "n_codes", "max_bins", "path"),
    [
        (3.0, 2.0, 9, None, HistogramPath),
        (-3.0, 2.0, CODES_MAX, None, HistogramPath),
        (0.5, 2.0, 9, None, SortedPath),  # sums that depend on their order
        (3.0, 0.5, 9, None, SortedPath),
        (1e8, 2.0, 9, None, SortedPath),
        (3.0, 2.0, CODES_MAX + 1, None, SortedPath),
        (0.5, 0.3, 9, 255, HistogramPath),  # which is the promise of bins
        (1e60, 2.0, 9, 255, SortedPath),
        (1.0, 1e60, 9, 255, SortedPath),
    ],
)
def test_sums_per_code_are_for_bins_and_whole_numbers(y, weight, n_codes, max_bins, path):
    n = CODES_MAX + 1
    X, rows = np.arange(n)[:, None] % n_codes, np.arange(n)
    y = np.where(rows % 2 == 0, y, 1.0)
    plan = make_plan(
        cart.DecisionTreeRegressor(max_bins=max_bins), SquaredError, "best", n, 1, 1, 1
    )
    table = encode(Columns(X.astype(np.float32))).narrow()
    fast = Grower(table, y[:, None], plan)._fast
    weights = np.full((1, n), weight)
    with np.errstate(over="ignore", invalid="ignore"):  # of the general arithmetic, not of ours
        able = next(one for one in fast if one.accepts(weights, weight % 1 == 0))
        able.grow(weights, [0], weight % 1 == 0)
    assert type(able) is path


def test_weights_whose_reciprocal_overflows_are_no_warning():
    with np.errstate(over="raise"):
        cart.DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0], [5e-324, 5e-324])


@pytest.mark.parametrize(
    ("criterion", "y", "max_bins", "dtype"),
    [
        (SquaredError, 2.0, None, np.uint16),
        (SquaredError, 0.5, None, np.uint32),
        (SquaredError, 0.5, 255, np.uint8),
        (Poisson, 2.0, None, np.uint32),
        (Gini, 2.0, None, np.uint16),
    ],
)
def test_threads_share_wide_codes_where_narrow_ones_are_of_no_use(criterion, y, max_bins, dtype):
    model = cart.DecisionTreeRegressor(max_bins=max_bins)
    plan = make_plan(model, criterion, "best", 9, 1, 1, 1)
    table = encode_columns(model, np.arange(9, dtype=np.float32)[:, None], "best")
    assert table.codes.dtype.itemsize == (2 if max_bins is None else 1)
    assert prepare_for_growth(table, np.full((9, 1), y), plan).codes.dtype == dtype


def test_many_columns_of_which_a_node_looks_at_few_and_a_table_without_some():
    """Neither does what it would do for every column."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (400, 60)).astype(float)
    y = np.rint(X[:, 0] * 5 + rng.normal(0.0, 3.0, 400))
    weights = rng.integers(0, 4, (1, 400)).astype(float)
    for max_features in ("sqrt", 0.2, 1.0):
        plan = make_plan(
            cart.DecisionTreeRegressor(max_features=max_features), SquaredError, "best",
            400, 58, 1, 1,
        )  # fmt: skip
        table = encode(Columns(X.astype(np.float32))).narrow().without([0, 41])
        (ours,), (theirs,) = (
            grower.grow(weights, [1]) for grower in paths(table, y[:, None], plan, HistogramPath)
        )
        assert ours.node_count > 100
        assert_same_nodes(ours, theirs)
