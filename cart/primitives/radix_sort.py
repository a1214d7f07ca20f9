"""Sort keys of 32 bits by their leading bits: few by a network, many by radix."""

import numpy as np

from cart.jit.decorators import inline_kernel, kernel
from cart.primitives.sorting_networks import NETWORK_MAX, sort_by_network

_DIGIT_BITS = 11
_FEW_BITS, _FEW = 9, 6000  # shorter digits, whose counts cost less, for fewer keys
N_DIGITS = 2 << _DIGIT_BITS
ROOM = NETWORK_MAX  # that keys and spare need behind the last key


@inline_kernel
def sort_short_keys(keys, n, shift, lowest, highest, spare, counts):
    """Sort keys[:n] by what stands from bit `shift` on, which is `lowest` to `highest`.

    Parameters
    ----------
    keys, spare : ndarray of shape (at least n + ROOM,), uint32
    n : int
    shift, lowest, highest : uint32
    counts : ndarray of shape (N_DIGITS,), int32

    Returns
    -------
    int
        Where they are: 0 for `keys`, 1 for `spare`.
    """
    if n <= NETWORK_MAX:
        sort_by_network(keys, n)
        return 0
    return _sort_by_radix(keys, n, shift, lowest, highest, spare, counts)


@kernel
def _sort_by_radix(keys, n, shift, lowest, highest, spare, counts):
    """Least significant digit first; stable."""
    n_bits = n_bits_of(highest - lowest)
    most = _FEW_BITS if n < _FEW else _DIGIT_BITS
    n_digits = (n_bits + most - 1) // most
    bits = np.uint32((n_bits + n_digits - 1) // n_digits)
    size = 1 << bits
    mask = np.uint32(size - 1)
    base = lowest << shift
    lower = counts[:size]
    upper = counts[size : 2 * size]
    source, target = keys, spare
    digit = 0
    while digit < n_digits:  # two digits are counted at once
        next_shift = np.uint32(min(shift + bits, 31))
        for d in range(size):
            lower[d] = 0
            upper[d] = 0
        for i in range(n):
            key = source[i] - base
            lower[(key >> shift) & mask] += np.int32(1)
            upper[(key >> next_shift) & mask] += np.int32(1)
        _sort_by_digit(source, n, base, shift, mask, lower, target)
        source, target = target, source
        if digit + 1 < n_digits:
            _sort_by_digit(source, n, base, next_shift, mask, upper, target)
            source, target = target, source
        shift = np.uint32(next_shift + bits)
        digit += 2
    return n_digits % 2


@inline_kernel
def _sort_by_digit(source, n, base, shift, mask, counts, target):
    before = np.int32(0)
    for d in range(np.int64(mask) + 1):
        here = counts[d]
        counts[d] = before
        before += here
    for i in range(n):
        key = source[i]
        d = ((key - base) >> shift) & mask
        target[counts[d]] = key
        counts[d] += np.int32(1)


@inline_kernel
def n_bits_of(number):
    """How many bits a uint32 takes, at least 1."""
    n_bits = 1
    while n_bits < 32 and number >> np.uint32(n_bits) > 0:
        n_bits += 1
    return n_bits
