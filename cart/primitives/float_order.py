"""Map floating-point values to integers in the same order; test for whole numbers.

value      -inf ...  -1.0  ... -0.0  0.0 ...  1.0  ...  inf      nan
ordinal    -2139095040   -1065353216   0   0   1065353216  2139095040   TOP
"""

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel

# The ordinal of a missing value, above all others.
TOP = np.int32(0x7FFFFFFF)
# Double precision represents every whole number up to this: sums below it are exact.
WHOLE_MAX = 2.0**53
_INFINITY_BITS = np.int32(0x7F800000)


def are_whole(numbers):
    """Whether all numbers in an array are whole."""
    return _are_whole(np.require(numbers, np.float64, "CW").reshape(-1))


def sums_are_exact(weights):
    """Whether weights, (n_rows,) or (n_trees, n_rows), have sums that are exact in any order: they
    are whole numbers and their totals are below `WHOLE_MAX`."""
    return are_whole(weights) and weights.sum(axis=-1).max() < WHOLE_MAX


@entry_kernel
def _are_whole(numbers):
    differ = 0
    for i in range(numbers.shape[0]):
        differ += numbers[i] != np.rint(numbers[i])
    return differ == 0


@inline_kernel
def ordinal_of(bits):
    """Return the position of a float32 among all values: 0 for both zeros, TOP for nan.

    Parameters
    ----------
    bits : int32
        The bits of the value.

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
    """Return the bits, int32, of the float32 value that has this ordinal."""
    return ordinal if ordinal >= 0 else np.int32(-ordinal | ~TOP)


@inline_kernel
def ordered(bits, n_bits):
    """Map the bits of a float (32 or 64, in a uint64) to an unsigned integer in the same order.

    Both zeros are mapped to the same number.
    """
    sign = np.uint64(1) << np.uint64(n_bits - 1)
    if bits > sign:
        return ~bits & (sign | (sign - np.uint64(1)))
    return bits | sign


@inline_kernel
def bits_in_order(number, n_bits):
    """Return the bits of the float that `ordered` maps to this number."""
    sign = np.uint64(1) << np.uint64(n_bits - 1)
    if number & sign:
        return number ^ sign
    return ~number & (sign | (sign - np.uint64(1)))
