"""Extra trees on the fast paths: against the general path's to the bit, and parts against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.fast_paths import cache_copies as near
from cart.fast_paths import near_rows
from cart.fast_paths.classification import random_cut as class_cut
from cart.fast_paths.classification.path import grow_trees
from cart.fast_paths.classification.random_cut import RandomClassCountsPath
from cart.fast_paths.near_rows import create_across, create_ranges, range_of, write_across
from cart.fast_paths.regression import random_cut
from cart.fast_paths.regression.random_cut import RandomMeanPath
from cart.growth.plan import make_plan
from cart.jit.decorators import entry_kernel
from cart.jit.simd import PlainLanes
from cart.splitting import criteria
from cart.table.columns import Columns
from cart.table.float_table import FloatTable
from cart.table.ranking import MISSING
from forest import ExtraTreesClassifier
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)


@entry_kernel
def ranges_of(codes, n, samples, across, ranges, found):
    write_across(across, codes, n)
    near_rows.find_ranges(across, samples, np.uint32(0), samples.shape[0], ranges)
    for column in range(codes.shape[0]):
        lowest, highest, has_missing = range_of(ranges, column)
        found[column, 0], found[column, 1], found[column, 2] = lowest, highest, has_missing


@pytest.mark.parametrize("n_columns", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_ranges_of_all_features(n_columns, missing):
    rng = np.random.default_rng(n_columns)
    codes = rng.integers(0, 2**32 - 1, (n_columns, 64)).astype(np.uint32)
    codes[rng.random(codes.shape) < missing] = MISSING
    for n in (1, 2, 7, 64):
        samples = rng.permutation(64)[:n].astype(np.uint32)
        found = np.zeros((n_columns, 3), np.int64)
        ranges_of(codes, 64, samples, create_across(64, n_columns), create_ranges(n_columns), found)
        for mine, (lowest, highest, has_missing) in zip(codes[:, samples], found, strict=True):
            known = mine[mine != MISSING]
            assert has_missing == (len(known) < n)
            assert lowest == known.min(initial=MISSING)
            if len(known):
                assert highest == known.max()


def test_lanes_are_plain_numpy():
    rng = np.random.default_rng(0)
    across = rng.integers(-(2**31), 2**31 - 1, 64 * 16).astype(np.int32)
    samples, ranges = rng.permutation(64)[:9].astype(np.uint32), np.zeros(48, np.int32)
    near_rows._widen_over(PlainLanes(16), across, samples << 3, np.uint32(3), np.int64(9), ranges)
    mine = across.reshape(64, 16)[samples]
    expected = mine.min(axis=0), (mine + 1).max(axis=0), mine.max(axis=0)
    np.testing.assert_array_equal(ranges.reshape(3, 16), expected)


@examples(150)
@given(
    seed=seeds,
    params=st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.integers(1, 6),
            "min_samples_leaf": st.integers(2, 8),
            "max_features": st.sampled_from([1, 0.5]),
            "min_impurity_decrease": st.just(0.01),
            "max_leaf_nodes": st.integers(2, 40),
        },
    ),
    missing=st.sampled_from([0.0, 0.0, 0.1, 0.6]),
    least=st.sampled_from([0.0, 0.0, 0.05]),
    is_constrained=st.booleans(),
    n_max=st.sampled_from([8, 60, 600]),
)
def test_regression_trees_are_the_general_ones(seed, params, missing, least, is_constrained, n_max):
    """To the bit, with ties, constant features, and any weights and targets."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, n_max), rng.integers(1, 20)
    X = rng.integers(0, rng.choice([2, 10, 100_000]), (n, n_features)) * rng.choice([1.0, 3e-8])
    y = X[:, 0] + rng.normal(size=n) * rng.choice([1.0, 1e-6, 1e6])
    X = np.where(rng.random(X.shape) < missing, np.nan, X)
    weights = rng.integers(0, 4, (2, n)) * rng.choice([1.0, 0.3])
    weights[:, rng.integers(n)] = 1.0
    model = DecisionTreeRegressor(**params, min_weight_fraction_leaf=least)
    if is_constrained:
        model.monotonic_cst = rng.integers(-1, 2, n_features)
    plan = make_plan(model, criteria.SquaredError, "random", n, n_features, 1, 1)
    table = FloatTable.encode(Columns(X.astype(np.float32)))
    fast, general = paths(table, y[:, None], plan, RandomMeanPath)
    for weight, number in zip(weights, range(1, 3), strict=True):
        both = (grower.grow([weight], [number])[0] for grower in (fast, general))
        assert_same_nodes(*both)


