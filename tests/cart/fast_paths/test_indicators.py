"""Columns of two values as bits: the general trees, to the bit where sums are exact."""

from unittest.mock import patch

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st

import cart
import forest
from cart.estimators.grower import Grower
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.indicators.class_counts import IndicatorCountsPath
from cart.fast_paths.indicators.means import IndicatorMeanPath
from cart.fast_paths.indicators.row_bits import BITS, RowBits
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.growth.plan import make_plan
from cart.splitting import criteria
from cart.table.columns import Columns
from cart.table.encoding import encode
from tests.agreement.same import assert_same_nodes, assert_same_up_to_ties, paths
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)
limits = st.fixed_dictionaries(
    {"max_features": st.sampled_from(["sqrt", 0.19, 1 / 3, 1.0])},
    optional={
        "max_depth": st.integers(1, 6), "min_samples_split": st.integers(2, 20),
        "min_samples_leaf": st.integers(2, 9), "min_impurity_decrease": st.just(0.01),
    },
)  # fmt: skip


def indicators(rng, n, p):
    """A table of 0 and 1; some columns are constant, alike, or the reverse of another."""
    X = (rng.random((n, p)) < rng.choice([0.05, 0.3, 0.6], p)).astype(np.float32)
    X[:, 2], X[:, 3], X[:, 5] = X[:, 1], 1.0 - X[:, 1], 7.0
    return X


def growers(model, X, y, path, n_values=1):
    by_name = {**criteria.CLASSIFICATION, **criteria.REGRESSION}
    y = y.reshape(len(y), -1).astype(float)
    plan = make_plan(model, by_name[model.criterion], "best", *X.shape, y.shape[1], n_values)
    module = "class_counts" if path is IndicatorCountsPath else "means"
    with patch(f"cart.fast_paths.indicators.{module}.bits_pay", lambda *_: True):  # though few rows
        return paths(encode(Columns(X)).narrow(), y, plan, path)


def assert_same_trees(growers, weights):
    """Two growers grow the same trees, to the bit."""
    grown = (grower.grow(weights, range(len(weights))) for grower in growers)
    for ours, theirs in zip(*grown, strict=True):
        assert_same_nodes(ours, theirs)


@examples(150)
@given(
    seed=seeds, n=st.sampled_from([3, 40, 400]), n_others=st.sampled_from([0, 5, 24]),
    n_classes=st.sampled_from([1, 2, 3, 6]), n_outputs=st.sampled_from([1, 1, 2, 5]), params=limits,
    more=st.sampled_from([{}, {"criterion": "entropy"}, {"max_leaf_nodes": 9}]),
)  # fmt: skip
def test_classes_are_counted_as_by_the_general_path(
    seed, n, n_others, n_classes, n_outputs, params, more
):
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(n, n_others)).round(1).astype(np.float32)
    is_entropy = "criterion" in more
    if is_entropy == (n_outputs > 1):  # of two of four kinds, which saves kernels to compile
        others[rng.random(others.shape) < rng.choice([0.0, 0.1])] = np.nan
    X = np.column_stack([others, indicators(rng, n, rng.integers(26, 90))])
    X[:, -1] = X[:, -2] * 1e-8  # equal for scikit-learn
    X = np.asfortranarray(X[:, rng.permutation(X.shape[1])])
    y = rng.integers(0, n_classes, (n, n_outputs))
    y[0] = n_classes - 1
    weights = rng.integers(0, rng.choice([2, 32]), (2, n)).astype(float)
    weights[:, 0] = 1.0
    model = cart.DecisionTreeClassifier(**params, **more)
    assert_same_trees(growers(model, X, y, IndicatorCountsPath, n_classes), weights)


