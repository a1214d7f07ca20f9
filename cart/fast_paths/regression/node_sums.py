"""Division of a node's samples and the sums of its children, in scikit-learn's order, to the bit.

Sums of floats depend on their order, so samples stand as scikit-learn's swaps leave them. Those
that go right (r) leave the left part, from its begin; those that go left (l) come from the end:

    samples before  [ l0 r1 l2 r3 | r4 l5 r6 l7 ]      swaps: r1 with l7, r3 with l5
                                  middle
    samples after   [ l0 l7 l2 l5 | r4 r6 r3 r1 ]

Where order does not matter, the stable partition (`partition_rows`) is simpler:

    rows before     [ l0 r1 l2 r3 r4 l5 r6 l7 ]
    rows after      [ l0 l2 l5 l7 | r1 r3 r4 r6 ]
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.cut_score import WEIGHT, left_sums_from_right, weight_at, y_at
from cart.jit.decorators import inline_kernel

TOTAL, SQUARES = 1, 2  # of a node that waits, beside its WEIGHT
_ONE_BY_ONE = 12  # of fewer samples it is faster to exchange one after another


class SwapScratch(NamedTuple):
    """Which samples change sides."""

    leaving: np.ndarray  # (n,) uint32: places in the left part of those that go right; then these
    coming: np.ndarray  # (n,) uint32: places in the right part of those that go left, from the end

    @classmethod
    def create(cls, n):
        return cls(*np.empty((2, n), np.uint32))


@inline_kernel
def swap_across(samples, start, end, n_left, is_left, swap):
    """Divide samples[start:end], of which n_left go left, as scikit-learn does: a sample from the
    left end that goes right changes places with one from the right end, until that goes left.

    So one sample decides where the next is looked for, and processors cannot guess. What comes of
    it: those that come replace those that leave, in turn; the others on the right move one place to
    the left, and those that leave get the places that this leaves free, from the end.
    """
    if end - start < _ONE_BY_ONE:
        _swap_one_by_one(samples, start, end, is_left)
        return
    middle = start + n_left
    leaving, coming = swap.leaving, swap.coming
    n_leaving = 0
    for i in range(start, middle):
        leaving[n_leaving] = i
        n_leaving += 1 - np.int64(is_left[samples[i]])
    n_coming = 0
    for i in range(end - 1, middle - 1, -1):
        coming[n_coming] = i
        n_coming += np.int64(is_left[samples[i]])
    for k in range(n_leaving):
        i = leaving[k]
        leaving[k] = samples[i]
        samples[i] = samples[coming[k]]
    first = samples[middle]
    for i in range(middle, end - 1):
        samples[i] = samples[i + 1]
    free = end - 1
    for k in range(n_leaving):
        samples[free] = leaving[k]
        free = np.int64(coming[k]) - 1
    if free >= middle:  # the first goes right: it leaves, as it were, after all others
        samples[free] = first


@inline_kernel
def _swap_one_by_one(samples, start, end, is_left):
    while start < end:
        row = samples[start]
        if is_left[row]:
            start += 1
        else:
            end -= 1
            samples[start] = samples[end]
            samples[end] = row


@inline_kernel
def partition_rows(rows, spare, codes, left_code, start, n):
    """Divide rows[start:start + n], in their order: codes up to `left_code` go left.

    Returns the first that goes right.
    """
    left = start
    right = 0
    for i in range(start, start + n):
        row = rows[i]
        goes_left = np.int64(codes[row] <= left_code)
        rows[left] = row
        spare[right] = row
        left += goes_left
        right += 1 - goes_left
    for i in range(right):
        rows[left + i] = spare[i]
    return left


@inline_kernel
def add_up_node(samples, targets, start, end, sums):
    """Weight, sum and squares of samples[start:end], written to `sums`."""
    weight = 0.0
    total = 0.0
    squares = 0.0
    for i in range(start, end):
        row = samples[i]
        here = weight_at(targets, row)
        y = y_at(targets, row)
        weight += here
        total += here * y
        squares += here * y * y
    sums[WEIGHT] = weight
    sums[TOTAL] = total
    sums[SQUARES] = squares


@inline_kernel
def impurity_of(weight, total, squares):
    mean = total / weight
    return squares / weight - mean * mean


class Halves(NamedTuple):
    """Impurities of a node's children, and the weight of the left one."""

    left: float
    right: float
    left_weight: float


@inline_kernel
def add_up_children(samples, targets, node, middle, sums, height):
    """Add up either side of a node that is divided; return its Halves.

    The left child's sums go to sums[height + 1], the right one's to sums[height], where the node's
    are. Impurities are scikit-learn's: from the left child's sums, which it takes from the right
    where that is shorter, and the node's less these.
    """
    start, end = node.start, node.end
    left_sums, squares = sums[height + 1], sums[height, SQUARES]
    add_up_node(samples, targets, middle, end, sums[height])
    add_up_node(samples, targets, start, middle, left_sums)
    left_weight, left_sum = left_sums[WEIGHT], left_sums[TOTAL]
    if middle - start > end - middle:
        left_weight, left_sum = left_sums_from_right(
            samples, targets, middle, end, node.weight, node.total
        )
    return halves_of(node, squares, left_weight, left_sum, left_sums[SQUARES])


@inline_kernel
def halves_of(node, squares, left_weight, left_sum, left_squares):
    """The Halves of a node with these squares, from the sums of its left child."""
    return Halves(
        impurity_of(left_weight, left_sum, left_squares),
        impurity_of(node.weight - left_weight, node.total - left_sum, squares - left_squares),
        left_weight,
    )