@pytest.mark.parametrize("max_features", [1, 12])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_regression_trees_are_the_same_on_any_tiers(max_features, missing, monkeypatch):
    """Nodes of few rows and of many, in copies and in the table; one tree after another."""
    monkeypatch.setattr(near, "_HELD_ANYWAY", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 12))
    y = X[:, 0] + rng.normal(size=5000)
    X[rng.random(X.shape) < missing] = np.nan
    table = FloatTable.encode(Columns(X.astype(np.float32)))
    model = DecisionTreeRegressor(max_features=max_features)
    plan = make_plan(model, criteria.SquaredError, "random", *X.shape, 1, 1)
    weights = rng.integers(0, 3, (2, 5000)).astype(float)
    for sizes in ((1200, 300), (5000, 70), (4, 2)):
        monkeypatch.setattr(random_cut, "COPY_BYTES", [4 * n for n in sizes])
        fast, general = paths(table, y[:, None], plan, RandomMeanPath)
        for ours, theirs in zip(
            fast.grow(weights, [1, 2]), general.grow(weights, [1, 2]), strict=True
        ):
            assert ours.node_count > 1000
            assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("n_classes", [3, 6])  # six do not fit into quarters of a number
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(("n_features", "max_features"), [(12, 1), (12, 12), (40, 2)])
def test_classes_are_the_same_on_any_tiers(
    n_features, max_features, missing, n_classes, monkeypatch
):
    """Rows across, of the whole table or of near tiers alone, and columns where nodes look at few
    of many features; weights that fill the quarters of a number."""
    monkeypatch.setattr(near, "_HELD_ANYWAY", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, n_features))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=5000)), 0, n_classes - 1)
    X[rng.random(X.shape) < missing] = np.nan
    table = FloatTable.encode(Columns(X.astype(np.float32)))
    model = DecisionTreeClassifier(max_features=max_features)
    plan = make_plan(model, criteria.Gini, "random", *X.shape, 1, n_classes)
    weights = rng.integers(0, 3, (2, 5000)).astype(float)
    weights[1] *= 100
    for table_max, sizes in ((1 << 20, (0, 300)), (0, (2000, 70)), (0, (4, 2))):
        monkeypatch.setattr(class_cut, "_TABLE_MAX", table_max)
        monkeypatch.setattr(class_cut, "_NEAR_ROWS", sizes)
        fast, general = paths(table, y[:, None], plan, RandomClassCountsPath)
        for ours, theirs in zip(
            fast.grow(weights, [1, 2]), general.grow(weights, [1, 2]), strict=True
        ):
            assert ours.node_count > 1000
            assert_same_nodes(ours, theirs)


def test_tables_of_any_length_have_the_same_kernels():
    """Types, of which the number of tiers is one: what was compiled for a few rows serves many."""
    rng = np.random.default_rng(0)

    def kernels_after(n_rows):
        X, y = rng.random((n_rows, 18)), rng.integers(0, 3, n_rows)
        ExtraTreesClassifier(1, max_depth=1).fit(X, y)
        return len(getattr(grow_trees, "signatures", ()))  # none with the JIT off

    n_kernels = kernels_after(60)
    assert [kernels_after(n_rows) for n_rows in (2000, 5000, 60_000)] == 3 * [n_kernels]
