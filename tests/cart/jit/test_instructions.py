"""Instructions do in vectors what they do in plain Python."""

import numpy as np
import pytest

from cart.jit.decorators import entry_kernel
from cart.jit.instructions import add_where


@entry_kernel
def add_all(sums, first, bits, value):
    add_where(sums, first, bits, value)


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
@pytest.mark.parametrize("bits", [0, 1, 1 << 63, 0x8000_0001_0000_00F0, 2**64 - 1])
def test_a_value_is_added_where_bits_are_set(dtype, bits):
    sums = np.arange(70).astype(dtype)
    expected = sums.copy()
    expected[4:68] += np.array([bits >> b & 1 for b in range(64)], dtype) * dtype(3)
    add_all(sums, 4, np.uint64(bits), dtype(3))
    np.testing.assert_array_equal(sums, expected)
