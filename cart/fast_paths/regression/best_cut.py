"""Search for the best cut along several features at once: a feature in each lane of a vector.

Sums are taken from the left, row by row, as in scikit-learn, so that they agree bit for bit. Each
addition has to wait for the one before it. With several features side by side, their additions and
divisions are done at the same time:

    lane 0   feature 4   [ e0 e1 e2 | e3 ... ]
    lane 1   feature 0   [ e0 e1 e2 | e3 ... ]      each lane: weight and sum left of the bar,
    lane 2   feature 9   [ e0 e1 e2 | e3 ... ]      the score there, the best so far
                                    i ->            (e: entries in sorted order)
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import is_cut
from cart.fast_paths.regression.cut_score import search_lanes, settled_score, sum_lane_from_right
from cart.fast_paths.regression.sorted_rows import N_PLACES, code_at
from cart.jit.decorators import inline_kernel, kernel
from cart.jit.simd import on_lanes
from cart.primitives.sort_keys import CODE_SHIFT, RECORD
from cart.splitting.splitter import Bounds

N_LANES = N_PLACES
_NARROW, _MIDDLE = 2, 4  # lanes: as few as hold the features


class SearchedRows(NamedTuple):
    """The rows of a node along all features that it looks at, their sums, and limits on cuts."""

    criterion: tuple  # of cart.fast_paths.regression.cut_criteria
    entries: np.ndarray  # uint64: see `cart.fast_paths.regression.sorted_rows`
    targets: np.ndarray  # (2 * n_rows,) float64: see `cart.fast_paths.regression.cut_score`
    n: int
    n_beside: int  # a cut must leave more entries than this on each side
    weight: float
    total: float  # of the weighted targets
    rest: float  # the criterion's third number, see `begin_search`
    is_bound: bool  # whether min_weight and bounds limit the cuts
    min_weight: float
    bounds: Bounds
    y_max: float  # the largest size of a target
    lists: NamedTuple  # whose `entries` these are; see `cart.fast_paths.regression.sorted_rows`


class Lanes(NamedTuple):
    """The features that are searched together, and the state of the search in each.

    All arrays have N_LANES items.
    """

    drawn: np.ndarray  # int64: which of the features drawn it is
    column: np.ndarray  # int64: of the table
    first: np.ndarray  # int64: where its entries begin
    tie_span: np.ndarray  # int64: codes further apart are never ties
    entry: np.ndarray  # uint64: the next that goes left
    previous: np.ndarray  # int64: how many entries the last known cut has on its left
    left_weight: np.ndarray  # float64
    left_sum: np.ndarray  # float64
    left_rest: np.ndarray  # float64: if the criterion keeps it
    left_second: np.ndarray  # float64: the sum of a second output, if there is one
    left_third: np.ndarray  # float64: of a third output
    totals: np.ndarray  # float64: the node's sums of all outputs, if there are several
    direction: np.ndarray  # float64: of the monotonic constraint, or 0
    lower: np.ndarray  # float64: bounds of the children's values, infinite if unconstrained
    upper: np.ndarray  # float64
    score: np.ndarray  # float64: of the current cut
    best: np.ndarray  # float64: the best score
    bar: np.ndarray  # float64: the best score of all lanes, if scores have to be settled
    place: np.ndarray  # int64: the last entry left of the best cut; -1 if there is none

    @classmethod
    def create(cls):
        dtypes = [np.int64] * 4 + [np.uint64, np.int64] + [np.float64] * 12 + [np.int64]
        return cls(*(np.zeros(N_LANES, dtype) for dtype in dtypes))


@inline_kernel
def choose_mean_cut(lanes, n_lanes, rows, score, table):
    """Find the best cut of all lanes; on equal scores, that of the first lane, then the leftmost.

    Parameters
    ----------
    lanes : Lanes
        With `column`, `first` and `direction` of the first `n_lanes` lanes.
    n_lanes : int
    rows : SearchedRows
    score : float
        A cut must score more than this.
    table : Table

    Returns
    -------
    score : float
    lane : int
        -1 if there is no such cut.
    place : int
        Of the last entry that goes left; -1 if there is no such cut.
    """
    width = _NARROW if n_lanes <= _NARROW else _MIDDLE if n_lanes <= _MIDDLE else N_LANES
    begin_lanes(lanes, n_lanes, width, rows, score, table)
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
def begin_lanes(lanes, n_lanes, width, rows, score, table):
    """Begin the search of the first `n_lanes` lanes."""
    for k in range(n_lanes, width):  # lanes without a feature repeat the first
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
        lanes.left_second[k] = 0.0
        lanes.left_third[k] = 0.0
        if rows.is_bound:
            is_free = lanes.direction[k] == 0.0
            lanes.lower[k] = -np.inf if is_free else rows.bounds.lower
            lanes.upper[k] = np.inf if is_free else rows.bounds.upper
        lanes.best[k] = score
        lanes.bar[k] = score
        lanes.place[k] = -1


def searching(score_of, keeps_rest=False, is_settled=True, n_outputs=1):
    """Compile the search for the best cut of every lane.

    Parameters
    ----------
    score_of : function of (left weight, left sum, left rest, weight, total, rest)
        The score of a cut, or an upper bound of it, in operators that lanes support.
    keeps_rest : bool
        Whether `left_rest` is summed up.
    is_settled : bool
        Whether `score_of` is the score. If it is a bound, `settled_score` decides between the cuts
        that may be the best.
    n_outputs : int
        If greater than 1 (see `cart.fast_paths.regression.several_means`), `score_of` is a function
        of (left weight, left sums, weight, totals).

    Returns
    -------
    function of (lanes, width, rows, table)
    """
    find = _finding(score_of, keeps_rest, is_settled, n_outputs)
    narrow, middle, wide = (
        on_lanes(width, gives_number=True)(find) for width in (_NARROW, _MIDDLE, N_LANES)
    )

    @kernel
    def search(lanes, width, rows, table):
        end = rows.n - 1 - rows.n_beside
        i = np.int64(0)
        while i < end:
            if width == _NARROW:
                i = narrow(lanes, rows, i, end)
            elif width == _MIDDLE:
                i = middle(lanes, rows, i, end)
            else:
                i = wide(lanes, rows, i, end)
            if i < end:
                _judge_row(lanes, width, rows, i, table)
                i += 1

    return search


def _finding(score_of, keeps_rest, is_settled, n_outputs):
    """Return the search row by row, up to a row that has to be judged lane by lane."""

    def find(on, lanes, rows, i, end):
        """Move rows to the left, from the i-th on, and keep the cuts that score best.

        `on` has the operations of vectors (see `cart.jit.simd.PlainLanes`), `lanes` their contents.
        Stops at the first row where codes may be ties, sums have to come from the right, or scores
        have to be settled. That row is moved and scored, too, but its cuts are not kept. Returns
        its number, or `end`.
        """
        first, tie_span, bar = on.load(lanes.first), on.load(lanes.tie_span), on.load(lanes.bar)
        totals = [on.same(lanes.totals, k) for k in range(n_outputs)]
        n, n_beside = on.number(rows.n), on.number(rows.n_beside)
        is_bound = on.number(rows.is_bound)
        sums = lanes.left_weight, lanes.left_sum, lanes.left_second, lanes.left_third
        sums = (*sums[: 1 + n_outputs], *([lanes.left_rest] if keeps_rest else []))

        def score(left):
            if n_outputs > 1:
                return score_of(left[0], left[1:], rows.weight, totals)
            rest = left[2] if keeps_rest else None
            return score_of(left[0], left[1], rest, rows.weight, rows.total, rows.rest)

        def take(i, entry, previous, best, place, _, *left):
            left = _add_row(on, left, rows.targets, entry, n_outputs, keeps_rest)
            found, n_left = score(left), on.everywhere(i + 1)
            (found,) = on.choose(
                is_bound, lambda: (_score_within(on, found, left, lanes, rows),), lambda: (found,)
            )
            (following,) = on.gather_rows(rows.entries, first + n_left, 1)
            code, following_code = entry >> int(CODE_SHIFT), following >> int(CODE_SHIFT)
            is_cut = (following_code > code) & (on.everywhere(i - n_beside) > -1)
            to_next = on.where(is_cut, following_code - code, 0)
            here = following, previous, best, place, found, *left
            is_last = (found > best) & (to_next <= tie_span) if is_settled else bar <= found
            is_last = is_last | (n_left - previous > on.everywhere(n - i - 1))
            if is_settled:
                is_best = is_cut & (found > best)
                best, place = on.where(is_best, found, best), on.where(is_best, n_left - 1, place)
            previous = on.where(to_next > tie_span, n_left, previous)
            return on.any(is_cut & is_last), here, (following, previous, best, place, found, *left)

        kept = lanes.entry, lanes.previous, lanes.best, lanes.place, lanes.score, *sums
        i, *values = on.repeat_until(on.number(i), on.number(end), take, *map(on.load, kept))
        for array, value in zip(kept, values, strict=True):
            on.store(array, value)
        return i

    return find


def _add_row(on, left, targets, entry, n_outputs, keeps_rest):
    """The sums on the left with the entry's row added, in every lane."""
    per_row = 2 if n_outputs == 1 else n_outputs + 1
    weight, *values = on.gather_rows(targets, (entry & int(RECORD)) * per_row, per_row)
    added = [weight, *(weight * value for value in values)]
    if keeps_rest:
        added.append(weight - weight * values[0])
    return [before + more for before, more in zip(left, added, strict=True)]