@examples(400)
@given(
    seed=seeds, n=st.sampled_from([3, 40, 400]), n_others=st.sampled_from([0, 5, 24]),
    has_missing=st.booleans(), is_whole=st.booleans(), weigh=st.sampled_from([2, 32, 300, 0]),
    params=limits, criterion=st.sampled_from(["squared_error", "squared_error", "poisson"]),
    more=st.sampled_from([
        {}, {}, {"max_leaf_nodes": 9}, {"min_weight_fraction_leaf": 0.02}, {"monotonic_cst": 1},
    ]),
)  # fmt: skip
def test_bits_beside_sorted_rows_change_no_tree(
    seed, n, n_others, has_missing, is_whole, weigh, params, criterion, more
):
    """Nor do sorted rows, as against the general path, where sums are exact."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([numbers(rng, n, n_others, has_missing), indicators(rng, n, 30)])
    X[:, -1] = rng.random(n) < 3 / n  # a cut between few rows that are far off, and the others
    far = 40.0 * X[:, -1]
    X = np.asfortranarray(X[:, rng.permutation(X.shape[1])])
    y = 5.0 * X[:, 0] - 3.0 * X[:, 1] + rng.normal(size=n)
    y[np.isnan(y)] = 2.0
    y += far
    y = np.rint(y) if is_whole else y
    y = y if criterion == "squared_error" else np.maximum(y, 0.0)
    y[0] = 1.0
    weights = (
        rng.integers(0, weigh, (2, n)).astype(float) if weigh else rng.exponential(size=(2, n))
    )
    weights[:, 0] = 1.0
    if "max_leaf_nodes" in more:  # of one kind only, which saves kernels to compile
        params, criterion = {**params, "max_features": 1.0}, "squared_error"
    elif criterion == "poisson":  # likewise
        params = {**params, "max_features": 0.19}
    if "max_leaf_nodes" in more or "min_weight_fraction_leaf" in more:
        weights = weights[:1]  # such trees are grown one by one
    if "monotonic_cst" in more:
        is_free = np.isnan(X).any(axis=0)
        more = {"monotonic_cst": np.where(is_free, 0, rng.integers(-1, 2, X.shape[1]))}
    model = cart.DecisionTreeRegressor(criterion=criterion, **params, **more)
    fast, general = growers(model, X, y, IndicatorMeanPath)
    assert_same_trees((fast, growers(model, X, y, SortedPath)[0]), weights)
    if is_whole and weigh and criterion == "squared_error":
        assert_same_trees((fast, general), weights)


@pytest.mark.parametrize("max_features", [1.0, 8])
@pytest.mark.parametrize("params", [{}, {"monotonic_cst": -1}, {"min_samples_leaf": 6}], ids=str)
def test_bits_in_nodes_of_all_sizes(params, max_features):
    """With missing values, with constraints, and with cuts that leave too few rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([numbers(rng, 400, 12, not params), indicators(rng, 400, 40)])
    X[:, -1] = np.arange(400) < 5
    y = 20.0 * X[:, -1] + X[:, -2] - X[:, -4] + rng.normal(size=400)
    if "monotonic_cst" in params:
        params = {"monotonic_cst": np.full(X.shape[1], -1)}
    model = cart.DecisionTreeRegressor(max_features=max_features, **params)
    fast, lists = (growers(model, X, y, path)[0] for path in (IndicatorMeanPath, SortedPath))
    assert_same_trees((fast, lists), np.ones((1, 400)))


def numbers(rng, n, p, has_missing):
    """Numbers, some of them with missing values, counts, and values equal for scikit-learn."""
    X = rng.normal(size=(n, p)).astype(np.float32)
    X[:, 1::4] = rng.poisson(0.3, X[:, 1::4].shape)
    X[:, 2::4] = X[:, 2::4].round(1) * 1e-7
    X[(rng.random(X.shape) < 0.1) & (rng.random(p) < 0.5) & has_missing] = np.nan
    return X


@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("n_others", [0, 12])
@pytest.mark.parametrize(
    "params",
    [{}, {"max_features": 0.4}, {"max_features": 4}, {"min_samples_leaf": 5}, {"max_depth": 3}],
    ids=str,
)
def test_real_targets_give_scikit_learns_trees_up_to_ties(params, n_others, weighs):
    rng = np.random.default_rng(0)
    X = np.column_stack([indicators(rng, 300, 40), rng.normal(size=(300, n_others))])
    X = X.astype(np.float32)
    y = X[:, :4] @ rng.normal(size=4) + rng.normal(size=300)
    weight = rng.exponential(size=300) if weighs else np.ones(300)
    ours = cart.DecisionTreeRegressor(random_state=0, **params).fit(X, y, sample_weight=weight)
    theirs = sklearn.tree.DecisionTreeRegressor(random_state=0, **params)
    assert_same_up_to_ties(ours, theirs.fit(X, y, sample_weight=weight), X, y, weight)


