"""The absolute error, from the medians of both sides of every cut.

A node's rows are numbered by their targets, y[0] <= y[1] <= ... Let W be the weight and S the sum
of w y on one side of a cut, m the number of the lower median there, and B and T the weight and the
sum of w y of the rows there with numbers below m. Then the error of the side is

    S - 2 T - y[m] (W - 2 B)                 the sum of w |y - y[m]|

The search starts from a side with all rows, linked into a chain in the order of their numbers, and
removes one row after another. If weights are 1, the median moves to a neighbour at most:

    side     0 - 2 - 3 - 4 - 7        m = 3; 2 leaves: m = 4
    before   0 <- 2 <- 3 <- 4 <- 7    unlinking 2 takes one step: 3 points to 0

scikit-learn takes its sums from a Fenwick tree, so its errors are rounded differently. Only if two
cuts are so close that rounding may decide (`_slack`) are its sums recalculated, bit for bit. For
the rows below the median, the tree adds up one partial sum for each bit set in the median's number:
over the rows whose number lacks that bit but has the same higher bits. If all sums are whole
numbers, nothing is rounded.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import is_cut_after
from cart.fast_paths.regression.cut_score import WEIGHT, weight_at, y_at
from cart.fast_paths.regression.node_sums import REST, TOTAL, AnyCuts, Halves
from cart.fast_paths.regression.sorted_rows import row_at
from cart.jit.decorators import inline_kernel, kernel, like
from cart.primitives.float_order import WHOLE_MAX, are_whole
from cart.primitives.radix_sort import n_bits_of
from cart.primitives.sort_keys import CODE_SHIFT, N_COUNTS, record_of, sort_keys
from cart.splitting.median_criterion import grow_errors

_UNIT = 2.0**-53
_N_BITS = 32


class RowsByTarget(NamedTuple):
    """The rows of the current node in the order of their targets, numbered from 1 on."""

    rank: np.ndarray  # (n_rows,) int64: the number of a row of the table
    y: np.ndarray  # (n + 2,) float64: by number; the ends, 0 and n + 1, have no weight
    weight: np.ndarray  # (n + 2,) float64
    present: np.ndarray  # (n + 2,) float64: weights of the rows of some set, 0 for all others

    @classmethod
    def create(cls, n):
        return cls(np.empty(n, np.int64), *np.zeros((3, n + 2)))


class Chain(NamedTuple):
    """The rows on one side of a moving cut, as a doubly linked list."""

    before: np.ndarray  # (n + 2,) int64
    after: np.ndarray  # (n + 2,) int64
    error: np.ndarray  # (n,) float64: of this side, for every cut

    @classmethod
    def create(cls, n):
        return cls(*np.zeros((2, n + 2), np.int64), np.empty(n))


class _Side(NamedTuple):
    """Sums of the rows that remain on a side."""

    weight: float
    total: float
    median: int
    below: float  # weight of the rows before the median
    sum_below: float  # their sum of w y


@like(AnyCuts)
class AbsoluteErrorCuts(NamedTuple):
    """Mean absolute difference from the weighted median, where weights are whole.

    A node's sums are its WEIGHT and, as REST, its median.
    """

    is_exact: bool  # whether targets, and so all sums, are whole numbers
    y_max: float
    level: np.ndarray  # (n_rows,) uint32: position of a row's target among the distinct targets
    n_bits: int  # of the levels
    ordered: RowsByTarget
    left: Chain
    right: Chain
    left_weight: np.ndarray  # (n_rows,) float64
    numbers: np.ndarray  # (n_rows,) int64: numbers of the rows, in the order of a feature
    spare: np.ndarray  # (n_rows,) float64
    medians: np.ndarray  # (n_rows,) float64
    fenwick: np.ndarray  # (2, n_rows + 1) float64
    keys: np.ndarray  # (2, n_rows) uint64
    counts: np.ndarray  # (N_COUNTS,) int32
    sums: np.ndarray  # (_N_BITS,) float64
    best: np.ndarray  # (2,) float64: score of the best cut; how many cuts have been best so far
    place: np.ndarray  # (2,) int64: where its entries begin, and the last on its left

    @classmethod
    def create(cls, y):
        n = len(y)
        levels, level = np.unique(y, return_inverse=True)
        y_max = np.abs(y).max()
        n_bits = max(1, int(len(levels) - 1).bit_length())
        return cls(
            bool(are_whole(y)), y_max, level.reshape(-1).astype(np.uint32), n_bits,
            RowsByTarget.create(n), Chain.create(n), Chain.create(n), np.empty(n),
            np.empty(n, np.int64), *np.empty((2, n)), np.empty((2, n + 1)),
            np.empty((2, n), np.uint64), np.empty(N_COUNTS, np.int32), np.zeros(_N_BITS),
            np.zeros(2), np.zeros(2, np.int64),
        )  # fmt: skip

    def takes(self, weights):
        """Are sums exact and errors finite, with these weights, which are whole numbers?"""
        heaviest = weights.sum(axis=-1).max()
        with np.errstate(over="ignore"):
            if self.is_exact:
                return bool(heaviest * max(self.y_max, 1.0) < WHOLE_MAX / 8)
            return bool(heaviest < WHOLE_MAX / 8 and np.isfinite(heaviest * heaviest * self.y_max))

    def sum_node(self, samples, targets, start, end, sums):
        _order_by_target(self, samples, targets, start, end - start)
        _write_median(self, samples, start, end, sums)

    def root_impurity(self, samples, targets, n, sums):
        error = 0.0
        for i in range(n):
            row = samples[i]
            error += weight_at(targets, row) * abs(y_at(targets, row) - sums[REST])
        return error / sums[WEIGHT]

    def sum_children(self, samples, targets, node, middle, sums):
        left = _write_median(self, samples, node.start, middle, sums[node.row + 1])
        right = _write_median(self, samples, middle, node.end, sums[node.row])
        weight = sums[node.row + 1, WEIGHT]
        right_weight = node.weight - weight
        of_left = _error_to_the_bit(self, samples[node.start : middle], 1, weight, left)
        of_right = _error_to_the_bit(self, samples[middle : node.end], -1, right_weight, right)
        return Halves(of_left / weight, of_right / right_weight, weight, 0.0)

    def write_value(self, value, sums):
        value[0, 0] = sums[REST]

    def begin_search(self, samples, targets, sums, node):
        _order_by_target(self, samples, targets, node.start, node.n)
        self.best[0], self.best[1] = -np.inf, 0.0
        self.place[0] = -1
        return 0.0

    def search_lanes(self, lanes, width, rows, table):
        for k in range(width):
            if k > 0 and lanes.first[k] == lanes.first[0]:
                break
            place = _search_feature(self, lanes.first[k], lanes.column[k], rows, table)
            if place >= 0:
                lanes.best[k], lanes.place[k] = self.best[1], place

    def add_row_to_lane(self, lanes, k, row, rows):
        pass

    def sum_lane_from_right(self, lanes, k, i, n, rows):
        pass

    def settled_score(self, lanes, k, rows):
        return lanes.score[k]


@kernel
def _order_by_target(self, samples, targets, start, n):
    """Number the samples by their targets; those with equal targets keep their order."""
    keys, ordered = self.keys[0], self.ordered
    for i in range(n):
        row = samples[start + i]
        keys[i] = np.uint64(self.level[row]) << CODE_SHIFT | np.uint64(row)
    sort_keys(keys, n, self.n_bits, self.counts, self.keys[1])
    for i in range(n):
        row = record_of(keys[i])
        ordered.rank[row] = i + 1
        ordered.y[i + 1], ordered.weight[i + 1] = y_at(targets, row), weight_at(targets, row)
    ordered.weight[0], ordered.weight[n + 1] = 0.0, 0.0
    for i in range(n + 2):
        ordered.present[i] = 0.0


@kernel
def _write_median(self, samples, start, end, sums):
    """Write weight and median of samples[start:end], which have been numbered; return the number of
    their lower median."""
    lower, weight = _lower_median(self, samples, start, end)
    median, _, _ = _median(self, samples[start:end], weight, lower)
    sums[WEIGHT], sums[TOTAL], sums[REST] = weight, 0.0, median
    return lower


@inline_kernel
def _median(self, rows, weight, lower):
    """The median of rows of this weight, given the number of the lower one; the number of the upper
    one, which may be the same, and the weight below it."""
    ordered, below, upper = self.ordered, 0.0, np.int64(self.ordered.y.shape[0])
    for i in range(rows.shape[0]):
        number = ordered.rank[np.uint32(rows[i])]
        below += ordered.weight[number] if number <= lower else 0.0
        upper = min(upper, number) if number > lower else upper
    if 2.0 * below == weight:
        return (ordered.y[lower] + ordered.y[upper]) / 2.0, upper, below
    return ordered.y[lower], lower, below - ordered.weight[lower]


# ------------------------------------------------------------------------------------ search


@kernel
def _search_feature(self, first, column, rows, table):
    """Keep the best cut of the entries from `first` on if it is better than all cuts before.

    Returns the last entry on its left, or -1 if it is not better.
    """
    entries, n, n_beside = rows.entries[first : first + rows.n], rows.n, rows.n_beside
    numbers = self.numbers
    for i in range(n):
        numbers[i] = self.ordered.rank[row_at(entries, i)]
    _find_errors(self, n)
    left, right, slack = self.left.error, self.right.error, _slack(self, rows)
    best, top, second = -1, self.best[0], -np.inf
    for i in range(n_beside, n - 1 - n_beside):
        score = -(left[i] + right[i])
        if score > top - slack and is_cut_after(entries, i, table, column):
            if self.is_exact:
                score = _score_of(left[i], right[i], self.left_weight[i], rows.weight)
            second = max(second, min(score, top))
            if score > top:
                best, top = i, score
    if top - second <= slack and not self.is_exact:
        best, top = _settle(self, entries, column, rows, table, top - slack)
    if best >= 0:
        self.best[0] = top
        self.best[1] += 1.0
        self.place[0], self.place[1] = first, best
    return np.int64(best)


@inline_kernel
def _slack(self, rows):
    """How far rounding may move the scores of two cuts apart: each row added or removed may put
    each of their sums off by a unit of the largest sum."""
    return 64.0 * _UNIT * (np.float64(rows.n) + rows.weight + 8.0) * rows.weight * self.y_max


@inline_kernel
def _score_of(error_left, error_right, left_weight, weight):
    """Score of a cut, as scikit-learn calculates it."""
    right_weight = weight - left_weight
    left, right = error_left / left_weight, error_right / right_weight
    return -right_weight * right - left_weight * left


@kernel
def _find_errors(self, n):
    """Find the errors of both sides of every cut of the rows `numbers`, up to rounding."""
    ordered, numbers, left, right = self.ordered, self.numbers, self.left, self.right
    weight, total = 0.0, 0.0
    for number in range(n + 2):
        left.before[number], left.after[number] = number - 1, number + 1
        right.before[number], right.after[number] = number - 1, number + 1
        weight += ordered.weight[number]
        total += ordered.weight[number] * ordered.y[number]
    all_rows = _find_median(ordered, _Side(weight, total, np.int64(1), 0.0, 0.0))
    side, other = all_rows, all_rows
    for i in range(n - 1):
        side = _take_away(ordered, left, numbers[n - 1 - i], side)
        left.error[n - 2 - i] = _error_of(ordered, side)
        self.left_weight[n - 2 - i] = side.weight
        other = _take_away(ordered, right, numbers[i], other)
        right.error[i] = _error_of(ordered, other)


@inline_kernel
def _error_of(ordered, side):
    """The absolute error of a side, see the module."""
    rest = side.weight - 2.0 * side.below
    return side.total - 2.0 * side.sum_below - ordered.y[side.median] * rest


@inline_kernel
def _find_median(ordered, side):
    """The side of all rows, with its lower median found."""
    weight, total, median, below, sum_below = side
    while 2.0 * (below + ordered.weight[median]) < weight:
        below += ordered.weight[median]
        sum_below += ordered.weight[median] * ordered.y[median]
        median += 1
    return _Side(weight, total, median, below, sum_below)


@inline_kernel
def _take_away(ordered, chain, number, side):
    """Remove a row, not the last one, from a side's chain; return the side without it."""
    weight, total, median, below, sum_below = side
    w = ordered.weight[number]
    wy = w * ordered.y[number]
    before, after = chain.before[number], chain.after[number]
    chain.after[before], chain.before[after] = after, before
    weight -= w
    total -= wy
    is_below = number < median
    below -= w if is_below else 0.0
    sum_below -= wy if is_below else 0.0
    median = after if number == median else median
    while 2.0 * below >= weight:
        median = chain.before[median]
        below -= ordered.weight[median]
        sum_below -= ordered.weight[median] * ordered.y[median]
    while 2.0 * (below + ordered.weight[median]) < weight:
        below += ordered.weight[median]
        sum_below += ordered.weight[median] * ordered.y[median]
        median = chain.after[median]
    return _Side(weight, total, median, below, sum_below)


