"""Streams begun anew say what NumPy's RandomState says."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cart.primitives.mersenne_twister import counts_below, first_draws

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 5000), st.integers(0, 3000))
@example(0, 1, 5)
@example(2**32 - 1, 2**12, 2**12)  # no word is passed over
@example(7, 2**11 + 1, 2000)  # half of them are: the state is made anew several times
def test_counts(seed, high, n_draws):
    drawn = np.random.RandomState(seed).randint(0, high, n_draws)
    (counts,) = counts_below(np.array([seed]), high, n_draws)
    np.testing.assert_array_equal(counts, np.bincount(drawn, minlength=high))
    assert counts.dtype == np.float64


@pytest.mark.parametrize("n_seeds", [5, 8, 19])  # some are begun side by side
def test_counts_of_many(n_seeds):
    seeds = np.arange(n_seeds)
    each = [counts_below(seeds[i : i + 1], 100, 90)[0] for i in seeds]
    np.testing.assert_array_equal(counts_below(seeds, 100, 90), each)


@pytest.mark.parametrize("high", [1, 2, 3, 1000, 2**31 - 1, 2**31, 2**32 - 1, 2**32])
def test_first_draws(high):
    many = np.random.RandomState(1).randint(0, 2**32, 100)
    drawn = first_draws(many, high)
    assert drawn.tolist() == [np.random.RandomState(s).randint(high) for s in many]
