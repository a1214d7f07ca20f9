"""Gauss-Legendre quadrature on [0, 1], its points in parts of equal length."""

from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

MOST_POINTS = 8  # that are carried down a tree at once


class Rule(NamedTuple):
    """Points and weights of a rule; each part of them walks down the trees by itself."""

    point: np.ndarray  # (n_parts, n_points) float64: strictly between 0 and 1
    weight: np.ndarray  # (n_parts, n_points) float64: they sum to 1


def gauss_legendre(n_factors: int) -> Rule:
    """The rule that is exact for products of fewer than `n_factors` linear factors.

    n points are exact up to degree 2 n - 1.
    """
    n_points = max(1, (n_factors + 1) // 2)
    n_parts = -(-n_points // MOST_POINTS)
    place, weight = roots_legendre(-(-n_points // n_parts) * n_parts)
    return Rule((1.0 + place.reshape(n_parts, -1)) / 2.0, weight.reshape(n_parts, -1) / 2.0)