# ------------------------------------------------------------------------------- bit for bit


@kernel
def _settle(self, entries, column, rows, table, least):
    """Find the best cut by scikit-learn's own sums, among those with scores of at least `least`.

    Returns the last entry on its left, or -1 if it does not beat the features before; and its
    score.
    """
    n, n_beside, weight = rows.n, rows.n_beside, self.left_weight
    best, top = -1, -np.inf
    if self.best[0] >= least:
        top = _settle_best(self, rows)
    may_be = self.spare
    for i in range(n - 1):
        may_be[i] = -(self.left.error[i] + self.right.error[i])
    for i in range(n):
        self.left.error[i], self.right.error[i] = 0.0, 0.0
    by_rank = self.ordered.weight, self.ordered.y
    grow_errors(self.numbers, *by_rank, self.fenwick, self.left.error, self.medians, n, 1)
    grow_errors(self.numbers, *by_rank, self.fenwick, self.right.error, self.medians, n, -1)
    for i in range(n_beside, n - 1 - n_beside):
        if may_be[i] >= least and is_cut_after(entries, i, table, column):
            score = _score_of(self.left.error[i], self.right.error[i + 1], weight[i], rows.weight)
            if score > top:
                best, top = i, score
    return best, max(top, self.best[0]) if best >= 0 else top


