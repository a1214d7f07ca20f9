"""How often the rows of a partition are in bag, by the draws of the whole table."""

from functools import lru_cache

import numpy as np

from cart.primitives.mersenne_twister import counts_below
from forest.sampling.block_draws import counts_in_blocks
from forest.sampling.bootstrap import Bootstrap

# Counts of whole tables that a process keeps for its other partitions: of so many trees, where a
# tree's take no more bytes than these.
_TREES_KEPT, _BYTES_KEPT = 16, 1 << 26
_UNLIKELY = 256  # times that a row is drawn, of as many draws as there are rows


def counts_of_part(bootstrap: Bootstrap, tree: int, first: int, end: int) -> np.ndarray:
    """How often each of some rows is in bag for a tree.

    Parameters
    ----------
    bootstrap : Bootstrap
        Uniform, by blocks, or without draws, with the seeds of the trees.
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
