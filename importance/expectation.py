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
from cart.packed import breadth_first, is_in_left_subset
from importance import losses
from importance.narrow import narrow

# All that is asked of a node stands in one place.
NODE = np.dtype(
    [
        ("threshold", np.float64),
        ("left", np.int32),  # place of the left child, which the right one follows; a leaf's own
        ("slot", np.int32),  # feature: its position among the features used
        ("owner", np.int32),  # the feature's group: its position among the groups used
        ("cut", np.int32),  # donors that go left, of those that are not missing
        ("first", np.int32),  # where the subset begins in `lists`, see cart.packed.PackedWide; -1
        ("missing_left", np.int32),  # 1 where missing values go left
    ]
)


class WalkedTree(NamedTuple):
    """A tree and its out-of-bag rows, prepared; nodes stand as in `cart.packed.breadth_first`."""

    nodes: np.ndarray  # (n_nodes,) NODE
    lists: np.ndarray  # uint32: subsets of categories
    columns: np.ndarray  # (n_used, n_rows), of the dtype of X: values of the features used
    groups: np.ndarray  # (n_owners,) int64: the groups used, ascending
    listed: np.ndarray  # (n_owners,) int64: which list of donors is the group's; -1: an interval
    reach: np.ndarray  # (n_owners, 3) int64: first donor, behind the last, how many are missing
    n_levels: int


class Stack(NamedTuple):
    """What waits: nodes, and the donors that an owner had before a split."""

    node: np.ndarray  # int64; below 0: not a node, but donors of owner -1 - node
    depth: np.ndarray  # of the node
    line: np.ndarray  # in `Segments`; of donors: was the owner met before?
    low: np.ndarray  # first donor: a rank, or a place in the list
    high: np.ndarray  # behind the last
    missing: np.ndarray  # how many donors without a value

    @classmethod
    def create(cls, capacity):
        return cls(*(np.empty(capacity, np.int64) for _ in cls._fields))


class Segments(NamedTuple):
    """The rows at a node, by what is free for them. A node and its sibling have a line each."""

    count: np.ndarray  # (n_lines,) int64: segments in the line; the first `count` are set
    owner: np.ndarray  # (n_lines, n_owners + 1) int64: free; the last one, n_owners, is none
    start: np.ndarray  # (n_lines, n_owners + 1) int64: within row `owner` of the array of rows
    end: np.ndarray

    @classmethod
    def create(cls, n_levels, n_owners):
        shape = (2 * n_levels, n_owners + 1)
        return cls(np.zeros(shape[0], np.int64), *(np.empty(shape, np.int64) for _ in range(3)))


def walk_tree(tree, X, rows, group_of):
    """Prepare a tree for its out-of-bag rows.

    Parameters
    ----------
    tree : object with scikit-learn's node arrays
    X : ndarray of shape (n_samples, n_features), float32 or float64, or csr_matrix
    rows : ndarray of shape (n_rows,), int64
    group_of : ndarray of shape (n_features,), int64
        Features with the same number are permuted together.

    Returns
    -------
    walked : WalkedTree
    values : ndarray of shape (n_nodes, n_values), float64
        Values of the nodes, in the order of `walked`.
    """
    tree, features, X = narrow(tree, X, rows)
    order, left = breadth_first(tree)
    columns = np.ascontiguousarray(X.T)
    groups, owner = np.unique(group_of[features], return_inverse=True)
    is_listed = np.bincount(owner, minlength=len(groups)) > 1
    list_start, lists = np.full(len(order), -1), np.empty(0, np.uint32)
    if tree.categories is not None:
        list_start, lists = tree.categories.in_one(tree.is_subset)
        is_listed[owner[tree.feature[list_start >= 0]]] = True
    n_present = len(rows) - np.isnan(columns).sum(axis=1)
    reach = np.zeros((len(groups), 3), np.int64)
    reach[owner, 1] = np.where(is_listed[owner], len(rows), n_present)
    reach[:, 2] = len(rows) - reach[:, 1]
    nodes = np.empty(len(order), NODE)
    n_levels = _fill_nodes(
        order, left, tree.feature, owner, tree.threshold, tree.missing_go_to_left, list_start,
        np.sort(columns, axis=1), n_present, nodes,
    )  # fmt: skip
    listed = np.where(is_listed, np.cumsum(is_listed) - 1, -1)
    values = tree.value.reshape(len(order), -1)[order]
    return WalkedTree(nodes, lists, columns, groups, listed, reach, n_levels), values


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
        donors = np.tile(rows[n_owners], (max(1, walked.listed.max() + 1), 1))
        _increase_of_all(
            walked, loss, rows, donors, np.empty(n_rows), walked.reach.copy(),
            np.zeros(n_owners, np.bool_), Stack.create(3 * walked.n_levels + 3),
            Segments.create(walked.n_levels, n_owners), increase, of_rows,
        )  # fmt: skip
    return (of_rows if by_row else increase) / max(1, n_rows)


