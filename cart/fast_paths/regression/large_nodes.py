"""Large nodes of squared error: their cuts are screened, their features shared among threads.

Most cuts need no sum in scikit-learn's order. A feature's rows, sorted, are summed up in blocks.
Inside a block the weight left of a cut is at least what lies left of the block, at most that and
the block's; the same holds of deviations. This bounds the gain of its cuts, and only blocks whose
bound reaches the best gain are searched:

    rows    [ ........ | ........ | ........ | ........ | ... ]
    bound      inf        3.1        9.4        2.2            gain at the edges: 2.9 5.0 1.8
                                      ^ searched: 9.4 >= 5.0   (first and last: always)

If no other gain comes so near the best one that rounding might decide between them, that cut is
scikit-learn's, in whatever order it sums up.

A cut that breaks a limit of weight or a monotonic constraint has no gain; where rounding may decide
whether it does, nothing is certain.

Threads that have no tree to grow share the features of nodes of many rows with those that have:

    owner    draws | screens 5, 3, 1, 0 | cut, samples | divides 5, 4, 2, 1 | children ...
    helper         | screens 4, 2       |              | divides 3, 0       |

Each thread screens with room of its own and keeps the best two gains of the features that it has
taken; the best two of these are the node's, whoever has found them. Rows along a feature are
divided in their order, as the owner has marked them. So the tree does not depend on who helps.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import SearchedRows, is_cut_after
from cart.fast_paths.regression.cut_score import slack_of, weight_at, y_at
from cart.fast_paths.regression.sorted_rows import (
    code_at,
    divide_feature,
    divide_rows,
    has_all_entries,
    row_at,
)
from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.primitives.crew import Crew, finish_item, open_job, take_item, wait_for_all
from cart.splitting.splitter import Bounds

_ROWS_MIN = 128
_BLOCK = 8  # rows
SHARED_MIN = 1 << 13  # rows: then an item takes longer than to hand it over
_MOST_HELPERS = 63
_SCREEN, _DIVIDE = 0, 1
_LOOKS = 1 << 14  # of a helper, for an item, before it sleeps
_LINE = 8


class Screen(NamedTuple):
    """The blocks of a feature, and the best cut of a node so far."""

    weight: np.ndarray  # (n_blocks + 1,) float64: left of every block
    total: np.ndarray  # (n_blocks + 1,) float64: deviations from the mean, left of every block
    bound: np.ndarray  # (n_blocks,) float64: no cut in the block has more gain
    best: np.ndarray  # (4,) int64: feature, left code, right code, where missing values go
    gain: np.ndarray  # (2,) float64: of the best cut, and of the best other

    @classmethod
    def create(cls, n_rows):
        n_blocks = n_rows // _BLOCK + 1
        return cls(
            *(np.empty(n_blocks + 1) for _ in range(3)),
            np.empty(4, np.int64),
            np.empty(2),
        )


@inline_kernel
def is_worth_screening(rows, slack, impurity):
    return rows.n_beside == 0 and rows.n >= _ROWS_MIN and slack < 0.01 * impurity


@inline_kernel
def begin_screening(screen):
    screen.gain[0] = 0.0
    screen.gain[1] = 0.0


@inline_kernel
def screen_feature(screen, rows, drawn, k, slack, table):
    """Find the best two gains along the k-th of the drawn features."""
    n = rows.n
    n_blocks = n // _BLOCK
    best = _bound_blocks(screen, rows, drawn, k, table)
    least = best * (1.0 - 1e-9) - slack
    # In the first and the last block a side may be empty: 1 / (w (W - w)) is unbounded.
    screen.bound[0] = np.inf
    screen.bound[n_blocks - 1] = np.inf
    for b in range(n_blocks):
        if screen.bound[b] >= least:
            last = min((b + 1) * _BLOCK, n - 1)
            _search_block(screen, rows, drawn, k, b, last, table)
    if n_blocks * _BLOCK < n - 1:
        _search_block(screen, rows, drawn, k, n_blocks, n - 1, table)


@inline_kernel
def _bound_blocks(screen, rows, drawn, k, table):
    """Sum up the blocks and bound the gains of their cuts; return the best gain between blocks.

    The gain of a cut with weight w and deviations from the mean s on its left is
    s**2 / (w (W - w)), which is convex: in a box it is highest at a corner.
    """
    entries, targets, mean = rows.entries[drawn.first[k] :], rows.targets, rows.total / rows.weight
    left = 0.0
    total = 0.0
    per_weight = 0.0  # 1 / (w (W - w)) left of the block
    best = screen.gain[0]
    for b in range(rows.n // _BLOCK):
        start = b * _BLOCK
        own = 0.0
        above = 0.0
        own_weight = 0.0
        for i in range(start, start + _BLOCK):
            row = row_at(entries, i)
            here = weight_at(targets, row)
            deviation = here * (y_at(targets, row) - mean)
            own_weight += here
            own += deviation
            above += max(deviation, 0.0)
        screen.weight[b] = left
        screen.total[b] = total
        largest = max(total + above, above - own - total)
        before = per_weight
        left += own_weight
        total += own
        right = rows.weight - left
        per_weight = 1.0 / (left * right) if right > 0.0 else 0.0
        screen.bound[b] = largest * largest * max(before, per_weight)
        gain = total * total * per_weight
        last = start + _BLOCK - 1
        if (
            gain > best
            and last < rows.n - 1
            and is_cut_after(entries, last, table, drawn.column[k])
            and (not rows.is_bound or _margin(rows, drawn.direction[k], left, total) > 0.0)
        ):
            best = gain
    screen.weight[rows.n // _BLOCK] = left
    screen.total[rows.n // _BLOCK] = total
    return best


@inline_kernel
def _search_block(screen, rows, drawn, k, b, last, table):
    """Search the cuts of a block, up to the one behind entry `last - 1`."""
    entries, targets, mean = rows.entries[drawn.first[k] :], rows.targets, rows.total / rows.weight
    column = drawn.column[k]
    left = screen.weight[b]
    total = screen.total[b]
    for i in range(b * _BLOCK, last):
        row = row_at(entries, i)
        left += weight_at(targets, row)
        total += weight_at(targets, row) * (y_at(targets, row) - mean)
        gain = total * total / (left * (rows.weight - left))
        if gain > screen.gain[1] and is_cut_after(entries, i, table, column):
            if rows.is_bound:
                margin = _margin(rows, drawn.direction[k], left, total)
                if margin == 0.0:
                    screen.gain[1] = np.inf
                if margin <= 0.0:
                    continue
            if gain > screen.gain[0]:
                screen.gain[1] = screen.gain[0]
                screen.gain[0] = gain
                screen.best[0] = drawn.feature[k]
                screen.best[1] = np.int64(code_at(entries, i))
                screen.best[2] = np.int64(code_at(entries, i + 1))
                screen.best[3] = drawn.missing[k]
            else:
                screen.gain[1] = gain


@inline_kernel
def _margin(rows, direction, left_weight, left_total):
    """How far a cut is from breaking what `rows` ask of it, with these deviations on its left.

    Negative if it does; 0 where rounding may decide.
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
    """Is the best cut better than all others, whatever is rounded?"""
    return screen.gain[0] > screen.gain[1] + slack


