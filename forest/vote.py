"""How the outputs of the trees become one: functions of the values that rows receive."""

import numpy as np

from cart.traverse import sum_of_values
from forest.threads import in_parts

# Fewer rows per thread are sent faster by one.
MIN_ROWS_PER_WORKER = 1024


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
    out = np.zeros((X.shape[0], packed.value.shape[1]))

    def add(first, end):
        sum_of_values(packed, X[first:end], out=out[first:end])

    in_parts(add, X.shape[0], n_jobs, MIN_ROWS_PER_WORKER)
    out /= len(packed.start) - 1
    return out
