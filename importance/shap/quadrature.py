"""Gauss-Legendre quadrature on [0, 1], its points in parts of equal length."""

from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

MOST_POINTS = 8  # that are carried down a tree at once


class Rule(NamedTuple):
    """Points of a rule; each part of them walks down the trees by itself.

    Lines are filled up with points that have no weight.
    """

    n_points: int  # of a part
    point: np.ndarray  # (n_parts, MOST_POINTS) float64: strictly between 0 and 1
    weight: np.ndarray  # (n_parts, MOST_POINTS) float64: they sum to 1
    per_rest: np.ndarray  # (n_parts, MOST_POINTS) float64: 1 / (1 - point)


class Rules(NamedTuple):
    """A rule for every tree: tree t has parts first[t]:end[t] of n_points[t] points."""

    first: np.ndarray  # (n_trees,) int64
    end: np.ndarray  # (n_trees,) int64
    n_points: np.ndarray  # (n_trees,) int64
    point: np.ndarray
    weight: np.ndarray
    per_rest: np.ndarray

    @classmethod
    def create(cls, n_factors: np.ndarray) -> "Rules":
        """Rules that are exact for products of fewer than n_factors[t] linear factors."""
        known, number = np.unique(n_factors, return_inverse=True)
        rules = [gauss_legendre(int(n)) for n in known]
        end = np.cumsum([len(rule.point) for rule in rules])
        first = end - [len(rule.point) for rule in rules]
        n_points = np.array([rule.n_points for rule in rules])
        parts = (np.concatenate(part) for part in list(zip(*rules, strict=True))[1:])
        return cls(first[number], end[number], n_points[number], *parts)


def gauss_legendre(n_factors: int) -> Rule:
    """The rule that is exact for products of fewer than `n_factors` linear factors.

    n points are exact up to degree 2 n - 1.
    """
    n_points = max(1, (n_factors + 1) // 2)
    n_parts = -(-n_points // MOST_POINTS)
    n_points = -(-n_points // n_parts)
    place, weight = roots_legendre(n_points * n_parts)
    points, weights = np.full((n_parts, MOST_POINTS), 0.5), np.zeros((n_parts, MOST_POINTS))
    points[:, :n_points] = (1.0 + place.reshape(n_parts, -1)) / 2.0
    weights[:, :n_points] = weight.reshape(n_parts, -1) / 2.0
    return Rule(n_points, points, weights, 1.0 / (1.0 - points))
