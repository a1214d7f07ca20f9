"""Stable partition: items that go left, then items that go right, each in their present order.

    items  = [ a B c D E f ]        capitals go right
             ---------------->      left ones are packed at the front, right ones put in `spare`
    items  = [ a c f | . . . ]      spare = [ B D E ]
    items  = [ a c f | B D E ]

The loop is branch-free, since the way an item goes is unpredictable: every item is written to both
places, and only one of the two ends moves on. Words that come with their codes are divided sixteen
at a time, where the CPU can.
"""

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel
from cart.jit.instructions import can_store_chosen
from cart.jit.simd import on_lanes

_WIDTH = 16  # words of 32 bits, divided at once


@dispatch
def goes_left(sides, i, item):
    """Whether the item at position i goes left, as 0 or 1 or as a bool."""


@inline_kernel
def partition(sides, source, n, target, spare):
    """Write source[:n] to target[:n], left items first; return how many go left.

    Parameters
    ----------
    sides : NamedTuple with the method `goes_left`
    source, target : ndarray of shape (at least n,)
        May be the same array.
    n : int
    spare : ndarray of shape (at least n,)
    """
    n_left = np.int64(0)  # without the JIT, a sum that began with the int 0 would stay uint8
    for i in range(n):
        item = source[i]
        left = goes_left(sides, i, item)
        target[n_left] = item
        spare[i - n_left] = item
        n_left += left
    for i in range(n - n_left):
        target[n_left + i] = spare[i]
    return n_left


@inline_kernel
def partition_words(words, codes, step, last, spare):
    """Divide words in place: those with code + step <= last, in uint32 arithmetic, go left.

    Parameters
    ----------
    words, codes : ndarray of shape (n,), uint32
    step, last : uint32
    spare : ndarray of shape (at least n,), uint32

    Returns
    -------
    int
        How many go left.
    """
    n, n_left, first = words.shape[0], np.int64(0), np.int64(0)
    if can_store_chosen():
        while first <= n - _WIDTH:
            n_left += divide_block(words, codes, step, last, spare, first, n_left)
            first += _WIDTH
    n_left = divide_each(words, codes, step, last, spare, first, n_left)
    for i in range(n - n_left):
        words[n_left + i] = spare[i]
    return n_left


@on_lanes(_WIDTH, gives_number=True)
def divide_block(lanes, words, codes, step, last, spare, first, n_left):
    """Divide words[first:first + 16], where `n_left` of the words before have gone left: left ones
    go to the front of `words`, the others to `spare`. Return how many go left."""
    first, n_left = lanes.number(first), lanes.number(n_left)
    mine = lanes.load_at(words, first)
    code = lanes.load_at(codes, first) + step
    goes_left = lanes.is_at_most(code, last)
    lanes.store_chosen(words, mine, goes_left, n_left)
    lanes.store_chosen(spare, mine, goes_left ^ True, first - n_left)
    return lanes.count(goes_left)


@inline_kernel
def divide_each(words, codes, step, last, spare, first, n_left):
    """Divide words[first:] one by one; return how many of all words go left."""
    for i in range(first, words.shape[0]):
        word, code = words[i], (np.int64(codes[i]) + np.int64(step)) & 0xFFFFFFFF
        words[n_left] = word
        spare[i - n_left] = word
        n_left += np.int64(code <= last)
    return n_left
