"""Weights that balance the classes of a subsample: scikit-learn's, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils import compute_sample_weight

from forest import RandomForestClassifier
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


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_class_without_weight_cannot_be_balanced(bootstrap):
    X, y = np.arange(6.0)[:, np.newaxis], np.array(["b", "a", "a"] * 2)
    model = RandomForestClassifier(2, class_weight="balanced", bootstrap=bootstrap)
    with pytest.raises(
        ValueError, match=r'"balanced" cannot weigh class \'b\', because all its rows'
    ):
        model.fit(X, y, sample_weight=(y == "a").astype(float))
