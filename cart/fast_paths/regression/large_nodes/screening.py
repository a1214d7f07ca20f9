"""Screening of large nodes by squared error: bounds rule out most cuts.

A feature's sorted rows are summed up in blocks. For a cut inside a block, the weight on its left is
at least the weight left of the block, and at most that plus the block's own. The sum of deviations
is bounded likewise, by the block's positive and negative ones. This bounds the gains of the block's
cuts, and only blocks whose bound reaches the best gain at an edge are searched:

    rows    [ ........ | ........ | ........ | ........ | ... ]
    bound      inf        3.1        9.4        2.2            gain at the edges: 2.9 5.0 1.8
                                      ^ searched: 9.4 >= 5.0   (first and last: always)

If no other gain is so close to the best one that rounding might decide between them, that cut is
also scikit-learn's, in whatever order it adds up: no sum in that order is needed.

The same blocks serve both sides on which missing values may be: if they go left, their sums are
left of every block.

A cut that breaks a limit of weight or a monotonic constraint has no gain. If rounding may decide
whether it does, the result of the screening is uncertain.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, is_cut
from cart.fast_paths.regression.best_cut import is_cut_after
from cart.fast_paths.regression.cut_score import is_by_gain, slack_of, weight_at, y_at
from cart.fast_paths.regression.sorted_rows import (
    code_at,
    has_list,
    n_listed_of,
    ones_of,
    row_at,
)
from cart.jit.decorators import inline_kernel

_ROWS_MIN = 128
_BLOCK = 8  # rows


class Screen(NamedTuple):
    """The blocks of a feature, and the best cut of a node so far."""

    weight: np.ndarray  # (n_blocks + 1,) float64: left of every block
    total: np.ndarray  # (n_blocks + 1,) float64: sum of deviations left of every block
    above: np.ndarray  # (n_blocks,) float64: sum of the block's positive deviations
    bound: np.ndarray  # (n_blocks,) float64: no cut in the block has more gain
    best: np.ndarray  # (4,) int64: feature, left code, right code, where missing values go
    gain: np.ndarray  # (2,) float64: of the best cut, and of the second best; 0 in the beginning

    @classmethod
    def create(cls, n_rows):
        n_blocks = n_rows // _BLOCK + 1
        return cls(*(np.empty(n_blocks + 1) for _ in range(4)), np.empty(4, np.int64), np.empty(2))


class Side(NamedTuple):
    """The side on which a feature's missing values are, and what is left of all known ones."""

    missing: int  # as in a Cut
    n_before: int  # rows
    weight: float
    total: float  # sum of deviations


@inline_kernel
def is_worth_screening(rows, slack, impurity):
    """Whether bounds are likely to rule out most cuts of a node, and rounding few of the bounds."""
    return is_by_gain(rows.criterion) and rows.n >= _ROWS_MIN and slack < 0.01 * impurity


@inline_kernel
def _leaves_enough(rows, n_left):
    """Does a cut with so many rows on its left, or on its right, leave enough on either side?"""
    return rows.n_beside < n_left < rows.n - rows.n_beside


@inline_kernel
def screen_feature(screen, rows, drawn, k, slack, table):
    """Update the best two gains with the cuts of the k-th of the drawn features."""
    if not has_list(rows.lists, drawn.column[k]):
        _screen_indicator(screen, rows, drawn, k)
        return
    n_listed = n_listed_of(rows.entries, drawn.first[k], rows.n, drawn.unlisted[k])
    if n_listed < rows.n:
        _screen_listed(screen, rows, drawn, k, n_listed, table)
        return
    n_known, missing = drawn.n_known[k], drawn.missing[k]
    _sum_up_blocks(screen, rows, drawn.first[k], n_known)
    _screen_side(screen, rows, drawn, k, Side(missing, np.int64(0), 0.0, 0.0), slack, table)
    if missing == MISSING_RIGHT and n_known > 1:
        weight, total = _sums_of_missing(rows, drawn.first[k], n_known)
        side = Side(MISSING_LEFT, rows.n - n_known, weight, total)
        _screen_side(screen, rows, drawn, k, side, slack, table)


