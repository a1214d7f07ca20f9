"""Gather the items of an array at positions held in the high bits of words, eight at a time.

    positions         [ 2 5 7 0 4 1 3 6 | 3 ...
    items             [ a b c d e f g h ... ]
    gathered          [ c f h a e b d g | d ...

The compiler would not vectorize any of this loop, since the items may lie anywhere. Here only the
look-ups are scalar: words are loaded and shifted, and items stored, as vectors.
"""

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.instructions import prefetch
from cart.jit.simd import on_lanes

_WIDTH = 8
EXPECTED_MAX = 64  # items to prefetch: with more, the CPU overlaps the loads anyway


@on_lanes(_WIDTH)
def _gather_block(lanes, items, words, shift, stride, gathered, first):
    first = lanes.number(first)
    places = (lanes.load_at(words, first) >> shift) * stride
    lanes.store_at(gathered, lanes.gather_each(items, places), first)


@inline_kernel
def gather(items, words, shift, stride, gathered):
    """Write items[(word >> shift) * stride] for every word, in the order of the words.

    Parameters
    ----------
    items : ndarray of whole numbers
    words : ndarray of shape (n,), uint32
    shift, stride : uint32
    gathered : ndarray of shape (at least n,), uint32 or the dtype of items
    """
    n = words.shape[0]
    if n < _WIDTH:
        for i in range(n):
            gathered[i] = items[np.int64((words[i] >> shift) * stride)]
        return
    for first in range(0, n - _WIDTH + 1, _WIDTH):
        _gather_block(items, words, shift, stride, gathered, first)
    _gather_block(items, words, shift, stride, gathered, n - _WIDTH)  # may overlap the last block


@inline_kernel
def take(items, rows, gathered):
    """Write items[row] for every row in `rows`, uint32, in order."""
    gather(items, rows, np.uint32(0), np.uint32(1), gathered)


@inline_kernel
def expect(items, words, shift):
    """Prefetch the items that a gather of the first words will soon read."""
    for i in range(min(words.shape[0], EXPECTED_MAX)):
        prefetch(items, np.int64(words[i] >> shift))