# -------------------------------------------------------------------------------- sharing


class SharedNode(NamedTuple):
    """The node at hand, as helpers see it, and what each of them has found."""

    crew: Crew
    whole: np.ndarray  # (8,) int64: what is done; and what it is done with, see below
    numbers: np.ndarray  # (8,) float64
    best: np.ndarray  # (n_helpers, 8) int64: see Screen
    gain: np.ndarray  # (n_helpers, 8) float64

    @classmethod
    def create(cls):
        return cls(
            Crew.create(), np.zeros(_LINE, np.int64), np.zeros(_LINE),
            np.zeros((_MOST_HELPERS, _LINE), np.int64), np.zeros((_MOST_HELPERS, _LINE)),
        )  # fmt: skip

    def screen_of(self, helper, n_rows):
        """Room for a helper to screen features."""
        return Screen.create(n_rows)._replace(best=self.best[helper], gain=self.gain[helper])


@kernel
def screen_features(shared, screen, rows, drawn, n_drawn, slack, table):
    """Screen the first of the drawn features; see `screening.screen_feature`."""
    if rows.n < SHARED_MIN:
        for k in range(n_drawn):
            screen_feature(screen, rows, drawn, k, slack, table)
        return
    whole, numbers = shared.whole, shared.numbers
    whole[0], whole[1], whole[2], whole[3] = _SCREEN, rows.n, rows.n_beside, rows.is_bound
    numbers[0], numbers[1], numbers[2], numbers[3] = rows.weight, rows.total, rows.rest, slack
    numbers[4], numbers[5], numbers[6] = rows.min_weight, rows.bounds.lower, rows.bounds.upper
    numbers[7] = rows.y_max
    shared.gain[:] = 0.0
    open_job(shared.crew, n_drawn)
    k = take_item(shared.crew)
    while k >= 0:
        screen_feature(screen, rows, drawn, k, slack, table)
        finish_item(shared.crew)
        k = take_item(shared.crew)
    wait_for_all(shared.crew, n_drawn)
    for helper in range(shared.gain.shape[0]):
        _join(screen, shared.gain[helper], shared.best[helper])


