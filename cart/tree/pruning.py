"""Minimal cost-complexity pruning: cut the weakest link again and again (Breiman et al. 1984).

The order of additions and of ties is that of scikit-learn's `_cost_complexity_prune`.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.tree.compact import compress_if_large
from cart.tree.nodes import LEAF, UNDEFINED, Nodes
from cart.tree.tree import Tree


def prune(tree, ccp_alpha):
    """The smallest subtree among those of least cost R + ccp_alpha * (number of leaves).

    Parameters
    ----------
    tree : Tree
    ccp_alpha : float

    Returns
    -------
    Tree
        Its nodes numbered depth first.
    """
    _, _, is_leaf = _cut_weakest_links(tree, ccp_alpha)
    kept = []
    stack = [0]
    while stack:
        node = stack.pop()
        kept.append(node)
        if not is_leaf[node]:
            stack += [tree.children_right[node], tree.children_left[node]]
    kept = np.array(kept)
    new_number = np.full(tree.node_count, LEAF, np.int32)
    new_number[kept] = np.arange(len(kept))
    nodes = Nodes(*(array[kept] for array in tree.nodes))
    leaf = is_leaf[kept]
    for children in (nodes.children_left, nodes.children_right):
        children[~leaf] = new_number[children[~leaf]]
        children[leaf] = LEAF
    nodes.feature[leaf] = UNDEFINED
    nodes.threshold[leaf] = UNDEFINED
    nodes.missing_go_to_left[leaf] = 0
    categories = tree.categories and tree.categories.select(kept, ~leaf)
    pruned = Tree.grown(compress_if_large(nodes), tree.n_features, categories)
    for name, splits in tree.alternatives.items():
        setattr(pruned, name, splits.select(kept, ~leaf))
    return pruned


def pruning_path(tree):
    """Effective alphas of the subtrees met while pruning, and the impurity of their leaves.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    ccp_alphas, impurities : ndarray of shape (n_subtrees,), float64
    """
    alphas, impurities, _ = _cut_weakest_links(tree, np.inf)
    return alphas, impurities


class _Branches(NamedTuple):
    """The subtree below each node, as far as it is not cut; (n_nodes,) each."""

    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray  # int64; -1 of the root
    node_cost: np.ndarray  # float64: of the node as a leaf
    cost: np.ndarray  # float64: of the leaves
    n_leaves: np.ndarray  # int64
    is_leaf: np.ndarray  # bool
    may_cut: np.ndarray  # bool: a split that is still there
    stack: np.ndarray  # int64: scratch


def _cut_weakest_links(tree, ccp_alpha):
    n_nodes = tree.node_count
    alphas, impurities = np.empty((2, n_nodes + 1))
    is_leaf = tree.children_left == LEAF
    node_cost = tree.weighted_n_node_samples * tree.impurity / tree.weighted_n_node_samples[0]
    nodes = tree.expanded
    branches = _Branches(
        nodes.children_left, nodes.children_right, np.full(n_nodes, -1), node_cost,
        np.zeros(n_nodes), np.zeros(n_nodes, np.int64), is_leaf, ~is_leaf,
        np.empty(n_nodes, np.int64),
    )  # fmt: skip
    n_steps = _cut(branches, ccp_alpha, alphas, impurities)
    return alphas[:n_steps].copy(), impurities[:n_steps].copy(), is_leaf


@entry_kernel
def _cut(branches, ccp_alpha, alphas, impurities):
    r"""Cut until the next effective alpha exceeds `ccp_alpha`; return the number of subtrees.

          o                 o         The weakest link w has the least of all splits' alphas,
         / \               / \        (node_cost - cost) / (n_leaves - 1). It becomes a leaf: the
        .   w     ->      .   .       nodes above lose n_leaves - 1 leaves and gain that cost.
           / \
          .   .
    """
    _sum_leaves(branches)
    alphas[0], impurities[0] = 0.0, branches.cost[0]
    n_steps = 1
    while branches.may_cut[0]:
        weakest, alpha = _find_weakest(branches)
        if ccp_alpha < alpha:
            break
        _drop_below(branches, weakest)
        _make_leaf(branches, weakest)
        alphas[n_steps], impurities[n_steps] = alpha, branches.cost[0]
        n_steps += 1
    return n_steps


@inline_kernel
def _sum_leaves(branches):
    """Fill parents, costs and numbers of leaves, leaf after leaf."""
    for node in range(branches.left.shape[0]):
        if not branches.is_leaf[node]:
            branches.parent[branches.left[node]] = node
            branches.parent[branches.right[node]] = node
    for leaf in range(branches.left.shape[0]):
        if branches.is_leaf[leaf]:
            branches.cost[leaf] = branches.node_cost[leaf]
            above = branches.parent[leaf]
            while above >= 0:
                branches.cost[above] += branches.node_cost[leaf]
                branches.n_leaves[above] += 1
                above = branches.parent[above]


@inline_kernel
def _find_weakest(branches):
    """The first split of the least effective alpha, and this alpha."""
    weakest, alpha = 0, np.inf
    for node in range(branches.left.shape[0]):
        if branches.may_cut[node]:
            more = branches.node_cost[node] - branches.cost[node]
            link = more / (branches.n_leaves[node] - 1)
            if link < alpha:
                weakest, alpha = node, link
    return weakest, alpha


@inline_kernel
def _drop_below(branches, weakest):
    """Take a node and all below it out of the tree."""
    stack = branches.stack
    stack[0] = weakest
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        if branches.left[node] != LEAF and branches.may_cut[node]:
            stack[height], stack[height + 1] = branches.left[node], branches.right[node]
            height += 2
        branches.may_cut[node] = branches.is_leaf[node] = False


@inline_kernel
def _make_leaf(branches, weakest):
    """Put a node back as a leaf, and tell those above it."""
    branches.is_leaf[weakest] = True
    n_cut = branches.n_leaves[weakest] - 1
    more = branches.node_cost[weakest] - branches.cost[weakest]
    branches.n_leaves[weakest] = 0
    branches.cost[weakest] = branches.node_cost[weakest]
    above = branches.parent[weakest]
    while above >= 0:
        branches.n_leaves[above] -= n_cut
        branches.cost[above] += more
        above = branches.parent[above]
