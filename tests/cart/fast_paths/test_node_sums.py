"""The division of a node's samples, against scikit-learn's exchange from both ends."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cart.fast_paths.regression.node_sums import (
    FEW,
    SwapScratch,
    _Marked,
    exchange,
    exchange_few,
    swap_across,
)
from cart.jit.decorators import entry_kernel
from tests.examples import examples


@entry_kernel
def exchange_rows(samples, start, end, is_left, swap):
    swap_across(samples, start, end, is_left, swap)


@entry_kernel
def exchange_any(samples, is_left, swap):
    return exchange(_Marked(is_left), samples, swap)


@entry_kernel
def exchange_some(samples, is_left):
    return exchange_few(_Marked(is_left), samples)


def exchanged(samples, is_left):
    """Reference: `DensePartitioner.partition_samples_final` in `_partitioner.pyx`."""
    samples, start, end = samples.copy(), 0, len(samples)
    while start < end:
        if is_left[samples[start]]:
            start += 1
        else:
            end -= 1
            samples[start], samples[end] = samples[end], samples[start]
    return samples


@examples(300)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 260),
    before=st.integers(0, 3),
    behind=st.integers(0, 3),
    share=st.floats(0.0, 1.0),
)
def test_samples_are_exchanged_as_scikit_learn_does(seed, n, before, behind, share):
    rng = np.random.default_rng(seed)
    samples = rng.permutation(300)[: before + n + behind].astype(np.uint32)
    is_left = (rng.random(300) < share).astype(np.uint8)
    mine = slice(before, before + n)
    is_left[samples[mine][:2]] = rng.permutation(2)  # neither side is empty
    expected = samples.copy()
    expected[mine] = exchanged(samples[mine], is_left)
    exchange_rows(samples, before, before + n, is_left, SwapScratch.create(n))
    np.testing.assert_array_equal(samples, expected)


@examples(300)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, FEW), share=st.floats(0.0, 1.0))
def test_few_samples_are_exchanged_in_the_same_way(seed, n, share):
    rng = np.random.default_rng(seed)
    samples = rng.permutation(100)[:n].astype(np.uint32)
    is_left = (rng.random(100) < share).astype(np.uint8)
    is_left[samples[:2]] = rng.permutation(2)
    expected, n_left = exchanged(samples, is_left), int(is_left[samples].sum())
    few, many = samples.copy(), samples.copy()
    assert exchange_some(few, is_left) == n_left
    np.testing.assert_array_equal(few, expected)
    assert exchange_any(many, is_left, SwapScratch.create(n)) == n_left
    np.testing.assert_array_equal(many, expected)
