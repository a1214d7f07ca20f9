"""Trees with their cover: the share of a node's weight that went to each of its children.

    node               share             before
    0  x < 3           1                 1                  the root
    1  |- z < 1        0.4  of node 0    1 (no z above)
    2  |  |- x < 2     0.5  of node 1    0.4 (x at 0)
    3  |  |  |- leaf   0.1  of node 2    1

`before` is the product of the shares that the earlier splits on the node's feature have along the
path, 1 if there are none; `earlier` is the depth of the last of these splits.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.threads import in_parts
from cart.tree.nodes import LEAF, has_categories, nodes_of
from importance.core.used_features import Test, number_features

_LEAST_NODES = 50_000  # per thread


class CoveredTrees(NamedTuple):
    """Trees one after another; tree t has the nodes start[t]:start[t + 1], numbered from 0.

    Features are numbered among those that a tree uses, which are in `features` from start[t] on.
    """

    start: np.ndarray  # (n_trees + 1,) int64
    n_used: np.ndarray  # (n_trees,) int64: features that a tree uses
    features: np.ndarray  # (n_nodes,) int64: columns of X; see above
    children: np.ndarray  # (n_nodes, 2) int32: left and right; LEAF
    feature: np.ndarray  # (n_nodes,) int32: number among those used; 0 in a leaf
    threshold: np.ndarray  # (n_nodes,) float64
    missing_left: np.ndarray  # (n_nodes,) uint8
    list_start: np.ndarray  # (n_nodes,) int64: start of the subset in `lists`; -1 if none
    lists: np.ndarray  # uint32: see cart.tree.nodes.Categories.in_one
    share: np.ndarray  # (n_nodes,) float64: of the weight of the parent
    before: np.ndarray  # (n_nodes,) float64: see above
    earlier: np.ndarray  # (n_nodes,) int32: see above; -1 if there is none
    mean: np.ndarray  # (n_nodes, n_outputs) float64: mean of the leaves below, by their cover
    depth: np.ndarray  # (n_trees,) int64: splits on the longest path
    distinct: np.ndarray  # (n_trees,) int64: largest number of distinct features on a path


@inline_kernel
def tree_at(trees, t):
    """One of the trees, as CoveredTrees of its own."""
    first, end = trees.start[t], trees.start[t + 1]
    return CoveredTrees(
        trees.start[t : t + 2], trees.n_used[t : t + 1],
        trees.features[first : first + trees.n_used[t]], trees.children[first:end],
        trees.feature[first:end], trees.threshold[first:end], trees.missing_left[first:end],
        trees.list_start[first:end], trees.lists, trees.share[first:end], trees.before[first:end],
        trees.earlier[first:end], trees.mean[first:end], trees.depth[t : t + 1],
        trees.distinct[t : t + 1],
    )  # fmt: skip


@inline_kernel
def test_of(tree, values, node):
    """The test of a node's split, for rows with these values of its feature."""
    return Test(
        values, tree.threshold[node], tree.missing_left[node] != 0, tree.list_start[node],
        tree.lists,
    )  # fmt: skip


