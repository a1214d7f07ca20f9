"""The expected loss of one tree when rows get the values of given donors, without shuffling.

`importance.permutation.expectation` has one set of donors for all rows. Here every
segment of rows has its own donors, so these are segments too: rows are divided at splits on what
they keep, donors at splits on what they give.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF
from importance.core import losses
from importance.permutation.prepared_tree import divide, fill_losses, test_of


class Exchange(NamedTuple):
    """Who may get whose values: any row of a segment from any donor of it, equally likely.

    Rows and donors are positions among the rows of a tree. Rows that stand in no segment keep
    their values.
    """

    rows: np.ndarray  # int32: segment s is rows[row_start[s]:row_start[s + 1]]
    row_start: np.ndarray  # (n_segments + 1,) int64
    donors: np.ndarray  # int32: of segment s, donors[donor_start[s]:donor_start[s + 1]]
    donor_start: np.ndarray  # (n_segments + 1,) int64


class Stack(NamedTuple):
    """Nodes that wait, each with its rows and its donors."""

    node: np.ndarray  # int32
    start: np.ndarray  # int32
    end: np.ndarray  # int32
    low: np.ndarray  # int32
    high: np.ndarray  # int32

    @classmethod
    def create(cls, walked):
        capacity = len(walked.left) // 2 + 2
        return cls(*(np.empty(capacity, np.int32) for _ in cls._fields))


def row_losses(walked, loss, n_rows):
    """Loss of every row as it is.

    Parameters
    ----------
    walked : importance.permutation.prepared_tree.WalkedTree
    loss : see importance.core.losses
    n_rows : int

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    out = np.empty(n_rows)
    rows = np.arange(n_rows, dtype=np.uint32)
    _fill(walked, loss, rows, np.zeros((len(walked.left), 2), np.int32), out)
    return out


def increase_by(exchange, walked, loss, row_loss, weight, columns):
    """Expected increase of the loss when rows get the values of their donors in some columns.

    Parameters
    ----------
    exchange : Exchange
    walked : importance.permutation.prepared_tree.WalkedTree
    loss : see importance.core.losses
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
    is_given = np.isin(walked.groups, columns)
    return _increase(
        walked, loss, row_loss, weight, is_given, exchange.rows.copy(), exchange.row_start,
        exchange.donors.copy(), exchange.donor_start, Stack.create(walked),
    )  # fmt: skip


@entry_kernel
def _fill(walked, loss, rows, reached, out):
    fill_losses(walked, loss, rows, reached, out)


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


@inline_kernel
def _push(stack, height, node, start, end, low, high):
    stack.node[height] = node
    stack.start[height] = start
    stack.end[height] = end
    stack.low[height] = low
    stack.high[height] = high
    return height + 1


@kernel
def _expected_loss(
    walked, loss, weight, is_given, rows, start, end, donors, low, high, stack
):  # fmt: skip
    """Weighted sum over rows[start:end] of the mean loss over donors[low:high]."""
    n_donors = high - low
    total = 0.0
    height = _push(stack, 0, 0, start, end, low, high)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.start[height]
        end = stack.end[height]
        low = stack.low[height]
        high = stack.high[height]
        while walked.left[node] != LEAF and start < end and low < high:
            right = walked.right[node]
            if is_given[walked.slot[node]]:
                middle = divide(test_of(walked, node), donors, low, high)
                if middle < high:
                    height = _push(stack, height, right, start, end, middle, high)
                high = middle
            else:
                middle = divide(test_of(walked, node), rows, start, end)
                if middle < end:
                    height = _push(stack, height, right, middle, end, low, high)
                end = middle
            node = walked.left[node]
        if low < high:
            here = 0.0
            for i in range(start, end):
                here += weight[rows[i]] * losses.at(loss, node, rows[i])
            total += here * (high - low)
    return total / n_donors
