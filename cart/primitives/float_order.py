"""Floating-point values as whole numbers in the same order, and which of them are whole.

value      -inf ...  -1.0  ... -0.0  0.0 ...  1.0  ...  inf      nan
ordinal    -2139095040   -1065353216   0   0   1065353216  2139095040   TOP
"""

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel

# Of a missing value; above all others.
TOP = np.int32(0x7FFFFFFF)
# Up to which double precision has every whole number: sums below it are exact.
WHOLE_MAX = 2.0**53
_INFINITY_BITS = np.int32(0x7F800000)


def are_whole(numbers):
    """Are all numbers of an array whole?"""
    return _are_whole(np.ascontiguousarray(numbers, np.float64).reshape(-1))


def sums_are_exact(weights):
    """Are the sums of weights, (n_rows,) or (n_trees, n_rows), exact in any order: whole numbers
    below `WHOLE_MAX`?"""
    return are_whole(weights) and weights.sum(axis=-1).max() < WHOLE_MAX


@entry_kernel
def _are_whole(numbers):
    differ = 0
    for i in range(numbers.shape[0]):
        differ += numbers[i] != np.rint(numbers[i])
    return differ == 0


@inline_kernel
def ordinal_of(bits):
    """Place of a float32 value among all: equal for both zeros, TOP for nan.

    Parameters
    ----------
    bits : int32
        Its bits.

    Returns
    -------
    int32
    """
    magnitude = bits & TOP
    if magnitude > _INFINITY_BITS:
        return TOP
    return magnitude if bits >= 0 else -magnitude


@inline_kernel
def bits_of(ordinal):
    """Bits of the float32 value in that place, int32."""
    return ordinal if ordinal >= 0 else np.int32(-ordinal | ~TOP)


@inline_kernel
def ordered(bits, n_bits):
    """A whole number that orders values as their bits do, 32 or 64 of them, in a uint64.

    It is one for both zeros.
    """
    sign = np.uint64(1) << np.uint64(n_bits - 1)
    if bits > sign:
        return ~bits & (sign | (sign - np.uint64(1)))
    return bits | sign


@inline_kernel
def bits_in_order(number, n_bits):
    """The bits of the value that `ordered` gives this number."""
    sign = np.uint64(1) << np.uint64(n_bits - 1)
    if number & sign:
        return number ^ sign
    return ~number & (sign | (sign - np.uint64(1)))
