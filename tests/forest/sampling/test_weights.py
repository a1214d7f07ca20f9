"""Weights that balance the classes of a subsample: scikit-learn's, to the bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils import compute_sample_weight

from forest.sampling.weights import balance_subsample
from tests.examples import examples


@examples(200)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), n_outputs=st.integers(0, 3))
def test_balanced_subsamples_weigh_as_scikit_learns(seed, n, n_outputs):
    """Also where a draw misses a class, and of several outputs; 0: a flat array."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, rng.integers(1, 6), (n, n_outputs or 1)).astype(float)
    codes = codes if n_outputs else codes[:, 0]
    draws = rng.integers(0, n, rng.integers(1, 2 * n + 1))
    counts = np.bincount(draws, minlength=n)
    expected = counts * compute_sample_weight("balanced", codes.astype(int), indices=draws)
    np.testing.assert_array_equal(balance_subsample(counts, codes), expected)
