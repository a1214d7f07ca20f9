"""Gather items of an array at places that words have in their high bits, eight side by side.

    places of words   [ 2 5 7 0 4 1 3 6 | 3 ...
    items             [ a b c d e f g h ... ]
    gathered          [ c f h a e b d g | d ...

The compiler leaves all of it one by one, since items that are looked up may lie anywhere. Here the
look-up alone is: words are loaded and shifted, and items stored, as vectors.
"""

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.instructions import prefetch
from cart.jit.simd import on_lanes

_WIDTH = 8
EXPECTED_MAX = 64  # items that are brought into the cache ahead: of more, many come at once


@on_lanes(_WIDTH)
def _gather_block(lanes, items, words, shift, stride, gathered, first):
    first = lanes.number(first)
    places = (lanes.load_at(words, first) >> shift) * stride
    lanes.store_at(gathered, lanes.gather_each(items, places), first)


@inline_kernel
def gather(items, words, shift, stride, gathered):
    """Write items[(word >> shift) * stride] of every word, in their order.

    Parameters
    ----------
    items : ndarray of whole numbers
    words : ndarray of shape (n,), uint32
    shift, stride : uint32
    gathered : ndarray of shape (at least n,), uint32 or of the type of items
    """
    n = words.shape[0]
    if n < _WIDTH:
        for i in range(n):
            gathered[i] = items[np.int64((words[i] >> shift) * stride)]
        return
    for first in range(0, n - _WIDTH + 1, _WIDTH):
        _gather_block(items, words, shift, stride, gathered, first)
    _gather_block(items, words, shift, stride, gathered, n - _WIDTH)  # some of them again


@inline_kernel
def take(items, rows, gathered):
    """Write items[row] of every row, uint32, in their order."""
    gather(items, rows, np.uint32(0), np.uint32(1), gathered)


@inline_kernel
def expect(items, words, shift):
    """Have brought into the cache what is soon to be gathered, of the first words."""
    for i in range(min(words.shape[0], EXPECTED_MAX)):
        prefetch(items, np.int64(words[i] >> shift))
