"""Sorts of short keys: networks, and by digits."""

import numpy as np
import pytest

from cart.fast_paths.classification.packed_rows import Layout
from cart.jit.decorators import entry_kernel
from cart.primitives.radix_sort import N_DIGITS, ROOM, sort_short_keys
from cart.primitives.sorting_networks import NETWORK_MAX, sort_by_network


@entry_kernel
def sort_network(keys, n):
    sort_by_network(keys, n)


@entry_kernel
def sort_any(keys, n, shift, lowest, highest, spare, counts):
    return sort_short_keys(keys, n, shift, lowest, highest, spare, counts)


@pytest.mark.parametrize("n", [*range(1, 140), 255, 256, 257, NETWORK_MAX - 1, NETWORK_MAX])
def test_networks_sort(n):
    rng = np.random.default_rng(n)
    keys = np.zeros(NETWORK_MAX, np.uint32)
    for top in (2, 2**32):
        keys[:n] = rng.integers(0, top, n)
        expected = np.sort(keys[:n])
        sort_network(keys, n)
        np.testing.assert_array_equal(keys[:n], expected)


@pytest.mark.parametrize("n", [3, NETWORK_MAX, NETWORK_MAX + 1, 5999, 6000, 9000])
@pytest.mark.parametrize("top", [1, 700, 2**13, 2**20, 2**26])
def test_short_keys_are_sorted(n, top):
    rng = np.random.default_rng(n)
    layout = Layout.of(2**26, 2, 15)
    codes = (rng.integers(0, top, n) + 17).astype(np.uint32)
    keys = np.empty(n + ROOM, np.uint32)
    keys[:n] = codes << layout.low_bits | rng.integers(0, 32, n).astype(np.uint32)
    given_keys, spare = keys[:n].copy(), np.empty_like(keys)
    counts = np.empty(N_DIGITS, np.int32)
    where = sort_any(keys, n, layout.low_bits, codes.min(), codes.max(), spare, counts)
    found = (spare if where else keys)[:n]
    np.testing.assert_array_equal(found >> layout.low_bits, np.sort(codes))
    np.testing.assert_array_equal(np.sort(found), np.sort(given_keys))
