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


class Waiting(NamedTuple):
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


class Strays(NamedTuple):
    """Segments of rows that are at a node, if the values of their group are not their own."""

    rows: np.ndarray  # (n_rows,) uint32
    # (n_lines, capacity, 3) int64: group, start and end. A line each for what waits, and two more,
    # used in turn.
    lines: np.ndarray

    @classmethod
    def create(cls, walked, n_rows, n_waiting):
        return cls(
            np.empty(n_rows, np.uint32),
            np.empty((n_waiting + 2, min(walked.n_levels, n_rows) + 1, 3), np.int64),
        )


class Sums(NamedTuple):
    """What is found out."""

    row_loss: np.ndarray  # (n_rows,) float64: of every row as it is
    increase: np.ndarray  # (n_groups,) float64: over rows and donors
    of_rows: np.ndarray  # (n_groups, n_rows) float64: over donors; (0, n_rows): not asked


def expected_increase(walked, loss, by_row=False):
    """Expected loss with each group permuted, less the loss as it is.

    Parameters
    ----------
    walked : importance.permutation.prepared_tree.WalkedTree
    loss : see importance.core.losses
        Of `walked`'s nodes and rows.
    by_row : bool, default=False

    Returns
    -------
    ndarray of shape (n_owners,), or (n_owners, n_rows) with `by_row`, float64
        Sums over the rows, or of each row.
    """
    n_owners, n_rows = len(walked.groups), walked.columns.shape[1]
    increase = np.zeros(n_owners)
    of_rows = np.zeros((n_owners if by_row else 0, n_rows))
    if n_owners and n_rows:
        lists = np.empty((max(1, walked.listed.max() + 1), n_rows), np.uint32)
        lists[:] = np.arange(n_rows)
        n_waiting = int(walked.n_samples[0]).bit_length()  # of each, the sibling is no larger
        _increase_of_all(
            walked, loss, np.arange(n_rows, dtype=np.uint32),
            np.zeros((len(walked.left), 2), np.int32), walked.reach.copy(), lists,
            np.empty((walked.n_levels, 4), np.int64), Waiting.create(n_waiting),
            Strays.create(walked, n_rows, n_waiting), Sums(np.empty(n_rows), increase, of_rows),
        )  # fmt: skip
    return (of_rows if by_row else increase) / max(1, n_rows)


@kernel
def _divide_donors(walked, node, lists, owner, low, high):
    """Where the donors that go right begin; those in a list are divided for it."""
    if walked.listed[owner] >= 0:
        return divide(test_of(walked, node), lists[walked.listed[owner]], low, high)
    return min(max(low, walked.n_below[node]), high)


@inline_kernel
def _put(line, n, group, start, end, is_kept):
    """Write a segment behind the first n of a line; return how many there are with it."""
    line[n, 0] = group
    line[n, 1] = start
    line[n, 2] = end
    return n + is_kept


@inline_kernel
def _divide_segments(walked, node, strays, here, n, left, right, group, goes_left, goes_right):
    """Divide the segments of a node among its children; those of its group go where donors do.

    Returns how many there are on either side.
    """
    test = test_of(walked, node)
    n_left = 0
    n_right = 0
    for k in range(n):
        free = strays.lines[here, k, 0]
        start = strays.lines[here, k, 1]
        end = strays.lines[here, k, 2]
        if free == group:
            n_left = _put(strays.lines[left], n_left, free, start, end, goes_left)
            n_right = _put(strays.lines[right], n_right, free, start, end, goes_right)
        else:
            middle = divide(test, strays.rows, start, end)
            n_left = _put(strays.lines[left], n_left, free, start, middle, start < middle)
            n_right = _put(strays.lines[right], n_right, free, middle, end, middle < end)
    return n_left, n_right


@inline_kernel
def _let_stray(strays, line, n, group, rows, reached, sibling, has_donors):
    """Let the rows that get to the sibling by themselves be strays; return how many segments."""
    start = np.int64(reached[sibling, 0])
    end = np.int64(reached[sibling, 1])
    if start < end and has_donors:
        for i in range(start, end):
            strays.rows[i] = rows[i]
        n = _put(strays.lines[line], n, group, start, end, True)
    return n


@kernel
def _judge(loss, leaf, rows, start, end, group, n_donors, sums):
    """Add what rows[start:end] lose in a leaf beyond the loss of their own, times the donors."""
    beyond = 0.0
    for i in range(start, end):
        lost = losses.at(loss, leaf, rows[i]) - sums.row_loss[rows[i]]
        beyond += lost
        if sums.of_rows.shape[0] > 0:
            sums.of_rows[group, rows[i]] += n_donors * lost
    sums.increase[group] += n_donors * beyond


@inline_kernel
def _judge_leaf(loss, leaf, donors, strays, line, n, sums):
    """Judge the strays in a leaf."""
    for k in range(n):
        group = strays.lines[line, k, 0]
        n_donors = donors[group, 1] - donors[group, 0] + donors[group, 2]
        start = strays.lines[line, k, 1]
        _judge(loss, leaf, strays.rows, start, strays.lines[line, k, 2], group, n_donors, sums)


