"""Exact expected loss of one tree when rows get the values of given donors, without shuffling.

`importance.permutation.expectation` has one set of donors for all rows. Here every segment of rows
has its own donors, so both are divided on the way down: rows at splits on columns that they keep,
donors at splits on columns that they give. A pending node holds an interval of each:

    rows    [ . a b c | d e . ]   a split on a column that is kept divides the rows
    donors  [ . p q | r s t . ]   a split on a column that is given divides the donors

In a leaf, each row is counted with the share of its donors that got there with it. If the
donors give one column, they are sorted by its value: a split divides them where a binary search
ends, and donors whose value is missing stay together.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF
from importance.core import losses
from importance.permutation.prepared_tree import PreparedTree, divide, fill_losses, test_of

_LONG = 16  # average number of donors per segment from which sorting pays off


class DonorSegments(NamedTuple):
    """Rows and their donors: a row gets the value of any donor of its segment, equally likely.

    Rows and donors are positions among the rows of a tree. Rows that are in no segment keep their
    values.
    """

    rows: np.ndarray  # int32: segment s is rows[row_start[s]:row_start[s + 1]]
    row_start: np.ndarray  # (n_segments + 1,) int64
    donors: np.ndarray  # int32: of segment s, donors[donor_start[s]:donor_start[s + 1]]
    donor_start: np.ndarray  # (n_segments + 1,) int64


def row_losses(prepared: PreparedTree, loss: losses.Loss, n_rows: int) -> np.ndarray:
    """Loss of every row as it is, (n_rows,); parameters as in `increase_by`."""
    out = np.empty(n_rows)
    rows = np.arange(n_rows, dtype=np.uint32)
    _fill(prepared, loss, rows, np.zeros((len(prepared.left), 2), np.int32), out)
    return out


class _Given(NamedTuple):
    """The columns that donors give, and the order of the donors."""

    columns: np.ndarray  # (n_used,) bool: whether a column that the tree uses is given
    is_sorted: bool  # whether each segment's donors are sorted by the column, missing values last
    n_missing: np.ndarray  # (n_segments,) int64: number of missing values, if sorted


def increase_by(
    segments: DonorSegments, prepared: PreparedTree, loss: losses.Loss, row_loss: np.ndarray,
    weight: np.ndarray, columns: np.ndarray,
) -> float:  # fmt: skip
    """Expected increase of the loss when rows get their donors' values in some columns of X.

    The result is a weighted sum over the rows; `row_loss` is the loss of each row as it is, see
    `row_losses`.
    """
    given = np.isin(prepared.groups, columns)
    donors, n_segments = segments.donors.copy(), len(segments.donor_start) - 1
    n_missing = np.zeros(n_segments, np.int64)
    is_sorted = _is_worth_sorting(segments, prepared, given)
    if is_sorted:
        of_segment = np.repeat(np.arange(n_segments), np.diff(segments.donor_start))
        values = prepared.columns[given][0, donors]
        donors = donors[np.lexsort((values, of_segment))]
        n_missing = np.bincount(of_segment[np.isnan(values)], minlength=n_segments)
    own = segments._replace(rows=segments.rows.copy(), donors=donors)
    pending = np.empty((len(prepared.left) // 2 + 2, 6), np.int32)  # see `_push`
    of_donors = _Given(given, is_sorted, n_missing)
    return _increase(prepared, loss, row_loss, weight, of_donors, own, pending)


def _is_worth_sorting(segments, prepared, given):
    """Whether donors give just one column, split only at thresholds, and are many."""
    asks_for_subset = given[prepared.used_index] & (prepared.list_start >= 0)
    is_long = len(segments.donors) >= _LONG * (len(segments.donor_start) - 1)
    return bool(is_long and np.count_nonzero(given) == 1 and not asks_for_subset.any())


@entry_kernel
def _fill(prepared, loss, rows, reached, out):
    fill_losses(prepared, loss, rows, reached, out)


@entry_kernel
def _increase(prepared, loss, row_loss, weight, given, segments, pending):
    total = 0.0
    for s in range(segments.row_start.shape[0] - 1):
        base = 0.0
        for i in range(segments.row_start[s], segments.row_start[s + 1]):
            base += weight[segments.rows[i]] * row_loss[segments.rows[i]]
        total -= base
        total += _expected_loss(prepared, loss, weight, given, segments, s, pending)
    return total


@inline_kernel
def _push(pending, height, node, rows, donors):
    """Push a node, its rows (start, end) and donors (low, high, n_missing); return the height."""
    pending[height, 0] = node
    pending[height, 1], pending[height, 2] = rows
    pending[height, 3], pending[height, 4], pending[height, 5] = donors
    return height + 1


@kernel
def _expected_loss(prepared, loss, weight, given, segments, s, pending):
    """Weighted sum, over the rows of a segment, of the mean loss over its donors."""
    rows, donors = segments.rows, segments.donors
    low, high, n_missing = segments.donor_start[s], segments.donor_start[s + 1], given.n_missing[s]
    n_donors = high - low
    start, end = segments.row_start[s], segments.row_start[s + 1]
    total = 0.0
    height = _push(pending, 0, 0, (start, end), (low, high - n_missing, n_missing))
    while height > 0:
        height -= 1
        node, start, end, low, high, n_missing = pending[height]
        while prepared.left[node] != LEAF and start < end and high - low + n_missing > 0:
            right, test = prepared.right[node], test_of(prepared, node)
            if given.columns[prepared.used_index[node]]:
                middle = _part_donors(test, donors, low, high, given.is_sorted)
                missing_right = 0 if test.missing_left else n_missing
                if middle < high or missing_right > 0:
                    there = middle, high, missing_right
                    height = _push(pending, height, right, (start, end), there)
                high, n_missing = middle, n_missing - missing_right
            else:
                middle = divide(test, rows, start, end)
                if middle < end:
                    there = low, high, n_missing
                    height = _push(pending, height, right, (middle, end), there)
                end = middle
            node = prepared.left[node]
        n_here = high - low + n_missing
        if n_here > 0:
            here = 0.0
            for i in range(start, end):
                here += weight[rows[i]] * losses.at(loss, node, rows[i])
            total += here * n_here
    return total / n_donors


@inline_kernel
def _part_donors(test, donors, low, high, is_sorted):
    """Divide donors[low:high] by a test; return where those that go right begin."""
    if not is_sorted:
        return divide(test, donors, low, high)
    while low < high:
        middle = (low + high) // 2
        if test.values[donors[middle]] <= test.threshold:
            low = middle + 1
        else:
            high = middle
    return low