@inline_kernel
def _join(screen, gain, best):
    """Keep the best two gains of the owner and a helper."""
    first, second = screen.gain[0], max(screen.gain[1], gain[1])
    if gain[0] > first:
        screen.gain[0] = gain[0]
        for k in range(screen.best.shape[0]):
            screen.best[k] = best[k]
        second = max(second, first)
    else:
        second = max(second, gain[0])
    screen.gain[1] = second


@kernel
def divide_features(shared, rows, table, features, node, cut, n_left, is_left):
    """Divide the rows of a node; see `sorted_rows.divide_rows`."""
    if node.n < SHARED_MIN or not has_all_entries(rows):
        divide_rows(rows, table, features, node, cut, n_left, is_left)
        return
    whole, n = shared.whole, features.shape[0]
    whole[0], whole[1], whole[2] = _DIVIDE, node.n, node.start
    whole[3], whole[4], whole[5] = node.depth, n_left, n
    open_job(shared.crew, n)
    j = take_item(shared.crew)
    while j >= 0:
        column = table.columns[features[j]]
        divide_feature(rows, column, node.start, node.n, node.depth, n_left, is_left)
        finish_item(shared.crew)
        j = take_item(shared.crew)
    wait_for_all(shared.crew, n)


def helper_of(number, table, criterion, scratch, drawn, features):
    """A function that does a share of the work of a tree's node, see `FastPath.helper`.

    Parameters
    ----------
    number : int
        Each helper has its own.
    table, criterion, scratch, drawn
        Those of the growth.
    features : ndarray of shape (n_features,), int64
        Of its draw, which change as it goes on.
    """
    if number >= _MOST_HELPERS:
        return None
    screen = scratch.shared.screen_of(number, len(scratch.is_left))
    return partial(_help_out, table, criterion, scratch, drawn, features, screen)


@entry_kernel
def _help_out(table, criterion, scratch, drawn, features, screen):
    """Take items of the node at hand until there are none for a while; were there any?"""
    shared, has_helped = scratch.shared, False
    for _ in range(_LOOKS):
        item = take_item(shared.crew)
        if item < 0:
            continue
        has_helped = True
        whole = shared.whole
        if whole[0] == _SCREEN:
            slack = shared.numbers[3]
            rows = _rows_of(shared, criterion, scratch)
            screen_feature(screen, rows, drawn, item, slack, table)
        else:
            first = features.shape[0] - whole[5]  # those before are constant
            column = table.columns[features[first + item]]
            divide_feature(
                scratch.rows, column, whole[2], whole[1], whole[3], whole[4], scratch.is_left
            )
        finish_item(shared.crew)
    return has_helped


@inline_kernel
def _rows_of(shared, criterion, scratch):
    """What the owner searches."""
    whole, numbers = shared.whole, shared.numbers
    return SearchedRows(
        criterion, scratch.rows.entries, scratch.targets, whole[1], whole[2], numbers[0],
        numbers[1], numbers[2], whole[3] != 0, numbers[4], Bounds(numbers[5], numbers[6]),
        numbers[7],
    )  # fmt: skip
