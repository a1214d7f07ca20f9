"""Exact expected loss of one tree when a feature is permuted, without shuffling.

Over all permutations of x_j within the out-of-bag rows, every row receives the value of every donor
equally often. So at a split on j a row goes both ways, each with the share of the donors that would
go that way; at every other split it follows its own values.

All groups are handled in one depth-first traversal. A row that reaches a node by its own values
loses nothing there. The other rows at a node are *displaced rows*: they get there only if the
values of one group are not their own. They arise at a split on that group, which sends a row that
goes left to the right too, and vice versa. With rows sorted by leaf, the rows of every node are an
interval. Rows are displaced from disjoint intervals, so one array has room for all of them:

    own rows         [ a b c | d e | f g h ]     at a split of `f g h` on group j, `f | g h`:
    displaced rows   [ a b c | d e | . . . ]     segments (i, 0, 3), (k, 3, 5) are at the node

    right child      [ a b c | d e | f . . ]     its segments: those of j whole, if any donor goes
                       i       k     j           right; of other groups the part that goes right by
                                                 its own values; and (j, 5, 6), displaced just now

The donors that are still possible at a node are kept per group. For a single ordered feature they
are an interval of ranks, plus all or none of the missing values. For categories, and for columns
permuted together, they are part of a list, which is divided as the rows are:

    [ . . . first x x x | y y end . . . ]  + n_missing     x go left, y right

The smaller child is visited first, so that the stack of pending nodes holds at most about log2 of
the number of rows.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF
from importance.core import losses
from importance.core.used_features import goes_left
from importance.permutation.prepared_tree import PreparedTree, divide, fill_losses, test_of


class Donors(NamedTuple):
    """The donors of one group that are possible at a node."""

    first: int  # a rank, or a position in the list of the group
    end: int
    n_missing: int  # donors with a missing value, in addition


class Pending(NamedTuple):
    """Stack of nodes to visit; entry i has the displaced rows of segments[i, :n[i]]."""

    node: np.ndarray  # int64
    sibling: np.ndarray
    depth: np.ndarray
    n: np.ndarray
    donors: np.ndarray  # (capacity, 4) int64: group of the split above, and its donors here
    segments: np.ndarray  # (capacity, n_segments, 3) int64: group, start and end

    @classmethod
    def create(cls, prepared: PreparedTree, n_rows: int) -> "Pending":
        capacity = int(prepared.n_samples[0]).bit_length() + 2
        n_segments = min(prepared.n_levels, n_rows) + 1
        node, sibling, depth, n = np.empty((4, capacity), np.int64)
        donors = np.empty((capacity, 4), np.int64)
        segments = np.empty((capacity, n_segments, 3), np.int64)
        return cls(node, sibling, depth, n, donors, segments)


class Walk(NamedTuple):
    """The buffers of one traversal of the tree."""

    rows: np.ndarray  # (n_rows,) uint32: sorted by leaf
    reached: np.ndarray  # (n_nodes, 2) int32: start and end of a node's interval in `rows`
    displaced: np.ndarray  # (n_rows,) uint32
    donors: np.ndarray  # (n_groups, 3) int64: of every group, at the current node
    lists: np.ndarray  # (n_lists, n_rows) uint32: donors of the groups that have lists
    saved: np.ndarray  # (n_levels, 4) int64: by depth, donors of the group that is split there
    pending: Pending
    row_loss: np.ndarray  # (n_rows,) float64: loss of every row as it is
    increase: np.ndarray  # (n_groups,) float64: summed over rows and donors
    of_rows: np.ndarray  # (n_groups, n_rows) float64: summed over donors; (0, n_rows) if not asked


class Split(NamedTuple):
    """A split, and the donors of its group that go to either side."""

    node: int
    group: int
    left: Donors
    right: Donors


def expected_increase(
    prepared: PreparedTree, loss: losses.Loss, by_row: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Expected loss with each group permuted, minus the loss as it is.

    Returns the sums over rows, (n_groups,), and the increase of each row: (n_groups, n_rows), or
    (0, n_rows) without `by_row`. The sums are bitwise the same with and without `by_row`.
    """
    n_groups, n_rows = len(prepared.groups), prepared.columns.shape[1]
    increase = np.zeros(n_groups)
    of_rows = np.zeros((n_groups if by_row else 0, n_rows))
    if n_groups and n_rows:
        lists = np.empty((max(1, prepared.donor_list.max() + 1), n_rows), np.uint32)
        lists[:] = np.arange(n_rows)
        walk = Walk(
            np.arange(n_rows, dtype=np.uint32), np.zeros((len(prepared.left), 2), np.int32),
            np.empty(n_rows, np.uint32), prepared.donor_range.copy(), lists,
            np.empty((prepared.n_levels, 4), np.int64), Pending.create(prepared, n_rows),
            np.empty(n_rows), increase, of_rows,
        )  # fmt: skip
        _visit_nodes(prepared, loss, walk)
    return increase / max(1, n_rows), of_rows / max(1, n_rows)


