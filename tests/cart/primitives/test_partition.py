"""Words that are divided by codes, one by one and many at once, against NumPy."""

import numpy as np
import pytest

from cart.jit.decorators import entry_kernel
from cart.jit.instructions import can_store_chosen
from cart.primitives.partition import divide_block, divide_each, partition_words


@entry_kernel
def divide(words, codes, step, last, spare):
    return partition_words(words, codes, step, last, spare)


@entry_kernel
def divide_one_by_one(words, codes, step, last, spare):
    """As where the CPU cannot do it at once."""
    n_left = divide_each(words, codes, step, last, spare, 0, 0)
    for i in range(words.shape[0] - n_left):
        words[n_left + i] = spare[i]
    return n_left


@entry_kernel
def divide_blocks_only(words, codes, step, last, spare):
    if not can_store_chosen():
        return np.int64(-1)
    n_left = np.int64(0)
    for first in range(0, words.shape[0], 16):
        n_left += divide_block(words, codes, step, last, spare, first, n_left)
    for i in range(words.shape[0] - n_left):
        words[n_left + i] = spare[i]
    return n_left


@pytest.mark.filterwarnings("ignore:overflow")  # of plain Python
@pytest.mark.parametrize("way", [divide, divide_one_by_one, divide_blocks_only])
@pytest.mark.parametrize("missing_left", [False, True])
def test_words_keep_their_order_on_either_side(way, missing_left):
    """For every length and any share; missing values, the highest code, go either way."""
    rng, top = np.random.default_rng(0), np.uint32(0xFFFFFFFF)
    for n in range(0, 96, 16 if way is divide_blocks_only else 1):
        words = rng.permutation(n).astype(np.uint32) << 20 | 5
        codes = rng.integers(0, 8, n).astype(np.uint32)
        codes[rng.random(n) < 0.2] = top
        last = int(rng.integers(-1 if missing_left else 0, 8))
        is_left = (codes <= last) & (codes != top) | (codes == top) & missing_left
        if last == -1:
            is_left = codes == top
        found, spare = words.copy(), np.empty(n, np.uint32)
        n_left = way(found, codes, np.uint32(missing_left), np.uint32(last + missing_left), spare)
        if n_left == -1:
            pytest.skip("no AVX-512")
        assert n_left == is_left.sum()
        np.testing.assert_array_equal(found, [*words[is_left], *words[~is_left]])