def cover_trees(trees: list, values: slice, n_jobs: int | None = None) -> CoveredTrees:
    """Lay out trees together with their cover.

    Parameters
    ----------
    trees : list of objects with scikit-learn's node arrays
    values : slice
        Which outputs, or classes, of the leaves to explain.
    n_jobs : int or None

    Raises
    ------
    ValueError
        If a node has negative weight, or more than its parent: the fit had negative weights.
    """
    nodes = [nodes_of(tree) for tree in trees]
    sizes = [len(of.children_left) for of in nodes]
    n_nodes, n_features = sum(sizes), max(tree.n_features for tree in trees)
    n_outputs = nodes[0].value[:1, 0, values].shape[1]
    list_start, lists = _lists(trees, sizes)
    covered = CoveredTrees(
        np.concatenate(([0], np.cumsum(sizes))), np.zeros(len(trees), np.int64),
        np.empty(n_nodes, np.int64), np.empty((n_nodes, 2), np.int32), np.empty(n_nodes, np.int32),
        np.empty(n_nodes), np.empty(n_nodes, np.uint8), list_start, lists, np.empty(n_nodes),
        np.empty(n_nodes), np.empty(n_nodes, np.int32), np.empty((n_nodes, n_outputs)),
        *np.zeros((2, len(trees)), np.int64),
    )  # fmt: skip
    cover, are_right = np.empty((n_nodes, 2)), []

    def fill(first: int, end: int) -> None:
        for t in range(first, end):
            own, of = slice(*covered.start[t : t + 2]), nodes[t]
            covered.children[own, 0], covered.children[own, 1] = of.children_left, of.children_right
            covered.feature[own], covered.threshold[own] = of.feature, of.threshold
            covered.missing_left[own] = of.missing_go_to_left
            covered.mean[own] = of.value[:, 0, values]
            cover[own, 0], cover[own, 1] = of.weighted_n_node_samples, of.n_node_samples
        scratch = np.empty((3, max(sizes)), np.int64)
        span = np.array([first, end])
        are_right.append(_fill(covered, span, cover, np.full(n_features, -1), scratch))

    in_parts(fill, len(trees), n_jobs, min_part=1 + _LEAST_NODES * len(trees) // n_nodes)
    if not all(are_right):
        raise ValueError(
            "A node of the tree has a negative weight, or more weight than its parent: the fit had "
            "negative sample weights, for which SHAP values by cover are undefined."
        )
    return covered


def _lists(trees, sizes):
    """Start of each node's subset, and all subsets, see `cart.tree.nodes.Categories.in_one`."""
    starts, lists = [], [np.empty(0, np.uint32)]
    for tree, size in zip(trees, sizes, strict=True):
        start, listed = np.full(size, -1), lists[0]
        if has_categories(tree):
            start, listed = tree.categories.in_one(tree.is_subset)
            start[start >= 0] += sum(map(len, lists))
        starts.append(start)
        lists.append(listed)
    return np.concatenate(starts), np.concatenate(lists)


@entry_kernel
def _fill(trees, span, cover, number, scratch):
    """Fill in what follows from the nodes of some trees; return False if a weight is negative.

    `cover` holds the weight and the sample count of every node, `number` an entry of -1 for each
    feature, and `scratch` three entries for every node of a tree.
    """
    is_right = True
    for t in range(span[0], span[1]):
        first, end = trees.start[t], trees.start[t + 1]
        trees.n_used[t] = number_features(
            trees.children[first:end, 0], trees.feature[first:end], number,
            trees.features[first:end],
        )  # fmt: skip
        tree = tree_at(trees, t)
        is_right &= _share_out(tree, cover[first:end])
        _follow_paths(tree, scratch)
        _take_means(tree)
    return is_right


@inline_kernel
def _share_out(tree, cover):
    """Write the share of every node in the weight of its parent, or in its samples if that is 0.

    Returns False if a share is not between 0 and 1.
    """
    is_right = True
    tree.share[0] = 1.0
    for node in range(cover.shape[0]):
        if tree.children[node, 0] == LEAF:
            continue
        weight, n_samples = cover[node]
        for side in range(2):
            child = tree.children[node, side]
            is_right &= 0.0 <= cover[child, 0] <= weight * (1.0 + 1e-9)
            if weight > 0.0:
                tree.share[child] = cover[child, 0] / weight
            else:
                tree.share[child] = cover[child, 1] / max(n_samples, 1.0)
    return is_right


@inline_kernel
def _follow_paths(tree, scratch):
    """Write `before`, `earlier`, and the most splits and distinct features on any path."""
    parent, n_splits, n_distinct = scratch
    parent[0], n_splits[0], n_distinct[0] = -1, 0, 0
    for node in range(tree.feature.shape[0]):  # children come after their parents
        tree.depth[0] = max(tree.depth[0], n_splits[node])
        tree.distinct[0] = max(tree.distinct[0], n_distinct[node])
        tree.before[node], tree.earlier[node] = 1.0, -1
        if tree.children[node, 0] == LEAF:
            continue
        here, above = np.int64(node), parent[node]
        while above >= 0 and tree.feature[above] != tree.feature[node]:
            here, above = above, parent[above]
        if above >= 0:
            tree.before[node] = tree.before[above] * tree.share[here]
            tree.earlier[node] = n_splits[above]
        for side in range(2):
            child = tree.children[node, side]
            parent[child] = node
            n_splits[child] = n_splits[node] + 1
            n_distinct[child] = n_distinct[node] + (above < 0)


@inline_kernel
def _take_means(tree):
    """Write the mean of the leaves below each split, by cover."""
    for node in range(tree.feature.shape[0] - 1, -1, -1):
        left, right = np.int64(tree.children[node, 0]), np.int64(tree.children[node, 1])
        if left != LEAF:
            for k in range(tree.mean.shape[1]):
                tree.mean[node, k] = (
                    tree.share[left] * tree.mean[left, k] + tree.share[right] * tree.mean[right, k]
                )
