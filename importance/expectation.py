"""The expected loss of one tree when a feature is permuted, without shuffling.

Over all permutations of x_j within the out-of-bag rows, every row meets every donor equally often.
So a row goes both ways at a split on j, each with the share of the donors that would go there;
everywhere else it follows its own values. Most donors leave its path only once: what is walked is
the detour from there on, to leaves whose loss is compared with that of the row's own leaf.

The donors that are still possible at a node are an interval of ranks, and the missing values or
none of them. Of categories, and of columns permuted together, they are a list of donors, divided as
the rows are. They depend on the node only, so rows travel together: a segment of rows is divided at
splits on other features, the donors at splits on what is permuted.
"""

from typing import NamedTuple

import numpy as np

from cart.jit import entry_kernel, inline_kernel, kernel
from cart.packed import breadth_first, is_in_left_subset
from importance import losses
from importance.narrow import narrow

# All that a step needs stands in one place: a third of the time was waiting for memory.
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


class Stack(NamedTuple):
    """Nodes that wait, each with its segment of rows and its donors."""

    node: np.ndarray  # int64; below 0: not a node, but the donors of owner -1 - node
    start: np.ndarray
    end: np.ndarray
    low: np.ndarray  # first donor: a rank, or a place in the list
    high: np.ndarray  # behind the last
    missing: np.ndarray  # how many donors without a value

    @classmethod
    def create(cls, capacity):
        return cls(*(np.empty(capacity, np.int64) for _ in cls._fields))


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
    _fill_nodes(
        order, left, tree.feature, owner, tree.threshold, tree.missing_go_to_left, list_start,
        np.sort(columns, axis=1), n_present, nodes,
    )  # fmt: skip
    listed = np.where(is_listed, np.cumsum(is_listed) - 1, -1)
    values = tree.value.reshape(len(order), -1)[order]
    return WalkedTree(nodes, lists, columns, groups, listed, reach), values


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
    rows = np.arange(n_rows)
    of_rows = np.zeros((n_owners if by_row else 0, n_rows))
    if n_owners and n_rows:
        n_lists = max(1, walked.listed.max() + 1)
        scratch = (
            rows,
            np.tile(rows, (n_lists, 1)),
            np.empty(n_rows),
            walked.reach.copy(),
            Stack.create(2 * len(walked.nodes) + 6),
            Stack.create(len(walked.nodes) // 2 + 2),
        )
        _increase_of_all(walked, loss, *scratch, increase, of_rows)
    return (of_rows if by_row else increase) / max(1, n_rows)


@entry_kernel
def _fill_nodes(
    order, left, slots, owners, thresholds, missing_left, list_start, donors, n_present, nodes
):
    """Write the nodes; `donors` are the columns sorted, missing values last."""
    for place in range(order.shape[0]):
        node = order[place]
        here = nodes[place]
        here["left"] = left[place]
        here["owner"] = -1
        if left[place] == place:
            continue
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
def _push(stack, height, node, start, end, low, high, missing):
    stack.node[height] = node
    stack.start[height] = start
    stack.end[height] = end
    stack.low[height] = low
    stack.high[height] = high
    stack.missing[height] = missing
    return height + 1


@kernel
def _fill_losses(walked, loss, rows, stack, row_loss):
    """Loss of every row as it is; leaves `rows` in the order of the leaves."""
    height = _push(stack, 0, 0, 0, rows.shape[0], 0, 0, 0)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.start[height]
        end = stack.end[height]
        here = walked.nodes[node]
        left = np.int64(here["left"])
        while left != node:
            middle = _divide(walked, here, rows, start, end)
            node = left + 1
            if start < middle:
                if middle < end:
                    height = _push(stack, height, node, middle, end, 0, 0, 0)
                node = left
                end = middle
            here = walked.nodes[node]
            left = np.int64(here["left"])
        for i in range(start, end):
            row_loss[rows[i]] = losses.at(loss, node, rows[i])


@kernel
def _detour(
    walked, loss, top, owner, rows, start, end, low, high, missing, donors, row_loss, stack, of_rows
):
    """Sum over rows[start:end] and over donors of the loss beyond that of the row's own leaf.

    The rows are at node `top`, where their own values would not bring them, in the places of
    the donors; there are some of both. With `of_rows` the sums of each row are added to it.
    """
    total = 0.0
    height = _push(stack, 0, top, start, end, low, high, missing)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.start[height]
        end = stack.end[height]
        low = stack.low[height]
        high = stack.high[height]
        missing = stack.missing[height]
        here = walked.nodes[node]
        left = np.int64(here["left"])
        while left != node:
            node = left + 1
            if here["owner"] == owner:
                cut = _divide_donors(walked, here, donors, low, high)
                missing_here = missing * here["missing_left"]
                missing -= missing_here
                if cut - low + missing_here > 0:
                    if high - cut + missing > 0:
                        height = _push(stack, height, node, start, end, cut, high, missing)
                    node = left
                    high = cut
                    missing = missing_here
                else:
                    low = cut
            else:
                middle = _divide(walked, here, rows, start, end)
                if start < middle:
                    if middle < end:
                        height = _push(stack, height, node, middle, end, low, high, missing)
                    node = left
                    end = middle
            here = walked.nodes[node]
            left = np.int64(here["left"])
        n_here = high - low + missing
        if of_rows.shape[0] > 0:
            for i in range(start, end):
                row = rows[i]
                of_rows[owner, row] += n_here * (losses.at(loss, node, row) - row_loss[row])
        else:
            beyond = 0.0
            for i in range(start, end):
                beyond += losses.at(loss, node, rows[i]) - row_loss[rows[i]]
            total += n_here * beyond
    return total


@entry_kernel
def _increase_of_all(walked, loss, rows, donors, row_loss, reach, outer, inner, increase, of_rows):
    """Walk the tree; at every split send each row the other way too, with the donors that go there.

    `reach` holds the donors of every owner at the node at hand. Sums are over rows and donors.
    """
    _fill_losses(walked, loss, rows, outer, row_loss)
    height = _push(outer, 0, 0, 0, rows.shape[0], 0, 0, 0)
    while height > 0:
        height -= 1
        node = outer.node[height]
        if node < 0:
            reach[-1 - node, 0] = outer.low[height]
            reach[-1 - node, 1] = outer.high[height]
            reach[-1 - node, 2] = outer.missing[height]
            continue
        here = walked.nodes[node]
        left = np.int64(here["left"])
        if left == node:
            continue
        start = outer.start[height]
        end = outer.end[height]
        owner = np.int64(here["owner"])
        low = reach[owner, 0]
        high = reach[owner, 1]
        missing = reach[owner, 2]
        cut = _divide_donors(walked, here, donors, low, high)
        missing_left = missing * here["missing_left"]
        missing_right = missing - missing_left
        middle = _divide(walked, here, rows, start, end)
        if start < middle and high - cut + missing_right > 0:
            increase[owner] += _detour(
                walked, loss, left + 1, owner, rows, start, middle, cut, high, missing_right,
                donors, row_loss, inner, of_rows,
            )  # fmt: skip
        if middle < end and cut - low + missing_left > 0:
            increase[owner] += _detour(
                walked, loss, left, owner, rows, middle, end, low, cut, missing_left,
                donors, row_loss, inner, of_rows,
            )  # fmt: skip
        # What comes last is pushed first: left, right, and the donors as they were.
        height = _push(outer, height, -1 - owner, 0, 0, low, high, missing)
        if middle < end:
            height = _push(outer, height, left + 1, middle, end, 0, 0, 0)
            height = _push(outer, height, -1 - owner, 0, 0, cut, high, missing_right)
        if start < middle:
            height = _push(outer, height, left, start, middle, 0, 0, 0)
            height = _push(outer, height, -1 - owner, 0, 0, low, cut, missing_left)