@entry_kernel
def _visit_nodes(prepared, loss, walk):
    """Add to walk.increase, over rows and donors, the loss beyond that of the row's own leaf."""
    fill_losses(prepared, loss, walk.rows, walk.reached, walk.row_loss)
    if prepared.left[0] == LEAF:
        return  # the root is the leaf of every row, whatever its values
    node = np.int64(0)
    n = 0
    depth = 0
    top = 0
    while True:
        if prepared.left[node] == LEAF:
            _evaluate_leaf(loss, node, walk, top, n)
        elif n > 0 or walk.reached[node, 0] < walk.reached[node, 1]:
            top = _visit_split(prepared, loss, walk, node, depth, top, n)
        if top == 0:
            return
        top -= 1
        node = walk.pending.node[top]
        depth, n = _resume(walk, top, depth)


@inline_kernel
def _visit_split(prepared, loss, walk, node, depth, top, n):
    """Push the children of a node with n segments, or evaluate them; return the new stack top."""
    split = _divide_donors(prepared, walk, node)
    left = np.int64(prepared.left[node])
    right = np.int64(prepared.right[node])
    if prepared.left[left] == LEAF and prepared.left[right] == LEAF:
        _evaluate_leaves(prepared, loss, walk, split, top, n)
        return top
    _save_donors(walk.saved, depth, split.group, _donors_of(walk, split.group))
    left_is_larger = prepared.n_samples[left] > prepared.n_samples[right]
    larger = left if left_is_larger else right
    left_is_first = left_is_larger == (prepared.left[larger] == LEAF)
    at_left = top + left_is_first
    at_right = top + 1 - left_is_first
    n_left, n_right = _divide_segments(prepared, walk, split, top, n, at_left, at_right)
    _push(walk.pending, at_left, left, right, depth + 1, n_left)
    _save_donors(walk.pending.donors, at_left, split.group, split.left)
    _push(walk.pending, at_right, right, left, depth + 1, n_right)
    _save_donors(walk.pending.donors, at_right, split.group, split.right)
    return top + 2


@inline_kernel
def _resume(walk, top, depth):
    """Restore the state of the node at the top; return its depth and its number of segments."""
    pending = walk.pending
    while depth > pending.depth[top]:
        depth -= 1
        _restore_donors(walk.saved, depth, walk.donors)
    group = _restore_donors(pending.donors, top, walk.donors)
    n = pending.n[top]
    start = np.int64(walk.reached[pending.sibling[top], 0])
    end = np.int64(walk.reached[pending.sibling[top], 1])
    if start < end and _count(_donors_of(walk, group)) > 0:
        for i in range(start, end):
            walk.displaced[i] = walk.rows[i]
        n = _put(pending.segments[top], n, group, start, end, True)
    return pending.depth[top], n


@inline_kernel
def _donors_of(walk, group):
    return Donors(walk.donors[group, 0], walk.donors[group, 1], walk.donors[group, 2])


@inline_kernel
def _count(donors):
    return donors.end - donors.first + donors.n_missing


@kernel
def _divide_donors(prepared, walk, node):
    """The split of a node with the donors on either side; partitions the donors of a list."""
    group = prepared.group_index[prepared.used_index[node]]
    here = _donors_of(walk, group)
    number = prepared.donor_list[group]
    if number >= 0:
        cut = divide(test_of(prepared, node), walk.lists[number], here.first, here.end)
    else:
        cut = min(max(here.first, prepared.n_below[node]), here.end)
    missing_left = here.n_missing if prepared.missing_left[node] else 0
    return Split(
        node, group, Donors(here.first, cut, missing_left),
        Donors(cut, here.end, here.n_missing - missing_left),
    )  # fmt: skip