@entry_kernel
def _fill_nodes(
    order, left, slots, owners, thresholds, missing_left, list_start, donors, n_present, nodes
):
    """Write the nodes, count their levels; `donors` are the columns sorted, missing values last."""
    n_levels = 1
    end_of_level = 1
    n_placed = 1
    for place in range(order.shape[0]):
        if place == end_of_level:
            n_levels += 1
            end_of_level = n_placed
        node = order[place]
        here = nodes[place]
        here["left"] = left[place]
        if left[place] == place:
            continue
        n_placed = left[place] + 2
        slot = slots[node]
        threshold = thresholds[node]
        here["threshold"] = threshold
        here["slot"] = slot
        here["owner"] = owners[slot]
        here["first"] = list_start[node]
        here["missing_left"] = missing_left[node]
        cut = 0
        n = n_present[slot]
        while n > 0:
            half = (n + 1) // 2
            cut += half * (donors[slot, cut + half - 1] <= threshold)
            n -= half
        here["cut"] = cut
    return n_levels


@inline_kernel
def _divide(walked, here, rows, start, end):
    """Bring rows[start:end] into the order left | right; return where the right side begins."""
    values = walked.columns[here["slot"]]
    threshold = here["threshold"]
    missing_left = here["missing_left"] != 0
    first = here["first"]
    middle = start
    if first >= 0:
        for i in range(start, end):
            row = rows[i]
            rows[i] = rows[middle]
            rows[middle] = row
            x = values[row]
            middle += missing_left if np.isnan(x) else is_in_left_subset(walked.lists, first, x)
        return middle
    for i in range(start, end):
        row = rows[i]
        rows[i] = rows[middle]
        rows[middle] = row
        # A missing value is neither above nor below.
        middle += not values[row] > threshold if missing_left else values[row] <= threshold
    return middle


@inline_kernel
def _divide_donors(walked, here, donors, low, high):
    """The same of the donors that reach a node: behind those that go left."""
    line = walked.listed[here["owner"]]
    if line >= 0:
        return _divide(walked, here, donors[line], low, high)
    return min(max(np.int64(here["cut"]), low), high)


@inline_kernel
def _push(stack, height, node, depth, line, low, high, missing):
    stack.node[height] = node
    stack.depth[height] = depth
    stack.line[height] = line
    stack.low[height] = low
    stack.high[height] = high
    stack.missing[height] = missing
    return height + 1


@inline_kernel
def _add(segments, line, owner, start, end):
    at = segments.count[line]
    segments.owner[line, at] = owner
    segments.start[line, at] = start
    segments.end[line, at] = end
    segments.count[line] = at + 1


@kernel
def _fill_losses(walked, loss, rows, stack, row_loss):
    """Loss of every row as it is; leaves `rows` in the order of the leaves."""
    height = _push(stack, 0, 0, 0, 0, 0, rows.shape[0], 0)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.low[height]
        end = stack.high[height]
        here = walked.nodes[node]
        left = np.int64(here["left"])
        while left != node:
            middle = _divide(walked, here, rows, start, end)
            node = left + 1
            if start < middle:
                if middle < end:
                    height = _push(stack, height, node, 0, 0, middle, end, 0)
                node = left
                end = middle
            here = walked.nodes[node]
            left = np.int64(here["left"])
        for i in range(start, end):
            row_loss[rows[i]] = losses.at(loss, node, rows[i])


