"""Expected loss of one tree when rows get the values of given donors: exact, without shuffling.

`importance.permutation.expectation` has one set of donors for all rows. Here every segment of rows
has its own donors, so both are divided on the way down: rows at splits on what they keep, donors at
splits on what they give. A pending node holds an interval of either:

    rows    [ . a b c | d e . ]   low..high of the donors stay     split on a column that is kept
    donors  [ . p q | r s t . ]   start..end of the rows stay      split on a column that is given

and in a leaf every row there has met the share of its donors that got there with it.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF
from importance.core import losses
from importance.permutation.prepared_tree import PreparedTree, divide, fill_losses, test_of


class DonorSegments(NamedTuple):
    """Who may get whose values: any row of a segment from any donor of it, equally likely.

    Rows and donors are positions among the rows of a tree. Rows that stand in no segment keep
    their values.
    """

    rows: np.ndarray  # int32: segment s is rows[row_start[s]:row_start[s + 1]]
    row_start: np.ndarray  # (n_segments + 1,) int64
    donors: np.ndarray  # int32: of segment s, donors[donor_start[s]:donor_start[s + 1]]
    donor_start: np.ndarray  # (n_segments + 1,) int64


def row_losses(prepared: PreparedTree, loss: losses.Loss, n_rows: int) -> np.ndarray:
    """Loss of every row as it is, (n_rows,); the parameters are those of `increase_by`."""
    out = np.empty(n_rows)
    rows = np.arange(n_rows, dtype=np.uint32)
    _fill(prepared, loss, rows, np.zeros((len(prepared.left), 2), np.int32), out)
    return out


def increase_by(
    segments: DonorSegments, prepared: PreparedTree, loss: losses.Loss, row_loss: np.ndarray,
    weight: np.ndarray, columns: np.ndarray,
) -> float:  # fmt: skip
    """Expected increase of the loss when rows get the values of their donors in some columns of X.

    A weighted sum over the rows; `row_loss` is the loss of each as it is, see `row_losses`.
    """
    is_given = np.isin(prepared.groups, columns)
    own = segments._replace(rows=segments.rows.copy(), donors=segments.donors.copy())
    pending = np.empty((len(prepared.left) // 2 + 2, 5), np.int32)  # see `_push`
    return _increase(prepared, loss, row_loss, weight, is_given, own, pending)


@entry_kernel
def _fill(prepared, loss, rows, reached, out):
    fill_losses(prepared, loss, rows, reached, out)


@entry_kernel
def _increase(prepared, loss, row_loss, weight, is_given, segments, pending):
    total = 0.0
    for s in range(segments.row_start.shape[0] - 1):
        base = 0.0
        for i in range(segments.row_start[s], segments.row_start[s + 1]):
            base += weight[segments.rows[i]] * row_loss[segments.rows[i]]
        total -= base
        total += _expected_loss(prepared, loss, weight, is_given, segments, s, pending)
    return total


@inline_kernel
def _push(pending, height, node, start, end, low, high):
    """Write a node, with where its rows and its donors begin and end, on top of the stack."""
    pending[height, 0] = node
    pending[height, 1], pending[height, 2] = start, end
    pending[height, 3], pending[height, 4] = low, high
    return height + 1


@kernel
def _expected_loss(prepared, loss, weight, is_given, segments, s, pending):
    """Weighted sum over the rows of a segment of the mean loss over its donors."""
    rows = segments.rows
    donors = segments.donors
    n_donors = segments.donor_start[s + 1] - segments.donor_start[s]
    total = 0.0
    height = _push(
        pending, 0, 0, segments.row_start[s], segments.row_start[s + 1], segments.donor_start[s],
        segments.donor_start[s + 1],
    )  # fmt: skip
    while height > 0:
        height -= 1
        node, start, end, low, high = pending[height]
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
