"""The expected loss of one tree when a feature is permuted, without shuffling.

Over all permutations of x_j within the out-of-bag rows, every row meets every donor equally often.
So a row goes both ways at a split on j, each with the share of the donors that would go there;
everywhere else it follows its own values.

All features are walked at once. At every node there are the rows that get there by their own
values, and, for each feature j met on the way, those that get there if x_j is free. These are
segments of one array per feature: a split on j keeps its segment for either side, any other split
divides it. The donors that are still possible at a node are an interval of ranks, and the missing
values or none of them. Of categories, and of columns permuted together, they are a list of donors,
divided as the rows are.
"""

from typing import NamedTuple

import numpy as np

from cart.jit import entry_kernel, inline_kernel, kernel
from cart.nodes import LEAF
from cart.packed import is_in_left_subset
from importance import losses
from importance.narrow import narrow

NO_NODE = -1


class WalkedTree(NamedTuple):
    """A tree and its out-of-bag rows, prepared."""

    n_levels: int
    left: np.ndarray  # (n_nodes,) int32: children_left
    right: np.ndarray  # (n_nodes,) int32: children_right
    slot: np.ndarray  # (n_nodes,) int32: feature, as its position among the features used
    threshold: np.ndarray  # (n_nodes,), of the dtype of X: the largest donor that goes left
    n_below: np.ndarray  # (n_nodes,) int64: how many donors do not exceed it
    missing_left: np.ndarray  # (n_nodes,) uint8: where missing values go
    list_start: np.ndarray  # (n_nodes,) int64: of the subsets, as in cart.packed.PackedWide; -1
    lists: np.ndarray  # uint32
    columns: np.ndarray  # (n_used, n_rows), of the dtype of X: values of the features used
    owner: np.ndarray  # (n_used,) int64: a feature's group, as its position among the groups used
    groups: np.ndarray  # (n_owners,) int64: the groups used, ascending
    listed: np.ndarray  # (n_owners,) int64: which list of donors is the group's; -1: an interval
    reach: np.ndarray  # (n_owners, 3) int64: first donor, behind the last, how many are missing


class Stack(NamedTuple):
    """What waits: the donors that an owner has from here on, and a node that is then reached."""

    node: np.ndarray  # int64; NO_NODE where donors are set back only
    depth: np.ndarray  # of the node
    line: np.ndarray  # of the node in `Segments`
    owner: np.ndarray
    is_met: np.ndarray  # did a split on the way here belong to the owner?
    low: np.ndarray  # first donor: a rank, or a place in the list
    high: np.ndarray  # behind the last
    missing: np.ndarray  # how many donors without a value

    @classmethod
    def create(cls, capacity):
        return cls(*np.empty((len(cls._fields), capacity), np.int64))


class Segments(NamedTuple):
    """The rows at a node, by what is free for them. A node and its sibling have a line each."""

    count: np.ndarray  # (n_lines,) int64: segments in the line
    # (n_lines, n_owners + 2, 3) int64: the owner that is free, n_owners where none is, and where
    # in its array of rows the segment starts and ends.
    lines: np.ndarray

    @classmethod
    def create(cls, n_levels, n_owners):
        n_lines = 2 * n_levels
        return cls(np.zeros(n_lines, np.int64), np.empty((n_lines, n_owners + 2, 3), np.int64))


