"""Stable partition: what goes left, then what goes right, each in its present order.

    items  = [ a B c D E f ]        capitals go right
             ---------------->      left ones are written behind each other, right ones kept apart
    items  = [ a c f | . . . ]      spare = [ B D E ]
    items  = [ a c f | B D E ]

Branch-free: which way an item goes is unpredictable, so both places are written and one of the two
ends moves on.
"""

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel


@dispatch
def goes_left(sides, i, item):
    """Does the item in place i go left? As 0 or 1, or a bool."""
    return sides.goes_left(i, item)


@inline_kernel
def partition(sides, source, n, target, spare):
    """Write source[:n] into target[:n], left | right; return how many go left.

    Parameters
    ----------
    sides : NamedTuple with the method `goes_left`
    source, target : ndarray of shape (at least n,)
        May be one.
    n : int
    spare : ndarray of shape (at least n,)
    """
    n_left = np.int64(0)  # in plain Python, bytes that are added up from 0 stay bytes
    n_right = np.int64(0)
    for i in range(n):
        item = source[i]
        left = goes_left(sides, i, item)
        target[n_left] = item
        spare[n_right] = item
        n_left += left
        n_right += 1 - left
    for i in range(n_right):
        target[n_left + i] = spare[i]
    return n_left