@inline_kernel
def _sum_up_blocks(screen, rows, first, n):
    """Sum up the blocks of the first n entries."""
    entries, targets, mean = rows.entries[first:], rows.targets, rows.total / rows.weight
    left = 0.0
    total = 0.0
    for b in range(n // _BLOCK):
        own = 0.0
        above = 0.0
        own_weight = 0.0
        for i in range(b * _BLOCK, (b + 1) * _BLOCK):
            row = row_at(entries, i)
            here = weight_at(targets, row)
            deviation = here * (y_at(targets, row) - mean)
            own_weight += here
            own += deviation
            above += max(deviation, 0.0)
        screen.weight[b], screen.total[b], screen.above[b] = left, total, above
        left += own_weight
        total += own
    screen.weight[n // _BLOCK], screen.total[n // _BLOCK] = left, total


@inline_kernel
def _sums_of_missing(rows, first, n_known):
    """Weight and sum of deviations of the entries behind the known ones."""
    weight, total, mean = 0.0, 0.0, rows.total / rows.weight
    for i in range(first + n_known, first + rows.n):
        row = row_at(rows.entries, i)
        weight += weight_at(rows.targets, row)
        total += weight_at(rows.targets, row) * (y_at(rows.targets, row) - mean)
    return weight, total


@inline_kernel
def _screen_side(screen, rows, drawn, k, side, slack, table):
    """Search the cuts of a feature that leave missing values on one side."""
    n_blocks = drawn.n_known[k] // _BLOCK
    n_cuts = drawn.n_known[k] - (side.missing != MISSING_RIGHT)
    best = _bound_blocks(screen, rows, drawn, k, n_blocks, side, table)
    least = best * (1.0 - 1e-9) - slack
    # In the first and the last block a side may be empty: 1 / (w (W - w)) is unbounded.
    if n_blocks > 0:
        screen.bound[0] = np.inf
        screen.bound[n_blocks - 1] = np.inf
    for b in range(n_blocks):
        if screen.bound[b] >= least:
            last = min((b + 1) * _BLOCK, n_cuts)
            _search_block(screen, rows, drawn, k, b, last, side, table)
    if n_blocks * _BLOCK < n_cuts:
        _search_block(screen, rows, drawn, k, n_blocks, n_cuts, side, table)


@inline_kernel
def _bound_blocks(screen, rows, drawn, k, n_blocks, side, table):
    """Bound the gains of the cuts of every block; return the best gain so far.

    The gain of a cut with weight w and deviations from the mean s on its left is
    s**2 / (w (W - w)), a convex function: within a box it is highest at a corner.
    """
    entries = rows.entries[drawn.first[k] :]
    best = screen.gain[0]
    per_weight = _per_weight(side.weight, rows.weight)  # left of the block
    for b in range(n_blocks):
        above = screen.above[b]
        total, before = side.total + screen.total[b], per_weight
        after, left = side.total + screen.total[b + 1], side.weight + screen.weight[b + 1]
        per_weight = _per_weight(left, rows.weight)
        largest = max(total + above, above - after)
        screen.bound[b] = largest * largest * max(before, per_weight)
        gain = after * after * per_weight
        last = (b + 1) * _BLOCK - 1
        if (
            gain > best
            and _leaves_enough(rows, side.n_before + last + 1)
            and is_cut_after(entries, last, table, drawn.column[k])
            and (not rows.is_bound or _margin(rows, drawn.direction[k], left, after) > 0.0)
        ):
            best = gain
    return best


@inline_kernel
def _per_weight(left, weight):
    """1 / (w (W - w)), or 0 where a side is empty."""
    beside = left * (weight - left)
    return 1.0 / beside if beside > 0.0 else 0.0


@inline_kernel
def _search_block(screen, rows, drawn, k, b, last, side, table):
    """Search the cuts of a block, up to the one behind entry `last - 1`."""
    entries, targets, mean = rows.entries[drawn.first[k] :], rows.targets, rows.total / rows.weight
    column = drawn.column[k]
    left = side.weight + screen.weight[b]
    total = side.total + screen.total[b]
    for i in range(b * _BLOCK, last):
        row = row_at(entries, i)
        left += weight_at(targets, row)
        total += weight_at(targets, row) * (y_at(targets, row) - mean)
        gain = total * total / (left * (rows.weight - left))
        may_be_best = gain > screen.gain[1] and _leaves_enough(rows, side.n_before + i + 1)
        if may_be_best and is_cut_after(entries, i, table, column):
            codes = code_at(entries, i), code_at(entries, i + 1)
            _keep_gain(screen, rows, drawn, k, side.missing, gain, (left, total), codes)


@inline_kernel
def _keep_gain(screen, rows, drawn, k, missing, gain, left, codes):
    """Keep a gain above the second best: of the cut with these weight and deviations on its left,
    between two codes."""
    if rows.is_bound:
        margin = _margin(rows, drawn.direction[k], *left)
        if margin == 0.0:
            screen.gain[1] = np.inf
        if margin <= 0.0:
            return
    if gain > screen.gain[0]:
        screen.gain[1] = screen.gain[0]
        screen.gain[0] = gain
        screen.best[0] = drawn.feature[k]
        screen.best[1] = np.int64(codes[0])
        screen.best[2] = np.int64(codes[1])
        screen.best[3] = missing
    else:
        screen.gain[1] = gain


@inline_kernel
def _screen_listed(screen, rows, drawn, k, n_listed, table):
    """Search the cuts of a feature from both ends, up to the code whose rows are not listed."""
    entries, targets, mean = rows.entries[drawn.first[k] :], rows.targets, rows.total / rows.weight
    unlisted, column = drawn.unlisted[k], drawn.column[k]
    for step in (1, -1):
        at, weight, total = np.int64(0) if step > 0 else n_listed - 1, 0.0, 0.0  # on this side
        code = np.int64(code_at(entries, at))
        while (code - unlisted) * step < 0:
            row, last = row_at(entries, at), code
            weight += weight_at(targets, row)
            total += weight_at(targets, row) * (y_at(targets, row) - mean)
            at += step
            code = np.int64(code_at(entries, at)) if 0 <= at < n_listed else unlisted
            code = min(code, unlisted) if step > 0 else max(code, unlisted)
            gain = total * total / (weight * (rows.weight - weight))
            low, high = min(last, code), max(last, code)
            n_here = at if step > 0 else n_listed - 1 - at
            may_be_best = gain > screen.gain[1] and _leaves_enough(rows, n_here)
            if may_be_best and low < high and is_cut(table, column, low, high):
                left = (weight, total) if step > 0 else (rows.weight - weight, -total)
                _keep_gain(screen, rows, drawn, k, drawn.missing[k], gain, left, (low, high))


@inline_kernel
def _screen_indicator(screen, rows, drawn, k):
    """Search the one cut of an indicator."""
    n_ones, weight, total = ones_of(rows.lists, drawn.column[k])
    left_weight, left = rows.weight - weight, weight * (rows.total / rows.weight) - total
    gain = left * left / (weight * left_weight)
    if gain > screen.gain[1] and _leaves_enough(rows, rows.n - n_ones):
        codes = np.int64(0), np.int64(1)
        _keep_gain(screen, rows, drawn, k, drawn.missing[k], gain, (left_weight, left), codes)


@inline_kernel
def _margin(rows, direction, left_weight, left_total):
    """How far a cut with these deviations on its left is from breaking the limits in `rows`.

    Negative if it breaks one; 0 if rounding may decide.
    """
    right_weight, mean = rows.weight - left_weight, rows.total / rows.weight
    doubt = slack_of(rows.n, 1.0)
    margin = min(left_weight, right_weight) - rows.min_weight
    least = doubt * rows.weight
    if direction != 0 and margin > least:
        left, right = mean + left_total / left_weight, mean - left_total / right_weight
        margin = min(
            (right - left) * direction,
            min(left, right) - rows.bounds.lower,
            rows.bounds.upper - max(left, right),
        )
        least = doubt * rows.y_max
    return margin if abs(margin) > least else 0.0


@inline_kernel
def is_certain(screen, slack):
    """Is the best cut better than all others, despite rounding?"""
    return screen.gain[0] > screen.gain[1] + slack
