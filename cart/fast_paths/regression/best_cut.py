"""Best cut along several features at once by squared error: a feature in each lane of a vector.

Sums are taken from the left, row by row, as scikit-learn takes them, so that they agree to the
bit. Each addition waits for the one before it; of several features side by side additions and
divisions are done at the same time:

    lane 0   feature 4   [ e0 e1 e2 | e3 ... ]
    lane 1   feature 0   [ e0 e1 e2 | e3 ... ]      each lane: weight and sum left of the bar,
    lane 2   feature 9   [ e0 e1 e2 | e3 ... ]      the score there, the best so far
                                    i ->            (e: entries in sorted order)
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import is_cut
from cart.fast_paths.regression.cut_score import (
    search_lanes,
    settled_score,
    sum_lane_from_right,
)
from cart.fast_paths.regression.sorted_rows import N_PLACES, code_at
from cart.jit.decorators import inline_kernel, kernel
from cart.jit.simd import on_lanes
from cart.primitives.sort_keys import CODE_SHIFT, RECORD
from cart.splitting.splitter import Bounds

N_LANES = N_PLACES
_NARROW, _MIDDLE = 2, 4  # lanes: as few as hold the features


class SearchedRows(NamedTuple):
    """The rows of a node, along all features that it looks at, their sums, and what cuts must
    keep."""

    criterion: tuple  # of cart.fast_paths.regression.cut_criteria
    entries: np.ndarray  # uint64: see `cart.fast_paths.regression.sorted_rows`
    targets: np.ndarray  # (2 * n_rows,) float64: see `cart.fast_paths.regression.cut_score`
    n: int
    n_beside: int  # a cut leaves more entries than that on both sides
    weight: float
    total: float  # of the weighted targets
    rest: float  # the criterion's third
    is_bound: bool  # must cuts keep the following?
    min_weight: float
    bounds: Bounds
    y_max: float  # the largest size of a target


class Lanes(NamedTuple):
    """The features that are searched together, and how far the search has come in each.

    All are arrays of N_LANES.
    """

    column: np.ndarray  # int64: of the table
    first: np.ndarray  # int64: where its entries begin
    tie_span: np.ndarray  # int64: codes further apart are never ties
    entry: np.ndarray  # uint64: the one at hand, the last on the left
    gap: np.ndarray  # int64: from its code to the next; 0 where these are ties
    previous: np.ndarray  # int64: entries left of the last cut that is certain
    left_weight: np.ndarray  # float64
    left_sum: np.ndarray  # float64
    left_rest: np.ndarray  # float64: where the criterion keeps it
    left_more: np.ndarray  # (2 * N_LANES,) float64: sums of two more outputs, lanes side by side
    totals: np.ndarray  # (N_LANES,) float64: the node's sums of all outputs, where there are more
    direction: np.ndarray  # float64: of the monotonic constraint, or 0
    lower: np.ndarray  # float64: of values left and right, where there is a constraint
    upper: np.ndarray  # float64
    score: np.ndarray  # float64: of the cut at hand
    best: np.ndarray  # float64: score
    place: np.ndarray  # int64: of the best, the last entry on its left; -1 where there is none

    @classmethod
    def create(cls):
        dtypes = [np.int64] * 3 + [np.uint64] + [np.int64] * 2 + [np.float64] * 10 + [np.int64]
        lanes = cls(*(np.zeros(N_LANES, dtype) for dtype in dtypes))
        return lanes._replace(left_more=np.zeros(2 * N_LANES))


@inline_kernel
def choose_mean_cut(lanes, n_lanes, rows, score, table):
    """The best cut of all lanes; among equals that of the first lane, then the leftmost.

    Parameters
    ----------
    lanes : Lanes
        With column and first entry of `n_lanes` lanes.
    n_lanes : int
    rows : SearchedRows
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
    width = _NARROW if n_lanes <= _NARROW else _MIDDLE if n_lanes <= _MIDDLE else N_LANES
    _begin(lanes, n_lanes, width, rows, score, table)
    search_lanes(rows.criterion, lanes, width, rows, table)
    lane = -1
    place = np.int64(-1)
    for k in range(n_lanes):
        if lanes.best[k] > score:
            score = lanes.best[k]
            lane = k
            place = lanes.place[k]
    return score, lane, place