@pytest.mark.parametrize(
    ("n_indicators", "n_others", "n_outputs", "max_features", "share", "expected"),
    [
        (24, 0, 1, 1.0, 0.3, True),
        (23, 0, 1, 1.0, 0.3, False),
        (40, 40, 1, 1.0, 0.3, True),
        (40, 41, 1, 1.0, 0.3, False),
        (240, 0, 1, 11, 0.3, True),
        (240, 0, 1, 10, 0.3, False),
        (240, 0, 5, 54, 0.3, True),
        (240, 0, 5, 53, 0.3, False),
        (2400, 0, 1, 214, 0.3, True),
        (2400, 0, 1, 213, 0.3, False),
        (240, 0, 1, 50, 0.01, False),
        (240, 0, 1, 1.0, 0.01, True),
    ],
)
def test_which_tables_are_grown_on_by_bits(
    n_indicators, n_others, n_outputs, max_features, share, expected
):
    rng = np.random.default_rng(0)
    X = np.column_stack([
        rng.random((300, n_indicators)) < share, rng.normal(size=(300, n_others))
    ]).astype(np.float32)  # fmt: skip
    model = cart.DecisionTreeClassifier(max_features=max_features)
    plan = make_plan(model, criteria.Gini, "best", *X.shape, n_outputs, 2)
    assert IndicatorCountsPath.fits(encode(Columns(X)), plan) == expected


@pytest.mark.parametrize(
    ("n_indicators", "n_others", "max_features", "expected"),
    [
        (24, 0, 1.0, True),
        (23, 0, 1.0, False),
        (60, 40, 1.0, True),
        (60, 41, 1.0, False),
        (240, 0, 40, True),
        (240, 0, 39, False),
    ],
)
def test_where_sorted_rows_have_bits_beside_them(n_indicators, n_others, max_features, expected):
    rng = np.random.default_rng(0)
    X = np.column_stack([
        rng.random((300, n_indicators)) < 0.3, rng.normal(size=(300, n_others))
    ]).astype(np.float32)  # fmt: skip
    model = cart.DecisionTreeRegressor(max_features=max_features)
    plan = make_plan(model, criteria.SquaredError, "best", *X.shape, 1, 1)
    assert IndicatorMeanPath.fits(encode(Columns(X)), plan) == expected
    X[0, :n_indicators] = np.nan
    assert not IndicatorMeanPath.fits(encode(Columns(X)), plan)


def test_threads_share_nodes_that_have_bits():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(17000, 3)), indicators(rng, 17000, 30)])
    y = X[:, 0] + X[:, 5] + rng.normal(size=17000)
    one, two = (
        forest.RandomForestRegressor(1, max_depth=4, random_state=0, n_jobs=k).fit(X, y)
        for k in (1, 2)
    )
    assert_same_nodes(one.estimators_[0].tree_, two.estimators_[0].tree_)
    theirs = sklearn.ensemble.RandomForestRegressor(1, max_depth=4, random_state=0).fit(X, y)
    np.testing.assert_allclose(one.predict(X), theirs.predict(X))


def test_heavy_rows_are_not_counted_in_bytes():
    rng = np.random.default_rng(0)
    X, y = indicators(rng, 60, 30), rng.integers(0, 2, (60, 1)).astype(float)
    plan = make_plan(cart.DecisionTreeClassifier(), criteria.Gini, "best", *X.shape, 1, 2)
    fast = Grower(encode(Columns(X)), y, plan)._fast
    taken = [type(next(path for path in fast if path.accepts(np.full((1, 60), w), True)))
             for w in (31.0, 32.0)]  # fmt: skip
    assert taken == [IndicatorCountsPath, ClassCountsPath]


def test_bits_of_rows():
    X = indicators(np.random.default_rng(0), 50, 70)
    X[:, 10] = np.arange(50)
    X[:, 11] = np.where(np.arange(50) < 9, np.nan, X[:, 1])
    bits = RowBits.of(encode(Columns(X)))
    assert bits.words.shape == (50, 2)
    assert (bits.place[[10, 11]] == -1).all()
    assert sorted(bits.place[bits.place >= 0]) == list(range(68))
    for column in np.flatnonzero(bits.place >= 0):
        word, bit = divmod(int(bits.place[column]), BITS)
        found = bits.words[:, word] >> np.uint64(bit) & np.uint64(1)
        np.testing.assert_array_equal(found, X[:, column] == 1)
