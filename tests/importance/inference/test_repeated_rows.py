"""Copies of rows in the training table are named, and what is alike by nature is not."""

from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from scipy.sparse import csr_array

from cartwood import (
    RandomForestClassifier,
    RandomForestRegressor,
    compare,
    conditional_test,
    over_data,
    permutation_test,
    select_features,
)
from forest.inference.repeated_rows import doubts_on_repeated_rows
from importance.core.fitted_forest import check_forest

_SAID = "60 of 130 rows equal another row, including y."


def _doubt(X, y, kind=RandomForestRegressor, **fit):
    forest = kind(5, random_state=0).fit(X, y, **fit)
    return "".join(doubts_on_repeated_rows(check_forest(forest, X, y)))


def _numbers(seed=0):
    """100 rows, 30 of which are there twice: their numbers, y and the row they are."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate((np.arange(100), np.arange(30)))
    return rng.normal(size=(100, 4))[rows], rng.normal(size=100)[rows], rows


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_copies_are_named(form):
    X, y, _ = _numbers()
    X[np.abs(X) < 0.1] = 0.0
    assert _doubt(form(X), y).startswith(_SAID)


def test_compare_says_so_first():
    X, y, _ = _numbers()
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    assert compare(forest, X, y, measures=["mdi"]).warnings[0].startswith(_SAID)


@pytest.mark.parametrize(
    ("test", "few"),
    [
        (permutation_test, {"n_repeats": 1}),
        (select_features, {"n_rounds": 19}),
        (over_data, {"n_subsamples": 1}),
        (conditional_test, {"n_draws": 1}),
    ],
)
def test_tests_warn_of_copies(test, few):
    """Of noise they have small p-values: what is out of bag, or held out, has its copies in bag."""
    X, y, _ = _numbers()
    forest = RandomForestRegressor(5, random_state=0)
    with pytest.warns(UserWarning, match=_SAID):
        test(forest.fit(X, y), X, y, random_state=0, **few)
    with catch_warnings():
        simplefilter("error")
        test(forest.fit(X[:100], y[:100]), X[:100], y[:100], random_state=0, **few)


def test_nothing_is_said_of_few_of_groups_and_of_another_y():
    X, y, rows = _numbers()
    assert _doubt(X[:102], y[:102]) == ""
    assert _doubt(X, y, groups=rows) == ""
    assert _doubt(X, y + 1e-3 * np.arange(130)) == ""


@pytest.mark.parametrize("n_columns", [3, 8])
def test_rows_of_few_values_are_alike_by_chance(n_columns):
    X = np.random.default_rng(n_columns).integers(0, 2, (300, n_columns))
    assert _doubt(X, X[:, 0] ^ X[:, 1], RandomForestClassifier) == ""


def test_rows_of_columns_that_depend_on_each_other_are_alike_by_nature():
    """One-hot columns of three factors: two rows are alike by far more than independent columns."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (100, 3))
    X = np.hstack([np.eye(4)[factor] for factor in factors.T])
    y = (factors[:, 0] + rng.normal(scale=2.0, size=100) > 1.5).astype(int)
    assert _doubt(X, y, RandomForestClassifier) == ""
    X, y = np.tile(X[:40], (2, 1)), np.tile(rng.normal(size=40), 2)
    assert "80 of 80 rows" in _doubt(X, y)
