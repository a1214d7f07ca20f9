"""Sort up to 512 words by sorting networks, without branches that depend on the data.

Up to 64 words stay in vector registers from the first stage to the last. Longer arrays are sorted
in parts of 64, which are merged pairwise (Batcher 1968). A merge reads one of the two runs
backwards, so that both together rise, then fall: they are bitonic. One compare-exchange of all
words half the width apart, the smaller one to the left, leaves two halves that are bitonic again.

    two runs     1 4 6 7 | 2 3 5 8
    bitonic      1 4 6 7 | 8 5 3 2
    exchanged    1 4 3 2 | 8 5 6 7      left all at most 4, right all at least 5
    and so on    1 2 3 4 | 5 6 7 8      in halves, quarters, ...
"""

import numpy as np

from cart.jit.decorators import kernel
from cart.jit.instructions import sorting_network

NETWORK_MAX = 512  # words; a power of two
_PAD = np.uint32(0xFFFFFFFF)  # sorts after all keys
_PART = 64

_sort_8 = sorting_network(8, (2, 4, 8))
_sort_16 = sorting_network(16, (2, 4, 8, 16))
_sort_32 = sorting_network(32, (2, 4, 8, 16, 32))
_sort_64 = sorting_network(64, (2, 4, 8, 16, 32, 64))
_merge_64 = sorting_network(64, (64,))  # sorts one bitonic run of 64


@kernel
def sort_by_network(keys, n):
    """Sort keys[:n], uint32; what follows is overwritten up to the next power of two, at least 8.

    Parameters
    ----------
    keys : ndarray of shape (at least NETWORK_MAX,), uint32
    n : int
        At most NETWORK_MAX.
    """
    size = 8
    while size < n:
        size *= 2
    for i in range(n, size):
        keys[i] = _PAD
    if size == 8:
        _sort_8(keys, 0)
    elif size == 16:
        _sort_16(keys, 0)
    elif size == 32:
        _sort_32(keys, 0)
    else:
        for first in range(0, size, _PART):
            _sort_64(keys, first)
        width = 2 * _PART
        while width <= size:
            for first in range(0, size, width):
                _merge(keys, first, width)
            width *= 2


@kernel
def _merge(keys, first, width):
    """Merge two sorted runs, each of half the width, into one."""
    half = width // 2
    low = keys[first : first + half]
    high = keys[first + half : first + width]
    for i in range(half // 2):  # `high` is read backwards, so that both together are bitonic
        j = half - 1 - i
        a, b, c, d = low[i], high[j], low[j], high[i]
        low[i] = min(a, b)
        high[j] = max(a, b)
        low[j] = min(c, d)
        high[i] = max(c, d)
    _sort_bitonic(low, half)
    _sort_bitonic(high, half)


@kernel
def _sort_bitonic(keys, width):
    """Sort a bitonic run."""
    distance = width // 2
    while distance >= _PART:
        for first in range(0, width, 2 * distance):
            low = keys[first : first + distance]
            high = keys[first + distance : first + 2 * distance]
            for i in range(distance):
                a, b = low[i], high[i]
                low[i] = min(a, b)
                high[i] = max(a, b)
        distance //= 2
    for first in range(0, width, _PART):
        _merge_64(keys, first)


def merge_exchanges(n):
    """Yield the compare-exchanges, (low, high), of Batcher's merge exchange for n = 2**k numbers.

    (Knuth, The Art of Computer Programming 3, algorithm 5.2.2M.)
    """
    p = n // 2
    while p > 0:
        q, r, d = n // 2, 0, p
        while True:
            for i in range(n - d):
                if i & p == r:
                    yield i, i + d
            if q == p:
                break
            q, r, d = q // 2, p, q - p
        p //= 2
