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


class DonorSegments(NamedTuple):
    """Who may get whose values: any row of a segment from any donor of it, equally likely.

    Rows and donors are positions among the rows of a tree. Rows that stand in no segment keep
    their values.
    """

    rows: np.ndarray  # int32: segment s is rows[row_start[s]:row_start[s + 1]]
    row_start: np.ndarray  # (n_segments + 1,) int64
    donors: np.ndarray  # int32: of segment s, donors[donor_start[s]:donor_start[s + 1]]
    donor_start: np.ndarray  # (n_segments + 1,) int64


class PendingNodes(NamedTuple):
    """Nodes that wait, each with its rows and its donors."""

    node: np.ndarray  # int32
    start: np.ndarray  # int32
    end: np.ndarray  # int32
    low: np.ndarray  # int32
    high: np.ndarray  # int32

    @classmethod
    def create(cls, prepared):
        capacity = len(prepared.left) // 2 + 2
        return cls(*(np.empty(capacity, np.int32) for _ in cls._fields))


def row_losses(prepared, loss, n_rows):
    """Loss of every row as it is.

    Parameters
    ----------
    prepared : importance.permutation.prepared_tree.PreparedTree
    loss : see importance.core.losses
    n_rows : int

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    out = np.empty(n_rows)
    rows = np.arange(n_rows, dtype=np.uint32)
    _fill(prepared, loss, rows, np.zeros((len(prepared.left), 2), np.int32), out)
    return out


def increase_by(segments, prepared, loss, row_loss, weight, columns):
    """Expected increase of the loss when rows get the values of their donors in some columns.

    Parameters
    ----------
    segments : Exchange
    prepared : importance.permutation.prepared_tree.PreparedTree
    loss : see importance.core.losses
        Of `prepared`'s nodes and rows.
    row_loss : ndarray of shape (n_rows,), float64
    weight : ndarray of shape (n_rows,), float64
    columns : ndarray, int64
        The columns of X that are given.

    Returns
    -------
    float
        Weighted sum over the rows.
    """
    is_given = np.isin(prepared.groups, columns)
    return _increase(
        prepared, loss, row_loss, weight, is_given, segments.rows.copy(), segments.row_start,
        segments.donors.copy(), segments.donor_start, PendingNodes.create(prepared),
    )  # fmt: skip


@entry_kernel
def _fill(prepared, loss, rows, reached, out):
    fill_losses(prepared, loss, rows, reached, out)


@entry_kernel
def _increase(
    prepared, loss, row_loss, weight, is_given, rows, row_start, donors, donor_start, pending
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
            prepared, loss, weight, is_given, rows, first, end, donors, donor_start[s],
            donor_start[s + 1], pending,
        )  # fmt: skip
    return total


@inline_kernel
def _push(pending, height, node, start, end, low, high):
    pending.node[height] = node
    pending.start[height] = start
    pending.end[height] = end
    pending.low[height] = low
    pending.high[height] = high
    return height + 1


@kernel
def _expected_loss(
    prepared, loss, weight, is_given, rows, start, end, donors, low, high, pending
):  # fmt: skip
    """Weighted sum over rows[start:end] of the mean loss over donors[low:high]."""
    n_donors = high - low
    total = 0.0
    height = _push(pending, 0, 0, start, end, low, high)
    while height > 0:
        height -= 1
        node = pending.node[height]
        start = pending.start[height]
        end = pending.end[height]
        low = pending.low[height]
        high = pending.high[height]
        while prepared.left[node] != LEAF and start < end and low < high:
            right = prepared.right[node]
            if is_given[prepared.used_index[node]]:
                middle = divide(test_of(prepared, node), donors, low, high)
                if middle < high:
                    height = _push(pending, height, right, start, end, middle, high)
                high = middle
            else:
                middle = divide(test_of(prepared, node), rows, start, end)
                if middle < end:
                    height = _push(pending, height, right, middle, end, low, high)
                end = middle
            node = prepared.left[node]
        if low < high:
            here = 0.0
            for i in range(start, end):
                here += weight[rows[i]] * losses.at(loss, node, rows[i])
            total += here * (high - low)
    return total / n_donors
