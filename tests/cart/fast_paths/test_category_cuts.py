"""The fast paths of tables with categories: against the general path's trees, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.grower import Grower
from cart.fast_paths.classification.category_cuts import CategoryCountsPath
from cart.fast_paths.classification.random_subsets import RandomCategoryCountsPath
from cart.fast_paths.regression.category_rows import CategoryMeanPath
from cart.fast_paths.regression.histograms.categories import CategoryHistogramPath
from cart.fast_paths.regression.histograms.histogram import CODES_MAX
from cart.fast_paths.regression.large_nodes.sharing import SHARED_MIN
from cart.fast_paths.regression.random_cut import RandomCategoryMeanPath
from cart.growth.plan import make_plan
from cart.splitting import criteria
from cart.splitting.category_subsets import EXACT, CategoricalTable
from cart.table.columns import Columns
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples

LIMITS = {
    "max_depth": st.integers(1, 6),
    "min_samples_leaf": st.integers(2, 9),
    "max_features": st.sampled_from([1, 0.5]),
    "min_impurity_decrease": st.just(0.01),
    "min_weight_fraction_leaf": st.just(0.03),
    "min_category_ratio": st.sampled_from([0.0, 1.0]),
}
LIMITS_OF_ROWS = {k: v for k, v in LIMITS.items() if k != "min_weight_fraction_leaf"}


def make_table(rng, n, sizes, missing):
    """Columns of numbers (size 0) and of so many categories, rare ones too; a share is missing."""
    columns = [
        np.minimum(*rng.integers(0, size, (2, n))) if size else rng.normal(size=n).round(1)
        for size in sizes
    ]
    X = np.column_stack(columns).astype(float)
    is_missing = (rng.random(X.shape) < 0.1) & (rng.random(len(sizes)) < missing)
    X[is_missing] = np.where(sizes, -1.0, np.nan)[np.nonzero(is_missing)[1]]
    return CategoricalTable.encode(Columns(X), np.array(sizes)), np.nan_to_num(X).sum(axis=1)


def assert_same_growth(fast, general, weights):
    for weight, number in zip(weights, range(1, len(weights) + 1), strict=True):
        ours, theirs = (grower.grow([weight], [number])[0] for grower in (fast, general))
        assert_same_nodes(ours, theirs)
        for found, expected in zip(ours.categories, theirs.categories, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("criterion", "splitter", "Path"),
    [
        (criteria.Gini, "best", CategoryCountsPath),
        (criteria.Entropy, "best", CategoryCountsPath),
        (criteria.Gini, "random", RandomCategoryCountsPath),
    ],
)
@pytest.mark.parametrize("n_leaves", [None, 12])
@examples(80)
@given(
    seed=st.integers(0, 2**32 - 1),
    params=st.fixed_dictionaries({}, optional=LIMITS),
    n_classes=st.sampled_from([2, 2, 3, 5]),
    sizes=st.lists(st.sampled_from([0, 3, 7, 16, 100, 2000]), max_size=5),
    missing=st.sampled_from([0.0, 0.5]),
    n_max=st.sampled_from([8, 60, 900]),
)
def test_trees_of_classes_are_the_general_ones(
    criterion, splitter, Path, n_leaves, seed, params, n_classes, sizes, missing, n_max
):
    """Few and many categories, categories of one row, limits that cuts and subsets must keep."""
    rng = np.random.default_rng(seed)
    n, sizes = rng.integers(2, n_max), [5, *sizes]
    table, signal = make_table(rng, n, sizes, missing)
    y = np.where(rng.random(n) < 0.5, rng.integers(0, n_classes, n), signal * 7 % n_classes // 1)
    model = DecisionTreeClassifier(max_leaf_nodes=n_leaves, **params)
    plan = make_plan(model, criterion, splitter, n, len(sizes), 1, n_classes)
    fast, general = paths(table, y[:, None], plan, Path)
    weights = rng.integers(0, 4, (2, n)).astype(float)
    weights[:, 0] = 1.0
    assert_same_growth(fast, general, weights)


@pytest.mark.parametrize(
    ("criterion", "splitter", "Path"),
    [
        (criteria.SquaredError, "best", CategoryMeanPath),
        (criteria.Poisson, "best", CategoryMeanPath),
        (criteria.SquaredError, "random", RandomCategoryMeanPath),
    ],
)
@pytest.mark.parametrize("n_leaves", [None, 12])
@examples(80)
@given(
    seed=st.integers(0, 2**32 - 1),
    params=st.fixed_dictionaries({}, optional=LIMITS),
    sizes=st.lists(st.sampled_from([0, 3, 7, 16, 100, 2000]), max_size=5),
    missing=st.sampled_from([0.0, 0.5]),
    n_max=st.sampled_from([8, 60, 900]),
    is_whole=st.booleans(),
)
def test_trees_of_numbers_are_the_general_ones(
    criterion, splitter, Path, n_leaves, seed, params, sizes, missing, n_max, is_whole
):
    """Sums that rounding enters, and whole ones with their ties."""
    rng = np.random.default_rng(seed)
    n, sizes = rng.integers(2, n_max), [5, *sizes]
    table, signal = make_table(rng, n, sizes, missing)
    y = np.abs(np.sin(signal * 7) + rng.normal(size=n))
    y = y.round() if is_whole else y
    y[0] = 1.0  # no Poisson mean is 0
    model = DecisionTreeRegressor(max_leaf_nodes=n_leaves, **params)
    plan = make_plan(model, criterion, splitter, n, len(sizes), 1, 1)
    fast, general = paths(table, y[:, None], plan, Path)
    weights = rng.integers(0, 4, (2, n)) * np.array([[1.0], [0.7]])
    weights[:, 0] = 1.0
    assert_same_growth(fast, general, weights)


@examples(120)
@given(
    seed=st.integers(0, 2**32 - 1),
    params=st.fixed_dictionaries({}, optional=LIMITS_OF_ROWS),
    sizes=st.lists(
        st.sampled_from([0, 0, 3, EXACT, EXACT + 1, 64, 65, 300, CODES_MAX]), max_size=5
    ),
    n_max=st.sampled_from([8, 60, 900, 5000]),
    size=st.sampled_from([1.0, 40.0]),
)
def test_sums_per_category_grow_the_general_trees(seed, params, sizes, n_max, size):
    """Whole targets and weights: sums of numbers and of categories are exact in any order."""
    rng = np.random.default_rng(seed)
    n, sizes = rng.integers(2, n_max), [5, *sizes]
    table, signal = make_table(rng, n, sizes, missing=0.0)
    y = np.rint(size * (np.sin(signal * 7) + rng.normal(size=n)))
    model = DecisionTreeRegressor(**params)
    plan = make_plan(model, criteria.SquaredError, "best", n, len(sizes), 1, 1)
    fast, general = paths(table, y[:, None], plan, CategoryHistogramPath)
    weights = rng.integers(0, 4, (2, n)).astype(float)
    weights[:, 0] = 1.0
    assert_same_growth(fast, general, weights)


@pytest.mark.parametrize(
    ("y", "n_categories", "missing", "params", "path"),
    [
        (3.0, CODES_MAX, False, {}, CategoryHistogramPath),
        (0.5, 9, False, {}, CategoryMeanPath),  # sums that depend on their order
        (0.5, 9, False, {"max_bins": 255}, CategoryMeanPath),
        (3.0, CODES_MAX + 1, False, {}, CategoryMeanPath),
        (3.0, 9, True, {}, CategoryMeanPath),
        (3.0, 9, False, {"max_leaf_nodes": 9}, CategoryMeanPath),
        (3.0, 9, False, {"min_weight_fraction_leaf": 0.01}, CategoryMeanPath),
    ],
)
def test_sums_per_category_are_for_whole_numbers(y, n_categories, missing, params, path):
    n = 2 * CODES_MAX
    X = np.arange(n)[:, None] % n_categories - 1.0 * missing
    y = np.where(np.arange(n) % 2 == 0, y, 1.0)
    plan = make_plan(DecisionTreeRegressor(**params), criteria.SquaredError, "best", n, 1, 1, 1)
    table = CategoricalTable.encode(Columns(X), np.array([n_categories]))
    weights = np.ones((1, n))
    grower = Grower(table, y[:, None], plan)
    chosen = next(fast for fast in grower._fast if fast.accepts(weights, is_whole=True))
    assert type(chosen) is path


def test_large_nodes_of_means_with_categories():
    """Nodes of so many rows are divided in shares where all columns are numbers; not these."""
    rng, n = np.random.default_rng(0), 2 * SHARED_MIN
    X = np.column_stack([rng.integers(0, 5, n), rng.normal(size=n).round(2)])
    table = CategoricalTable.encode(Columns(X), np.array([5, 0]))
    y = np.array([0.0, 3.0, 1.0, 2.0, 5.0])[X[:, 0].astype(int)] * X[:, 1] + rng.normal(size=n)
    plan = make_plan(DecisionTreeRegressor(max_depth=4), criteria.SquaredError, "best", n, 2, 1, 1)
    fast, general = paths(table, y[:, None], plan, CategoryMeanPath)
    assert_same_growth(fast, general, np.ones((1, n)))