@inline_kernel
def _begin(lanes, n_lanes, width, rows, score, table):
    for k in range(n_lanes, width):  # lanes without a feature do as the first
        lanes.first[k] = lanes.first[0]
        lanes.column[k] = lanes.column[0]
        lanes.direction[k] = lanes.direction[0]
    for k in range(width):
        lanes.tie_span[k] = table.tie_span[lanes.column[k]]
        lanes.entry[k] = rows.entries[lanes.first[k]]
        lanes.previous[k] = 0
        lanes.left_weight[k] = 0.0
        lanes.left_sum[k] = 0.0
        lanes.left_rest[k] = 0.0
        if rows.is_bound:
            is_free = lanes.direction[k] == 0.0
            lanes.lower[k] = -np.inf if is_free else rows.bounds.lower
            lanes.upper[k] = np.inf if is_free else rows.bounds.upper
        lanes.best[k] = score
        lanes.place[k] = -1


def searching(score_of, keeps_rest=False, is_settled=True, n_outputs=1):
    """Compile the search for the best cut of every lane.

    Parameters
    ----------
    score_of : function of (left weight, left sum, left rest, weight, total, rest)
        The score of a cut, in operators that lanes know, or what it is at most.
    keeps_rest : bool
        Is `left_rest` summed up?
    is_settled : bool
        Is that the score? Else `settled_score` is asked of the cuts that may be the best.
    n_outputs : int
        Of more than one (see `cart.fast_paths.regression.several_means`) `score_of` is asked for
        (left weight, left sums, weight, totals).

    Returns
    -------
    function of (lanes, width, rows, table)
    """
    narrow, middle, wide = (
        _searching(width, score_of, keeps_rest, is_settled, n_outputs)
        for width in (_NARROW, _MIDDLE, N_LANES)
    )

    @inline_kernel
    def search(lanes, width, rows, table):
        if width == _NARROW:
            narrow(lanes, rows, table)
        elif width == _MIDDLE:
            middle(lanes, rows, table)
        else:
            wide(lanes, rows, table)

    return search


def _scoring(width, score_of, is_settled, n_outputs):
    """The scores of the cuts of so many lanes."""

    def score_lanes(
        lanes, weight, total, rest, totals, gap, tie_span, left_weight, left_sum, left_rest,
        left_more, score, best,
    ):  # fmt: skip
        """Score the cuts; is one that may score best to be settled, or between ties?"""
        if n_outputs > 1:
            more = [lanes.load(left_more, k) for k in range(n_outputs - 1)]
            of_all = [lanes.same(totals, k) for k in range(n_outputs)]
            left = [lanes.load(left_sum), *more]
            found = score_of(lanes.load(left_weight), left, weight, of_all)
        else:
            left = lanes.load(left_weight), lanes.load(left_sum), lanes.load(left_rest)
            found = score_of(*left, weight, total, rest)
        lanes.store(score, found)
        to_next = lanes.load(gap)
        is_asked = to_next > 0
        if is_settled:
            is_asked = is_asked & (to_next <= lanes.load(tie_span))
        return lanes.any((found > lanes.load(best)) & is_asked)

    return on_lanes(width)(score_lanes)


def _searching(width, score_of, keeps_rest, is_settled, n_outputs):
    """The kernel for so many lanes."""
    take_rest, keep_bounds, update = (
        on_lanes(width)(do) for do in (_take_rest, _keep_bounds, _update_best)
    )
    advance = on_lanes(width)(_advancing(n_outputs))
    score_cuts = _scoring(width, score_of, is_settled, n_outputs)

    @kernel
    def search(lanes, rows, table):
        entries, targets, n, n_beside = rows.entries, rows.targets, rows.n, rows.n_beside
        is_bound = rows.is_bound
        weight, total, rest = rows.weight, rows.total, rows.rest
        first, entry, gap, previous = lanes.first, lanes.entry, lanes.gap, lanes.previous
        left_weight, left_sum, left_rest = lanes.left_weight, lanes.left_sum, lanes.left_rest
        tie_span, score, best, place = lanes.tie_span, lanes.score, lanes.best, lanes.place
        left_more, totals = lanes.left_more, lanes.totals
        for i in range(n - 1 - n_beside):
            n_left = i + 1
            if keeps_rest:
                take_rest(targets, entry, left_rest)
            may_sum_from_right = advance(
                entries, targets, n_left, n - n_left, first, entry, gap, previous, left_weight,
                left_sum, left_more,
            )  # fmt: skip
            if i < n_beside:
                continue
            if may_sum_from_right:
                _sum_from_right(lanes, width, rows, i, table)
            if score_cuts(
                weight, total, rest, totals, gap, tie_span, left_weight, left_sum, left_rest,
                left_more, score, best,
            ):  # fmt: skip
                _settle(lanes, width, rows, i, table)
            if is_bound:
                keep_bounds(
                    weight, total, rows.min_weight, left_weight, left_sum, lanes.direction,
                    lanes.lower, lanes.upper, score,
                )  # fmt: skip
            update(i, n_left, gap, tie_span, previous, score, best, place)

    return search


