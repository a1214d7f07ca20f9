"""One tree on rows whose columns are permuted by given permutations.

order           [ 2 0 1 ]
columns of g    a b c     others   p q r        row 0 is (c, p), row 1 (a, q), row 2 (b, r)
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from cart.tree.packed import pack
from cart.tree.traversal import leaf_ids
from importance.core.losses import MakeLoss, of_rows
from importance.core.used_features import restrict_to_used


def seeded(random_state: Any, n_keys: int) -> Callable:
    """Return `shuffles(key)`, which starts one of `n_keys` seeded streams of permutations.

    A stream is a function `draw(what, n)` whose successive values are permutations of range(n).
    It ignores `what`; callers that supply their own permutations can look them up by it.
    """
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_keys)

    def shuffles(key):
        stream = np.random.RandomState(seeds[key])
        return lambda what, n: stream.permutation(n)

    return shuffles


class PermutedTree:
    """A tree on some rows, of which the values of one group of columns can be exchanged.

    `groups` are the groups that the tree uses, ascending; the others cannot change a leaf.
    """

    def __init__(self, tree: Any, X: Any, rows: np.ndarray, group_of: np.ndarray) -> None:
        restricted, self._features, self._X = restrict_to_used(tree, X, rows)
        self._packed = pack([restricted], X.dtype)
        self._group_of = group_of[self._features]
        self.groups = np.unique(self._group_of)

    def features(self, group: int) -> np.ndarray:
        """The columns of a group that the tree uses."""
        return self._features[self._group_of == group]

    def values(self, group: int) -> np.ndarray:
        """Values of the columns `features(group)`, (n_rows, n_columns)."""
        return self._X[:, self._group_of == group]

    def leaves(self) -> np.ndarray:
        """Leaf number of every row."""
        if self._X.shape[1] == 0:
            return np.zeros(len(self._X), np.int64)
        return leaf_ids(self._packed, 0, self._X)

    def leaves_with(self, group: int, values: np.ndarray) -> np.ndarray:
        """Leaf number of every row with other values in the columns `features(group)`."""
        is_exchanged = self._group_of == group
        kept = self._X[:, is_exchanged]
        self._X[:, is_exchanged] = values
        leaves = self.leaves()
        self._X[:, is_exchanged] = kept
        return leaves


def shuffled_increase(
    tree: Any, X: Any, rows: np.ndarray, group_of: np.ndarray, make_loss: MakeLoss,
    codes: np.ndarray, weight: np.ndarray, draw: Callable, n_repeats: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Increase of a tree's loss with each group permuted among the rows, averaged over repeats.

    `draw(group, n_rows)` returns the next permutation for a group. Returns the groups that the tree
    uses, (n_used,); the increase by row, (n_used, n_rows); and the variance, over repeats, of the
    weighted mean increase, (n_used,), which is nan with one repeat.
    """
    permuted = PermutedTree(tree, X, rows, group_of)
    loss = make_loss(tree.value.reshape(tree.node_count, -1), codes)
    base = of_rows(loss, permuted.leaves())
    increase = np.zeros((len(permuted.groups), len(rows)))
    means = np.zeros((len(permuted.groups), n_repeats))
    share = weight / (weight.sum() or 1.0)
    for mine, mean, group in zip(increase, means, permuted.groups, strict=True):
        values = permuted.values(group)
        for repeat in range(n_repeats):
            order = draw(group, len(rows))
            one = of_rows(loss, permuted.leaves_with(group, values[order])) - base
            mine += one
            mean[repeat] = (share * one).sum()
    variance = np.full(len(means), np.nan)
    if n_repeats > 1:
        variance = means.var(axis=1, ddof=1) / n_repeats
    return permuted.groups, increase / n_repeats, variance
