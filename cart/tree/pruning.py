"""Minimal cost-complexity pruning: cut the weakest link again and again (Breiman et al. 1984).

The order of additions and of ties is that of scikit-learn's `_cost_complexity_prune`.
"""

import numpy as np

from cart.jit.decorators import entry_kernel
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
    return Tree(compress_if_large(nodes), tree.n_features, categories)


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


def _cut_weakest_links(tree, ccp_alpha):
    n_nodes = tree.node_count
    alphas, impurities = np.empty((2, n_nodes + 1))
    is_leaf = tree.children_left == LEAF
    node_cost = tree.weighted_n_node_samples * tree.impurity / tree.weighted_n_node_samples[0]
    n_steps = _cut(
        tree.children_left, tree.children_right, node_cost, ccp_alpha, is_leaf,
        np.full(n_nodes, -1), np.zeros(n_nodes, np.int64), np.zeros(n_nodes),
        ~is_leaf, np.empty(n_nodes, np.int64), alphas, impurities,
    )  # fmt: skip
    return alphas[:n_steps].copy(), impurities[:n_steps].copy(), is_leaf


@entry_kernel
def _cut(
    left, right, node_cost, ccp_alpha, is_leaf, parent, n_leaves, branch_cost, may_cut, stack,
    alphas, impurities,
):  # fmt: skip
    """Cut until the next effective alpha exceeds `ccp_alpha`; return the number of subtrees."""
    n_nodes = left.shape[0]
    for node in range(n_nodes):
        if not is_leaf[node]:
            parent[left[node]] = node
            parent[right[node]] = node
    for leaf in range(n_nodes):
        if is_leaf[leaf]:
            branch_cost[leaf] = node_cost[leaf]
            above = parent[leaf]
            while above >= 0:
                branch_cost[above] += node_cost[leaf]
                n_leaves[above] += 1
                above = parent[above]
    alphas[0] = 0.0
    impurities[0] = branch_cost[0]
    n_steps = 1
    while may_cut[0]:
        weakest = 0
        alpha = np.inf
        for node in range(n_nodes):
            if may_cut[node]:
                link = (node_cost[node] - branch_cost[node]) / (n_leaves[node] - 1)
                if link < alpha:
                    alpha = link
                    weakest = node
        if ccp_alpha < alpha:
            break
        stack[0] = weakest
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            if left[node] != LEAF and (may_cut[node] or node == weakest):
                stack[height] = left[node]
                stack[height + 1] = right[node]
                height += 2
            may_cut[node] = False
            is_leaf[node] = False
        is_leaf[weakest] = True
        n_cut = n_leaves[weakest] - 1
        n_leaves[weakest] = 0
        more = node_cost[weakest] - branch_cost[weakest]
        branch_cost[weakest] = node_cost[weakest]
        above = parent[weakest]
        while above >= 0:
            n_leaves[above] -= n_cut
            branch_cost[above] += more
            above = parent[above]
        alphas[n_steps] = alpha
        impurities[n_steps] = branch_cost[0]
        n_steps += 1
    return n_steps
