"""Trees with their cover: what share of the weight of a node went to each of its children.

    node               share             before
    0  x < 3           1                 1                  the root
    1  |- z < 1        0.4  of node 0    1 (no z above)
    2  |  |- x < 2     0.5  of node 1    0.4 (x at 0)
    3  |  |  |- leaf   0.1  of node 2    1

`before` is the product of the shares along the path at the earlier splits on the feature of the
node, and 1 where there are none.
"""

from typing import Any, NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.tree.nodes import LEAF, nodes_of
from cart.tree.packed import is_in_left_subset


class CoveredTrees(NamedTuple):
    """Trees one behind the other; tree t owns nodes start[t]:start[t + 1], which count from 0.

    Features are numbered among those that a tree uses: features[used[t]:used[t + 1]].
    """

    start: np.ndarray  # (n_trees + 1,) int64
    used: np.ndarray  # (n_trees + 1,) int64
    features: np.ndarray  # int64: columns of X
    children: np.ndarray  # (n_nodes, 2) int32: left and right; LEAF
    feature: np.ndarray  # (n_nodes,) int32: number among those used; 0 in a leaf
    threshold: np.ndarray  # (n_nodes,) float64
    missing_left: np.ndarray  # (n_nodes,) uint8
    list_start: np.ndarray  # (n_nodes,) int64: of the subsets, in `lists`; -1
    lists: np.ndarray  # uint32: see cart.tree.packed.PackedWide
    share: np.ndarray  # (n_nodes,) float64: of the weight of the parent
    before: np.ndarray  # (n_nodes,) float64: see above
    mean: np.ndarray  # (n_nodes, n_outputs) float64: of the leaves below, by their cover
    depth: np.ndarray  # (n_trees,) int64: splits on the longest path
    distinct: np.ndarray  # (n_trees,) int64: most distinct features on a path

    @property
    def n_trees(self) -> int:
        return len(self.depth)

    @property
    def base_values(self) -> np.ndarray:
        """Mean of each tree by cover, (n_trees, n_outputs)."""
        return self.mean[self.start[:-1]]


class Test(NamedTuple):
    """What a split asks of rows."""

    values: np.ndarray  # (n_rows,) float64: of its feature
    threshold: float
    missing_left: bool
    first: int  # where its list of categories begins; -1
    lists: np.ndarray


@inline_kernel
def tree_at(trees, t):
    """One of the trees, as a structure of its own."""
    first, end = trees.start[t], trees.start[t + 1]
    return CoveredTrees(
        trees.start[t : t + 2], trees.used[t : t + 2],
        trees.features[trees.used[t] : trees.used[t + 1]], trees.children[first:end],
        trees.feature[first:end], trees.threshold[first:end], trees.missing_left[first:end],
        trees.list_start[first:end], trees.lists, trees.share[first:end], trees.before[first:end],
        trees.mean[first:end], trees.depth[t : t + 1],
        trees.distinct[t : t + 1],
    )  # fmt: skip


@inline_kernel
def test_of(tree, values, node):
    """What the split of a node asks of rows that have these values of its feature."""
    return Test(
        values, tree.threshold[node], tree.missing_left[node] != 0, tree.list_start[node],
        tree.lists,
    )  # fmt: skip


@inline_kernel
def goes_left(test, row):
    x = test.values[row]
    if np.isnan(x):
        return test.missing_left
    if test.first >= 0:
        return is_in_left_subset(test.lists, test.first, x)
    return x <= test.threshold