def _score_within(on, score, left, lanes, rows):
    """The score, or -inf where a cut leaves too little weight or breaks a monotonic constraint."""
    bounds = on.load(lanes.direction), on.load(lanes.lower), on.load(lanes.upper)
    return on.where(_breaks(left[0], left[1], rows, *bounds), -np.inf, score)


def _breaks(left_weight, left_sum, rows, direction, lower, upper):
    """Does a cut leave too little weight, or break a monotonic constraint? For numbers or lanes."""
    right_weight = rows.weight - left_weight
    left, right = left_sum / left_weight, (rows.total - left_sum) / right_weight
    breaks = (lower > left) | (lower > right) | (left > upper) | (right > upper)
    breaks = breaks | ((left - right) * direction > 0.0)
    return breaks | (rows.min_weight > left_weight) | (rows.min_weight > right_weight)


_breaks_bounds = inline_kernel(_breaks)


@kernel
def _judge_row(lanes, width, rows, i, table):
    """Keep the best of the cuts behind the i-th row, lane by lane.

    As in scikit-learn, sums come from the right if that is shorter: if more entries have moved to
    the left since the cut before than are left on the right.
    """
    n_left, n_right = i + 1, rows.n - i - 1
    for k in range(width):
        first, column = lanes.first[k], lanes.column[k]
        entries = rows.entries[first : first + rows.n]
        may_be_best, is_due = lanes.score[k] >= lanes.bar[k], n_left - lanes.previous[k] > n_right
        if not (may_be_best or is_due) or not is_cut_after(entries, i, table, column):
            continue
        if is_due and n_left - left_of_cut_before(entries, i, rows, table, column) > n_right:
            sum_lane_from_right(rows.criterion, lanes, k, i, rows.n, rows)
            may_be_best = True
        lanes.previous[k] = n_left
        if may_be_best:
            score = settled_score(rows.criterion, lanes, k, rows)
            if score > lanes.best[k] and not (rows.is_bound and lane_breaks(lanes, k, rows)):
                lanes.best[k], lanes.place[k] = score, i
                for j in range(width):
                    lanes.bar[j] = max(lanes.bar[j], score)


@inline_kernel
def left_of_cut_before(entries, i, rows, table, column):
    """How many entries are left of the cut before the one behind entry i; 0 if there is none."""
    n_left = i
    while n_left > rows.n_beside and not is_cut_after(entries, n_left - 1, table, column):
        n_left -= 1
    return n_left if n_left > rows.n_beside else 0


@inline_kernel
def lane_breaks(lanes, k, rows):
    """Does the current cut of lane k leave too little weight, or break a monotonic constraint?"""
    return _breaks_bounds(
        lanes.left_weight[k], lanes.left_sum[k], rows, lanes.direction[k], lanes.lower[k],
        lanes.upper[k],
    )  # fmt: skip


@inline_kernel
def is_cut_after(entries, i, table, column):
    """Can there be a cut behind entry i? Not between ties, nor behind missing values in front."""
    low, high = code_at(entries, i), code_at(entries, i + 1)
    return low < high and is_cut(table, column, low, high)
