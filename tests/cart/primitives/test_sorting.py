"""Sorts: of short keys by networks and by digits, of a node's keys, of positions by values."""

import numpy as np
import pytest

from cart.fast_paths.classification.packed_rows import Layout
from cart.jit.decorators import entry_kernel
from cart.primitives.radix_sort import N_DIGITS, ROOM, sort_short_keys
from cart.primitives.sort_keys import N_COUNTS, sort_keys, sort_positions_by_value
from cart.primitives.sorting_networks import NETWORK_MAX, sort_by_network


@entry_kernel
def sort_network(keys, n):
    sort_by_network(keys, n)


@entry_kernel
def sort_any(keys, n, shift, lowest, highest, spare, counts):
    return sort_short_keys(keys, n, shift, lowest, highest, spare, counts)


@entry_kernel
def sort_node(keys, n, n_bits, counts, spare):
    sort_keys(keys, n, n_bits, counts, spare)


@entry_kernel
def sort_values(values, column, n, spare):
    sort_positions_by_value(values, column, n, spare)


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


@pytest.mark.parametrize("n_bits", [1, 4, 10, 19, 27, 32])
@pytest.mark.parametrize("n", [0, 1, 2, 20, 21, 33, 500, 1024, 1025, 6100])
def test_a_nodes_keys_are_sorted_by_code_and_else_stay_in_order(n, n_bits):
    """Codes that are spread evenly, close together with few far away, and all the same."""
    rng, top = np.random.default_rng(n), 2**n_bits - 1
    crowded = np.where(rng.random(n) < 0.9, rng.integers(0, 40, n) % (top + 1), top)
    for codes in (rng.integers(0, top + 1, n), crowded, np.full(n, top)):
        keys = codes.astype(np.uint64) << 32 | rng.permutation(n).astype(np.uint64)
        found, spare = np.append(keys, np.uint64(7)), np.empty(n, np.uint64)
        sort_node(found, n, n_bits, np.empty(N_COUNTS, np.int64), spare)
        np.testing.assert_array_equal(found[:n], keys[np.argsort(codes, kind="stable")])
        assert found[n] == 7


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 33, 64, 65, 100, 129])
def test_positions_are_sorted_by_value_and_else_stay_in_order(n):
    rng = np.random.default_rng(n)
    for values in (rng.integers(0, 9, n), rng.random(n), np.arange(n), -np.arange(n)):
        table, spare = np.column_stack((-values, values)).astype(float), np.empty((2, n), np.int64)
        sort_values(table, 1, n, spare)
        np.testing.assert_array_equal(spare[0], np.argsort(values, kind="stable"))