def cover_trees(trees: list, values: slice) -> CoveredTrees:
    """Trees with their cover.

    Parameters
    ----------
    trees : list of objects with scikit-learn's node arrays
    values : slice
        Which outputs, or classes, of the leaves are explained.

    Raises
    ------
    ValueError
        If a node weighs more than its parent or less than nothing: weights were negative.
    """
    parts = [_cover(tree, values) for tree in trees]
    n_listed = 0
    for part in parts:
        part["list_start"][part["list_start"] >= 0] += n_listed
        n_listed += len(part["lists"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    ends = {
        name: np.concatenate(([0], np.cumsum([len(part[of]) for part in parts])))
        for name, of in (("start", "feature"), ("used", "features"))
    }
    return CoveredTrees(**joined, **ends)


def _cover(tree: Any, values: slice) -> dict[str, np.ndarray]:
    """The arrays of one tree, by name."""
    nodes = nodes_of(tree)
    children = np.column_stack((nodes.children_left, nodes.children_right)).astype(np.int32)
    n_nodes, splits = len(children), np.flatnonzero(children[:, 0] != LEAF)
    feature, parent = np.zeros(n_nodes, np.int32), np.full(n_nodes, -1, np.int32)
    features, feature[splits] = np.unique(nodes.feature[splits], return_inverse=True)
    parent[children[splits]] = splits[:, np.newaxis]
    share, before, passed = _shares(nodes, parent), np.ones(n_nodes), np.zeros((2, n_nodes), int)
    _follow_paths(children, feature, parent, share, before, passed)
    mean = nodes.value.reshape(n_nodes, -1)[:, values].astype(np.float64)
    _take_means(children, share, mean)
    list_start, lists = np.full(n_nodes, -1), np.empty(0, np.uint32)
    if getattr(tree, "categories", None) is not None:
        list_start, lists = tree.categories.in_one(tree.is_subset)
    depth, distinct = passed.max(axis=1, keepdims=True)
    return {
        "features": features.astype(np.int64), "children": children, "feature": feature,
        "threshold": np.array(nodes.threshold, np.float64),
        "missing_left": np.array(nodes.missing_go_to_left, np.uint8), "list_start": list_start,
        "lists": lists, "share": share, "before": before, "mean": mean, "depth": depth,
        "distinct": distinct,
    }  # fmt: skip


def _shares(nodes, parent):
    """Share of every node in the weight of its parent; of a parent of none, in its samples."""
    share = np.ones(len(parent))
    weight = np.array(nodes.weighted_n_node_samples, np.float64)
    n_samples = np.array(nodes.n_node_samples, np.float64)
    mine = np.flatnonzero(parent >= 0)
    of = parent[mine]
    if (weight[mine] < 0.0).any() or (weight[mine] > weight[of] * (1.0 + 1e-9)).any():
        raise ValueError(
            "A node of the tree weighs less than nothing, or more than its parent: the fit had "
            "negative weights, and SHAP values by cover mean nothing there."
        )
    share[mine] = n_samples[mine] / np.maximum(n_samples[of], 1.0)
    has_weight = weight[of] > 0.0
    share[mine[has_weight]] = weight[mine[has_weight]] / weight[of[has_weight]]
    return share


@entry_kernel
def _follow_paths(children, feature, parent, share, before, passed):
    """Write `before` of every split, and how many splits and distinct features lie above a node."""
    for node in range(parent.shape[0]):  # children stand behind their parents
        if children[node, 0] == LEAF:
            continue
        here, above = np.int64(node), np.int64(parent[node])
        while above >= 0 and feature[above] != feature[node]:
            here, above = above, np.int64(parent[above])
        if above >= 0:
            before[node] = before[above] * share[here]
        for side in range(2):
            child = children[node, side]
            passed[0, child] = passed[0, node] + 1
            passed[1, child] = passed[1, node] + (above < 0)


@entry_kernel
def _take_means(children, share, mean):
    """Write the mean of the leaves below each split, by their cover."""
    for node in range(children.shape[0] - 1, -1, -1):
        left, right = np.int64(children[node, 0]), np.int64(children[node, 1])
        if left != LEAF:
            for k in range(mean.shape[1]):
                mean[node, k] = share[left] * mean[left, k] + share[right] * mean[right, k]
