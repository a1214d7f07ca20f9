"""Generated regression tables with known noise, whose spread is constant or varies by row."""

import numpy as np


def friedman1(rng, n):
    """The function of Friedman (1991): five features, five of noise; constant spread."""
    X = rng.uniform(size=(n, 10))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, mean + 10 * X[:, 3] + 5 * X[:, 4], np.ones(n)


def with_the_mean(rng, n):
    """A spread that grows with the mean: both follow one feature."""
    X = rng.uniform(-1, 1, size=(n, 5))
    return X, 4 * X[:, 0] + np.abs(X[:, 1]), 0.5 + 1.5 * (X[:, 0] + 1)


def beside_the_mean(rng, n):
    """A spread that follows a feature on which the mean does not depend."""
    X = rng.uniform(-1, 1, size=(n, 5))
    return X, 3 * np.sin(3 * X[:, 0]), np.exp(X[:, 1])


DESIGNS = {
    "friedman1": friedman1,
    "with_the_mean": with_the_mean,
    "beside_the_mean": beside_the_mean,
}


def make(design, n, rng):
    """A table of a design.

    Parameters
    ----------
    design : str
        A name in DESIGNS.
    n : int
    rng : numpy.random.Generator

    Returns
    -------
    X : ndarray of shape (n, n_features), float64
    y : ndarray of shape (n,), float64
        The mean plus normal noise.
    spread : ndarray of shape (n,), float64
        Standard deviation of the noise.
    """
    X, mean, spread = DESIGNS[design](rng, n)
    return X, mean + spread * rng.normal(size=n), spread
