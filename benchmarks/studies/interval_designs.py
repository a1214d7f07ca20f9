"""Designs on which the default interval was not tuned: other shapes, tails, classes, features."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_friedman1

from benchmarks.studies.importance_designs import strobl_2008


class Design(NamedTuple):
    """A way to draw a table; `draw(rng, n)` returns X and y."""

    name: str
    task: str
    draw: object


def friedman(rng, n):
    """Friedman's first function: an interaction, a parabola, two slopes; five noise features."""
    return make_friedman1(n, noise=1.0, random_state=int(rng.integers(2**31)))


def heavy_tails(rng, n):
    """Features and noise of Student's t with 3 degrees of freedom; one feature of three values."""
    X = rng.standard_t(3, size=(n, 6))
    X[:, 4] = rng.integers(3, size=n)
    return X, X[:, 0] + np.abs(X[:, 1]) + X[:, 4] + rng.standard_t(3, size=n)


def three_classes(rng, n):
    """Three classes, two correlated features, three noise features."""
    X = rng.normal(size=(n, 8))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    scores = np.column_stack((X[:, 0] + X[:, 2], X[:, 3], 0.5 * X[:, 2] ** 2 - X[:, 4]))
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def rare_class(rng, n):
    """A class of one row in six, an interaction, three noise features."""
    X = rng.normal(size=(n, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2] - 2.0 + rng.logistic(size=n) > 0
    return X, y.astype(int)


def linear(rng, n):
    """The twelve features of Strobl et al. (2008), four of which are correlated."""
    return strobl_2008(n, np.random.RandomState(int(rng.integers(2**31))))


def checkerboard(rng, n):
    """The sign of a product, right in 9 of 10 rows: neither factor says anything alone."""
    X = rng.uniform(-1.0, 1.0, size=(n, 5))
    y = (X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1)
    return X, y.astype(int)


DESIGNS = (
    Design("friedman1", "regression", friedman),
    Design("heavy tails", "regression", heavy_tails),
    Design("three classes", "classification", three_classes),
    Design("rare class", "classification", rare_class),
    Design("linear", "regression", linear),
    Design("checkerboard", "classification", checkerboard),
)
