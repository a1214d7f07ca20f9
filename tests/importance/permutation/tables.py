"""Tables and forests of every loss, and the parts of a forest that its slow twin takes."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor

from benchmarks.oracles import permutation as oracle
from forest import RandomForestClassifier, RandomForestRegressor

KINDS = {
    "zero_one": (RandomForestClassifier, PeerClassifier),
    "brier": (RandomForestClassifier, PeerClassifier),
    "squared_error": (RandomForestRegressor, PeerRegressor),
    "absolute_error": (RandomForestRegressor, PeerRegressor),
    "poisson": (RandomForestRegressor, PeerRegressor),
}
EACH_LOSS = pytest.mark.parametrize("loss", KINDS)


def table(loss, n=80, missing=0.2, seed=0):
    """Five columns with ties, an interaction and values missing; of three classes, or counts."""
    rng = np.random.RandomState(seed)
    X = np.round(rng.normal(size=(n, 5)), 1).astype(np.float32)
    signal = X[:, 0] * (X[:, 1] > 0) + X[:, 2]
    X[rng.uniform(size=X.shape) < missing * np.array([2, 1, 0, 1, 1])] = np.nan
    if loss in ("zero_one", "brier"):
        return X, np.digitize(signal + 0.3 * rng.normal(size=n), (-0.5, 0.5))
    return X, 1.0 + rng.poisson(np.exp(np.clip(signal, -2, 2)))


def fit(loss, X, y, adopted=False, n=4, **params):
    params = {"random_state": 0, "min_samples_leaf": 2, **params}
    return KINDS[loss][adopted](n, **params).fit(X, y)


def parts(forest, X, y):
    """Trees with their out-of-bag rows, the rows' values and their codes."""
    codes = np.searchsorted(forest.classes_, y) if hasattr(forest, "classes_") else y
    for tree, draws in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        rows = oracle.out_of_bag(draws, len(y))
        yield tree.tree_, rows, X[rows], codes[rows]


def of_rows(forest, X, y, loss, columns_of):
    """Each tree's rows, and the increase of their losses by group, (n_groups, n_rows)."""
    for tree, rows, mine, codes in parts(forest, X, y):
        said = [oracle.every_donor(tree, mine, codes, loss, columns) for columns in columns_of]
        yield rows, np.array(said)


ALONE = [[0], [1], [2], [3], [4]]
GROUPS = {"a": [0, 1], "b": [2, 4, 3]}


def biased_coin_table(n=400):
    """Two columns that count and one that does not."""
    rng = np.random.RandomState(5)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + (X[:, 1] > 0) + 0.5 * rng.normal(size=n)
