"""How the outputs of the trees become one: functions of the values that rows receive."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs

from cart.traverse import sum_of_values

# Fewer rows per thread are sent faster by one.
_MIN_ROWS_PER_WORKER = 1024


def soft_vote(packed, X, n_jobs=None):
    """Mean over trees of the class shares, or of the means; bitwise the same for every `n_jobs`.

    Parameters
    ----------
    packed : cart.packed.Packed
    X : ndarray of shape (n_samples, n_features), float32 or float64, C order
    n_jobs : int or None

    Returns
    -------
    ndarray of shape (n_samples, n_values), float64
    """
    n_trees, n_values = len(packed.start) - 1, packed.value.shape[1]
    n_parts = min(effective_n_jobs(n_jobs), X.shape[0] // _MIN_ROWS_PER_WORKER)
    if n_parts < 2:
        return sum_of_values(packed, X) / n_trees
    out = np.zeros((X.shape[0], n_values))
    bounds = np.linspace(0, X.shape[0], n_parts + 1).astype(int)
    # Not joblib: its pool takes about as long to start and stop as 25,000 rows take.
    with ThreadPoolExecutor(n_parts) as pool:
        tasks = [
            pool.submit(sum_of_values, packed, X[first:end], out=out[first:end])
            for first, end in pairwise(bounds)
        ]
    for task in tasks:
        task.result()
    out /= n_trees
    return out
