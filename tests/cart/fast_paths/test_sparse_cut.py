"""Class counts on sparse tables: against the general path's trees, to the bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier
from cart.estimators.grower import Grower
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.classification.sparse_cut import (
    MostlyEqualCountsPath,
    SparseClassCountsPath,
    SparseRandomCountsPath,
    cuts_around_zeros,
)
from cart.growth.plan import make_plan
from cart.jit.decorators import entry_kernel
from cart.splitting import criteria
from cart.table.bins import bin_table
from cart.table.columns import Columns
from cart.table.encoding import encode
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples


def plan_of(model, shape, n_classes, n_outputs=1):
    criterion = criteria.CLASSIFICATION[model.criterion]
    return make_plan(model, criterion, model.splitter, *shape, n_outputs, n_classes)


def labels_of(rng, first, n_classes, n_outputs):
    """Labels whose first output is given; others agree with it more or less."""
    others = rng.integers(0, n_classes, (len(first), n_outputs)) * (rng.random(n_outputs) < 0.5)
    return np.column_stack([first, (first[:, np.newaxis] + others) % n_classes])[:, :n_outputs]


@examples(150)
@given(
    seed=st.integers(0, 2**32 - 1),
    params=st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.integers(1, 6),
            "min_samples_split": st.integers(2, 20),
            "min_samples_leaf": st.integers(2, 9),
            "max_features": st.sampled_from([1, 0.5]),
            "min_impurity_decrease": st.just(0.01),
            "max_leaf_nodes": st.integers(2, 40),
            "min_weight_fraction_leaf": st.just(0.05),
            "criterion": st.just("entropy"),
            "splitter": st.just("random"),
        },
    ),
    n_classes=st.sampled_from([1, 2, 3, 5]),
    n_outputs=st.sampled_from([1, 1, 2, 12]),
    density=st.sampled_from([0.0, 0.02, 0.2, 0.7, 1.0]),
    n_levels=st.sampled_from([2, 10, 100_000]),
    is_constrained=st.booleans(),
    n_max=st.sampled_from([8, 60, 900]),
)
@example(  # which side is the left one matters to constraints only
    seed=1, params={"splitter": "random"}, n_classes=2, n_outputs=1, density=0.2, n_levels=10,
    is_constrained=True, n_max=900,
)  # fmt: skip
def test_trees_are_the_general_ones(
    seed, params, n_classes, n_outputs, density, n_levels, is_constrained, n_max
):
    """Codes below and above that of 0, ties, columns without zeros, classes that stay out."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(2, n_max), rng.integers(1, 20)
    values = rng.integers(-n_levels, n_levels, (n, n_features)) * rng.choice([1.0, 3e-8])
    X = np.where(rng.random(values.shape) < density, values, 0.0)
    y = rng.integers(0, n_classes, n) * (rng.random(n) < 0.5)
    y = np.where(X[:, 0] > 0, n_classes - 1, y).astype(float)
    weights = rng.integers(0, 4, (2, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    model = DecisionTreeClassifier(**params)
    if is_constrained and n_classes == 2 and n_outputs == 1:
        model.monotonic_cst = rng.integers(-1, 2, n_features)
    plan = plan_of(model, X.shape, n_classes, n_outputs)
    table = encode(Columns(sp.csc_matrix(X.astype(np.float32))))
    y = labels_of(rng, y, n_classes, n_outputs)
    is_random = model.splitter == "random"
    path = SparseRandomCountsPath if is_random else SparseClassCountsPath
    fast, general = paths(table, y, plan, path)
    for weight, number in zip(weights, range(1, 3), strict=True):
        both = (grower.grow([weight], [number])[0] for grower in (fast, general))
        assert_same_nodes(*both)


@entry_kernel
def limit_cuts(place_of_zeros, n, n_listed, least):
    return cuts_around_zeros(place_of_zeros, n, n_listed, least)


@pytest.mark.parametrize("n", range(1, 9))
def test_limits_of_samples_count_all_zeros(n):
    """Every number of zeros at every place, or none."""
    for n_listed in range(n + 1):
        n_zeros = n - n_listed
        for place in range(n_listed + 1) if n_zeros else [n_listed]:
            samples = np.ones(n_listed + (n_zeros > 0), np.int64)
            if n_zeros:
                samples[place] = n_zeros
            left = np.cumsum(samples)[:-1]
            for least in range(1, n // 2 + 1):
                first, last = limit_cuts(place, n, n_listed, least)
                is_legal = (left >= least) & (n - left >= least)
                assert list(range(first, last)) == np.flatnonzero(is_legal).tolist()


@examples(100)
@given(
    seed=st.integers(0, 2**32 - 1),
    params=st.fixed_dictionaries(
        {},
        optional={
            "criterion": st.just("entropy"),
            "max_features": st.sampled_from([1, 0.5, 0.9]),
            "max_leaf_nodes": st.integers(2, 40),
            "min_samples_leaf": st.integers(2, 30),
            "min_weight_fraction_leaf": st.just(0.01),
        },
    ),
    n_classes=st.sampled_from([2, 5]),
    n_outputs=st.sampled_from([1, 1, 3]),
    most=st.sampled_from([0.0, -1.0, 2.0]),
    bins=st.sampled_from([None, 2, 255]),
    keeps_values=st.booleans(),
)
def test_dense_tables_that_are_mostly_equal(
    seed, params, n_classes, n_outputs, most, bins, keeps_values
):
    """Their trees are to the bit those of the path that reads all values; cuts where the table has
    no values, thresholds where it has."""
    rng, n, n_features = np.random.default_rng(seed), 900, 20
    X = np.where(rng.random((n, n_features)) < 0.01, rng.integers(-9, 9, (n, n_features)), most)
    X[:, 3], X[:, 4] = most + 3e-8 * (rng.random(n) < 0.05), X[:, 4] * 4e-8
    X[1], X[2] = most + 1, most + 2  # no column is constant
    y = np.where(X[:, 0] > most, n_classes - 1, rng.integers(0, n_classes, n)).astype(float)
    y = labels_of(rng, y, n_classes, n_outputs)
    plan = plan_of(DecisionTreeClassifier(**params), X.shape, n_classes, n_outputs)
    table = encode(Columns(X.astype(np.float32)), keeps_values=keeps_values or bins is not None)
    table = table.narrow() if bins is None else bin_table(table, bins)
    assert MostlyEqualCountsPath.fits(table, plan)
    weights = rng.integers(0, 4, n).astype(float)
    growers = (paths(table, y, plan, path)[0] for path in (MostlyEqualCountsPath, ClassCountsPath))
    assert_same_nodes(*(grower.grow([weights], [1])[0] for grower in growers))


@pytest.mark.parametrize(
    ("n_rows", "not_equal", "max_features", "n_codes", "expected"),
    [
        (1000, 0.05, None, 9, True),
        (1000, 0.05, "sqrt", 9, True),
        (1000, 0.09, "sqrt", 9, False),
        (1000, 0.09, None, 9, True),
        (1000, 0.2, None, 9, False),
        (100, 0.05, None, 9, False),
        (1000, 0.03, None, 2, True),
        (1000, 0.03, "sqrt", 2, False),
        (1000, 0.09, None, 2, False),
    ],
)
def test_which_tables_are_mostly_equal(n_rows, not_equal, max_features, n_codes, expected):
    """Small tables are not worth it, nor are those of which nodes read little anyway, nor columns
    of so few codes that they are read fast."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n_rows, 100)) < not_equal, rng.integers(1, n_codes, (n_rows, 100)), 0)
    plan = plan_of(DecisionTreeClassifier(max_features=max_features), X.shape, 2)
    table = encode(Columns(X.astype(np.float32)))
    assert MostlyEqualCountsPath.fits(table, plan) == expected


def test_weights_that_are_not_whole_leave_a_table_dense():
    """Their sums depend on the order of rows, which sparse tables do not keep."""
    rng = np.random.default_rng(0)
    X, y = np.where(rng.random((1000, 30)) < 0.05, 1.0, 0.0), rng.integers(0, 2, 1000)
    weights = rng.random(1000)
    ours = DecisionTreeClassifier(random_state=0).fit(X, y, weights).tree_
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MostlyEqualCountsPath, "fits", lambda table, plan: False)
        theirs = DecisionTreeClassifier(random_state=0).fit(X, y, weights).tree_
    assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("is_fast", [True, False])
def test_trees_of_other_rows_are_grown_afresh(is_fast):
    """Each root is listed, lies at the same place, and is the only node searched."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((900, 30)) < 0.2, rng.integers(1, 9, (900, 30)), 0)
    y = rng.integers(0, 2, (900, 1)).astype(float)
    plan = plan_of(DecisionTreeClassifier(max_depth=1), X.shape, 2)
    table = encode(Columns(sp.csc_matrix(X.astype(np.float32))))
    weights = np.zeros((2, 900))
    weights[0, :30] = weights[1, 30:60] = 1.0
    of_both, of_one = (Grower(table, y, plan, is_fast=is_fast) for _ in range(2))
    after = of_both.grow(list(weights), [1, 2])[1]
    assert_same_nodes(after, of_one.grow([weights[1]], [2])[0])
