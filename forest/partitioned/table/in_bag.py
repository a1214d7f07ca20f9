"""In-bag counts of the rows of a partition, by the draws of the whole table."""

from functools import lru_cache

import numpy as np

from cart.primitives.mersenne_twister import counts_below
from forest.sampling.block_draws import counts_in_blocks
from forest.sampling.bootstrap import Bootstrap

# A process keeps the counts of whole tables for its other partitions: those of up to 16 trees, if
# the counts of a tree take at most 64 MB.
_TREES_KEPT, _BYTES_KEPT = 16, 1 << 26
_UNLIKELY = 256  # no row is drawn so often among as many draws as rows


class InBag:
    """In-bag counts of a forest's trees, which any process can compute for its rows.

    Parameters
    ----------
    bootstrap : Bootstrap
        With the seeds of the trees; without strata and groups.
    weight : ndarray of shape (n_samples,), or None
        Weights of the rows, as whole numbers, if nothing is drawn.
    """

    def __init__(self, bootstrap: Bootstrap, weight: np.ndarray | None = None) -> None:
        self._bootstrap = bootstrap
        self._weight = None if weight is None else weight.astype(np.uint32)
        self._kept: dict = {}  # tree -> counts of the whole table, if draws are by weight

    def counts(self, tree: int, first: int, end: int) -> np.ndarray:
        """How often each of the rows first, ..., end - 1 is in bag for a tree.

        Returns
        -------
        ndarray of shape (end - first,), int
        """
        if self._bootstrap.probabilities is not None:
            return self._counts_of_table(tree)[first:end]
        if self._weight is not None:
            return self._weight[first:end]
        return counts_of_part(self._bootstrap, tree, first, end)

    def _counts_of_table(self, tree):
        counts = self._kept.get(tree)
        if counts is None:
            counts = self._bootstrap.counts(tree)
            counts = counts.astype(np.min_scalar_type(int(counts.max())))
            if len(self._kept) >= _TREES_KEPT:
                self._kept.clear()
            if counts.nbytes <= _BYTES_KEPT:
                self._kept[tree] = counts
        return counts


def counts_of_part(bootstrap: Bootstrap, tree: int, first: int, end: int) -> np.ndarray:
    """How often each of some rows is in bag for a tree.

    Parameters
    ----------
    bootstrap : Bootstrap
        Uniform, by blocks or without draws; with the seeds of the trees.
    tree : int
    first, end : int
        The rows are first, ..., end - 1 of the whole table.

    Returns
    -------
    ndarray of shape (end - first,), int
    """
    n_samples, n_draws = bootstrap.n_samples, bootstrap.n_draws
    if n_draws is None:
        return np.ones(end - first, np.uint8)
    seed = int(bootstrap.seeds[tree])
    if bootstrap.by_blocks:
        return counts_in_blocks(seed, n_samples, n_draws, first, end)
    count = _keep_counts if n_samples <= _BYTES_KEPT else _count
    return count(seed, n_samples, n_draws)[first:end]


def _count(seed, n_samples, n_draws):
    is_small = n_draws < _UNLIKELY or n_draws <= n_samples
    return counts_below([seed], n_samples, n_draws, np.uint8 if is_small else np.uint32)[0]


_keep_counts = lru_cache(maxsize=_TREES_KEPT)(_count)
