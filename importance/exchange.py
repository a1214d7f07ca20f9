"""The expected loss of one tree when rows get the values of given donors, without shuffling.

`importance.expectation` has one set of donors for all rows, an interval of ranks. Here every
segment of rows has its own donors, so these are segments too: rows are divided at splits on what
they keep, donors at splits on what they give.
"""

from typing import NamedTuple

import numpy as np

from cart.jit import entry_kernel, kernel
from importance import losses
from importance.expectation import Stack, _divide, _fill_losses, _push


class Exchange(NamedTuple):
    """Who may get whose values: any row of a segment from any donor of it, equally likely.

    Rows and donors are positions among the rows of a tree. Rows that stand in no segment keep
    their values.
    """

    rows: np.ndarray  # int32: segment s is rows[row_start[s]:row_start[s + 1]]
    row_start: np.ndarray  # (n_segments + 1,) int64
    donors: np.ndarray  # int32: of segment s, donors[donor_start[s]:donor_start[s + 1]]
    donor_start: np.ndarray  # (n_segments + 1,) int64


def row_losses(walked, loss, n_rows):
    """Loss of every row as it is.

    Parameters
    ----------
    walked : importance.expectation.WalkedTree
    loss : see importance.losses
    n_rows : int

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    out = np.empty(n_rows)
    rows = np.arange(n_rows, dtype=np.int32)
    _fill(walked, loss, rows, _create_stack(walked), out)
    return out


def increase_by(exchange, walked, loss, row_loss, weight, columns):
    """Expected increase of the loss when rows get the values of their donors in some columns.

    Parameters
    ----------
    exchange : Exchange
    walked : importance.expectation.WalkedTree
    loss : see importance.losses
        Of `walked`'s nodes and rows.
    row_loss : ndarray of shape (n_rows,), float64
    weight : ndarray of shape (n_rows,), float64
    columns : ndarray, int64
        The columns of X that are given.

    Returns
    -------
    float
        Weighted sum over the rows.
    """
    is_given = np.isin(walked.features, columns)
    return _increase(
        walked, loss, row_loss, weight, is_given, exchange.rows.copy(), exchange.row_start,
        exchange.donors.copy(), exchange.donor_start, _create_stack(walked),
    )  # fmt: skip


def _create_stack(walked):
    return Stack.create(len(walked.left) // 2 + 2)


@entry_kernel
def _fill(walked, loss, rows, stack, out):
    _fill_losses(walked, loss, rows, stack, out)


@entry_kernel
def _increase(
    walked, loss, row_loss, weight, is_given, rows, row_start, donors, donor_start, stack
):
    total = 0.0
    for s in range(row_start.shape[0] - 1):
        first = row_start[s]
        end = row_start[s + 1]
        base = 0.0
        for i in range(first, end):
            base += weight[rows[i]] * row_loss[rows[i]]
        total -= base
        total += _expected_loss(
            walked, loss, weight, is_given, rows, first, end, donors, donor_start[s],
            donor_start[s + 1], stack,
        )  # fmt: skip
    return total


@kernel
def _expected_loss(
    walked, loss, weight, is_given, rows, start, end, donors, low, high, stack
):  # fmt: skip
    """Weighted sum over rows[start:end] of the mean loss over donors[low:high]."""
    n_donors = high - low
    total = 0.0
    height = _push(stack, 0, 0, start, end, low, high, 0)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.start[height]
        end = stack.end[height]
        low = stack.low[height]
        high = stack.high[height]
        while walked.left[node] != node and start < end and low < high:
            left = walked.left[node]
            if is_given[walked.slot[node]]:
                middle = _divide(walked, node, donors, low, high)
                if middle < high:
                    height = _push(stack, height, left + 1, start, end, middle, high, 0)
                high = middle
            else:
                middle = _divide(walked, node, rows, start, end)
                if middle < end:
                    height = _push(stack, height, left + 1, middle, end, low, high, 0)
                end = middle
            node = left
        if low < high:
            here = 0.0
            for i in range(start, end):
                here += weight[rows[i]] * losses.at(loss, node, rows[i])
            total += here * (high - low)
    return total / n_donors
