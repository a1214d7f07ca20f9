"""`oob_permutation` on rows that are drawn: right on average, and the draw is in the error."""

from itertools import combinations

import numpy as np
import pytest

from forest import RandomForestRegressor
from importance import (
    oob_permutation,
)
from importance.permutation.drawn_rows import DrawnRows, judges_of
from tests.importance.permutation.tables import (
    biased_coin_table,
)


def test_rows_that_are_drawn_say_what_all_say_on_average():
    """For one and the same forest; what remains is within the error of the mean over draws."""
    X, y = biased_coin_table()
    forest = RandomForestRegressor(8, random_state=0).fit(X, y)
    exact = oob_permutation(forest, X, y)
    found = [oob_permutation(forest, X, y, max_rows=12, random_state=seed) for seed in range(200)]
    values = np.array([each.values for each in found])
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    off = (values.mean(axis=0) - exact.values) / error
    assert np.abs(off).max() < 3.0, off
    # Without the factor for rows that meet themselves it would be off by a twelfth.
    assert (error[:2] < exact.values[:2] / 12 / 4).all()


def test_the_mean_over_all_draws_is_the_value_of_all_rows():
    """What a row loses with the value of another, over all pairs, those of itself included."""
    loses = np.random.RandomState(0).normal(size=(7, 7))
    np.fill_diagonal(loses, 0.0)
    _, share, factor = judges_of(0, np.arange(7), DrawnRows.of(3, [0], None))
    means = [loses[np.ix_(rows, rows)].mean() for rows in combinations(range(7), 3)]
    assert factor * np.mean(means) == pytest.approx(loses.mean())
    assert share == 3 / 7


def test_the_chance_of_the_draw_is_in_the_stated_error():
    """The error over trees has it, since every tree draws anew; over data it is counted once."""
    X, y = biased_coin_table()
    forest = RandomForestRegressor(60, random_state=0).fit(X, y)
    exact = oob_permutation(forest, X, y)
    found = [oob_permutation(forest, X, y, max_rows=30, random_state=seed) for seed in range(40)]
    over_draws = np.std([each.values for each in found], axis=0, ddof=1)
    over_trees = np.mean([each.errors["over trees"] for each in found], axis=0)
    alone = exact.errors["over trees"]
    np.testing.assert_allclose(over_trees[:2], np.hypot(alone, over_draws)[:2], rtol=0.15)
    over_data = np.mean([each.standard_error for each in found], axis=0)
    expected = np.hypot(exact.standard_error, over_draws)
    np.testing.assert_allclose(over_data, expected, rtol=0.12)


def test_a_draw_is_stated_and_follows_from_the_forest():
    X, y = biased_coin_table()
    forest = RandomForestRegressor(8, random_state=0).fit(X, y)
    drawn = oob_permutation(forest, X, y, max_rows=50, per_row=True)
    assert drawn.max_rows == 50
    assert "50 rows per tree" in repr(drawn)
    again = oob_permutation(forest, X, y, max_rows=50, per_row=True, n_jobs=2)
    np.testing.assert_array_equal(drawn.values, again.values)
    np.testing.assert_array_equal(drawn.standard_error, again.standard_error)
    assert (
        np.isnan(drawn.per_row[:, 0]).sum()
        > np.isnan(oob_permutation(forest, X, y, per_row=True).per_row[:, 0]).sum()
    )
    whole = oob_permutation(forest, X, y, max_rows=len(y))
    assert whole.max_rows is None
    exact = oob_permutation(forest, X, y)
    np.testing.assert_array_equal(whole.values, exact.values)
    np.testing.assert_array_equal(whole.standard_error, exact.standard_error)


@pytest.mark.parametrize("max_rows", [1, 0, 2.5, "all"])
def test_a_draw_needs_two_rows(max_rows):
    X, y = biased_coin_table(60)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"max_rows=.* must be a whole number of at least 2"):
        oob_permutation(forest, X, y, max_rows=max_rows)
    assert oob_permutation(forest, X, y, max_rows=2).max_rows == 2


def test_definitions_judge_on_all_rows():
    X, y = biased_coin_table(60)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="max_rows has no effect with definition"):
        oob_permutation(forest, X, y, max_rows=20, definition="ranger")
