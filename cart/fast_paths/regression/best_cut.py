"""Judge the cuts of a node's rows along several features at once by squared error.

Sums are taken from the left, row by row, as scikit-learn takes them, so that they agree to the
bit. Each addition waits for the one before it; of several features side by side, one in a lane
each, additions and divisions are done at the same time.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import is_cut
from cart.fast_paths.regression.cut_score import WEIGHT, Y, score_of, weight_at, y_at
from cart.fast_paths.regression.sorted_rows import N_PLACES, code_at, row_at
from cart.jit.decorators import inline_kernel, kernel
from cart.jit.simd import on_lanes
from cart.primitives.sort_keys import CODE_SHIFT, RECORD

N_LANES = N_PLACES
_NARROW, _MIDDLE = 2, 4  # features, which have kernels of their own


class Lanes(NamedTuple):
    """The features that are searched together, and how far the search has come in each.

    All are arrays of N_LANES.
    """

    column: np.ndarray  # int64: of the table
    first: np.ndarray  # int64: where its entries begin
    tie_span: np.ndarray  # int64: of the column; between codes further apart there is always a cut
    entry: np.ndarray  # uint64: the one at hand, the last on the left
    gap: np.ndarray  # int64: from its code to the next; 0 where these count as one value
    behind: np.ndarray  # int64: entries left of the last cut that is certain
    left_weight: np.ndarray  # float64
    left_sum: np.ndarray  # float64
    score: np.ndarray  # float64: of the cut at hand
    best: np.ndarray  # float64: score
    place: np.ndarray  # int64: of the best, the last entry on its left; -1 where there is none

    @classmethod
    def create(cls):
        dtypes = [np.int64] * 3 + [np.uint64] + [np.int64] * 2 + [np.float64] * 4 + [np.int64]
        return cls(*(np.zeros(N_LANES, dtype) for dtype in dtypes))


@inline_kernel
def choose_mean_cut(lanes, n_lanes, entries, targets, n, first, weight, total, score, table):
    """The best of the cuts that leave more than `first` entries on both sides.

    Among equals that of the first lane, then the leftmost.

    Parameters
    ----------
    lanes : Lanes
        With column and first entry of `n_lanes` lanes.
    n_lanes : int
    entries : ndarray of uint64
        See `cart.fast_paths.regression.sorted_rows`.
    targets : ndarray of shape (2 * n_rows,), float64
        See `cart.fast_paths.regression.cut_score`.
    n, first : int
    weight, total : float
        Of the node: of its rows, and of their weighted targets.
    score : float
        The cut has to score more.
    table : Table

    Returns
    -------
    score : float
    lane : int
        -1 where there is none.
    place : int
        Of the last entry that goes left; -1 where there is none.
    """
    if n_lanes <= _NARROW:
        _begin(lanes, n_lanes, _NARROW, entries, score, table)
        _search_narrow(lanes, entries, targets, n, first, weight, total, table)
    elif n_lanes <= _MIDDLE:
        _begin(lanes, n_lanes, _MIDDLE, entries, score, table)
        _search_middle(lanes, entries, targets, n, first, weight, total, table)
    else:
        _begin(lanes, n_lanes, N_LANES, entries, score, table)
        _search_wide(lanes, entries, targets, n, first, weight, total, table)
    lane = -1
    place = np.int64(-1)
    for k in range(n_lanes):
        if lanes.best[k] > score:
            score = lanes.best[k]
            lane = k
            place = lanes.place[k]
    return score, lane, place


@inline_kernel
def _begin(lanes, n_lanes, width, entries, score, table):
    for k in range(n_lanes, width):  # lanes without a feature do as the first
        lanes.first[k] = lanes.first[0]
        lanes.column[k] = lanes.column[0]
    for k in range(width):
        lanes.tie_span[k] = table.tie_span[lanes.column[k]]
        lanes.entry[k] = entries[lanes.first[k]]
        lanes.behind[k] = 0
        lanes.left_weight[k] = 0.0
        lanes.left_sum[k] = 0.0
        lanes.best[k] = score
        lanes.place[k] = -1


def _searching(width):
    """A kernel that finds the best cut of every lane."""
    advance, score_cuts, update = (on_lanes(width)(gap) for gap in (_advance, _score, _update_best))

    @kernel
    def search(lanes, entries, targets, n, first, weight, total, table):
        first_at, entry, gap, behind = lanes.first, lanes.entry, lanes.gap, lanes.behind
        left_weight, left_sum = lanes.left_weight, lanes.left_sum
        tie_span, score, best, place = lanes.tie_span, lanes.score, lanes.best, lanes.place
        for i in range(n - 1 - first):
            n_left = i + 1
            n_right = n - n_left
            may_sum_from_right = advance(
                entries, targets, n_left, n_right, first_at, entry, gap, behind, left_weight,
                left_sum,
            )  # fmt: skip
            if i < first:
                continue
            if may_sum_from_right:
                _resum_from_right(lanes, width, entries, targets, n, i, first, weight, total, table)
            if score_cuts(weight, total, gap, tie_span, left_weight, left_sum, score, best):
                _drop_ties(lanes, width, entries, i, table)
            update(i, n_left, gap, tie_span, behind, score, best, place)

    return search


def _advance(
    lanes, entries, targets, n_left, n_right, first, entry, gap, behind, left_weight, left_sum
):
    """Take the entry at hand to the left; may a cut here have more entries on its left, behind
    the cut before, than on its right?"""
    mine = lanes.load(entry)
    following = lanes.gather(entries, lanes.load(first) + n_left)
    lanes.store(entry, following)
    to_next = (following >> int(CODE_SHIFT)) - (mine >> int(CODE_SHIFT))
    lanes.store(gap, to_next)
    at = (mine & int(RECORD)) * 2
    weight = lanes.gather(targets, at + WEIGHT)
    lanes.store(left_weight, lanes.load(left_weight) + weight)
    lanes.store(left_sum, lanes.load(left_sum) + weight * lanes.gather(targets, at + Y))
    return lanes.any((n_left - lanes.load(behind) > n_right) & (to_next > 0))


def _score(lanes, weight, total, gap, tie_span, left_weight, left_sum, score, best):
    """Score the cuts; may one that scores best be none, its values counting as one?"""
    found = score_of(lanes.load(left_weight), lanes.load(left_sum), weight, total)
    lanes.store(score, found)
    to_next = lanes.load(gap)
    is_near = (to_next > 0) & (to_next <= lanes.load(tie_span))
    return lanes.any((found > lanes.load(best)) & is_near)


def _update_best(lanes, i, n_left, gap, tie_span, behind, score, best, place):
    """Keep the cuts that score best."""
    to_next, found, before = lanes.load(gap), lanes.load(score), lanes.load(best)
    is_best = (to_next > 0) & (found > before)
    lanes.store(best, lanes.where(is_best, found, before))
    lanes.store(place, lanes.where(is_best, i, lanes.load(place)))
    lanes.store(behind, lanes.where(to_next > lanes.load(tie_span), n_left, lanes.load(behind)))
    return lanes.any(is_best)


@kernel
def _resum_from_right(lanes, width, entries, targets, n, i, first, weight, total, table):
    """Sum up from the right where scikit-learn does: where a cut takes more entries to its left
    than it leaves on its right. (Reference: `RegressionCriterion.update` in `_criterion.pyx`.)"""
    for k in range(width):
        column = lanes.column[k]
        mine = entries[lanes.first[k] : lanes.first[k] + n]
        if i + 1 - lanes.behind[k] <= n - i - 1 or not is_cut_after(mine, i, table, column):
            continue
        behind = i  # entries left of the cut before
        while behind > first and not is_cut_after(mine, behind - 1, table, column):
            behind -= 1
        if behind <= first:  # there is none
            behind = 0
        if i + 1 - behind > n - i - 1:
            left_weight = weight
            left_sum = total
            for j in range(n - 1, i, -1):
                row = row_at(mine, j)
                left_weight -= weight_at(targets, row)
                left_sum -= weight_at(targets, row) * y_at(targets, row)
            lanes.left_weight[k] = left_weight
            lanes.left_sum[k] = left_sum
        lanes.behind[k] = i + 1


@kernel
def _drop_ties(lanes, width, entries, i, table):
    for k in range(width):
        mine = entries[lanes.first[k] + i : lanes.first[k] + i + 2]
        if not is_cut_after(mine, 0, table, lanes.column[k]):
            lanes.gap[k] = 0


@inline_kernel
def is_cut_after(entries, i, table, column):
    """Is there a cut behind the i-th entry?"""
    low, high = code_at(entries, i), code_at(entries, i + 1)
    return low != high and is_cut(table, column, low, high)


_search_narrow, _search_middle, _search_wide = (
    _searching(width) for width in (_NARROW, _MIDDLE, N_LANES)
)
