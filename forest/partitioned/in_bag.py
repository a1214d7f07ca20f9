"""How often the rows of a partition are in bag: the bootstrap of the whole table, replayed."""

from functools import lru_cache

import numpy as np

from cart.primitives.mersenne_twister import counts_below
from forest.sampling.bootstrap import Bootstrap

# Whole tables of counts that a process keeps for its other partitions.
_TREES_KEPT = 64
_UNLIKELY = 256  # times that a row is drawn, of as many draws as there are rows


def counts_of_part(bootstrap: Bootstrap, tree: int, first: int, end: int) -> np.ndarray:
    """How often each of some rows is in bag for a tree.

    Parameters
    ----------
    bootstrap : Bootstrap
        Uniform, or without draws, with the seeds of the trees.
    tree : int
    first, end : int
        The rows are first, ..., end - 1 of the whole table.

    Returns
    -------
    ndarray of shape (end - first,), unsigned
    """
    if bootstrap.n_draws is None:
        return np.ones(end - first, np.uint8)
    seed = int(bootstrap.seeds[tree])
    return _counts(seed, bootstrap.n_samples, bootstrap.n_draws)[first:end]


@lru_cache(maxsize=_TREES_KEPT)
def _counts(seed, n_samples, n_draws):
    is_small = n_draws < _UNLIKELY or n_draws <= n_samples
    return counts_below([seed], n_samples, n_draws, np.uint8 if is_small else np.uint32)[0]
