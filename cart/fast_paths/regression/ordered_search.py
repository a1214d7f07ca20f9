"""Search the features that a node has drawn, with sums in scikit-learn's order.

Features whose rows are all listed are searched side by side (`best_cut`). Where most rows have one
value and are not listed, a feature is searched by itself. Sums left of a cut are taken, as in
scikit-learn, row by row, or as the node's less those of the rows on the right, if more rows move to
the left at once than stay on the right. So the rows that are not listed are never summed up:

    all rows   [ 4 8 | 1 2 3 5 6 9 | 7 ]
    listed     [ 4 8               | 7 ]      sums of 4, of 4 and 8; then the node's less 7's
"""

import numpy as np

from cart.fast_paths.base import cut_between, is_cut
from cart.fast_paths.regression.best_cut import (
    N_LANES,
    begin_lanes,
    choose_mean_cut,
    lane_breaks,
)
from cart.fast_paths.regression.cut_score import (
    add_row_to_lane,
    is_by_gain,
    may_score,
    settled_score,
    slack_of,
    sum_lane_from_right,
)
from cart.fast_paths.regression.sorted_rows import (
    code_at,
    has_list,
    list_all,
    n_listed_of,
    ones_of,
    row_at,
    sum_zeros,
)
from cart.jit.decorators import inline_kernel, kernel

_BEHIND = np.int64(2**32)  # in place of a code: above all of them


@inline_kernel
def search_in_order(scratch, drawn, n_drawn, node, searched, best, table):
    """Search the first `n_drawn` of the drawn features, row by row; return the better Cut.

    Of equal scores, that of the feature drawn first is the better one.
    """
    lanes, rows, at, n_lanes = scratch.lanes, scratch.rows, np.int64(-1), np.int64(0)
    for k in range(n_drawn):
        if has_list(rows, drawn.column[k]) and _are_most_listed(rows, drawn, k, node.n):
            drawn.first[k] = list_all(rows, table, drawn.column[k], drawn.first[k], node)
            _take_lane(lanes, n_lanes, drawn, k)
            n_lanes += 1
            if n_lanes == N_LANES:
                best, at = _search_lanes(lanes, n_lanes, drawn, searched, best, at, table)
                n_lanes = np.int64(0)
    if n_lanes > 0:
        best, at = _search_lanes(lanes, n_lanes, drawn, searched, best, at, table)
    for k in range(n_drawn):
        is_indicator = not has_list(rows, drawn.column[k])
        if is_indicator or not _are_most_listed(rows, drawn, k, node.n):
            bar = best.score if k > at else np.nextafter(best.score, -np.inf)
            _take_lane(lanes, 0, drawn, k)
            if is_indicator:
                score, left, right = _judge_indicator(lanes, searched, node, bar, table)
            else:
                score, left, right = search_listed(lanes, searched, drawn.unlisted[k], bar, table)
            if left >= 0:
                best = cut_between(table, drawn.feature[k], left, right, score, drawn.missing[k])
                at = k
    return best


@inline_kernel
def _are_most_listed(rows, drawn, k, n):
    """Are at least half of a node's rows listed along the k-th of the drawn features?"""
    return 2 * n_listed_of(rows.entries, drawn.first[k], n, drawn.unlisted[k]) >= n


@inline_kernel
def _take_lane(lanes, lane, drawn, k):
    """Let a lane search the k-th of the drawn features."""
    lanes.drawn[lane], lanes.column[lane] = k, drawn.column[k]
    lanes.first[lane], lanes.direction[lane] = drawn.first[k], drawn.direction[k]


@inline_kernel
def _search_lanes(lanes, n_lanes, drawn, searched, best, at, table):
    """Search the features of the lanes side by side; return the better Cut, and which of the drawn
    features it is of (`at` if it is the one before)."""
    score, lane, i = choose_mean_cut(lanes, n_lanes, searched, best.score, table)
    if lane < 0:
        return best, at
    k, first = lanes.drawn[lane], lanes.first[lane] + i
    left = np.int64(code_at(searched.entries, first))
    right = np.int64(code_at(searched.entries, first + 1))
    return cut_between(table, drawn.feature[k], left, right, score, drawn.missing[k]), k