def walk_tree(tree, X, rows, group_of=None):
    """Prepare a tree for its out-of-bag rows.

    Parameters
    ----------
    tree : object with scikit-learn's node arrays
    X : ndarray of shape (n_samples, n_features), float32 or float64, or csr_matrix
    rows : ndarray of shape (n_rows,), int64
    group_of : ndarray of shape (n_features,), int64, optional
        Features with the same number are permuted together; by default each is a group, and
        `groups` are the features used.

    Returns
    -------
    walked : WalkedTree
    values : ndarray of shape (n_nodes, n_values), float64
        Values of the nodes.
    """
    tree, features, X = narrow(tree, X, rows)
    columns = np.ascontiguousarray(X.T)
    groups, owner = features, np.arange(len(features))
    if group_of is not None:
        groups = group_of[features]
        if (groups[1:] <= groups[:-1]).any():
            groups, owner = np.unique(groups, return_inverse=True)
    list_start, lists = np.full(tree.node_count, -1), np.empty(0, np.uint32)
    listed = np.full(len(groups), -1)
    if len(groups) < len(features) or tree.categories is not None:
        is_listed = np.bincount(owner, minlength=len(groups)) > 1
        if tree.categories is not None:
            list_start, lists = tree.categories.in_one(tree.is_subset)
            is_listed[owner[tree.feature[list_start >= 0]]] = True
        listed[is_listed] = np.arange(np.count_nonzero(is_listed))
    donors = np.sort(columns, axis=1)
    reach = np.zeros((len(groups), 3), np.int64)
    reach[:, 1] = len(rows)
    if len(rows) and np.isnan(donors[:, -1]).any():
        n_missing = np.isnan(columns).sum(axis=1)
        reach[owner, 2] = np.where(listed[owner] >= 0, 0, n_missing)
        reach[:, 1] -= reach[:, 2]
    left, right = (  # see `narrow`
        np.ascontiguousarray(children, np.int32)
        for children in (tree.children_left, tree.children_right)
    )
    threshold, n_below = np.empty(len(left), donors.dtype), np.empty(len(left), np.int64)
    n_levels = _place_thresholds(
        left, right, tree.feature, np.ascontiguousarray(tree.threshold), donors.ravel(), len(rows),
        np.empty((2, len(left)), np.uint64), threshold, n_below,
    )  # fmt: skip
    walked = WalkedTree(
        n_levels=n_levels,
        left=left,
        right=right,
        slot=tree.feature,
        threshold=threshold,
        n_below=n_below,
        missing_left=np.ascontiguousarray(tree.missing_go_to_left, np.uint8),
        list_start=list_start,
        lists=lists,
        columns=columns,
        owner=owner,
        groups=groups,
        listed=listed,
        reach=reach,
    )
    return walked, tree.value.reshape(tree.node_count, -1)


