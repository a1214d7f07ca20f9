"""Simulated tables with known importances, and the values of measures on noise."""

from typing import NamedTuple

import numpy as np

from forest import RandomForestClassifier, RandomForestRegressor
from importance import mdi, unbiased_mdi

LEVELS_2007 = (2, 4, 10, 20)
SLOPES_2008 = (5.0, 5.0, 2.0, 0.0, -5.0, -5.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def strobl_2007(n_samples, rng, n_classes=2):
    """The null case of Strobl et al. (2007): features of many kinds, none of which matters.

    Parameters
    ----------
    n_samples : int
        120 in the paper.
    rng : numpy.random.RandomState
    n_classes : int, default=2
        1 makes y normal, for regression.

    Returns
    -------
    X : ndarray of shape (n_samples, 5), float64
        x1 is normal; x2 to x5 are codes of 2, 4, 10 and 20 categories.
    y : ndarray of shape (n_samples,)
    """
    X = np.column_stack(
        [rng.normal(size=n_samples)] + [rng.randint(k, size=n_samples) for k in LEVELS_2007]
    )
    y = rng.normal(size=n_samples) if n_classes == 1 else rng.randint(n_classes, size=n_samples)
    return X, y


def strobl_2008(n_samples, rng, correlation=0.9):
    """The linear model of Strobl et al. (2008): twelve normal features, four of them correlated.

    Parameters
    ----------
    n_samples : int
        100 in the paper.
    rng : numpy.random.RandomState
    correlation : float, default=0.9
        Of any two of x1 to x4.

    Returns
    -------
    X : ndarray of shape (n_samples, 12), float64
    y : ndarray of shape (n_samples,), float64
        5 x1 + 5 x2 + 2 x3 + 0 x4 - 5 x5 - 5 x6 - 2 x7 + noise, of standard deviation 0.5.
    """
    covariance = np.eye(12)
    covariance[:4, :4] += correlation * (1.0 - np.eye(4))
    X = rng.multivariate_normal(np.zeros(12), covariance, size=n_samples)
    return X, X @ np.array(SLOPES_2008) + rng.normal(scale=0.5, size=n_samples)


def independent_given_the_rest(n_samples, rng):
    """Discrete features; the last follows the first two, and says nothing of y beyond them.

    Parameters
    ----------
    n_samples : int
    rng : numpy.random.RandomState

    Returns
    -------
    X : ndarray of shape (n_samples, 3), float64
        x1 and x2 have 4 values, x3 has 7.
    y : ndarray of shape (n_samples,), float64
        x1 + x2 + noise.
    """
    z = rng.randint(4, size=(n_samples, 2))
    follower = z.sum(axis=1) + rng.randint(-1, 2, size=n_samples)
    follower = follower.clip(0, 6)
    return np.column_stack((z, follower)).astype(float), z.sum(axis=1) + rng.normal(size=n_samples)


class NoiseBias(NamedTuple):
    """Values of MDI and its debiased versions for noise, one row per simulated set."""

    mdi: np.ndarray  # (n_sets, 5), not normalised, divided by the weight of the in-bag rows
    ufi: np.ndarray
    mdi_oob: np.ndarray

    @staticmethod
    def z_score(values):
        """Mean over sets divided by its standard error, (5,)."""
        return values.mean(axis=0) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def noise_bias(n_sets, n_samples=120, n_trees=50, n_classes=2, categorical=False, seed=0, **params):
    """Compute MDI and its debiased versions on sets of `strobl_2007`.

    Parameters
    ----------
    n_sets, n_samples, n_trees : int
    n_classes : int, default=2
        1 is regression.
    categorical : bool, default=False
        Whether to split x2 to x5 on subsets of their categories, instead of codes.
    seed : int, default=0
        Set i, and its forest, are drawn with the seed `seed + i`.
    **params
        Parameters of the forests.

    Returns
    -------
    NoiseBias
    """
    kind = RandomForestRegressor if n_classes == 1 else RandomForestClassifier
    if categorical:
        params = {"categorical_features": [1, 2, 3, 4], **params}
    rows = []
    for i in range(seed, seed + n_sets):
        X, y = strobl_2007(n_samples, np.random.RandomState(i), n_classes)
        forest = kind(n_trees, random_state=i, **params).fit(X, y)
        n_drawn = forest.estimators_[0].tree_.weighted_n_node_samples[0]
        rows.append(
            (
                mdi(forest, normalize=False).values / n_drawn,
                unbiased_mdi(forest, X, y, method="ufi").values,
                unbiased_mdi(forest, X, y, method="mdi_oob").values,
            )
        )
    return NoiseBias(*np.swapaxes(rows, 0, 1))