@inline_kernel
def _judge_indicator(lanes, rows, node, score, table):
    """As `search_listed`, for the one cut of an indicator."""
    column, zero = lanes.column[0], np.int64(0)
    n_ones, weight, total = ones_of(rows.lists, column)
    begin_lanes(lanes, 1, 1, rows, score, table)
    lanes.left_weight[0], lanes.left_sum[0] = rows.weight - weight, rows.total - total
    if rows.n_beside < n_ones < rows.n - rows.n_beside and _may_be_best(lanes, rows, score):
        lanes.left_weight[0], lanes.left_sum[0] = sum_zeros(rows.lists, column, node)
        found = settled_score(rows.criterion, lanes, 0, rows)
        if found > score and not (rows.is_bound and lane_breaks(lanes, 0, rows)):
            return found, zero, zero + 1
    return score, zero - 1, zero - 1


@inline_kernel
def _may_be_best(lanes, rows, score):
    """May the cut of the first lane, whose sums are rounded otherwise, score more than this?"""
    if not is_by_gain(rows.criterion):
        return may_score(rows.criterion, lanes, 0, rows, score)
    left, mean = lanes.left_weight[0], rows.total / rows.weight
    excess, of_all = lanes.left_sum[0] - left * mean, rows.total * mean
    least = (score - of_all) / rows.weight * (1.0 - 1e-9) - slack_of(rows.n, rows.y_max)
    return excess * excess / (left * (rows.weight - left)) >= least


@kernel
def search_listed(lanes, rows, unlisted, score, table):
    """Find the best cut of the feature of the first lane, of whose rows fewer than half are listed.

    Parameters
    ----------
    lanes : cart.fast_paths.regression.best_cut.Lanes
    rows : SearchedRows
    unlisted : int
        The code of the rows that are not listed.
    score : float
        A cut must score more than this.
    table : Table

    Returns
    -------
    score : float
    left, right : int
        The codes beside the cut; -1 if there is no such cut.
    """
    criterion, column, n, first = rows.criterion, lanes.column[0], rows.n, lanes.first[0]
    n_listed = n_listed_of(rows.entries, first, n, unlisted)
    entries = rows.entries[first : first + n_listed]
    begin_lanes(lanes, 1, 1, rows, score, table)
    at, n_left, previous, n_ahead = np.int64(0), np.int64(0), np.int64(0), n - n_listed
    left, right, following = np.int64(-1), np.int64(-1), _code_from(entries, at, unlisted)
    while n - n_left > rows.n_beside + 1:
        code = following
        if n_ahead > 0 and code == unlisted:
            n_left, n_ahead = n_left + n_ahead, np.int64(0)
        else:
            add_row_to_lane(criterion, lanes, 0, row_at(entries, at), rows)
            at, n_left = at + 1, n_left + 1
        following = _code_from(entries, at, unlisted if n_ahead > 0 else _BEHIND)
        is_between = code < following and n_left > rows.n_beside and n - n_left > rows.n_beside
        if not is_between or not is_cut(table, column, code, following):
            continue
        if n_left - previous > n - n_left:
            sum_lane_from_right(criterion, lanes, 0, at - 1, n_listed, rows)
        previous = n_left
        if may_score(criterion, lanes, 0, rows, score):
            found = settled_score(criterion, lanes, 0, rows)
            if found > score and not (rows.is_bound and lane_breaks(lanes, 0, rows)):
                score, left, right = found, code, following
    return score, left, right


@inline_kernel
def _code_from(entries, at, limit):
    """The code of an entry, or the limit if that is lower or there is no entry."""
    return min(np.int64(code_at(entries, at)), np.int64(limit)) if at < entries.shape[0] else limit
