"""Extra trees on the fast paths: against the general path's to the bit, and parts against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.fast_paths import cache_copies as near
from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, NONE_MISSING
from cart.fast_paths.classification import random_cut as class_cut
from cart.fast_paths.classification.random_cut import RandomClassCountsPath
from cart.fast_paths.drawn_cuts import DrawnCuts, begin_cuts, draw_cut, drawn_cut, find_sides
from cart.fast_paths.regression import random_cut
from cart.fast_paths.regression.random_cut import RandomMeanPath
from cart.fast_paths.rows_across import create_across, write_across
from cart.growth.plan import make_plan
from cart.jit.decorators import entry_kernel
from cart.splitting import criteria
from cart.splitting.feature_draw import Draw, random_between, random_side
from cart.table.columns import Columns
from cart.table.float_table import FloatTable
from cart.table.node_samples import known_range
from cart.table.ranking import MISSING
from cart.table.table import code_up_to, same_value, value_of
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples, fewer

seeds = st.integers(0, 2**32 - 1)
limits = st.fixed_dictionaries(
    {},
    optional={
        "max_depth": st.integers(1, 6),
        "min_samples_leaf": st.integers(2, 8),
        "max_features": st.sampled_from([1, 0.5]),
        "min_impurity_decrease": st.just(0.01),
        "max_leaf_nodes": st.integers(2, 40),
    },
)


@entry_kernel
def cut_columns(table, samples, mine, across, cuts, draw, state, found, expected):
    """Cut every column of these rows, at once and one by one: does it vary, threshold, left code,
    way of missing values, and what goes left; and the same by the table, from that state on."""
    n = samples.shape[0]
    write_across(across, table.codes, table.codes.shape[1])
    begin_cuts(cuts, across, samples, np.uint32(0), n)
    for column in range(found.shape[0]):
        found[column, 0] = draw_cut(cuts, table, draw, column)
    find_sides(cuts, across, samples, n)
    draw.state[0] = state
    for column in range(found.shape[0]):
        cut, codes = drawn_cut(cuts, column, column, 0, 0.0), table.codes[column]
        found[column, 1], found[column, 2], found[column, 3] = cut[5], cut[1], cut[4]
        found[column, 4] = cuts.sides[column]
        lowest, highest, n_missing = known_range(mine[column], n)
        if lowest == MISSING or (n_missing == 0 and same_value(table, column, lowest, highest)):
            continue
        low, high = value_of(table, column, lowest), value_of(table, column, highest)
        threshold = random_between(draw, column, low, high)
        way = NONE_MISSING
        if n_missing > 0:
            way = MISSING_LEFT if random_side(draw, column, 0) else MISSING_RIGHT
        threshold = threshold if threshold < high else low
        left_code, sides = code_up_to(table, column, lowest, highest, threshold), np.int64(0)
        for row in samples:
            is_left = codes[row] <= left_code or (codes[row] == MISSING and way == MISSING_LEFT)
            sides |= np.int64(is_left) << np.int64(row)
        expected[column, 0], expected[column, 1], expected[column, 2] = 1.0, threshold, left_code
        expected[column, 3], expected[column, 4] = way, sides


@pytest.mark.parametrize("n_columns", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_cuts_of_all_columns_are_those_of_the_table(n_columns, missing):
    """Values of any size, equal ones and such that count as equal."""
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(52, n_columns)) * 10.0 ** rng.integers(-9, 30, n_columns)
    X[:, ::3] = rng.integers(-1, 2, X[:, ::3].shape) * rng.choice([1.0, 3e-8, 3e38])
    X[rng.random(X.shape) < missing] = np.nan
    table = FloatTable.encode(Columns(X.astype(np.float32)))
    for n in (1, 2, 7, 52):
        samples, draw = rng.permutation(52)[:n].astype(np.uint32), Draw.create(n_columns)
        draw.state[0] = n
        found, expected = np.zeros((2, n_columns, 5))
        cuts, across = DrawnCuts.create(table), create_across(52, n_columns)
        mine = table.codes[:, samples].copy()
        cut_columns(table, samples, mine, across, cuts, draw, np.uint32(n), found, expected)
        varies = expected[:, 0] == 1.0
        np.testing.assert_array_equal(found[:, 0], varies)
        np.testing.assert_array_equal(found[varies], expected[varies])


@examples(150)
@given(
    seed=seeds,
    params=limits,
    missing=st.sampled_from([0.0, 0.0, 0.1, 0.6]),
    least=st.sampled_from([0.0, 0.0, 0.05]),
    is_constrained=st.booleans(),
    n_max=st.sampled_from([8, 60, 600]),
    criterion=st.sampled_from(
        [criteria.SquaredError, criteria.Poisson, criteria.Gini, criteria.Entropy]
    ),
    n_classes=st.sampled_from([1, 2, 2, 3, 6]),
)
def test_trees_by_sums_are_the_general_ones(
    seed, params, missing, least, is_constrained, n_max, criterion, n_classes
):
    """To the bit, with ties, constant features, and any weights and targets."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, n_max), rng.integers(1, 20)
    X = rng.integers(0, rng.choice([2, 10, 100_000]), (n, n_features)) * rng.choice([1.0, 3e-8])
    y = X[:, 0] + rng.normal(size=n) * rng.choice([1.0, 1e-6, 1e6])
    X = np.where(rng.random(X.shape) < missing, np.nan, X)
    weights = rng.integers(0, 4, (2, n)) * rng.choice([1.0, 0.3])
    weights[:, rng.integers(n)] = 1.0
    model, n_values = DecisionTreeRegressor(**params, min_weight_fraction_leaf=least), 1
    if criterion is criteria.Poisson:
        y = np.floor(np.abs(y)) * (rng.random(n) < 0.7)
        y[0], weights[:, 0] = 1.0, 1.0
    if criterion in (criteria.Gini, criteria.Entropy):  # whole weights are counted
        model = DecisionTreeClassifier(**params, min_weight_fraction_leaf=least)
        n_values, weights[:, rng.integers(n)] = n_classes, 0.7
        y = rng.integers(0, n_classes, n).astype(float)
    elif is_constrained:
        model.monotonic_cst = rng.integers(-1, 2, n_features)
    plan = make_plan(model, criterion, "random", n, n_features, 1, n_values)
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
    rng, n_rows = np.random.default_rng(0), fewer(5000)
    X = rng.normal(size=(n_rows, 12))
    y = X[:, 0] + rng.normal(size=n_rows)
    X[rng.random(X.shape) < missing] = np.nan
    table = FloatTable.encode(Columns(X.astype(np.float32)))
    model = DecisionTreeRegressor(max_features=max_features)
    plan = make_plan(model, criteria.SquaredError, "random", *X.shape, 1, 1)
    weights = rng.integers(0, 3, (2, n_rows)).astype(float)
    for sizes in ((n_rows // 4, n_rows // 16), (n_rows, 70), (4, 2)):
        monkeypatch.setattr(random_cut, "COPY_BYTES", [4 * n for n in sizes])
        fast, general = paths(table, y[:, None], plan, RandomMeanPath)
        for ours, theirs in zip(
            fast.grow(weights, [1, 2]), general.grow(weights, [1, 2]), strict=True
        ):
            assert ours.node_count > n_rows / 5
            assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("n_classes", [2, 3, 6, 10, 12])  # twelve are not packed
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("n_features", "max_features", "min_samples_leaf"),
    [(12, 1, 1), (12, 12, 2), (40, 2, 1), (40, 5, 1)],
)
def test_classes_are_the_same_on_any_tiers(
    n_features, max_features, min_samples_leaf, missing, n_classes, monkeypatch
):
    """Rows across, of the whole table or of near tiers alone, and columns where nodes look at few
    of many features; blocks of columns without a draw; light and heavy nodes, whose counts take one
    number or several; and rows that are counted."""
    monkeypatch.setattr(near, "_HELD_ANYWAY", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, n_features))
    z = n_classes / 3 * (X[:, 0] + rng.normal(size=5000))
    y = np.clip(np.round(z) + (n_classes - 1) // 2, 0, n_classes - 1)
    X[rng.random(X.shape) < missing] = np.nan
    table = FloatTable.encode(Columns(X.astype(np.float32)))
    model = DecisionTreeClassifier(max_features=max_features, min_samples_leaf=min_samples_leaf)
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


@pytest.mark.parametrize("n_values", [2, 3])
@pytest.mark.parametrize("n_outputs", [2, 4, 9])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("criterion", [criteria.Gini, criteria.Entropy])
def test_classes_of_several_outputs_are_counted(n_outputs, n_values, missing, criterion):
    rng, n_rows = np.random.default_rng(0), fewer(2000)
    X = rng.normal(size=(n_rows, 9))
    y = np.round(X[:, :n_outputs] + rng.normal(size=(n_rows, n_outputs))).clip(0, n_values - 1)
    X[rng.random(X.shape) < missing] = np.nan
    table = FloatTable.encode(Columns(X.astype(np.float32)))
    model = DecisionTreeClassifier(max_features=0.4)
    plan = make_plan(model, criterion, "random", *X.shape, n_outputs, n_values)
    fast, general = paths(table, y, plan, RandomClassCountsPath)
    weights = rng.integers(0, 3, (2, n_rows)).astype(float)
    for both in zip(fast.grow(weights, [1, 2]), general.grow(weights, [1, 2]), strict=True):
        assert_same_nodes(*both)


@examples(60)
@given(
    seed=seeds,
    params=limits,
    n_outputs=st.sampled_from([2, 3, 4, 9]),
    missing=st.sampled_from([0.0, 0.1]),
    n_max=st.sampled_from([8, 60, 400]),
)
def test_trees_of_several_means_are_the_general_ones(seed, params, n_outputs, missing, n_max):
    """To the bit, also of two rows, whose squares are summed up output after output."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, n_max), rng.integers(1, 20)
    X = rng.integers(0, rng.choice([2, 10, 100_000]), (n, n_features)).astype(np.float32)
    y = X[:, :1] + rng.normal(size=(n, n_outputs))
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(0, 4, (2, n)) * rng.choice([1.0, 0.3])
    weights[:, rng.integers(n)] = 1.0
    plan = make_plan(
        DecisionTreeRegressor(**params),
        criteria.SquaredError,
        "random",
        n,
        n_features,
        n_outputs,
        1,
    )
    fast, general = paths(FloatTable.encode(Columns(X)), y, plan, RandomMeanPath)
    for weight, number in zip(weights, range(1, 3), strict=True):
        both = (grower.grow([weight], [number])[0] for grower in (fast, general))
        assert_same_nodes(*both)
