"""Items that words point to, against NumPy's indexing."""

import numpy as np
import pytest

from cart.jit.decorators import entry_kernel
from cart.primitives.gather import gather


@entry_kernel
def gather_items(items, words, shift, stride, gathered):
    gather(items, words, shift, stride, gathered)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("wide", [False, True])
def test_items_are_gathered_as_numpy_does(dtype, wide):
    """For every length: blocks, those that overlap, and fewer words than a block."""
    rng = np.random.default_rng(0)
    gathered = np.empty(70, np.uint32 if wide else dtype)
    for n in range(70):
        shift, stride = rng.choice([0, 7]), rng.choice([1, 16])
        items = rng.integers(0, np.iinfo(dtype).max, 100 * stride, dtype, endpoint=True)
        places = rng.integers(0, 100, n)
        words = (places << shift | rng.integers(0, 1 << shift, n)).astype(np.uint32)
        gathered[:] = 9
        gather_items(items, words, np.uint32(shift), np.uint32(stride), gathered)
        np.testing.assert_array_equal(gathered[:n], items[places * stride])
        assert (gathered[n:] == 9).all()
