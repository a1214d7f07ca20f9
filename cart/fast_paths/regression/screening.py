"""Screen the cuts of large nodes by squared error: most need no sum in scikit-learn's order.

A feature's rows, in order, are summed up in blocks. Inside a block what lies left of a cut is at
least what lies left of the block, and at most that and the block; this bounds what a cut can reach.
Only blocks whose bound reaches the best cut are looked at. If no other cut comes so near the best
one that rounding might decide between them, it is scikit-learn's, in whatever order it sums up.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import is_cut_after
from cart.fast_paths.regression.cut_score import weight_at, y_at
from cart.fast_paths.regression.sorted_rows import code_at, row_at
from cart.jit.decorators import inline_kernel

_ROWS_MIN = 128
_BLOCK = 8  # rows
_UNIT = 2.0**-53  # of double precision: half a unit in the last place


class Screen(NamedTuple):
    """The blocks of a feature, and the best cut of a node so far."""

    weight: np.ndarray  # (n_blocks + 1,) float64: left of every block
    total: np.ndarray  # (n_blocks + 1,) float64: deviations from the mean, left of every block
    bound: np.ndarray  # (n_blocks,) float64: no cut in the block has more gain
    best: np.ndarray  # (3,) int64: feature, left code and right code
    gain: np.ndarray  # (2,) float64: of the best cut, and of the best other

    @classmethod
    def create(cls, n_rows):
        n_blocks = n_rows // _BLOCK + 1
        return cls(
            *(np.empty(n_blocks + 1) for _ in range(3)),
            np.empty(3, np.int64),
            np.empty(2),
        )


@inline_kernel
def is_worth_screening(n, slack, impurity):
    return n >= _ROWS_MIN and slack < 0.01 * impurity


@inline_kernel
def slack_of(n, farthest):
    """How far rounding may move gains apart, of n rows whose targets are at most `farthest`
    from 0.

    A sum of n terms is off by n roundings of the sum of their sizes, which are no more than
    `farthest` times the weight; a score has a few such sums, times a mean.
    """
    return 64.0 * _UNIT * np.float64(n + 8) * farthest * farthest


@inline_kernel
def begin_screening(screen):
    screen.gain[0] = 0.0
    screen.gain[1] = 0.0


@inline_kernel
def screen_feature(screen, entries, targets, n, weight, mean, slack, table, feature, column):
    """Find the best cuts of entries[:n].

    The gain of a cut with weight w and deviations from the mean s on its left is
    s**2 / (w (W - w)), which is convex: in a box it is highest at a corner.
    """
    n_blocks = n // _BLOCK
    left = 0.0
    total = 0.0
    per_weight = 0.0  # 1 / (w (W - w)) left of the block
    best = screen.gain[0]
    for b in range(n_blocks):
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
        farthest = max(total + above, above - own - total)
        before = per_weight
        left += own_weight
        total += own
        right = weight - left
        per_weight = 1.0 / (left * right) if right > 0.0 else 0.0
        screen.bound[b] = farthest * farthest * max(before, per_weight)
        gain = total * total * per_weight
        last = start + _BLOCK - 1
        if gain > best and last < n - 1 and is_cut_after(entries, last, table, column):
            best = gain
    screen.weight[n_blocks] = left
    screen.total[n_blocks] = total
    least = best * (1.0 - 1e-9) - slack
    screen.bound[0] = np.inf  # beside nothing, the factor has no bound
    screen.bound[n_blocks - 1] = np.inf
    for b in range(n_blocks):
        if screen.bound[b] >= least:
            last = min((b + 1) * _BLOCK, n - 1)
            _search_block(screen, entries, targets, b, last, weight, mean, table, feature, column)
    last = n_blocks * _BLOCK
    if last < n - 1:
        _search_block(
            screen, entries, targets, n_blocks, n - 1, weight, mean, table, feature, column
        )


@inline_kernel
def _search_block(screen, entries, targets, b, last, weight, mean, table, feature, column):
    left = screen.weight[b]
    total = screen.total[b]
    for i in range(b * _BLOCK, last):
        row = row_at(entries, i)
        left += weight_at(targets, row)
        total += weight_at(targets, row) * (y_at(targets, row) - mean)
        gain = total * total / (left * (weight - left))
        if gain > screen.gain[1] and is_cut_after(entries, i, table, column):
            if gain > screen.gain[0]:
                screen.gain[1] = screen.gain[0]
                screen.gain[0] = gain
                screen.best[0] = feature
                screen.best[1] = np.int64(code_at(entries, i))
                screen.best[2] = np.int64(code_at(entries, i + 1))
            else:
                screen.gain[1] = gain


@inline_kernel
def is_certain(screen, slack):
    """Is the best cut better than all others, whatever is rounded?"""
    return screen.gain[0] > screen.gain[1] + slack
