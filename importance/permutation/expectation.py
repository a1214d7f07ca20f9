"""The expected loss of one tree when a feature is permuted, without shuffling.

Over all permutations of x_j within the out-of-bag rows, every row meets every donor equally often.
So a row goes both ways at a split on j, each with the share of the donors that would go there;
everywhere else it follows its own values.

All groups are walked at once. The rows that get to a node by their own values lose nothing there.
Beside them there are *strays*, which only get there if the values of some group are not their own:
at a split on the group, a row that goes left by itself strays to the right, and the other way
round. At further splits on the group strays go to both sides, at any other split to one. So strays
are segments of rows, each with its group and the split that it left its way at; a segment is kept
for both children or divided among them. The donors that are still possible at a node are an
interval of ranks, and the missing values or none of them. Of categories, and of columns permuted
together, they are a list of donors, divided as the rows are.

Rows in the order of their leaves are an interval at every node, and the rows that leave the way at
its splits are disjoint: one array has room for all strays there are at a time. The smaller child
is walked first, so that few lists of segments wait.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF
from importance.core import losses
from importance.permutation.prepared_tree import divide, fill_losses, goes_left, test_of


class PendingChildren(NamedTuple):
    """Children that wait until the subtree of their sibling was walked."""

    node: np.ndarray  # int64
    sibling: np.ndarray
    depth: np.ndarray  # of the node
    n: np.ndarray  # segments in its line
    # (capacity, 4) int64: group of the split above, and its donors: the first, a rank or a place in
    # its list; behind the last; how many without a value.
    donors: np.ndarray

    @classmethod
    def create(cls, capacity):
        return cls(*np.empty((4, capacity), np.int64), np.empty((capacity, 4), np.int64))


class DisplacedRows(NamedTuple):
    """Segments of rows that are at a node, if the values of their group are not their own."""

    rows: np.ndarray  # (n_rows,) uint32
    # (n_lines, capacity, 3) int64: group, start and end. A line each for what waits, and two more,
    # used in turn.
    lines: np.ndarray

    @classmethod
    def create(cls, prepared, n_rows, n_pending):
        return cls(
            np.empty(n_rows, np.uint32),
            np.empty((n_pending + 2, min(prepared.n_levels, n_rows) + 1, 3), np.int64),
        )


class Sums(NamedTuple):
    """What is found out."""

    row_loss: np.ndarray  # (n_rows,) float64: of every row as it is
    increase: np.ndarray  # (n_groups,) float64: over rows and donors
    of_rows: np.ndarray  # (n_groups, n_rows) float64: over donors; (0, n_rows): not asked


def expected_increase(prepared, loss, by_row=False):
    """Expected loss with each group permuted, less the loss as it is.

    Parameters
    ----------
    prepared : importance.permutation.prepared_tree.PreparedTree
    loss : see importance.core.losses
        Of `prepared`'s nodes and rows.
    by_row : bool, default=False

    Returns
    -------
    ndarray of shape (n_owners,), or (n_owners, n_rows) with `by_row`, float64
        Sums over the rows, or of each row.
    """
    n_groups, n_rows = len(prepared.groups), prepared.columns.shape[1]
    increase = np.zeros(n_groups)
    of_rows = np.zeros((n_groups if by_row else 0, n_rows))
    if n_groups and n_rows:
        lists = np.empty((max(1, prepared.donor_list.max() + 1), n_rows), np.uint32)
        lists[:] = np.arange(n_rows)
        n_pending = int(prepared.n_samples[0]).bit_length()  # of each, the sibling is no larger
        _increase_of_all(
            prepared, loss, np.arange(n_rows, dtype=np.uint32),
            np.zeros((len(prepared.left), 2), np.int32), prepared.donor_range.copy(), lists,
            np.empty((prepared.n_levels, 4), np.int64), PendingChildren.create(n_pending),
            DisplacedRows.create(prepared, n_rows, n_pending), Sums(np.empty(n_rows), increase, of_rows),
        )  # fmt: skip
    return (of_rows if by_row else increase) / max(1, n_rows)


@kernel
def _divide_donors(prepared, node, lists, group_index, low, high):
    """Where the donors that go right begin; those in a list are divided for it."""
    if prepared.donor_list[group_index] >= 0:
        return divide(test_of(prepared, node), lists[prepared.donor_list[group_index]], low, high)
    return min(max(low, prepared.n_below[node]), high)


@inline_kernel
def _put(line, n, group, start, end, is_kept):
    """Write a segment behind the first n of a line; return how many there are with it."""
    line[n, 0] = group
    line[n, 1] = start
    line[n, 2] = end
    return n + is_kept


@inline_kernel
def _divide_segments(prepared, node, displaced, here, n, left, right, group, goes_left, goes_right):
    """Divide the segments of a node among its children; those of its group go where donors do.

    Returns how many there are on either side.
    """
    test = test_of(prepared, node)
    n_left = 0
    n_right = 0
    for k in range(n):
        free = displaced.lines[here, k, 0]
        start = displaced.lines[here, k, 1]
        end = displaced.lines[here, k, 2]
        if free == group:
            n_left = _put(displaced.lines[left], n_left, free, start, end, goes_left)
            n_right = _put(displaced.lines[right], n_right, free, start, end, goes_right)
        else:
            middle = divide(test, displaced.rows, start, end)
            n_left = _put(displaced.lines[left], n_left, free, start, middle, start < middle)
            n_right = _put(displaced.lines[right], n_right, free, middle, end, middle < end)
    return n_left, n_right


@inline_kernel
def _add_displaced(displaced, line, n, group, rows, reached, sibling, has_donors):
    """Let the rows that get to the sibling by themselves be strays; return how many segments."""
    start = np.int64(reached[sibling, 0])
    end = np.int64(reached[sibling, 1])
    if start < end and has_donors:
        for i in range(start, end):
            displaced.rows[i] = rows[i]
        n = _put(displaced.lines[line], n, group, start, end, True)
    return n


@kernel
def _add_increase(loss, leaf, rows, start, end, group, n_donors, sums):
    """Add what rows[start:end] lose in a leaf beyond the loss of their own, times the donors."""
    beyond = 0.0
    for i in range(start, end):
        lost = losses.at(loss, leaf, rows[i]) - sums.row_loss[rows[i]]
        beyond += lost
        if sums.of_rows.shape[0] > 0:
            sums.of_rows[group, rows[i]] += n_donors * lost
    sums.increase[group] += n_donors * beyond


@inline_kernel
def _evaluate_leaf(loss, leaf, donors, displaced, line, n, sums):
    """Judge the strays in a leaf."""
    for k in range(n):
        group = displaced.lines[line, k, 0]
        n_donors = donors[group, 1] - donors[group, 0] + donors[group, 2]
        start = displaced.lines[line, k, 1]
        _add_increase(
            loss, leaf, displaced.rows, start, displaced.lines[line, k, 2], group, n_donors, sums
        )


@inline_kernel
def _evaluate_leaves(
    prepared, loss, node, n_left, n_right, rows, reached, donors, displaced, line, n, sums
):
    """Judge what strays in the two leaves of a node, without dividing it first."""
    group = prepared.group_index[prepared.used_index[node]]
    left = np.int64(prepared.left[node])
    right = np.int64(prepared.right[node])
    test = test_of(prepared, node)
    for k in range(n):
        free = displaced.lines[line, k, 0]
        start = displaced.lines[line, k, 1]
        end = displaced.lines[line, k, 2]
        if free == group:
            _add_increase(loss, left, displaced.rows, start, end, group, n_left, sums)
            _add_increase(loss, right, displaced.rows, start, end, group, n_right, sums)
            continue
        n_donors = donors[free, 1] - donors[free, 0] + donors[free, 2]
        beyond = 0.0
        for i in range(start, end):
            row = displaced.rows[i]
            leaf = left if goes_left(test, row) else right
            lost = losses.at(loss, leaf, row) - sums.row_loss[row]
            beyond += lost
            if sums.of_rows.shape[0] > 0:
                sums.of_rows[free, row] += n_donors * lost
        sums.increase[free] += n_donors * beyond
    _add_increase(loss, left, rows, reached[right, 0], reached[right, 1], group, n_left, sums)
    _add_increase(loss, right, rows, reached[left, 0], reached[left, 1], group, n_right, sums)


@inline_kernel
def _save_donors(kept, i, group, donors):
    """Note the donors of a group."""
    kept[i, 0] = group
    kept[i, 1] = donors[group, 0]
    kept[i, 2] = donors[group, 1]
    kept[i, 3] = donors[group, 2]


@inline_kernel
def _restore_donors(kept, i, donors):
    """Let a group have the donors that were kept; return which it is."""
    group = kept[i, 0]
    donors[group, 0] = kept[i, 1]
    donors[group, 1] = kept[i, 2]
    donors[group, 2] = kept[i, 3]
    return group


@entry_kernel
def _increase_of_all(
    prepared, loss, rows, reached, donors, lists, before, pending, displaced, sums
):
    """Sums over rows and donors of the loss beyond that of the row's own leaf.

    `donors` holds those of every group that are possible at the node at hand; before[depth] those
    that the group of the split had there.
    """
    fill_losses(prepared, loss, rows, reached, sums.row_loss)
    if prepared.left[0] == LEAF:
        return  # whatever the values of a row are, it is there
    free_line = pending.node.shape[0]
    node = np.int64(0)
    depth = 0
    line = free_line
    n = 0
    n_pending = 0
    while True:
        group = prepared.group_index[prepared.used_index[node]]
        low = donors[group, 0]
        high = donors[group, 1]
        missing = donors[group, 2]
        _save_donors(before, depth, group, donors)
        depth += 1
        cut = _divide_donors(prepared, node, lists, group, low, high)
        missing_left = missing if prepared.missing_left[node] else 0
        n_donors_left = cut - low + missing_left
        n_donors_right = high - cut + missing - missing_left
        left = np.int64(prepared.left[node])
        right = np.int64(prepared.right[node])
        goes_on = False
        if prepared.left[left] == LEAF and prepared.left[right] == LEAF:
            _evaluate_leaves(
                prepared, loss, node, n_donors_left, n_donors_right, rows, reached, donors, displaced,
                line, n, sums,
            )  # fmt: skip
        else:
            left_waits = prepared.n_samples[left] > prepared.n_samples[right]
            next_line = free_line + (line == free_line)
            left_line = n_pending if left_waits else next_line
            right_line = next_line if left_waits else n_pending
            n_left, n_right = _divide_segments(
                prepared, node, displaced, line, n, left_line, right_line, group, n_donors_left > 0,
                n_donors_right > 0,
            )  # fmt: skip
            for turn in range(2):
                is_left = left_waits == (turn == 0)
                node = left if is_left else right
                sibling = right if is_left else left
                line = left_line if is_left else right_line
                n = n_left if is_left else n_right
                donors[group, 0] = low if is_left else cut
                donors[group, 1] = cut if is_left else high
                donors[group, 2] = missing_left if is_left else missing - missing_left
                if prepared.left[node] == LEAF or turn == 1:
                    n = _add_displaced(
                        displaced, line, n, group, rows, reached, sibling,
                        (n_donors_left if is_left else n_donors_right) > 0,
                    )  # fmt: skip
                    if prepared.left[node] == LEAF:
                        _evaluate_leaf(loss, node, donors, displaced, line, n, sums)
                    else:
                        goes_on = n > 0 or reached[node, 0] < reached[node, 1]
                elif n > 0 or reached[left, 0] < reached[right, 1]:
                    pending.node[n_pending] = node
                    pending.sibling[n_pending] = sibling
                    pending.depth[n_pending] = depth
                    pending.n[n_pending] = n
                    _save_donors(pending.donors, n_pending, group, donors)
                    n_pending += 1
        if goes_on:
            continue
        if n_pending == 0:
            return
        n_pending -= 1
        line = n_pending
        node = pending.node[n_pending]
        while depth > pending.depth[n_pending]:
            depth -= 1
            _restore_donors(before, depth, donors)
        group = _restore_donors(pending.donors, n_pending, donors)
        n = _add_displaced(
            displaced, line, pending.n[n_pending], group, rows, reached, pending.sibling[n_pending],
            donors[group, 1] - donors[group, 0] + donors[group, 2] > 0,
        )  # fmt: skip
