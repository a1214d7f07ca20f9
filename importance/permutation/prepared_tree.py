"""A tree prepared for its out-of-bag rows: the columns it uses, and thresholds as ranks.

columns[f]             [ 3  1  nan  2  2 ]    values of the rows
ranked                 [ 1  2  2  3  nan ]    a split at 2.5: n_below = 3, threshold = 2
rows[start:end]        [ left | right ]       after `divide`
"""

from typing import Any, NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.tree.nodes import LEAF, is_in_left_subset
from importance.core import losses
from importance.core.used_features import Test, restrict_to_used


class PreparedTree(NamedTuple):
    """A tree together with its out-of-bag rows, laid out for the kernels."""

    n_levels: int  # of the tree
    n_samples: np.ndarray  # (n_nodes,) int32: n_node_samples
    left: np.ndarray  # (n_nodes,) int32: children_left
    right: np.ndarray  # (n_nodes,) int32: children_right
    used_index: np.ndarray  # (n_nodes,) int32: feature, as its position among the features used
    threshold: np.ndarray  # (n_nodes,), of the dtype of X: the largest donor that goes left
    n_below: np.ndarray  # (n_nodes,) int64: how many donors are at or below it
    missing_left: np.ndarray  # (n_nodes,) uint8: whether missing values go left
    list_start: np.ndarray  # (n_nodes,) int64: where its subset begins in `lists`; -1 if none
    lists: np.ndarray  # uint32: subsets, see cart.tree.nodes.Categories.in_one
    columns: np.ndarray  # (n_used, n_rows), of the dtype of X: values of the features used
    group_index: np.ndarray  # (n_used,) int64: index of a feature's group in `groups`
    groups: np.ndarray  # (n_groups,) int64: the groups used, ascending
    donor_list: np.ndarray  # (n_groups,) int64: number of the group's list; -1: an interval
    donor_range: np.ndarray  # (n_groups, 3) int64: first donor, end, number of missing ones


def prepare_tree(
    tree: Any, X: Any, rows: np.ndarray, group_of: np.ndarray | None = None
) -> tuple[PreparedTree, np.ndarray]:
    """Prepare a tree for its out-of-bag rows; return it and the values of its nodes.

    Features with the same number in `group_of`, (n_features,), are permuted together; by default
    each is a group, and `groups` are the features used.
    """
    tree, features, X = restrict_to_used(tree, X, rows)
    columns, n_nodes = np.ascontiguousarray(X.T), tree.node_count
    groups, group_index = features, np.arange(len(features))
    if group_of is not None:
        groups = group_of[features]
        if (groups[1:] <= groups[:-1]).any():
            groups, group_index = np.unique(groups, return_inverse=True)
    list_start, lists, donor_list = _lists_of(tree, groups, group_index)
    ranked = np.sort(columns, axis=1)
    donor_range = np.zeros((len(groups), 3), np.int64)
    donor_range[:, 1] = len(rows)
    missing_left = np.zeros(n_nodes, np.uint8)
    if len(rows) and np.isnan(ranked[:, -1]).any():
        missing_left[:] = tree.missing_go_to_left
        n_missing = np.isnan(columns).sum(axis=1)
        donor_range[group_index, 2] = np.where(donor_list[group_index] >= 0, 0, n_missing)
        donor_range[:, 1] -= donor_range[:, 2]
    prepared = PreparedTree(
        0, tree.n_node_samples, tree.children_left, tree.children_right, tree.feature,
        np.empty(n_nodes, ranked.dtype), np.empty(n_nodes, np.int64), missing_left, list_start,
        lists, columns, group_index, groups, donor_list, donor_range,
    )  # fmt: skip
    found = np.empty((2, n_nodes), np.uint64)
    threshold = np.require(tree.threshold, requirements=["C", "W"])
    n_levels = _place_thresholds(prepared, threshold, ranked.ravel(), len(rows), found)
    return prepared._replace(n_levels=n_levels), tree.value.reshape(n_nodes, -1)