@entry_kernel
def _place_thresholds(left, right, slot, threshold, donors, n_rows, found, largest, n_below):
    """For every split, the largest donor that goes left, and how many do; returns the levels.

    `donors` are those of one feature after another, ascending. All binary searches go on together:
    alone, each would wait for its donors, one after another. `found` has room for 2 words a node.
    """
    n_levels = 0
    level = n_below  # for a while; children stand behind their parents
    level[0] = 1
    n_splits = 0
    for node in range(left.shape[0]):
        n_levels = max(n_levels, level[node])
        if left[node] != LEAF:
            level[left[node]] = level[node] + 1
            level[right[node]] = level[node] + 1
        found[0, n_splits] = node
        found[1, n_splits] = slot[node] * n_rows
        n_splits += left[node] != LEAF
    n = n_rows
    while n > 0:
        half = np.uint64((n + 1) // 2)
        for k in range(n_splits):
            here = found[1, k]
            above = here + half
            found[1, k] = above if donors[above - 1] <= threshold[found[0, k]] else here
        n -= np.int64(half)
    for k in range(n_splits):
        node = found[0, k]
        n_below[node] = np.int64(found[1, k]) - slot[node] * n_rows
        largest[node] = donors[found[1, k] - 1] if n_below[node] > 0 else -np.inf
    return n_levels


def expected_increase(walked, loss, by_row=False):
    """Expected loss with each group permuted, less the loss as it is.

    Parameters
    ----------
    walked : WalkedTree
    loss : see importance.losses
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
        rows = np.empty((n_owners + 1, n_rows), np.uint32)
        rows[n_owners] = np.arange(n_rows)
        lists = np.empty((max(1, walked.listed.max() + 1), n_rows), np.uint32)
        lists[:] = rows[n_owners]
        _increase_of_all(
            walked, loss, rows, lists, np.empty(n_rows), walked.reach.copy(),
            np.zeros(n_owners, np.bool_), Stack.create(3 * walked.n_levels + 3),
            Segments.create(walked.n_levels, n_owners), increase, of_rows,
        )  # fmt: skip
    return (of_rows if by_row else increase) / max(1, n_rows)


@inline_kernel
def test_of(walked, node):
    """What a split asks of rows: their values, then what decides; see `divide`."""
    return (
        walked.columns[walked.slot[node]],
        walked.threshold[node],
        walked.missing_left[node] != 0,
        walked.list_start[node],
        walked.lists,
    )


@inline_kernel
def divide(test, rows, start, end):
    """Bring rows[start:end] into the order left | right; return where the right side begins."""
    values, threshold, missing_left, first, lists = test
    # Places as unsigned numbers: numba asks of all others whether they count from the end.
    middle = np.uint64(start)
    if first >= 0:
        for i in range(np.uint64(start), np.uint64(end)):
            row = rows[i]
            rows[i] = rows[middle]
            rows[middle] = row
            x = values[row]
            if np.isnan(x):
                middle += np.uint64(missing_left)
            else:
                middle += np.uint64(is_in_left_subset(lists, first, x))
    elif missing_left:
        for i in range(np.uint64(start), np.uint64(end)):
            row = rows[i]
            rows[i] = rows[middle]
            rows[middle] = row
            middle += np.uint64(not values[row] > threshold)  # a missing value is not above
    else:
        for i in range(np.uint64(start), np.uint64(end)):
            row = rows[i]
            rows[i] = rows[middle]
            rows[middle] = row
            middle += np.uint64(values[row] <= threshold)
    return np.int64(middle)


@inline_kernel
def _divide_donors(walked, node, lists, owner, low, high):
    """The same of the donors that reach a node: behind those that go left."""
    if walked.listed[owner] >= 0:
        return divide(test_of(walked, node), lists[walked.listed[owner]], low, high)
    return min(max(low, walked.n_below[node]), high)


@inline_kernel
def _push(stack, height, node, depth, line, owner, is_met, low, high, missing):
    stack.node[height] = node
    stack.depth[height] = depth
    stack.line[height] = line
    stack.owner[height] = owner
    stack.is_met[height] = is_met
    stack.low[height] = low
    stack.high[height] = high
    stack.missing[height] = missing
    return height + 1


@inline_kernel
def _put(line, n, owner, start, end, is_kept):
    """Write a segment behind the first n of a line; return how many there are with it."""
    line[n, 0] = owner
    line[n, 1] = start
    line[n, 2] = end
    return n + is_kept


@kernel
def fill_losses(walked, loss, rows, stack, row_loss):
    """Loss of every row as it is; leaves `rows` in the order of the leaves."""
    height = 1
    stack.node[0] = 0
    stack.low[0] = 0
    stack.high[0] = rows.shape[0]
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.low[height]
        end = stack.high[height]
        while walked.left[node] != LEAF:
            middle = divide(test_of(walked, node), rows, start, end)
            if start == middle:
                node = np.int64(walked.right[node])
                continue
            if middle < end:
                stack.node[height] = walked.right[node]
                stack.low[height] = middle
                stack.high[height] = end
                height += 1
            node = np.int64(walked.left[node])
            end = middle
        for i in range(start, end):
            row_loss[rows[i]] = losses.at(loss, node, rows[i])


@inline_kernel
def _divide_segments(
    walked, node, rows, segments, line, owner, below, is_met, goes_left, goes_right
):
    """Divide the segments of a node among its children, whose lines are `below` and the next.

    Those of the node's owner go to both sides, as far as donors do. An owner that was not met
    before begins with the rows that get to the node by their own values.
    """
    n_owners = rows.shape[0] - 1
    here = segments.lines[line]
    left = segments.lines[below]
    right = segments.lines[below + 1]
    test = test_of(walked, node)
    n_left = 0
    n_right = 0
    for k in range(segments.count[line]):
        free = here[k, 0]
        start = here[k, 1]
        end = here[k, 2]
        is_new = free == n_owners and not is_met
        if is_new:
            for i in range(start, end):
                rows[owner, i] = rows[n_owners, i]
        if is_new or free == owner:
            n_left = _put(left, n_left, owner, start, end, goes_left)
            n_right = _put(right, n_right, owner, start, end, goes_right)
        if free != owner:
            middle = divide(test, rows[free], start, end)
            n_left = _put(left, n_left, free, start, middle, start < middle)
            n_right = _put(right, n_right, free, middle, end, middle < end)
    segments.count[below] = n_left
    segments.count[below + 1] = n_right


@kernel
def _judge_leaf(walked, loss, leaf, rows, row_loss, reach, segments, line, increase, of_rows):
    """Add what the rows in a leaf lose beyond the loss of their own leaf, times the donors."""
    n_owners = reach.shape[0]
    for k in range(segments.count[line]):
        owner = segments.lines[line, k, 0]
        if owner == n_owners:
            continue
        n_donors = reach[owner, 1] - reach[owner, 0] + reach[owner, 2]
        mine = rows[owner, segments.lines[line, k, 1] : segments.lines[line, k, 2]]
        beyond = 0.0
        for row in mine:
            beyond += losses.at(loss, leaf, row) - row_loss[row]
        if of_rows.shape[0] > 0:
            for row in mine:
                of_rows[owner, row] += n_donors * (losses.at(loss, leaf, row) - row_loss[row])
        increase[owner] += n_donors * beyond


@entry_kernel
def _increase_of_all(
    walked, loss, rows, lists, row_loss, reach, is_met, stack, segments, increase, of_rows
):
    """Sums over rows and donors of the loss beyond that of the row's own leaf.

    `reach` holds the donors of every owner at the node at hand, `is_met` whether a split on the
    way there was the owner's.
    """
    n_owners = reach.shape[0]
    fill_losses(walked, loss, rows[n_owners], stack, row_loss)
    segments.count[0] = _put(segments.lines[0], 0, n_owners, 0, rows.shape[1], True)
    if walked.left[0] == LEAF:
        return  # whatever the values of a row are, it is there
    height = _push(stack, 0, 0, 0, 0, 0, False, reach[0, 0], reach[0, 1], reach[0, 2])
    while height > 0:
        height -= 1
        owner = stack.owner[height]
        is_met[owner] = stack.is_met[height] != 0
        reach[owner, 0] = stack.low[height]
        reach[owner, 1] = stack.high[height]
        reach[owner, 2] = stack.missing[height]
        node = stack.node[height]
        if node == NO_NODE:
            continue
        line = stack.line[height]
        below = 2 * (stack.depth[height] + 1)
        owner = walked.owner[walked.slot[node]]
        low = reach[owner, 0]
        high = reach[owner, 1]
        missing = reach[owner, 2]
        cut = _divide_donors(walked, node, lists, owner, low, high)
        missing_left = missing if walked.missing_left[node] else 0
        missing_right = missing - missing_left
        _divide_segments(
            walked, node, rows, segments, line, owner, below, is_met[owner],
            cut - low + missing_left > 0, high - cut + missing_right > 0,
        )  # fmt: skip
        # What comes last is pushed first: left, right, and the donors as they were.
        height = _push(stack, height, NO_NODE, 0, 0, owner, is_met[owner], low, high, missing)
        for side in range(2):
            child = walked.left[node] if side else walked.right[node]
            start = low if side else cut
            end = cut if side else high
            n_missing = missing_left if side else missing_right
            mine = below + 1 - side
            if segments.count[mine] == 0:
                continue
            if walked.left[child] == LEAF:
                reach[owner, 0] = start
                reach[owner, 1] = end
                reach[owner, 2] = n_missing
                _judge_leaf(
                    walked, loss, child, rows, row_loss, reach, segments, mine, increase, of_rows
                )
                continue
            height = _push(
                stack, height, child, below // 2, mine, owner, True, start, end, n_missing
            )
