"""Ranks of columns, against numpy."""

import numpy as np
import pytest

from cart.rank import MISSING, Scratch, ordered_bits, rank

SPECIAL = (0.0, -0.0, np.nan, 1e38, -1e38, np.inf, -np.inf, 1e-45, -1e-45, 2.0**53, 2.0**53 - 1)
COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(-3, 4, n),
    "some missing": lambda rng, n: np.where(rng.random(n) < 0.3, -np.nan, rng.normal(size=n)),
    "all missing": lambda rng, n: np.full(n, np.nan),
    "special": lambda rng, n: rng.choice(SPECIAL, n),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("column", COLUMNS)
def test_ranks_are_numpys(column, dtype):
    rng = np.random.default_rng(0)
    for n in (1, 5, 21, 100, 1500):
        values = COLUMNS[column](rng, n).astype(dtype)
        known = ~np.isnan(values)
        levels, expected = np.unique(values[known], return_inverse=True)
        codes = np.empty(n, np.uint32)
        np.testing.assert_array_equal(rank(values, codes, Scratch.create(n)), levels)
        np.testing.assert_array_equal(codes[known], expected)
        assert (codes[~known] == MISSING).all()


def test_bits_are_in_the_order_of_the_values():
    values = np.unique(np.array(SPECIAL, np.float32))[:-1]  # nan is last
    assert (np.diff(ordered_bits(values).astype(np.int64)) > 0).all()