@kernel
def _settle_best(self, rows):
    """Recalculate the score of the best cut of the features before, by scikit-learn's sums."""
    first, place = self.place
    entries, n = rows.entries[first : first + rows.n], rows.n
    lower, weight = _lower_median(self, entries, 0, place + 1)
    left = _error_to_the_bit(self, entries[: place + 1], 1, weight, lower)
    lower, right_weight = _lower_median(self, entries, place + 1, n)
    right = _error_to_the_bit(self, entries[place + 1 :], -1, right_weight, lower)
    return _score_of(left, right, weight, rows.weight)


@kernel
def _lower_median(self, rows, start, end):
    """The number of the lower median of rows[start:end], and their weight."""
    ordered, weight = self.ordered, 0.0
    for i in range(start, end):
        number = ordered.rank[np.uint32(rows[i])]
        ordered.present[number] = ordered.weight[number]
        weight += ordered.weight[number]
    number, below = np.int64(1), 0.0
    while 2.0 * (below + ordered.present[number]) < weight:
        below += ordered.present[number]
        number += 1
    for i in range(start, end):
        ordered.present[ordered.rank[np.uint32(rows[i])]] = 0.0
    return number, weight


@kernel
def _error_to_the_bit(self, rows, step, weight, lower):
    """The absolute error of rows of this weight, bit for bit as in scikit-learn, which inserts the
    rows into a Fenwick tree, the last one first if `step` is -1; `lower` is the number of their
    lower median."""
    ordered, sums, n = self.ordered, self.sums, rows.shape[0]
    median, upper, below = _median(self, rows, weight, lower)
    at, total, first = upper - 1, 0.0, 0 if step > 0 else n - 1
    for bit in range(_N_BITS):
        sums[bit] = 0.0
    for i in range(n):
        number = ordered.rank[np.uint32(rows[first + i * step])]
        wy = ordered.weight[number] * ordered.y[number]
        total += wy
        if number < upper:
            sums[n_bits_of(np.uint32((number - 1) ^ at)) - 1] += wy
    sum_below = 0.0
    for bit in range(_N_BITS - 1, -1, -1):
        sum_below += sums[bit]
    return (total - sum_below - median * (weight - below)) + (median * below - sum_below)
