"""Let threads that have no tree to grow help in large nodes: the features are shared out.

    owner    draws | screens 5, 3, 1, 0 | cut, samples | divides 5, 4, 2, 1 | children ...
    helper         | screens 4, 2       |              | divides 3, 0       |

The owner is the thread that grows the tree. Each thread screens with scratch memory of its own and
keeps the best two gains of the features that it took; the best two of all threads are the node's.
Rows along a feature are divided in their order, by the owner's marks. So the tree does not depend
on who helps.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.best_cut import SearchedRows
from cart.fast_paths.regression.large_nodes.screening import Screen, screen_feature
from cart.fast_paths.regression.sorted_rows import divide_feature, divide_rows, has_all_entries
from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.primitives.crew import Crew, finish_item, open_job, take_item, wait_for_all
from cart.splitting.splitter import Bounds

SHARED_MIN = 1 << 13  # rows of a shared node: enough for an item to outweigh its handover
_MOST_HELPERS = 63
_SCREEN, _DIVIDE = 0, 1
_LOOKS = 1 << 14  # how often a helper looks for an item before it sleeps
_LINE = 8  # numbers in a cache line: helpers do not write to the same one


class SharedNode(NamedTuple):
    """The current node as helpers see it, and what each of them has found."""

    crew: Crew
    whole: np.ndarray  # (8,) int64: _SCREEN or _DIVIDE, then its arguments that are whole numbers
    numbers: np.ndarray  # (8,) float64: the other arguments, see `_offer_screening`
    best: np.ndarray  # (n_helpers, 8) int64: as in Screen
    gain: np.ndarray  # (n_helpers, 8) float64: as in Screen

    @classmethod
    def create(cls):
        return cls(
            Crew.create(), np.zeros(_LINE, np.int64), np.zeros(_LINE),
            np.zeros((_MOST_HELPERS, _LINE), np.int64), np.zeros((_MOST_HELPERS, _LINE)),
        )  # fmt: skip


@kernel
def screen_features(shared, screen, rows, drawn, n_drawn, slack, table):
    """Screen the first `n_drawn` of the drawn features; see `screening.screen_feature`."""
    is_shared = rows.n >= SHARED_MIN
    if is_shared:
        _offer_screening(shared, rows, slack, n_drawn)
    k = take_item(shared.crew) if is_shared else np.int64(0)
    while 0 <= k < n_drawn:
        screen_feature(screen, rows, drawn, k, slack, table)
        k = _following(shared.crew, k, is_shared)
    if is_shared:
        wait_for_all(shared.crew, n_drawn)
        for helper in range(shared.gain.shape[0]):
            _join(screen, shared.gain[helper], shared.best[helper])


@inline_kernel
def _offer_screening(shared, rows, slack, n_drawn):
    """Offer helpers to screen `n_drawn` features of the node."""
    whole, numbers = shared.whole, shared.numbers
    whole[0], whole[1], whole[2], whole[3] = _SCREEN, rows.n, rows.n_beside, rows.is_bound
    numbers[0], numbers[1], numbers[2], numbers[3] = rows.weight, rows.total, rows.rest, slack
    numbers[4], numbers[5], numbers[6] = rows.min_weight, rows.bounds.lower, rows.bounds.upper
    numbers[7] = rows.y_max
    shared.gain[:] = 0.0
    open_job(shared.crew, n_drawn)


@inline_kernel
def _following(crew, k, is_shared):
    """Finish the k-th item; return the item to do next."""
    if is_shared:
        finish_item(crew)
        return take_item(crew)
    return k + 1


@inline_kernel
def _join(screen, gain, best):
    """Keep in `screen`, the owner's, the best two of its own gains and a helper's."""
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
    """Return a function that does a share of the work on a tree's nodes, see `FastPath.helper`.

    Parameters
    ----------
    number : int
        Of the helper; each has its own.
    table, criterion, scratch, drawn
        Those of the growth.
    features : ndarray of shape (n_features,), int64
        Of the growth's draw, which goes on changing them.
    """
    if number >= _MOST_HELPERS:
        return None
    best, gain = scratch.shared.best[number], scratch.shared.gain[number]
    screen = Screen.create(len(scratch.is_left))._replace(best=best, gain=gain)
    return partial(_help_out, table, criterion, scratch, drawn, features, screen)


@entry_kernel
def _help_out(table, criterion, scratch, drawn, features, screen):
    """Take items of the current node until none come for a while; return whether any came."""
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
    """The owner's SearchedRows."""
    whole, numbers = shared.whole, shared.numbers
    return SearchedRows(
        criterion, scratch.rows.entries, scratch.targets, whole[1], whole[2], numbers[0],
        numbers[1], numbers[2], whole[3] != 0, numbers[4], Bounds(numbers[5], numbers[6]),
        numbers[7], scratch.rows,
    )  # fmt: skip
