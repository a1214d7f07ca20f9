"""Expected loss of one tree when a feature is permuted: exact, without shuffling.

Over all permutations of x_j within the out-of-bag rows every row meets every donor equally often.
So a row goes both ways at a split on j, each with the share of the donors that would go there;
everywhere else it follows its own values.

All groups are taken at once, depth first. Rows that get to a node by their own values lose nothing
there. Beside them there are *displaced rows*, which are there only if the values of one group are
not their own: they come into being at a split on the group, which sends a row that goes left to the
right too, and the other way round. Rows in the order of their leaves are an interval at every node,
and rows are displaced from disjoint intervals, so that one array has room for all of them:

    own rows         [ a b c | d e | f g h ]     at a split of `f g h` on group j, `f | g h`:
    displaced rows   [ a b c | d e | . . . ]     segments (i, 0, 3), (k, 3, 5) are at the node

    right child      [ a b c | d e | f . . ]     its segments: those of j whole, if a donor goes
                       i       k     j           right; of other groups the part that goes right by
                                                 its own values; and (j, 5, 6), displaced just now

The donors that may still be in place at a node are, for a single ordered feature, an interval of
ranks and the missing values or none of them; for categories and columns permuted together a list,
divided as the rows are:

    [ . . . first x x x | y y end . . . ]  + n_missing     x go left, y right

The smaller child is visited first, so that the stack of pending nodes is as high as the logarithm
of their number.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF
from importance.core import losses
from importance.core.used_features import goes_left
from importance.permutation.prepared_tree import PreparedTree, divide, fill_losses, test_of


class Donors(NamedTuple):
    """Donors of a group that are possible at a node."""

    first: int  # a rank, or a place in the list of the group
    end: int
    n_missing: int  # without a value, beside them


class Pending(NamedTuple):
    """Stack of nodes to visit; the segments of displaced rows of entry i are segments[i, :n[i]]."""

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
        return cls(
            np.empty(capacity, np.int64), np.empty(capacity, np.int64),
            np.empty(capacity, np.int64), np.empty(capacity, np.int64),
            np.empty((capacity, 4), np.int64),
            np.empty((capacity, n_segments, 3), np.int64),
        )  # fmt: skip


class Walk(NamedTuple):
    """What the visit of the nodes works on."""

    rows: np.ndarray  # (n_rows,) uint32: in the order of the leaves
    reached: np.ndarray  # (n_nodes, 2) int32: first of the rows at a node, and behind the last
    displaced: np.ndarray  # (n_rows,) uint32
    donors: np.ndarray  # (n_groups, 3) int64: of every group, at the node at hand
    lists: np.ndarray  # (n_lists, n_rows) uint32: donors of the groups that have lists
    saved: np.ndarray  # (n_levels, 4) int64: by depth, donors of the group that is split there
    pending: Pending
    row_loss: np.ndarray  # (n_rows,) float64: of every row as it is
    increase: np.ndarray  # (n_groups,) float64: over rows and donors
    of_rows: np.ndarray  # (n_groups, n_rows) float64: over donors; (0, n_rows): not asked


class Split(NamedTuple):
    """A split, and the donors of its group that go either way."""

    node: int
    group: int
    left: Donors
    right: Donors


def expected_increase(
    prepared: PreparedTree, loss: losses.Loss, by_row: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Expected loss with each group permuted, less the loss as it is.

    Sums over the rows, (n_groups,), and that of each row, (n_groups, n_rows), or (0, n_rows)
    without `by_row`. The sums are the same, to the bit, with it and without.
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
    """Add up over rows and donors the loss beyond that of the row's own leaf, in walk.increase."""
    fill_losses(prepared, loss, walk.rows, walk.reached, walk.row_loss)
    if prepared.left[0] == LEAF:
        return  # whatever the values of a row are, it is there
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
    """Push the children of a node with n segments, or evaluate them; return the stack's new top."""
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
    """Make ready for the node at the top; return its depth and how many segments it has."""
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
    """The split of a node; donors that are in a list are divided for it."""
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
    """Divide the segments of a node, in place, among its children; return how many they have.

    Segments of the group go where donors do, those of other groups by their own values.
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
    """Write a segment behind the first n; return how many there are with it."""
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
    """Let a group have the donors that were saved; return which it is."""
    group = saved[i, 0]
    donors[group, 0] = saved[i, 1]
    donors[group, 1] = saved[i, 2]
    donors[group, 2] = saved[i, 3]
    return group


@inline_kernel
def _evaluate_leaf(loss, leaf, walk, top, n):
    """Add what displaced rows lose in a leaf."""
    for k in range(n):
        group = walk.pending.segments[top, k, 0]
        start = walk.pending.segments[top, k, 1]
        end = walk.pending.segments[top, k, 2]
        n_donors = _count(_donors_of(walk, group))
        _add_losses(loss, leaf, walk, walk.displaced[start:end], group, n_donors)


@inline_kernel
def _evaluate_leaves(prepared, loss, walk, split, top, n):
    """Add what displaced rows lose in the two leaves of a node, without dividing segments first."""
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
    """Add what rows lose in a leaf beyond the loss of their own, times the donors."""
    beyond = 0.0
    for i in range(rows.shape[0]):
        beyond += _lost(loss, leaf, walk, rows[i], group, n_donors)
    walk.increase[group] += n_donors * beyond


@inline_kernel
def _lost(loss, leaf, walk, row, group, n_donors):
    """What a row loses in a leaf beyond the loss of its own; noted by row where that is asked."""
    lost = losses.at(loss, leaf, row) - walk.row_loss[row]
    if walk.of_rows.shape[0] > 0:
        walk.of_rows[group, row] += n_donors * lost
    return lost