@inline_kernel
def _divide_segments(walked, here, rows, segments, line, below, is_met, goes_left, goes_right):
    """Divide the segments of a node among its children, whose lines are `below` and the next.

    Those of the node's owner go to both sides, as far as donors do. An owner that was not met
    before begins with the rows that get to the node by their own values.
    """
    n_owners = rows.shape[0] - 1
    owner = np.int64(here["owner"])
    segments.count[below] = 0
    segments.count[below + 1] = 0
    for k in range(segments.count[line]):
        free = segments.owner[line, k]
        start = segments.start[line, k]
        end = segments.end[line, k]
        if free == n_owners and not is_met:
            for i in range(start, end):
                rows[owner, i] = rows[n_owners, i]
        if free == owner or (free == n_owners and not is_met):
            if goes_left:
                _add(segments, below, owner, start, end)
            if goes_right:
                _add(segments, below + 1, owner, start, end)
        if free != owner:
            middle = _divide(walked, here, rows[free], start, end)
            if start < middle:
                _add(segments, below, free, start, middle)
            if middle < end:
                _add(segments, below + 1, free, middle, end)


@kernel
def _judge_leaf(walked, loss, leaf, rows, row_loss, reach, segments, line, increase, of_rows):
    """Add what the rows in a leaf lose beyond the loss of their own leaf, times the donors."""
    n_owners = reach.shape[0]
    for k in range(segments.count[line]):
        owner = segments.owner[line, k]
        if owner == n_owners:
            continue
        n_donors = reach[owner, 1] - reach[owner, 0] + reach[owner, 2]
        beyond = 0.0
        for i in range(segments.start[line, k], segments.end[line, k]):
            row = rows[owner, i]
            difference = losses.at(loss, leaf, row) - row_loss[row]
            beyond += difference
            if of_rows.shape[0] > 0:
                of_rows[owner, row] += n_donors * difference
        increase[owner] += n_donors * beyond


@entry_kernel
def _increase_of_all(
    walked, loss, rows, donors, row_loss, reach, is_met, stack, segments, increase, of_rows
):
    """Sums over rows and donors of the loss beyond that of the row's own leaf.

    `reach` holds the donors of every owner at the node at hand, `is_met` whether a split on the
    way there was the owner's.
    """
    n_owners = reach.shape[0]
    _fill_losses(walked, loss, rows[n_owners], stack, row_loss)
    _add(segments, 0, n_owners, 0, rows.shape[1])
    height = _push(stack, 0, 0, 0, 0, 0, 0, 0)
    while height > 0:
        height -= 1
        node = stack.node[height]
        line = stack.line[height]
        if node < 0:
            owner = -1 - node
            is_met[owner] = line != 0
            reach[owner, 0] = stack.low[height]
            reach[owner, 1] = stack.high[height]
            reach[owner, 2] = stack.missing[height]
            continue
        here = walked.nodes[node]
        left = np.int64(here["left"])
        if left == node:
            _judge_leaf(
                walked, loss, node, rows, row_loss, reach, segments, line, increase, of_rows
            )
            continue
        depth = stack.depth[height] + 1
        owner = np.int64(here["owner"])
        low = reach[owner, 0]
        high = reach[owner, 1]
        missing = reach[owner, 2]
        cut = _divide_donors(walked, here, donors, low, high)
        missing_left = missing * here["missing_left"]
        missing_right = missing - missing_left
        _divide_segments(
            walked, here, rows, segments, line, 2 * depth, is_met[owner],
            cut - low + missing_left > 0, high - cut + missing_right > 0,
        )  # fmt: skip
        # What comes last is pushed first: left, right, and the donors as they were.
        change = -1 - owner
        height = _push(stack, height, change, 0, is_met[owner], low, high, missing)
        if segments.count[2 * depth + 1] > 0:
            height = _push(stack, height, left + 1, depth, 2 * depth + 1, 0, 0, 0)
            height = _push(stack, height, change, 0, 1, cut, high, missing_right)
        if segments.count[2 * depth] > 0:
            height = _push(stack, height, left, depth, 2 * depth, 0, 0, 0)
            height = _push(stack, height, change, 0, 1, low, cut, missing_left)
