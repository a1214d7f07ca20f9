"""The expected loss of one tree when a feature is permuted, without shuffling.

Over all permutations of x_j within the out-of-bag rows, every row meets every donor equally often.
So a row goes both ways at a split on j, each with the share of the donors that would go there;
everywhere else it follows its own values. The donors that are still possible at a node are an
interval of ranks, and the missing values or none of them; of categories they are a segment of
donors, divided as the rows are. They depend on the node only, so rows travel together: a segment
of rows is divided at splits on other features, the donors at splits on j.
"""

from typing import NamedTuple

import numpy as np

from cart.jit import entry_kernel, inline_kernel, kernel
from cart.packed import SINGLE, breadth_first, is_in_left_subset, round_down
from importance import losses
from importance.narrow import narrow


class WalkedTree(NamedTuple):
    """A tree and its out-of-bag rows, prepared. Nodes stand as in `cart.packed.breadth_first`:
    the right child follows the left one, a leaf is its own left child."""

    slot: np.ndarray  # (n_nodes,) int32: feature, as its position among the features used
    threshold: np.ndarray  # (n_nodes,), of the dtype of X
    left: np.ndarray  # (n_nodes,) int32
    missing_left: np.ndarray  # (n_nodes,) bool: where missing values go
    size: np.ndarray  # (n_nodes,) int32: nodes in the subtree
    cut: np.ndarray  # (n_nodes,) int32: donors that go left, of those that are not missing
    list_start: np.ndarray  # (n_nodes,) int64: of the subsets, as in cart.packed.PackedWide
    lists: np.ndarray  # uint32
    columns: np.ndarray  # (n_used, n_rows), of the dtype of X: values of the features used
    n_missing: np.ndarray  # (n_used,) int32: missing values among them
    features: np.ndarray  # (n_used,) int64: the features used


class Stack(NamedTuple):
    """Nodes that wait, each with its segment of rows and its donors."""

    node: np.ndarray  # int32
    start: np.ndarray  # int32
    end: np.ndarray  # int32
    low: np.ndarray  # int32: lowest rank; in the outer walk the place in depth-first order
    high: np.ndarray  # int32: behind the highest rank
    missing: np.ndarray  # int32: how many donors without a value

    @classmethod
    def create(cls, capacity):
        return cls(*(np.empty(capacity, np.int32) for _ in cls._fields))


def walk_tree(tree, X, rows):
    """Prepare a tree for its out-of-bag rows.

    Parameters
    ----------
    tree : object with scikit-learn's node arrays
    X : ndarray of shape (n_samples, n_features), float32 or float64, or csr_matrix
    rows : ndarray of shape (n_rows,), int64

    Returns
    -------
    walked : WalkedTree
    values : ndarray of shape (n_nodes, n_values), float64
        Values of the nodes, in the order of `walked`.
    """
    tree, features, X = narrow(tree, X, rows)
    order, left = breadth_first(tree)
    threshold = tree.threshold[order]
    columns = np.ascontiguousarray(X.T)
    list_start, lists = np.full(len(order), -1), np.empty(0, np.uint32)
    if tree.categories is not None:
        list_start, lists = tree.categories.in_one(tree.is_subset)
    walked = WalkedTree(
        slot=tree.feature[order].astype(np.int32),
        threshold=round_down(threshold) if X.dtype == SINGLE else threshold,
        left=left.astype(np.int32),
        missing_left=tree.missing_go_to_left[order].astype(bool),
        size=np.empty(len(order), np.int32),
        cut=np.zeros(len(order), np.int32),
        list_start=list_start[order],
        lists=lists,
        columns=columns,
        n_missing=np.isnan(columns).sum(axis=1, dtype=np.int32),
        features=features,
    )
    _measure(walked, np.sort(columns, axis=1))
    return walked, tree.value.reshape(len(order), -1)[order]


