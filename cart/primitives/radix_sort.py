"""Stable radix sort of keys by some of their bits, least significant digit first.

    keys:   ...... | digit 2 | digit 1 | digit 0 | <- shift -> |
                   `-------------- n_bits ------'

All digits are counted before any key moves, as the counts do not depend on the order. A digit that
is the same in all keys is skipped. Each of the others takes one pass from array to array:

    digit counted   0:2 1:1 2:3        how many keys have it
    first places    0:0 1:2 2:3        how many keys have a lower one
    source = [ 2a 0a 2b 1a 0b 2c ]
    target = [ 0a 0b 1a 2a 2b 2c ]     every key goes to the next place of its digit
"""

import numpy as np

from cart.jit.decorators import inline_kernel, kernel
from cart.primitives.sorting_networks import NETWORK_MAX, sort_by_network

_DIGIT_BITS = 11
_FEW_BITS, _FEW = 9, 6000  # for fewer than _FEW keys: shorter digits, whose counts cost less
N_DIGITS = 3 << _DIGIT_BITS  # length of `counts` for keys of 32 bits
ROOM = NETWORK_MAX  # spare room that keys and spare need after the last key


@inline_kernel
def sort_by_digits(keys, n, base, shift, n_bits, spare, counts):
    """Sort keys[:n] by the `n_bits` bits of `key - base` from bit `shift` on.

    Parameters
    ----------
    keys, spare : ndarray of shape (at least n,), uint32 or uint64
    n : int
    base, shift : of the dtype of the keys
    n_bits : int
        At most 32.
    counts : ndarray of shape (N_DIGITS,), int32 or int64

    Returns
    -------
    int
        Where the sorted keys are: 0 for `keys`, 1 for `spare`.
    """
    if n == 0:
        return 0
    most = _FEW_BITS if n < _FEW else _DIGIT_BITS
    n_digits = (n_bits + most - 1) // most
    bits = (n_bits + n_digits - 1) // n_digits
    _count_digits(keys, n, base, shift, bits, n_digits, counts)
    place = 0
    for digit in range(n_digits):
        mine = counts[digit << bits : (digit + 1) << bits]
        right = shift + keys.dtype.type(digit * bits)
        if mine[((keys[0] - base) >> right) & keys.dtype.type((1 << bits) - 1)] == n:
            continue
        _scatter_by_digit(keys, n, base, right, mine, spare)
        keys, spare = spare, keys
        place = 1 - place
    return place


@inline_kernel
def _count_digits(keys, n, base, shift, bits, n_digits, counts):
    """Count up to four digits of `bits` bits each, up to three in one pass over the keys."""
    mask = keys.dtype.type((1 << bits) - 1)
    step = keys.dtype.type(bits)
    one = counts.dtype.type(1)
    size = 1 << bits
    for d in range(n_digits << bits):
        counts[d] = 0
    if n_digits == 3:
        first, second, third = counts[:size], counts[size : 2 * size], counts[2 * size : 3 * size]
        for i in range(n):
            code = (keys[i] - base) >> shift
            first[code & mask] += one
            second[(code >> step) & mask] += one
            third[(code >> (step + step)) & mask] += one
        return
    for digit in range(0, n_digits - 1, 2):
        first = counts[digit << bits : (digit + 1) << bits]
        second = counts[(digit + 1) << bits : (digit + 2) << bits]
        for i in range(n):
            code = (keys[i] - base) >> shift
            first[code & mask] += one
            second[(code >> step) & mask] += one
        shift += step + step
    if n_digits == 1:
        for i in range(n):
            counts[((keys[i] - base) >> shift) & mask] += one


@inline_kernel
def _scatter_by_digit(source, n, base, shift, counts, target):
    """Write source[:n] in the order of one digit; its counts become the ends of the digits."""
    mask = source.dtype.type(counts.shape[0] - 1)
    one = counts.dtype.type(1)
    before = one - one
    for d in range(counts.shape[0]):
        here = counts[d]
        counts[d] = before
        before += here
    for i in range(n):
        key = source[i]
        d = ((key - base) >> shift) & mask
        target[counts[d]] = key
        counts[d] += one


@inline_kernel
def sort_short_keys(keys, n, shift, lowest, highest, spare, counts):
    """Sort keys[:n] by `key >> shift`, which lies between `lowest` and `highest`.

    Parameters
    ----------
    keys, spare : ndarray of shape (at least n + ROOM,), uint32
    n : int
    shift, lowest, highest : uint32
    counts : ndarray of shape (N_DIGITS,), int32

    Returns
    -------
    int
        Where the sorted keys are: 0 for `keys`, 1 for `spare`.
    """
    if n <= NETWORK_MAX:
        sort_by_network(keys, n)
        return 0
    return _sort_many(keys, n, shift, lowest, highest, spare, counts)


@kernel
def _sort_many(keys, n, shift, lowest, highest, spare, counts):
    n_bits = n_bits_of(highest - lowest)
    return sort_by_digits(keys, n, lowest << shift, shift, n_bits, spare, counts)


@inline_kernel
def n_bits_of(number):
    """How many bits an unsigned number below 2**32 takes, at least 1."""
    n_bits = 1
    while n_bits < 32 and number >> np.uint32(n_bits) > 0:
        n_bits += 1
    return n_bits