@inline_kernel
def _divide_segments(prepared, walk, split, top, n, at_left, at_right):
    """Divide the segments of a node, in place, between its children; return how many each gets.

    Segments of the split's group go wherever donors go; the rows of other segments go by their own
    values.
    """
    test = test_of(prepared, split.node)
    segments = walk.pending.segments
    n_left = 0
    n_right = 0
    for k in range(n):
        group = segments[top, k, 0]
        start = segments[top, k, 1]
        end = segments[top, k, 2]
        if group == split.group:
            n_left = _put(segments[at_left], n_left, group, start, end, _count(split.left) > 0)
            n_right = _put(segments[at_right], n_right, group, start, end, _count(split.right) > 0)
        else:
            middle = divide(test, walk.displaced, start, end)
            n_left = _put(segments[at_left], n_left, group, start, middle, start < middle)
            n_right = _put(segments[at_right], n_right, group, middle, end, middle < end)
    return n_left, n_right


@inline_kernel
def _put(segments, n, group, start, end, is_kept):
    """Write a segment at position n; return the number of segments, n if it is not kept."""
    segments[n, 0] = group
    segments[n, 1] = start
    segments[n, 2] = end
    return n + is_kept


@inline_kernel
def _push(pending, top, node, sibling, depth, n):
    pending.node[top] = node
    pending.sibling[top] = sibling
    pending.depth[top] = depth
    pending.n[top] = n


@inline_kernel
def _save_donors(saved, i, group, donors):
    saved[i, 0] = group
    saved[i, 1] = donors.first
    saved[i, 2] = donors.end
    saved[i, 3] = donors.n_missing


@inline_kernel
def _restore_donors(saved, i, donors):
    """Set the donors of a group to those saved in entry i; return the group."""
    group = saved[i, 0]
    donors[group, 0] = saved[i, 1]
    donors[group, 1] = saved[i, 2]
    donors[group, 2] = saved[i, 3]
    return group


@inline_kernel
def _evaluate_leaf(loss, leaf, walk, top, n):
    """Add the losses of the displaced rows in a leaf."""
    for k in range(n):
        group = walk.pending.segments[top, k, 0]
        start = walk.pending.segments[top, k, 1]
        end = walk.pending.segments[top, k, 2]
        n_donors = _count(_donors_of(walk, group))
        _add_losses(loss, leaf, walk, walk.displaced[start:end], group, n_donors)


@inline_kernel
def _evaluate_leaves(prepared, loss, walk, split, top, n):
    """Add the losses of displaced rows in two sibling leaves, without dividing segments first."""
    left = np.int64(prepared.left[split.node])
    right = np.int64(prepared.right[split.node])
    n_left = _count(split.left)
    n_right = _count(split.right)
    test = test_of(prepared, split.node)
    for k in range(n):
        group = walk.pending.segments[top, k, 0]
        rows = walk.displaced[walk.pending.segments[top, k, 1] : walk.pending.segments[top, k, 2]]
        if group == split.group:
            _add_losses(loss, left, walk, rows, group, n_left)
            _add_losses(loss, right, walk, rows, group, n_right)
            continue
        n_donors = _count(_donors_of(walk, group))
        beyond = 0.0
        for i in range(rows.shape[0]):
            leaf = left if goes_left(test, rows[i]) else right
            beyond += _lost(loss, leaf, walk, rows[i], group, n_donors)
        walk.increase[group] += n_donors * beyond
    at_left = walk.rows[walk.reached[left, 0] : walk.reached[left, 1]]
    at_right = walk.rows[walk.reached[right, 0] : walk.reached[right, 1]]
    _add_losses(loss, left, walk, at_right, split.group, n_left)
    _add_losses(loss, right, walk, at_left, split.group, n_right)


@kernel
def _add_losses(loss, leaf, walk, rows, group, n_donors):
    """Add the losses of rows in a leaf beyond those in their own leaves, times the donors."""
    beyond = 0.0
    for i in range(rows.shape[0]):
        beyond += _lost(loss, leaf, walk, rows[i], group, n_donors)
    walk.increase[group] += n_donors * beyond


@inline_kernel
def _lost(loss, leaf, walk, row, group, n_donors):
    """A row's loss in a leaf beyond that in its own leaf; also added to `of_rows` if asked for."""
    lost = losses.at(loss, leaf, row) - walk.row_loss[row]
    if walk.of_rows.shape[0] > 0:
        walk.of_rows[group, row] += n_donors * lost
    return lost
