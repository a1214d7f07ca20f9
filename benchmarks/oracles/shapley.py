"""Slow, obvious SHAP values: games on trees, and Shapley values over all subsets."""

from itertools import combinations
from math import factorial

import numpy as np

from cart.tree.nodes import LEAF


def shapley(game, n):
    """Shapley values of `game(subset)` of n players, (n, ...)."""
    worth = {subset: game(subset) for subset in _subsets(range(n))}
    return np.array([_mean_gain(worth, n, j) for j in range(n)])


def interactions(game, n):
    """Shapley interactions, half at (i, j) and half at (j, i); main effects on the diagonal."""
    worth = {subset: game(subset) for subset in _subsets(range(n))}
    found = np.zeros((n, n, *np.shape(worth[frozenset()])))
    for i, j in combinations(range(n), 2):
        for rest in _subsets(set(range(n)) - {i, j}):
            chance = factorial(len(rest)) * factorial(n - len(rest) - 2) / factorial(n - 1)
            gain = worth[rest | {i, j}] - worth[rest | {i}] - worth[rest | {j}] + worth[rest]
            found[i, j] += chance * gain / 2
        found[j, i] = found[i, j]
    for j in range(n):
        found[j, j] = _mean_gain(worth, n, j) - found[j].sum(axis=0)
    return found


def path_dependent(tree, x):
    """The game in which a split on an absent feature is taken both ways, by cover."""
    return lambda subset: _mean_by_cover(tree, x, subset, 0)


def interventional(tree, x, references):
    """The game in which absent features have the values of the reference rows."""

    def game(subset):
        known = np.isin(np.arange(len(x)), list(subset))
        return np.mean([value(tree, np.where(known, x, z)) for z in references], axis=0)

    return game


def value(tree, x):
    """Value of the leaf that a row reaches."""
    node = 0
    while tree.children_left[node] != LEAF:
        node = (tree.children_left if goes_left(tree, x, node) else tree.children_right)[node]
    return tree.value[node].ravel()


def goes_left(tree, x, node):
    """Whether a row goes left at a split."""
    at = x[tree.feature[node]]
    if np.isnan(at):
        return bool(tree.missing_go_to_left[node])
    if np.isnan(tree.threshold[node]):
        listed, go_left = tree.categories.of(node)
        return bool((at in listed) == go_left)
    return bool(at <= tree.threshold[node])


def _mean_by_cover(tree, x, subset, node):
    left, right = tree.children_left[node], tree.children_right[node]
    if left == LEAF:
        return tree.value[node].ravel()
    if tree.feature[node] in subset:
        return _mean_by_cover(tree, x, subset, left if goes_left(tree, x, node) else right)
    weight = tree.weighted_n_node_samples
    return sum(
        weight[child] / weight[node] * _mean_by_cover(tree, x, subset, child)
        for child in (left, right)
    )


def _mean_gain(worth, n, j):
    """Mean contribution of player j over all orders in which the players may join."""
    total = 0.0
    for rest in _subsets(set(range(n)) - {j}):
        chance = factorial(len(rest)) * factorial(n - len(rest) - 1) / factorial(n)
        total = total + chance * (worth[rest | {j}] - worth[rest])
    return total


def _subsets(players):
    players = list(players)
    for size in range(len(players) + 1):
        yield from map(frozenset, combinations(players, size))
