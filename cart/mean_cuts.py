"""Judge the cuts of a node's rows along a feature by squared error.

Sums are taken from the left, row by row, as scikit-learn takes them, so that they agree to the
bit. Every cut is judged in double precision; of few rows, a cut is divided only where it may be the
best.
"""

from typing import NamedTuple

import numpy as np

from cart.along import code_at, row_at
from cart.jit import inline_kernel, kernel
from cart.order import CODE_SHIFT
from cart.table import same_value

WEIGHT, Y = range(2)  # columns of `targets`
_FEW = 24  # up to so many rows, sums and scores are found in one loop
# What rounding leaves of a number at least, and may take from one so small that it has fewer bits.
_ROUNDED, _UNDERFLOW = 1.0 - 2.0**-48, 1e-280


class Sums(NamedTuple):
    """What lies left of every cut: cut i has the rows up to the i-th on its left."""

    weight: np.ndarray  # (n,) float64
    sum: np.ndarray  # (n,) float64
    score: np.ndarray  # (n,) float64; -1 where there is no cut
    score_bits: np.ndarray  # (n,) int64: the same memory; ordered as the scores >= 0 are

    @classmethod
    def create(cls, n):
        score = np.empty(n)
        return cls(np.empty(n), np.empty(n), score, score.view(np.int64))


@inline_kernel
def add_up_sums(sums, entries, targets, n):
    """Sum up the entries from the left."""
    weight = 0.0
    total = 0.0
    for i in range(n):
        row = row_at(entries, i)
        w = targets[row, WEIGHT]
        weight += w
        total += w * targets[row, Y]
        sums.weight[i] = weight
        sums.sum[i] = total


@inline_kernel
def may_sum_from_right(entries, n, reach):
    """May a cut take more entries to its left than it leaves on its right (see `mend_sums`)?

    If it leaves r, the r + 1 before it have values that count as one with the next, so that their
    codes differ by no more than `reach` each. Places 1, 2, 3, 4, 6, 8, 12, 16, ... from the end
    are looked at: two neighbours of these lie among those r + 1, whatever r is.
    """
    near, far = 1, 2
    while far < n:
        step = np.int64(code_at(entries, n - 1 - near)) - np.int64(code_at(entries, n - 1 - far))
        if step <= (far - near) * np.int64(reach):
            return True
        near, far = far, near + max(near, 2)
    return False


@kernel
def mend_sums(sums, entries, targets, n, first, last, weight, total, table, column):
    """Sum up from the right where scikit-learn does: where a cut takes more entries to its left
    than it leaves on its right. (Reference: `RegressionCriterion.update` in `_criterion.pyx`.)"""
    behind = 0  # entries left of the cut before
    for i in range(first, last):
        if not is_cut(entries, i, table, column):
            continue
        if i + 1 - behind > n - i - 1:
            left_weight = weight
            left_sum = total
            for k in range(n - 1, i, -1):
                row = row_at(entries, k)
                left_weight -= targets[row, WEIGHT]
                left_sum -= targets[row, WEIGHT] * targets[row, Y]
            sums.weight[i] = left_weight
            sums.sum[i] = left_sum
            for k in range(i + 1, n):
                row = row_at(entries, k)
                left_weight += targets[row, WEIGHT]
                left_sum += targets[row, WEIGHT] * targets[row, Y]
                sums.weight[k] = left_weight
                sums.sum[k] = left_sum
        behind = i + 1


@inline_kernel
def is_cut(entries, i, table, column):
    """Are the values on either side of cut i two for scikit-learn?"""
    low, high = code_at(entries, i), code_at(entries, i + 1)
    if low == high:
        return False
    return high - low > table.reach[column] or not same_value(table, column, low, high)


@inline_kernel
def mean_score(left_weight, left_sum, weight, total):
    """Quality of a cut as scikit-learn calculates it, from what lies on its left and in all."""
    right_sum = total - left_sum
    return left_sum * left_sum / left_weight + right_sum * right_sum / (weight - left_weight)


@inline_kernel
def choose_mean_cut(sums, entries, targets, n, first, last, weight, total, score, table, column):
    """The best of the cuts from `first` to `last` (excluded) that scores more than `score`.

    Returns its score and its place; -1 where there is none.
    """
    if n <= _FEW:
        return _choose_of_few(entries, targets, n, first, last, weight, total, score, table, column)
    add_up_sums(sums, entries, targets, n)
    if may_sum_from_right(entries, n, table.reach[column]):
        mend_sums(sums, entries, targets, n, first, last, weight, total, table, column)
    return _choose_of_many(sums, entries, first, last, weight, total, score, table, column)


@inline_kernel
def _choose_of_few(entries, targets, n, first, last, weight, total, score, table, column):
    best = -1
    left_weight = 0.0
    left_sum = 0.0
    behind = 0  # entries left of the cut before
    for i in range(last):
        row = row_at(entries, i)
        w = targets[row, WEIGHT]
        left_weight += w
        left_sum += w * targets[row, Y]
        if i < first or not is_cut(entries, i, table, column):
            continue
        if i + 1 - behind > n - i - 1:  # see `mend_sums`
            left_weight = weight
            left_sum = total
            for k in range(n - 1, i, -1):
                row = row_at(entries, k)
                left_weight -= targets[row, WEIGHT]
                left_sum -= targets[row, WEIGHT] * targets[row, Y]
        behind = i + 1
        right_sum = total - left_sum
        right_weight = weight - left_weight
        merit = left_sum * left_sum * right_weight + right_sum * right_sum * left_weight
        if merit < score * (left_weight * right_weight) * _ROUNDED - _UNDERFLOW:
            continue
        found = mean_score(left_weight, left_sum, weight, total)
        if found > score:
            score = found
            best = i
    return score, best


@inline_kernel
def _choose_of_many(sums, entries, first, last, weight, total, score, table, column):
    n = last - first
    low = entries[first:last]
    high = entries[first + 1 : last + 1]
    weights = sums.weight[first:last]
    left_sums = sums.sum[first:last]
    scores = sums.score[:n]
    for i in range(n):
        found = mean_score(weights[i], left_sums[i], weight, total)
        scores[i] = found if (low[i] ^ high[i]) >> CODE_SHIFT != 0 else -1.0
    bits = sums.score_bits[:n]
    while True:
        top = np.int64(-1)
        for i in range(n):
            top = np.int64(max(top, bits[i]))
        sums.score_bits[n] = top
        if not sums.score[n] > score:
            return score, -1
        i = 0
        while bits[i] != top:
            i += 1
        if is_cut(entries, first + i, table, column):
            return sums.score[n], first + i
        for k in range(n):
            if scores[k] >= 0.0 and not is_cut(entries, first + k, table, column):
                scores[k] = -1.0
