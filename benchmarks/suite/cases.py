"""The cases of the suite: tables, tasks, parameters, and the bars to reach."""

from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.harness import datasets, flights

MILLION = 1_000_000
TWO = (2,)


class Case(NamedTuple):
    """One piece of work that all sides do."""

    name: str
    data: str  # see `_load`
    task: str
    params: dict  # see `peers.models.create`
    fit_bar: float | None = None  # how many times faster than scikit-learn ours should be
    predict_bar: float | None = None
    has_ties: bool = False  # has equally good splits, where trees may differ
    jobs: tuple = (1, 2)  # numbers of threads to choose from; large tables always take two
    is_scaling: bool = False  # for time against rows, trees or threads

    @property
    def is_exact(self):
        return self.params["max_bins"] is None

    def load(self):
        """X, X_test, y, y_test with a quarter of the rows held out."""
        X, y = _load(self.data, self.task)
        return train_test_split(X, y, test_size=0.25, random_state=0)


def _params(criterion, n_estimators=100, max_features="sqrt", model="forest", max_bins=None):
    return {
        "model": model, "n_estimators": n_estimators, "criterion": criterion,
        "max_features": max_features, "max_bins": max_bins,
    }  # fmt: skip


def _load(name, task):
    if name == "flights":
        X, y = flights.load(task, with_dep_delay=False)
        categories = X.select_dtypes("category").columns
        X = X.assign(**{column: X[column].cat.codes for column in categories})
        return X.to_numpy(np.float64), np.asarray(y)
    data = datasets.load(name)
    return data.X, data.y


def _rows(n):
    """Number of rows to make so that n are left to fit on when a quarter is held out."""
    return -(-4 * n // 3)


BINARY = f"classification:{_rows(100_000)}x20"
TEN = f"classification:{_rows(100_000)}x20x10"
FRIEDMAN = f"regression:{_rows(100_000)}x20"
THIRD = 1 / 3

CASES = (
    Case("binary 100,000 x 20, gini", BINARY, "classification", _params("gini"), 10, 5, jobs=TWO),
    Case(
        "binary 100,000 x 20, entropy", BINARY, "classification", _params("entropy"), 8, 5, jobs=TWO
    ),
    Case("10 classes, 100,000 x 20", TEN, "classification", _params("gini"), 6.5, 5, jobs=TWO),
    Case("digits", "digits", "classification", _params("gini"), 5.5, 5),
    Case("breast_cancer", "breast_cancer", "classification", _params("gini"), 9, 6),
    Case("iris", "iris", "classification", _params("gini"), 18, 6),
    Case(
        "2,000 x 2,000, binary", f"classification:{_rows(2000)}x2000", "classification",
        _params("gini"), 6, 3,
    ),
    Case(
        "friedman1 100,000 x 20, all features", FRIEDMAN, "regression",
        _params("squared_error", max_features=None), 9, 6, jobs=TWO,
    ),
    Case(
        "friedman1 100,000 x 20, a third", FRIEDMAN, "regression",
        _params("squared_error", max_features=THIRD), 6, 6, jobs=TWO,
    ),
    Case(
        "california, all features", "california", "regression",
        _params("squared_error", max_features=None), 7, 5, True,
    ),
    Case(
        "california, a third", "california", "regression",
        _params("squared_error", max_features=THIRD), 5, 5, True,
    ),
    Case(
        "flights, arr_delay > 15", "flights", "classification", _params("gini", 20), 6, 5, jobs=TWO,
    ),
    Case(
        "flights, arr_delay, a third", "flights", "regression",
        _params("squared_error", 20, THIRD), 5, 5, True, TWO,
    ),
    Case(
        "binary 1,000,000 x 20", f"classification:{_rows(MILLION)}x20", "classification",
        _params("gini", 10), 8, 5, jobs=TWO,
    ),
    Case(
        "one DecisionTreeClassifier, 100,000 x 20", BINARY, "classification",
        _params("gini", 1, None, "tree"), 9.5, 2, jobs=(1,),
    ),
    Case(
        "255 bins, binary 100,000 x 20", BINARY, "classification",
        _params("gini", max_bins=255), 16, jobs=TWO,
    ),
    Case(
        "255 bins, friedman1 100,000 x 20, all features", FRIEDMAN, "regression",
        _params("squared_error", max_features=None, max_bins=255), 15, jobs=TWO,
    ),
)  # fmt: skip

SCALING = tuple(
    [
        Case(
            f"scaling: {n:,} rows", f"classification:{_rows(n)}x20", "classification",
            _params("gini", 20), jobs=(1, 2) if n < MILLION else TWO, is_scaling=True,
        )
        for n in (1_000, 3_162, 10_000, 31_623, 100_000, MILLION)
    ]
    + [
        Case(
            f"scaling: {trees} trees", f"classification:{_rows(10_000)}x20", "classification",
            _params("gini", trees), is_scaling=True,
        )
        for trees in (1, 3, 10, 30, 100, 300)
    ]
    + [
        # For the effect of a second thread on a forest of the usual size. Its name keeps it out of
        # the plot's lines over rows and over trees (see `benchmarks.suite.plots`).
        Case(
            "scaling: 100 trees on 100,000 samples", BINARY, "classification", _params("gini"),
            is_scaling=True,
        )
    ]
)  # fmt: skip

# Within three minutes there is no time to choose the better number of threads.
QUICK = (
    Case("iris", "iris", "classification", _params("gini"), 18, 6, jobs=(1,)),
    Case("breast_cancer", "breast_cancer", "classification", _params("gini"), 9, 6, jobs=(1,)),
    Case("digits", "digits", "classification", _params("gini"), 5.5, 5, jobs=(1,)),
    Case(
        "quick: binary 10,000 x 20, gini", f"classification:{_rows(10_000)}x20", "classification",
        _params("gini", 20), jobs=TWO,
    ),
    Case(
        "quick: friedman1 10,000 x 20, all features", f"regression:{_rows(10_000)}x20",
        "regression", _params("squared_error", 20, None), jobs=TWO,
    ),
)  # fmt: skip
