"""The most frequent code of each column, where most rows seem to have it."""

import numpy as np
import pytest

from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.frequent_codes import find_unlisted_codes, is_mostly_equal
from cart.table.ranking import MISSING

N = 1000


def columns(rng):
    """Columns with the code that most rows have, or MISSING."""
    rare = rng.random(N) < 0.1
    missing = rare.astype(float)
    missing[5] = np.nan
    return {
        "an indicator": (rare, 0),
        "the opposite": (~rare, 1),
        "numbers around most": (np.where(rare, rng.normal(size=N), 0.5), None),
        "one value": (np.ones(N), 0),
        "a missing value": (missing, MISSING),
        "mostly missing": (np.where(rare, 1.0, np.nan), MISSING),
        "half of the rows": (rng.random(N) < 0.5, MISSING),
        "numbers": (rng.normal(size=N), MISSING),
        "few numbers": (rng.integers(0, 5, N), MISSING),
    }


def test_codes_of_most():
    named = columns(np.random.default_rng(0))
    X = np.column_stack([values for values, _ in named.values()]).astype(np.float32)
    table = encode(Columns(X)).wide()
    expected = [code for _, code in named.values()]
    expected[2] = np.bincount(table.codes[2]).argmax()
    np.testing.assert_array_equal(find_unlisted_codes(table, 0.25), expected)


@pytest.mark.parametrize("n_distinct", [2, 50, N])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_mostly_equal_tables(share, n_distinct):
    """Tables of many distinct values are not looked at further."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N, 40)) < share, rng.integers(1, n_distinct, (N, 40)), 0)
    table = encode(Columns(X.astype(np.float32)))
    for most in (0.1, 0.4):
        assert is_mostly_equal(table, 20, (most, 0.0)) == (share < most)
        assert is_mostly_equal(table, 19, (1.0, most)) == (share < most)
    few = encode(Columns(X[:, :2].astype(np.float32)))
    assert not is_mostly_equal(few, 2, (0.9, 0.9))  # too small