@inline_kernel
def _judge_leaves(
    walked, loss, node, n_left, n_right, rows, reached, donors, strays, line, n, sums
):
    """Judge what strays in the two leaves of a node, without dividing it first."""
    group = walked.owner[walked.slot[node]]
    left = np.int64(walked.left[node])
    right = np.int64(walked.right[node])
    test = test_of(walked, node)
    for k in range(n):
        free = strays.lines[line, k, 0]
        start = strays.lines[line, k, 1]
        end = strays.lines[line, k, 2]
        if free == group:
            _judge(loss, left, strays.rows, start, end, group, n_left, sums)
            _judge(loss, right, strays.rows, start, end, group, n_right, sums)
            continue
        n_donors = donors[free, 1] - donors[free, 0] + donors[free, 2]
        beyond = 0.0
        for i in range(start, end):
            row = strays.rows[i]
            leaf = left if goes_left(test, row) else right
            lost = losses.at(loss, leaf, row) - sums.row_loss[row]
            beyond += lost
            if sums.of_rows.shape[0] > 0:
                sums.of_rows[free, row] += n_donors * lost
        sums.increase[free] += n_donors * beyond
    _judge(loss, left, rows, reached[right, 0], reached[right, 1], group, n_left, sums)
    _judge(loss, right, rows, reached[left, 0], reached[left, 1], group, n_right, sums)


@inline_kernel
def _keep(kept, i, group, donors):
    """Note the donors of a group."""
    kept[i, 0] = group
    kept[i, 1] = donors[group, 0]
    kept[i, 2] = donors[group, 1]
    kept[i, 3] = donors[group, 2]


@inline_kernel
def _give_back(kept, i, donors):
    """Let a group have the donors that were kept; return which it is."""
    group = kept[i, 0]
    donors[group, 0] = kept[i, 1]
    donors[group, 1] = kept[i, 2]
    donors[group, 2] = kept[i, 3]
    return group


@entry_kernel
def _increase_of_all(walked, loss, rows, reached, donors, lists, before, waiting, strays, sums):
    """Sums over rows and donors of the loss beyond that of the row's own leaf.

    `donors` holds those of every group that are possible at the node at hand; before[depth] those
    that the group of the split had there.
    """
    fill_losses(walked, loss, rows, reached, sums.row_loss)
    if walked.left[0] == LEAF:
        return  # whatever the values of a row are, it is there
    free_line = waiting.node.shape[0]
    node = np.int64(0)
    depth = 0
    line = free_line
    n = 0
    n_waiting = 0
    while True:
        group = walked.owner[walked.slot[node]]
        low = donors[group, 0]
        high = donors[group, 1]
        missing = donors[group, 2]
        _keep(before, depth, group, donors)
        depth += 1
        cut = _divide_donors(walked, node, lists, group, low, high)
        missing_left = missing if walked.missing_left[node] else 0
        n_donors_left = cut - low + missing_left
        n_donors_right = high - cut + missing - missing_left
        left = np.int64(walked.left[node])
        right = np.int64(walked.right[node])
        goes_on = False
        if walked.left[left] == LEAF and walked.left[right] == LEAF:
            _judge_leaves(
                walked, loss, node, n_donors_left, n_donors_right, rows, reached, donors, strays,
                line, n, sums,
            )  # fmt: skip
        else:
            left_waits = walked.n_samples[left] > walked.n_samples[right]
            next_line = free_line + (line == free_line)
            left_line = n_waiting if left_waits else next_line
            right_line = next_line if left_waits else n_waiting
            n_left, n_right = _divide_segments(
                walked, node, strays, line, n, left_line, right_line, group, n_donors_left > 0,
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
                if walked.left[node] == LEAF or turn == 1:
                    n = _let_stray(
                        strays, line, n, group, rows, reached, sibling,
                        (n_donors_left if is_left else n_donors_right) > 0,
                    )  # fmt: skip
                    if walked.left[node] == LEAF:
                        _judge_leaf(loss, node, donors, strays, line, n, sums)
                    else:
                        goes_on = n > 0 or reached[node, 0] < reached[node, 1]
                elif n > 0 or reached[left, 0] < reached[right, 1]:
                    waiting.node[n_waiting] = node
                    waiting.sibling[n_waiting] = sibling
                    waiting.depth[n_waiting] = depth
                    waiting.n[n_waiting] = n
                    _keep(waiting.donors, n_waiting, group, donors)
                    n_waiting += 1
        if goes_on:
            continue
        if n_waiting == 0:
            return
        n_waiting -= 1
        line = n_waiting
        node = waiting.node[n_waiting]
        while depth > waiting.depth[n_waiting]:
            depth -= 1
            _give_back(before, depth, donors)
        group = _give_back(waiting.donors, n_waiting, donors)
        n = _let_stray(
            strays, line, waiting.n[n_waiting], group, rows, reached, waiting.sibling[n_waiting],
            donors[group, 1] - donors[group, 0] + donors[group, 2] > 0,
        )  # fmt: skip
