"""Order of features by a measure: who leads, and ranks; equal values stay in their order."""

import numpy as np


def leading(values, n):
    """Positions of the n largest values, the largest last: where pictures have it on top."""
    return np.argsort(-values, kind="stable")[:n][::-1]


def ranks_of(values):
    """1 for the largest value, and so on; equal ones in their order."""
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
