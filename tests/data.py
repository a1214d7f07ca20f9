"""The data sets of the tests, by name."""

from functools import cache

import numpy as np
import pytest
from sklearn import datasets

SMALL_CLASSIFICATION = ("iris", "wine", "breast_cancer", "digits")
LARGE_CLASSIFICATION = ("two_classes", "ten_classes")
CALIFORNIA = pytest.param("california", marks=pytest.mark.california)
REGRESSION = ("diabetes", CALIFORNIA, "friedman1")

_LOADERS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}


@cache
def load(name):
    """X and y of a data set.

    Parameters
    ----------
    name : str
        "iris", "wine", "breast_cancer", "digits", "diabetes", "california"; "two_classes" and
        "ten_classes", 20,000 x 20; "friedman1" and "friedman1_distinct", 20,000 x 10.
    """
    if name == "california":
        return datasets.fetch_california_housing(return_X_y=True, download_if_missing=False)
    if name in LARGE_CLASSIFICATION:
        n_classes = 2 if name == "two_classes" else 10
        return datasets.make_classification(
            20_000, 20, n_informative=10, n_classes=n_classes, random_state=0
        )
    if name == "friedman1":
        return datasets.make_friedman1(20_000, 10, noise=1.0, random_state=0)
    if name == "friedman1_distinct":
        return _friedman1_distinct(20_000)
    return _LOADERS[name](return_X_y=True)


def unseen_rows(X):
    """Rows between those of X, in double precision."""
    rng = np.random.default_rng(0)
    return X[rng.permutation(len(X))][:500] * rng.uniform(0.9, 1.1, (1, X.shape[1]))


def _friedman1_distinct(n):
    """The function of Friedman (1991) on uniform columns without equal float32 values."""
    rng = np.random.default_rng(0)
    X = np.empty((n, 10), np.float32)
    for column in X.T:
        values = np.empty(0, np.float32)
        while len(values) < n:
            values = np.unique(np.append(values, rng.random(n, np.float32)))
        column[:] = rng.permutation(values)[:n]
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)


@cache
def why_no_california():
    """Why the California housing table cannot be had; None where it can."""
    try:
        load("california")
    except OSError:
        return "the California housing table is not in SCIKIT_LEARN_DATA"
    return None
