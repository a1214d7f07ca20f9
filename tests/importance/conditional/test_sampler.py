"""Draws of a column given the others, where it is known what they have to be."""

import numpy as np
import pytest

from importance.conditional.sampler import ConditionalSampler

N = 400
NONE = np.zeros(3, bool)


def draws_of(X, column, is_categorical=NONE, n_draws=30):
    sampler = ConditionalSampler(X[: N // 2], column, is_categorical, 0)
    return sampler.draw(X[N // 2 :], n_draws, np.random.RandomState(0))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 3))


def test_a_column_that_others_fix_in_a_line_is_drawn_as_it_is(X):
    X[:, 1] = 3.0 * X[:, 0] - 2.0 * X[:, 2] + 100.0
    drawn = draws_of(X, 1)
    assert drawn.shape == (30, N // 2)
    np.testing.assert_allclose(drawn, np.tile(X[N // 2 :, 1], (30, 1)), atol=0.05)


def test_a_column_that_another_fixes_in_a_curve_is_drawn_near_it(X):
    X[:, 1] = X[:, 0] ** 2
    inside = np.abs(X[N // 2 :, 0]) < 1.5
    drawn = draws_of(X, 1)[:, inside]
    assert np.sqrt(np.mean((drawn - X[N // 2 :, 1][inside]) ** 2)) < 0.25 * X[:, 1].std()


def test_an_independent_column_keeps_its_distribution(X):
    drawn = draws_of(X, 1)
    assert abs(drawn.mean() - X[:, 1].mean()) < 0.15
    assert drawn.std() == pytest.approx(X[:, 1].std(), rel=0.1)
    assert abs(np.corrcoef(drawn[0], X[N // 2 :, 1])[0, 1]) < 0.2


def test_the_spread_follows_the_others(X):
    X[:, 1] *= np.where(X[:, 0] > 0.0, 10.0, 1.0)
    spread = draws_of(X, 1).std(axis=0)
    wide = X[N // 2 :, 0] > 0.5
    assert np.median(spread[wide]) > 4.0 * np.median(spread[X[N // 2 :, 0] < -0.5])


def test_categories_and_few_values_are_drawn_from_those_that_occur(X):
    X[:, 0] = np.floor(3.0 * np.random.default_rng(1).random(N))
    X[:, 1] = 2.0 - X[:, 0]
    for is_categorical in (NONE, np.array([True, True, False])):
        drawn = draws_of(X, 1, is_categorical)
        np.testing.assert_array_equal(drawn, np.tile(X[N // 2 :, 1], (30, 1)))


def test_missing_values_are_drawn_where_they_occur(X):
    X[X[:, 0] > 0.0, 1] = np.nan
    far = np.abs(X[N // 2 :, 0]) > 0.3
    drawn = draws_of(X, 1)[:, far]
    assert np.mean(np.isnan(drawn) == (X[N // 2 :, 0] > 0.0)[far]) > 0.95


def test_a_single_column_is_drawn_from_its_own_values(X):
    alone = X[:, :1]
    drawn = draws_of(alone, 0, NONE[:1])
    assert np.isin(drawn, alone[: N // 2]).all()
    assert len(np.unique(drawn)) > N // 4