def _advancing(n_outputs):
    """The step of all lanes, of so many outputs."""
    per_row = 2 if n_outputs == 1 else n_outputs + 1

    def advance(
        lanes, entries, targets, n_left, n_right, first, entry, gap, previous, left_weight,
        left_sum, left_more,
    ):  # fmt: skip
        """Take the entry at hand to the left; may a cut here have more entries on its left, behind
        the cut before, than on its right?"""
        mine = lanes.load(entry)
        (following,) = lanes.gather_rows(entries, lanes.load(first) + n_left, 1)
        lanes.store(entry, following)
        to_next = (following >> int(CODE_SHIFT)) - (mine >> int(CODE_SHIFT))
        lanes.store(gap, to_next)
        at = (mine & int(RECORD)) * per_row
        weight, *values = lanes.gather_rows(targets, at, per_row)
        lanes.store(left_weight, lanes.load(left_weight) + weight)
        lanes.store(left_sum, lanes.load(left_sum) + weight * values[0])
        for k in range(n_outputs - 1):
            lanes.store(left_more, lanes.load(left_more, k) + weight * values[k + 1], k)
        return lanes.any((n_left - lanes.load(previous) > n_right) & (to_next > 0))

    return advance


def _take_rest(lanes, targets, entry, left_rest):
    """Of two classes: the weight of the second (the target is 1 of the first, else 0)."""
    at = (lanes.load(entry) & int(RECORD)) * 2
    weight, value = lanes.gather_rows(targets, at, 2)
    rest = weight - weight * value
    lanes.store(left_rest, lanes.load(left_rest) + rest)


def _keep_bounds(
    lanes, weight, total, min_weight, left_weight, left_sum, direction, lower, upper, score
):
    """Rule out cuts that leave too little weight, or break a monotonic constraint."""
    left, low, high = lanes.load(left_weight), lanes.load(lower), lanes.load(upper)
    right = weight - left
    value = lanes.load(left_sum) / left
    other = (total - lanes.load(left_sum)) / right
    breaks = (low > value) | (low > other) | (value > high) | (other > high)
    breaks = breaks | ((value - other) * lanes.load(direction) > 0.0)
    breaks = breaks | (min_weight > left) | (min_weight > right)
    lanes.store(score, lanes.where(breaks, -np.inf, lanes.load(score)))


def _update_best(lanes, i, n_left, gap, tie_span, previous, score, best, place):
    """Keep the cuts that score best."""
    to_next, found, before = lanes.load(gap), lanes.load(score), lanes.load(best)
    is_best = (to_next > 0) & (found > before)
    lanes.store(best, lanes.where(is_best, found, before))
    lanes.store(place, lanes.where(is_best, i, lanes.load(place)))
    lanes.store(previous, lanes.where(to_next > lanes.load(tie_span), n_left, lanes.load(previous)))
    return lanes.any(is_best)


@kernel
def _sum_from_right(lanes, width, rows, i, table):
    """Sum up from the right where that is shorter, as scikit-learn does: where a cut takes more
    entries to its left, since the cut before, than it leaves on its right."""
    entries, n, n_beside = rows.entries, rows.n, rows.n_beside
    n_left, n_right = i + 1, n - i - 1
    for k in range(width):
        column = lanes.column[k]
        mine = entries[lanes.first[k] : lanes.first[k] + n]
        if n_left - lanes.previous[k] <= n_right or not is_cut_after(mine, i, table, column):
            continue
        previous = i  # entries left of the cut before
        while previous > n_beside and not is_cut_after(mine, previous - 1, table, column):
            previous -= 1
        if previous <= n_beside:  # there is none
            previous = 0
        if n_left - previous > n_right:
            sum_lane_from_right(rows.criterion, lanes, width, k, i, rows)
        lanes.previous[k] = n_left


@kernel
def _settle(lanes, width, rows, i, table):
    """Settle the scores of cuts that may be the best; between ties there is none."""
    for k in range(width):
        if lanes.gap[k] > 0 and lanes.score[k] > lanes.best[k]:
            mine = rows.entries[lanes.first[k] + i : lanes.first[k] + i + 2]
            if is_cut_after(mine, 0, table, lanes.column[k]):
                lanes.score[k] = settled_score(rows.criterion, lanes, k, rows)
            else:
                lanes.gap[k] = 0


@inline_kernel
def is_cut_after(entries, i, table, column):
    """Is there a cut behind the i-th entry? Not between ties, nor behind missing values that stand
    first."""
    low, high = code_at(entries, i), code_at(entries, i + 1)
    return low < high and is_cut(table, column, low, high)
