"""Divide a node's samples and sum up its children in scikit-learn's order, bit for bit.

Sums of floats depend on the order of the samples, so these are kept as scikit-learn's swaps leave
them. Samples that go right (r) leave the left part, the first one first; samples that go left (l)
come from the right part, the last one first:

    samples before  [ l0 r1 l2 r3 | r4 l5 r6 l7 ]      swaps: r1 with l7, r3 with l5
                                  middle
    samples after   [ l0 l7 l2 l5 | r4 r6 r3 r1 ]

Where order does not matter, the stable partition (`partition_rows`) is simpler:

    rows before     [ l0 r1 l2 r3 r4 l5 r6 l7 ]
    rows after      [ l0 l2 l5 l7 | r1 r3 r4 r6 ]
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import also_left
from cart.fast_paths.regression.cut_score import (
    WEIGHT,
    halves_of,
    left_sums_from_right,
    rest_of,
    score_left,
    weight_at,
    write_target,
    y_at,
)
from cart.jit.decorators import inline_kernel
from cart.jit.instructions import count_bits, highest_bit, lowest_bit
from cart.primitives.partition import goes_left, partition

TOTAL, REST = 1, 2  # sums of a pending node, next to its WEIGHT
LOWER, UPPER = 3, 4  # the bounds of its value (monotonic constraints)
_FEW_STEPS = 16  # with fewer samples, a sum takes the same number of steps for every cut
FEW = 64  # samples whose sides fit into the bits of one word


class SwapScratch(NamedTuple):
    """Which samples go left, and which change sides."""

    marks: np.ndarray  # (n / 64 or more,) uint64: a bit for every sample, 1 if it goes left
    leaving: np.ndarray  # (n,) uint32: places in the left part of samples that go right; then these
    coming: np.ndarray  # (n,) uint32: places in the right part of those that go left, last first

    @classmethod
    def create(cls, n):
        return cls(np.empty(n // 64 + 1, np.uint64), *np.empty((2, n), np.uint32))


class _Marked(NamedTuple):
    """Where marks send samples (see `cart.primitives.partition`)."""

    is_left: np.ndarray

    def goes_left(self, i, item):
        return np.int64(self.is_left[item])


class _OfCut(NamedTuple):
    """Where a cut sends rows (see `cart.primitives.partition`)."""

    codes: np.ndarray  # of the table's rows
    left_code: int  # the highest code that goes left
    also_left: int  # another one that does, see `cart.fast_paths.base.also_left`

    def goes_left(self, i, item):
        code = self.codes[item]
        return np.int64((code <= self.left_code) | (code == self.also_left))


@inline_kernel
def swap_across(samples, start, end, is_left, swap):
    """Divide samples[start:end] as scikit-learn does (see `exchange`); those marked go left."""
    if end - start <= FEW:
        exchange_few(_Marked(is_left), samples[start:end])
    else:
        exchange(_Marked(is_left), samples[start:end], swap)


@inline_kernel
def exchange(sides, samples, swap):
    """Divide samples as scikit-learn does; return how many go left.

    scikit-learn swaps a sample at the left end that goes right with the sample at the right end,
    until that one goes left. So each sample decides where the next is looked for, which processors
    cannot predict. The result is known, though: samples that come from the right replace those that
    leave the left, in turn; the others on the right move one place to the left; and those that
    leave take the places that become free, the last one first.
    """
    n, leaving, coming = samples.shape[0], swap.leaving, swap.coming
    middle = _mark(sides, samples, swap.marks)
    n_leaving = _find_exchanged(n, middle, swap)
    for k in range(n_leaving):
        i = leaving[k]
        leaving[k] = samples[i]
        samples[i] = samples[coming[k]]
    first = samples[min(middle, n - 1)]  # if all go left, no sample is at `middle`
    for i in range(middle, n - 1):
        samples[i] = samples[i + 1]
    free = n - 1
    for k in range(n_leaving):
        samples[free] = leaving[k]
        free = np.int64(coming[k]) - 1
    if free >= middle:  # `first` goes right: it is placed as if it left after all others
        samples[free] = first
    return middle


@inline_kernel
def _mark(sides, samples, marks):
    """Mark the samples that go left; return how many do."""
    n, n_left = samples.shape[0], np.int64(0)
    for k in range((n + 63) // 64):
        word = np.uint64(0)
        for i in range(64 * k, min(64 * k + 64, n)):
            word |= np.uint64(goes_left(sides, i, samples[i])) << np.uint64(i - 64 * k)
        marks[k] = word
        n_left += count_bits(word)
    return n_left


@inline_kernel
def _find_exchanged(n, middle, swap):
    """Write the places of the samples that change sides; return how many leave the left part."""
    marks, leaving, coming = swap.marks, swap.leaving, swap.coming
    one, last = np.uint64(1), middle // 64
    below = (one << np.uint64(middle % 64)) - one  # bits before the middle, in its word
    n_leaving = n_coming = 0
    for k in range(min(last + 1, (n + 63) // 64)):
        word = ~marks[k] & below if k == last else ~marks[k]
        while word != 0:
            leaving[n_leaving] = 64 * k + lowest_bit(word)
            n_leaving += 1
            word &= word - one
    for k in range((n - 1) // 64, last - 1, -1):
        word = marks[k] & ~below if k == last else marks[k]
        while word != 0:
            place = highest_bit(word)
            coming[n_coming] = 64 * k + place
            n_coming += 1
            word ^= one << np.uint64(place)
    return n_leaving


@inline_kernel
def exchange_few(sides, samples):
    """As `exchange`, for at most FEW samples; return how many go left.

    Steps have no branch, since it is unpredictable which way a sample goes. A sample that goes
    right takes the last free place, and the sample that was there is next; a sample that goes left
    takes the first free place, and the one to its right is next.
    """
    n = samples.shape[0]
    left_ones = np.uint64(0)
    for i in range(n):
        left_ones |= np.uint64(goes_left(sides, i, samples[i])) << np.uint64(i)
    first, last, at, row = np.int64(0), np.int64(n - 1), np.int64(0), samples[0]
    for _ in range(n - 1):
        left = (left_ones >> np.uint64(at)) & np.uint64(1) != 0
        place = first if left else last
        first += left
        at = first if left else last - 1 + 1  # helps LLVM: a bit test, a select
        following = samples[at]
        samples[place] = row
        row = following
        last -= not left
    samples[first] = row
    return first + np.int64((left_ones >> np.uint64(at)) & np.uint64(1))


@inline_kernel
def divide_stably(samples, start, end, is_left, spare):
    """Divide samples[start:end], keeping the order on each side."""
    mine = samples[start:end]
    partition(_Marked(is_left), mine, end - start, mine, spare)


@inline_kernel
def partition_rows(rows, spare, codes, cut, start, n):
    """Divide rows[start:start + n] at a cut, keeping the order on each side.

    Returns the place of the first row that goes right.
    """
    mine = rows[start : start + n]
    return start + partition(_OfCut(codes, cut.left_code, also_left(cut)), mine, n, mine, spare)


@inline_kernel
def add_up_node(criterion, samples, targets, start, end, sums):
    """Write weight, sum and rest of samples[start:end] to `sums`."""
    weight = 0.0
    total = 0.0
    rest = 0.0
    for i in range(start, end):
        row = samples[i]
        here = weight_at(targets, row)
        y = y_at(targets, row)
        weight += here
        total += here * y
        rest += rest_of(criterion, here, y)
    sums[WEIGHT] = weight
    sums[TOTAL] = total
    sums[REST] = rest


class Halves(NamedTuple):
    """The impurities of a node's children, the weight of the left one, and the midpoint of their
    values."""

    left: float
    right: float
    left_weight: float
    value: float


@inline_kernel
def halves_with(left, right, node, left_weight, left_sum):
    """The Halves with these impurities; `value` is the midpoint of the means."""
    value = left_sum / left_weight / 2.0
    value += (node.total - left_sum) / (node.weight - left_weight) / 2.0
    return Halves(left, right, left_weight, value)


class AnyCuts:
    """Default implementations of the protocol of `cut_score`, for rows with a single target."""

    def take_row(self, targets, row, weight, y):
        write_target(targets, row, weight, y[row])

    def copy_row(self, targets, row, copied, i):
        write_target(copied, i, weight_at(targets, row), y_at(targets, row))

    def sum_node(self, samples, targets, start, end, sums):
        add_up_node(self, samples, targets, start, end, sums)

    def sum_children(self, samples, targets, node, middle, sums):
        """See `cut_score`. Impurities are calculated as in scikit-learn: from the sums on the left,
        which come from the right side where that is shorter, and from the node's less these."""
        start, end = node.start, node.end
        left_sums = sums[node.row + 1]
        add_up_node(self, samples, targets, middle, end, sums[node.row])
        add_up_node(self, samples, targets, start, middle, left_sums)
        left = left_sums[WEIGHT], left_sums[TOTAL], left_sums[REST]
        if middle - start > end - middle:
            left = left_sums_from_right(
                self, samples, targets, middle, end, (node.weight, node.total, node.rest)
            )
        return halves_of(self, samples, targets, node, middle, (*left, left_sums[REST]))

    def score_divided(self, samples, targets, n_left, sums):
        of_node = sums[WEIGHT], sums[TOTAL], sums[REST]
        left = _sums_of_left(self, samples, targets, n_left, of_node)
        return left[0], left[1], score_left(self, left, of_node)

    def is_free_of_order(self):
        return True  # a sum of two numbers does not depend on their order

    def begin_search(self, samples, targets, sums, node):
        return node.rest

    def add_row_to_lane(self, lanes, k, row, rows):
        weight, y = weight_at(rows.targets, row), y_at(rows.targets, row)
        lanes.left_weight[k] += weight
        lanes.left_sum[k] += weight * y
        lanes.left_rest[k] += rest_of(self, weight, y)

    def sum_lane_from_right(self, lanes, k, i, n, rows):
        mine = rows.entries[lanes.first[k] : lanes.first[k] + n]
        lanes.left_weight[k], lanes.left_sum[k], lanes.left_rest[k] = left_sums_from_right(
            self, mine, rows.targets, i + 1, n, (rows.weight, rows.total, rows.rest)
        )

    def may_score(self, lanes, k, rows, bar):
        return True

    def settled_score(self, lanes, k, rows):
        left = lanes.left_weight[k], lanes.left_sum[k], lanes.left_rest[k]
        return score_left(self, left, (rows.weight, rows.total, rows.rest))

    def is_by_gain(self):
        return False

    def grow_if_small(self, growth, table, scratch, node, height, n_nodes, limits):
        return np.int64(-1)


@inline_kernel
def _sums_of_left(criterion, samples, targets, n_left, of_node):
    """Weight, sum and rest of samples[:n_left], added up from the shorter side."""
    n = samples.shape[0]
    right = n - n_left
    from_left = np.int64(n_left <= right)  # a number: a branch would be unpredictable
    from_right = 1 - from_left
    first, step, n_moved = (n - 1) * from_right, from_left - from_right, min(n_left, right)
    sign = np.float64(step)
    weight, total, rest = of_node
    weight, total = weight if from_right else 0.0, total if from_right else 0.0
    rest = rest if from_right else 0.0
    if n < _FEW_STEPS:  # always n // 2 steps: how many are needed is unpredictable
        for i in range(n // 2):
            row = samples[first + i * step]
            here, y = sign * np.float64(i < n_moved) * weight_at(targets, row), y_at(targets, row)
            weight += here
            total += here * y
            rest += rest_of(criterion, here, y)
        return weight, total, rest
    for i in range(n_moved):
        row = samples[first + i * step]
        here, y = sign * weight_at(targets, row), y_at(targets, row)
        weight += here
        total += here * y
        rest += rest_of(criterion, here, y)
    return weight, total, rest
