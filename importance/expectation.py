"""The expected loss of one tree when a feature is permuted, without shuffling.

Over all permutations of x_j within the out-of-bag rows, every row meets every donor equally often.
So a row goes both ways at a split on j, each with the share of the donors that would go there;
everywhere else it follows its own values. The donors that are still possible at a node are an
interval of ranks that depends on the node only, so rows travel together: a segment of rows is
divided at splits on other features, and the interval of ranks at splits on j.
"""

from typing import NamedTuple

import numpy as np

from cart.jit import entry_kernel, inline_kernel, kernel
from cart.traverse import pack
from importance import losses


class WalkedTree(NamedTuple):
    """A tree and its out-of-bag rows, prepared. Nodes are those of `cart.traverse.Packed`:
    the right child follows the left one, a leaf is its own left child."""

    slot: np.ndarray  # (n_nodes,) int32: feature, as its position among the features used
    threshold: np.ndarray  # (n_nodes,) float32
    left: np.ndarray  # (n_nodes,) int32
    size: np.ndarray  # (n_nodes,) int32: nodes in the subtree
    cut: np.ndarray  # (n_nodes,) int32: donors that go left
    columns: np.ndarray  # (n_used, n_rows) float32: values of the features used
    features: np.ndarray  # (n_used,) int64: the features used


class Stack(NamedTuple):
    """Nodes that wait, each with its segment of rows and an interval of donor ranks."""

    node: np.ndarray  # int32
    start: np.ndarray  # int32
    end: np.ndarray  # int32
    low: np.ndarray  # int32; in the outer walk: the node's place in depth-first order
    high: np.ndarray  # int32

    @classmethod
    def create(cls, capacity):
        return cls(*(np.empty(capacity, np.int32) for _ in cls._fields))


def walk_tree(tree, X, rows):
    """Prepare a tree for its out-of-bag rows.

    Parameters
    ----------
    tree : object with scikit-learn's node arrays
    X : ndarray of shape (n_samples, n_features), float32
    rows : ndarray of shape (n_rows,), int64

    Returns
    -------
    walked : WalkedTree
    values : ndarray of shape (n_nodes, n_values), float64
        Values of the nodes, in the order of `walked`.
    """
    packed = pack([tree])
    feature = packed.words[::4].view(np.int32)
    threshold = packed.floats[1::4].copy()
    left = packed.words[2::4].view(np.int32).copy()
    is_split = left != np.arange(len(left))
    features, slot = np.unique(feature[is_split], return_inverse=True)
    slots = np.zeros(len(left), np.int32)
    slots[is_split] = slot
    columns = np.ascontiguousarray(X[rows[:, np.newaxis], features].T)
    size = np.empty(len(left), np.int32)
    cut = np.zeros(len(left), np.int32)
    _measure(slots, threshold, left, np.sort(columns, axis=1), size, cut)
    return WalkedTree(slots, threshold, left, size, cut, columns, features), packed.value


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
            np.empty(n_rows),
            np.zeros(n_used, np.int32),
            Stack.create(len(walked.left) // 2 + 2),
            Stack.create(len(walked.left) // 2 + 2),
        )
        _increase_of_all(walked, loss, *scratch, increase)
    return increase


@entry_kernel
def _measure(slot, threshold, left, donors, size, cut):
    """Sizes of the subtrees, and how many donors go left at each split."""
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] == node:
            size[node] = 1
            continue
        size[node] = 1 + size[left[node]] + size[left[node] + 1]
        low = 0
        high = donors.shape[1]
        while low < high:
            middle = (low + high) // 2
            if donors[slot[node], middle] <= threshold[node]:
                low = middle + 1
            else:
                high = middle
        cut[node] = low


@inline_kernel
def _divide(rows, start, end, columns, slot, threshold):
    """Bring rows[start:end] into the order left | right; return where the right side begins."""
    middle = start
    for i in range(start, end):
        row = rows[i]
        rows[i] = rows[middle]
        rows[middle] = row
        middle += columns[slot, row] <= threshold
    return middle


@inline_kernel
def _push(stack, height, node, start, end, low, high):
    stack.node[height] = node
    stack.start[height] = start
    stack.end[height] = end
    stack.low[height] = low
    stack.high[height] = high
    return height + 1


@kernel
def _fill_losses(walked, loss, rows, stack, row_loss):
    """Loss of every row as it is; leaves `rows` in the order of the leaves."""
    height = _push(stack, 0, 0, 0, rows.shape[0], 0, 0)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.start[height]
        end = stack.end[height]
        while walked.left[node] != node and start < end:
            slot = walked.slot[node]
            middle = _divide(rows, start, end, walked.columns, slot, walked.threshold[node])
            node = walked.left[node]
            if middle < end:
                height = _push(stack, height, node + 1, middle, end, 0, 0)
            end = middle
        for i in range(start, end):
            row_loss[rows[i]] = losses.at(loss, node, rows[i])


@kernel
def _expected_loss(walked, loss, top, permuted, moved, n, stack):
    """Sum over moved[:n], rows at node `top`, of the loss expected with `permuted` permuted."""
    n_donors = walked.columns.shape[1]
    total = 0.0
    height = _push(stack, 0, top, 0, n, 0, n_donors)
    while height > 0:
        height -= 1
        node = stack.node[height]
        start = stack.start[height]
        end = stack.end[height]
        low = stack.low[height]
        high = stack.high[height]
        while walked.left[node] != node and start < end and low < high:
            slot = walked.slot[node]
            left = walked.left[node]
            if slot == permuted:
                cut = walked.cut[node]
                if cut < high:
                    height = _push(stack, height, left + 1, start, end, max(low, cut), high)
                high = min(high, cut)
            else:
                middle = _divide(moved, start, end, walked.columns, slot, walked.threshold[node])
                if middle < end:
                    height = _push(stack, height, left + 1, middle, end, low, high)
                end = middle
            node = left
        if low < high:
            loss_here = 0.0
            for i in range(start, end):
                loss_here += losses.at(loss, node, moved[i])
            total += loss_here * (high - low)
    return total / n_donors


@entry_kernel
def _increase_of_all(walked, loss, rows, moved, row_loss, until, outer, inner, increase):
    """Walk the tree; wherever a feature is met for the first time on a path, permute it there.

    `until[s]` is the end, in depth-first order, of the subtree in which slot s has been met.
    """
    _fill_losses(walked, loss, rows, outer, row_loss)
    height = _push(outer, 0, 0, 0, rows.shape[0], 0, 0)
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
            expected = _expected_loss(walked, loss, node, slot, moved, end - start, inner)
            increase[slot] += expected - base
        middle = _divide(rows, start, end, walked.columns, slot, walked.threshold[node])
        if middle < end:
            place_right = place + 1 + walked.size[left]
            height = _push(outer, height, left + 1, middle, end, place_right, 0)
        if start < middle:
            height = _push(outer, height, left, start, middle, place + 1, 0)
