"""Gauss-Legendre quadrature on [0, 1], its points in parts of equal length."""

from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

MOST_POINTS = 8  # that are carried down a tree at once


class Rules(NamedTuple):
    """A rule for every tree: tree t has parts first[t]:end[t] of n_points[t] points.

    Each part walks down the trees by itself. Lines are filled up with points that have no weight.
    """

    first: np.ndarray  # (n_trees,) int64
    end: np.ndarray  # (n_trees,) int64
    n_points: np.ndarray  # (n_trees,) int64
    point: np.ndarray  # (n_parts, MOST_POINTS) float64: strictly between 0 and 1
    weight: np.ndarray  # (n_parts, MOST_POINTS) float64: of a rule they sum to 1
    per_rest: np.ndarray  # (n_parts, MOST_POINTS) float64: 1 / (1 - point)

    @classmethod
    def create(cls, n_factors: np.ndarray) -> "Rules":
        """Rules that are exact for products of fewer than n_factors[t] linear factors."""
        known, number = np.unique(n_factors, return_inverse=True)
        n_points, *parts = zip(*(_gauss_legendre(int(n)) for n in known), strict=True)
        n_parts = np.array([len(points) for points in parts[0]])
        end = np.cumsum(n_parts)[number]
        first = end - n_parts[number]
        return cls(first, end, np.array(n_points)[number], *map(np.concatenate, parts))


def _gauss_legendre(n_factors):
    """How many points a part has, and points, weights and `per_rest` of the rule that is exact for
    products of fewer than `n_factors` linear factors: n points are exact up to degree 2 n - 1."""
    n_points = max(1, (n_factors + 1) // 2)
    n_parts = -(-n_points // MOST_POINTS)
    n_points = -(-n_points // n_parts)
    place, weight = roots_legendre(n_points * n_parts)
    points, weights = np.full((n_parts, MOST_POINTS), 0.5), np.zeros((n_parts, MOST_POINTS))
    points[:, :n_points] = (1.0 + place.reshape(n_parts, -1)) / 2.0
    weights[:, :n_points] = weight.reshape(n_parts, -1) / 2.0
    return n_points, points, weights, 1.0 / (1.0 - points)
