"""Minimal cost-complexity pruning: cut the weakest link again and again (Breiman et al. 1984).

Pruning goes by the cost of each node as if it were a leaf. By default this is its weighted
impurity, as in scikit-learn; the book's risk is in `cart.estimators.class_costs`.

The order of additions and of ties is that of scikit-learn's `_cost_complexity_prune`.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.tree.compact import compress_if_large
from cart.tree.nodes import LEAF, UNDEFINED, Nodes
from cart.tree.tree import Tree, parents_of


def prune(tree, ccp_alpha):
    """Return the smallest subtree of those with the least cost R + ccp_alpha * (number of leaves).

    Parameters
    ----------
    tree : Tree
    ccp_alpha : float

    Returns
    -------
    Tree
        Its nodes are numbered depth first.
    """
    return subtree(tree, _cut_weakest_links(tree, ccp_alpha).is_leaf)


def subtree(tree, is_leaf):
    """Return the tree cut off at some of its nodes, which become leaves.

    Parameters
    ----------
    tree : Tree
    is_leaf : ndarray of shape (node_count,), bool
        True at the nodes that become leaves and at the leaves of the tree. What it says of nodes
        below one of these does not matter.

    Returns
    -------
    Tree
        Its nodes are numbered depth first.
    """
    kept = []
    stack = [0]
    while stack:
        node = stack.pop()
        kept.append(node)
        if not is_leaf[node]:
            stack += [tree.children_right[node], tree.children_left[node]]
    kept, leaf = np.array(kept), is_leaf[kept]
    nodes = restricted(tree.nodes, kept, leaf)
    categories = tree.categories and tree.categories.select(kept, ~leaf)
    pruned = Tree.grown(compress_if_large(nodes), tree.n_features, categories)
    for name, splits in tree.alternatives.items():
        setattr(pruned, name, splits.select(kept, ~leaf))
    return pruned


def restricted(nodes, kept, is_leaf):
    """The arrays of the nodes `kept`, which get new numbers in this order; `is_leaf` says which of
    them have no children."""
    number = np.full(len(nodes.feature), LEAF, np.int32)
    number[kept] = np.arange(len(kept))
    nodes = Nodes(*(array[kept] for array in nodes))
    for children in (nodes.children_left, nodes.children_right):
        children[:] = np.where(is_leaf, LEAF, number[children])
    nodes.feature[is_leaf] = nodes.threshold[is_leaf] = UNDEFINED
    nodes.missing_go_to_left[is_leaf] = 0
    return nodes


def pruning_path(tree):
    """Return the effective alphas of the subtrees met in pruning, and their leaves' impurities.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    ccp_alphas, impurities : ndarray of shape (n_subtrees,), float64
    """
    cut = _cut_weakest_links(tree, np.inf)
    return cut.alphas, cut.costs


def collapse_alphas(tree, node_cost):
    """Return the alpha from which on each node is a leaf, or cut off, in the nested subtrees.

    Parameters
    ----------
    tree : Tree
    node_cost : ndarray of shape (node_count,), float64
        Of each node as if it were a leaf: what the book calls R(t).

    Returns
    -------
    ndarray of shape (node_count,), float64
        Not negative, no larger in a child than in its parent, and bitwise the same if they differ
        only by rounding; 0 in leaves.
    """
    alpha = _cut_weakest_links(tree, np.inf, node_cost).collapse
    alpha[tree.children_left == LEAF] = 0.0
    order = np.argsort(alpha, kind="stable")
    ascending = alpha[order]
    is_new = np.diff(ascending, prepend=0.0) > _ROUNDING * max(node_cost[0], 1e-300)
    level = np.maximum.accumulate(np.where(is_new, np.arange(len(alpha)), -1))
    alpha[order] = np.where(level < 0, 0.0, ascending[level])
    return alpha


_ROUNDING = 1e-10  # alphas that differ by up to this share of the root's cost count as equal


class _Cut(NamedTuple):
    """The result of cutting weakest links."""

    alphas: np.ndarray  # (n_subtrees,) float64: of the nested subtrees
    costs: np.ndarray  # (n_subtrees,) float64: of their leaves
    is_leaf: np.ndarray  # (n_nodes,) bool: in the last subtree
    collapse: np.ndarray  # (n_nodes,) float64: alpha at which each split was cut; inf: never


class _Branches(NamedTuple):
    """The subtree below each node, as far as it is not cut; (n_nodes,) each."""

    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray  # int64; -1 for the root
    node_cost: np.ndarray  # float64: of the node as a leaf
    cost: np.ndarray  # float64: of the leaves below the node
    n_leaves: np.ndarray  # int64: below the node
    is_leaf: np.ndarray  # bool
    may_cut: np.ndarray  # bool: whether the node is a split that is not cut
    collapse: np.ndarray  # float64: the alpha at which the split was cut
    stack: np.ndarray  # int64: scratch
    link: np.ndarray  # (n_nodes + 1,) float64: effective alpha of each uncut split, else inf
    winner: np.ndarray  # (2 * n_places,) int64: of the tournament, see `_begin_tournament`


def _cut_weakest_links(tree, ccp_alpha, node_cost=None):
    n_nodes = tree.node_count
    alphas, impurities = np.empty((2, n_nodes + 1))
    is_leaf = tree.children_left == LEAF
    if node_cost is None:
        with np.errstate(under="ignore"):
            weight = tree.weighted_n_node_samples
            node_cost = weight * tree.impurity / weight[0]
    nodes = tree.expanded
    branches = _Branches(
        nodes.children_left, nodes.children_right, parents_of(tree), node_cost,
        np.zeros(n_nodes), np.zeros(n_nodes, np.int64), is_leaf, ~is_leaf,
        np.full(n_nodes, np.inf), np.empty(n_nodes, np.int64), np.full(n_nodes + 1, np.inf),
        np.full(2 << (n_nodes - 1).bit_length(), n_nodes),
    )  # fmt: skip
    n_steps = _cut(branches, ccp_alpha, alphas, impurities)
    return _Cut(alphas[:n_steps].copy(), impurities[:n_steps].copy(), is_leaf, branches.collapse)


@entry_kernel
def _cut(branches, ccp_alpha, alphas, impurities):
    r"""Cut until the next effective alpha exceeds `ccp_alpha`; return the number of subtrees.

          o                 o         The weakest link w is the split with the least alpha,
         / \               / \        (node_cost - cost) / (n_leaves - 1). It becomes a leaf: nodes
        .   w     ->      .   .       above lose n_leaves - 1 leaves, and gain node_cost - cost.
           / \
          .   .
    """
    _sum_leaves(branches)
    _begin_tournament(branches)
    alphas[0], impurities[0] = 0.0, branches.cost[0]
    n_steps = 1
    while branches.may_cut[0]:
        weakest = branches.winner[1]
        alpha = branches.link[weakest]
        if ccp_alpha < alpha or alpha == np.inf:
            break
        _drop_below(branches, weakest, alpha)
        _make_leaf(branches, weakest)
        alphas[n_steps], impurities[n_steps] = alpha, branches.cost[0]
        n_steps += 1
    return n_steps


@inline_kernel
def _sum_leaves(branches):
    """Fill `cost` and `n_leaves`, leaf by leaf."""
    for leaf in range(branches.left.shape[0]):
        if branches.is_leaf[leaf]:
            branches.cost[leaf] = branches.node_cost[leaf]
            above = branches.parent[leaf]
            while above >= 0:
                branches.cost[above] += branches.node_cost[leaf]
                branches.n_leaves[above] += 1
                above = branches.parent[above]


@inline_kernel
def _begin_tournament(branches):
    """Fill `link` and `winner`: a tournament in which the smaller link of two wins, or the first of
    two equal ones.

        1             the weakest link of all
        2     3       the weaker of each pair below
        4  5  6  7    nodes 0, 1, 2; place 7 has a node with an infinite link
    """
    winner, n_nodes = branches.winner, branches.left.shape[0]
    n_places = winner.shape[0] // 2
    for node in range(n_nodes):
        winner[n_places + node] = node
        _update_link(branches, node)
    for place in range(n_places - 1, 0, -1):
        _play(branches, place)


@inline_kernel
def _play(branches, place):
    first, second = branches.winner[2 * place], branches.winner[2 * place + 1]
    second_wins = branches.link[second] < branches.link[first]
    branches.winner[place] = second if second_wins else first


@inline_kernel
def _update_link(branches, node):
    branches.link[node] = np.inf
    if branches.may_cut[node]:
        more = branches.node_cost[node] - branches.cost[node]
        alpha = more / (branches.n_leaves[node] - 1)
        if alpha < np.inf:  # if costs overflow, the node is never cut, as in scikit-learn
            branches.link[node] = alpha


@inline_kernel
def _enter(branches, node):
    """Update the link of a node, and replay its matches."""
    _update_link(branches, node)
    place = (branches.winner.shape[0] // 2 + node) // 2
    while place > 0:
        _play(branches, place)
        place //= 2


@inline_kernel
def _drop_below(branches, weakest, alpha):
    """Remove a node and all below it from the tree."""
    stack = branches.stack
    stack[0] = weakest
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        if branches.left[node] != LEAF and branches.may_cut[node]:
            stack[height], stack[height + 1] = branches.left[node], branches.right[node]
            height += 2
            branches.collapse[node] = alpha
            branches.may_cut[node] = False
            _enter(branches, node)
        branches.is_leaf[node] = False


@inline_kernel
def _make_leaf(branches, weakest):
    """Put a removed node back as a leaf, and update the nodes above it."""
    branches.is_leaf[weakest] = True
    n_cut = branches.n_leaves[weakest] - 1
    more = branches.node_cost[weakest] - branches.cost[weakest]
    branches.n_leaves[weakest] = 0
    branches.cost[weakest] = branches.node_cost[weakest]
    above = branches.parent[weakest]
    while above >= 0:
        branches.n_leaves[above] -= n_cut
        branches.cost[above] += more
        _enter(branches, above)
        above = branches.parent[above]