def expected_increase(walked, loss):
    """Expected loss with each feature permuted, less the loss as it is: sums over the rows.

    Parameters
    ----------
    walked : WalkedTree
    loss : see importance.losses
        Of `walked`'s nodes and rows.

    Returns
    -------
    ndarray of shape (n_used,), float64
    """
    n_used, n_rows = walked.columns.shape
    increase = np.zeros(n_used)
    if n_used and n_rows:
        scratch = (
            np.arange(n_rows, dtype=np.int32),
            np.empty(n_rows, np.int32),
            np.arange(n_rows, dtype=np.int32),
            np.empty(n_rows),
            np.zeros(n_used, np.int32),
            Stack.create(len(walked.left) // 2 + 2),
            Stack.create(len(walked.left) // 2 + 2),
        )
        _increase_of_all(walked, loss, *scratch, increase)
    return increase


@entry_kernel
def _measure(walked, donors):
    """Sizes of the subtrees, and how many donors go left at each split; missing values are last."""
    left, size = walked.left, walked.size
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] == node:
            size[node] = 1
            continue
        size[node] = 1 + size[left[node]] + size[left[node] + 1]
        slot = walked.slot[node]
        low = 0
        high = donors.shape[1] - walked.n_missing[slot]
        while low < high:
            middle = (low + high) // 2
            if donors[slot, middle] <= walked.threshold[node]:
                low = middle + 1
            else:
                high = middle
        walked.cut[node] = low


@inline_kernel
def _divide(walked, node, rows, start, end):
    """Bring rows[start:end] into the order left | right; return where the right side begins."""
    values = walked.columns[walked.slot[node]]
    threshold = walked.threshold[node]
    missing_left = walked.missing_left[node]
    first = walked.list_start[node]
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
        while walked.left[node] != node and start < end:
            middle = _divide(walked, node, rows, start, end)
            node = walked.left[node]
            if middle < end:
                height = _push(stack, height, node + 1, middle, end, 0, 0, 0)
            end = middle
        for i in range(start, end):
            row_loss[rows[i]] = losses.at(loss, node, rows[i])


@kernel
def _expected_loss(walked, loss, top, permuted, moved, n, donors, stack):
    """Sum over moved[:n], rows at node `top`, of the loss expected with `permuted` permuted.

    `donors` is a permutation of the rows.
    """
    n_donors = walked.columns.shape[1]
    is_subset = walked.list_start[top] >= 0
    n_missing = 0 if is_subset else walked.n_missing[permuted]
    total = 0.0
    height = _push(stack, 0, top, 0, n, 0, n_donors - n_missing, n_missing)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.start[height]
        end = stack.end[height]
        low = stack.low[height]
        high = stack.high[height]
        missing = stack.missing[height]
        while walked.left[node] != node and start < end and high - low + missing > 0:
            left = walked.left[node]
            if walked.slot[node] == permuted:
                if is_subset:
                    cut = _divide(walked, node, donors, low, high)
                else:
                    cut = min(max(walked.cut[node], low), high)
                missing_right = 0 if walked.missing_left[node] else missing
                if high - cut + missing_right > 0:
                    height = _push(stack, height, left + 1, start, end, cut, high, missing_right)
                high = cut
                missing -= missing_right
            else:
                middle = _divide(walked, node, moved, start, end)
                if middle < end:
                    height = _push(stack, height, left + 1, middle, end, low, high, missing)
                end = middle
            node = left
        n_here = high - low + missing
        if n_here > 0:
            loss_here = 0.0
            for i in range(start, end):
                loss_here += losses.at(loss, node, moved[i])
            total += loss_here * n_here
    return total / n_donors


@entry_kernel
def _increase_of_all(walked, loss, rows, moved, donors, row_loss, until, outer, inner, increase):
    """Walk the tree; wherever a feature is met for the first time on a path, permute it there.

    `until[s]` is the end, in depth-first order, of the subtree in which slot s has been met.
    """
    _fill_losses(walked, loss, rows, outer, row_loss)
    height = _push(outer, 0, 0, 0, rows.shape[0], 0, 0, 0)
    while height > 0:
        height -= 1
        node = outer.node[height]
        start = outer.start[height]
        end = outer.end[height]
        place = outer.low[height]
        left = walked.left[node]
        if left == node:
            continue
        slot = walked.slot[node]
        if place >= until[slot]:
            until[slot] = place + walked.size[node]
            base = 0.0
            for i in range(start, end):
                moved[i - start] = rows[i]
                base += row_loss[rows[i]]
            expected = _expected_loss(walked, loss, node, slot, moved, end - start, donors, inner)
            increase[slot] += expected - base
        middle = _divide(walked, node, rows, start, end)
        if middle < end:
            place_right = place + 1 + walked.size[left]
            height = _push(outer, height, left + 1, middle, end, place_right, 0, 0)
        if start < middle:
            height = _push(outer, height, left, start, middle, place + 1, 0, 0)