def _lists_of(tree, groups, group_index):
    """Subsets of categories of the nodes, and the number of the donor list of each group."""
    list_start, lists = np.full(tree.node_count, -1), np.empty(0, np.uint32)
    donor_list = np.full(len(groups), -1)
    if len(groups) < len(group_index) or tree.categories is not None:
        is_listed = np.bincount(group_index, minlength=len(groups)) > 1
        if tree.categories is not None:
            list_start, lists = tree.categories.in_one(tree.is_subset)
            is_listed[group_index[tree.feature[list_start >= 0]]] = True
        donor_list[is_listed] = np.arange(np.count_nonzero(is_listed))
    return list_start, lists, donor_list


@entry_kernel
def _place_thresholds(prepared, threshold, ranked, n_rows, found):
    """Write for every split the largest donor that goes left, and how many do; return n_levels.

    `ranked` holds the values of one feature after another, each ascending. All binary searches
    advance together, so that their memory accesses overlap instead of waiting for one another.
    `found` has room for 2 words per node: the splits, and the current position of each search.
    """
    n_levels, n_splits = _list_splits(prepared, n_rows, found)
    n = n_rows
    while n > 0:
        half = np.uint64((n + 1) // 2)
        for k in range(n_splits):
            here = found[1, k]
            above = here + half
            found[1, k] = above if ranked[above - 1] <= threshold[found[0, k]] else here
        n -= np.int64(half)
    for k in range(n_splits):
        node = found[0, k]
        n_below = np.int64(found[1, k]) - prepared.used_index[node] * n_rows
        prepared.n_below[node] = n_below
        prepared.threshold[node] = ranked[found[1, k] - 1] if n_below > 0 else -np.inf
    return n_levels


@inline_kernel
def _list_splits(prepared, n_rows, found):
    """List the splits, each with the start of its feature; return the number of levels and of
    splits."""
    level = prepared.n_below  # borrowed as scratch; children come after their parents
    level[0] = 1
    n_levels = 0
    n_splits = 0
    for node in range(prepared.left.shape[0]):
        n_levels = max(n_levels, level[node])
        if prepared.left[node] != LEAF:
            level[prepared.left[node]] = level[node] + 1
            level[prepared.right[node]] = level[node] + 1
        found[0, n_splits] = node
        found[1, n_splits] = prepared.used_index[node] * n_rows
        n_splits += prepared.left[node] != LEAF
    return n_levels, n_splits


@inline_kernel
def test_of(prepared: PreparedTree, node: int) -> Test:
    """The test that a split applies to rows."""
    return Test(
        prepared.columns[prepared.used_index[node]], prepared.threshold[node],
        prepared.missing_left[node] != 0, prepared.list_start[node], prepared.lists,
    )  # fmt: skip


@inline_kernel
def divide(test: Test, rows: np.ndarray, start: int, end: int) -> int:
    """Partition rows[start:end] into left | right; return where the right side begins."""
    values, threshold, missing_left, first, lists = test
    middle = start
    if first >= 0:
        for i in range(start, end):
            row = rows[i]
            rows[i] = rows[middle]
            rows[middle] = row
            x = values[row]
            if np.isnan(x):
                middle += missing_left
            else:
                middle += is_in_left_subset(lists, first, x)
    elif missing_left:
        for i in range(start, end):
            row = rows[i]
            rows[i] = rows[middle]
            rows[middle] = row
            middle += not values[row] > threshold  # a missing value is not above
    else:
        for i in range(start, end):
            row = rows[i]
            rows[i] = rows[middle]
            rows[middle] = row
            middle += values[row] <= threshold
    return middle


@kernel
def fill_losses(
    prepared: PreparedTree, loss: losses.Loss, rows: np.ndarray, reached: np.ndarray,
    row_loss: np.ndarray,
) -> None:  # fmt: skip
    """Write the loss of every row as it is, and sort `rows` by leaf.

    Afterwards rows[reached[node, 0]:reached[node, 1]] are the rows of a node. `reached` must be 0
    on entry.
    """
    reached[0, 1] = rows.shape[0]
    for node in range(prepared.left.shape[0]):  # children come after their parents
        start = np.int64(reached[node, 0])
        end = np.int64(reached[node, 1])
        if start == end:
            continue
        left = prepared.left[node]
        if left == LEAF:
            for i in range(start, end):
                row_loss[rows[i]] = losses.at(loss, node, rows[i])
            continue
        middle = divide(test_of(prepared, node), rows, start, end)
        reached[left, 0] = start
        reached[left, 1] = middle
        reached[prepared.right[node], 0] = middle
        reached[prepared.right[node], 1] = end
