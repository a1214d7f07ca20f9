"""Trees of the scikit-learn that is installed, for the contract in `docs/compatibility.md`.

`python make_trees.py` in this folder, in an environment of that version, writes
`trees/VERSION.npz`; nothing but scikit-learn is needed.
"""

from pathlib import Path

import numpy as np
import sklearn
from sklearn import ensemble, tree

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "trees"
FIELDS = ("children_left", "children_right", "feature", "threshold", "n_node_samples", "value")


def table(name, is_gappy=False):
    """X, y and whole weights of a table of this folder; with `is_gappy` values are missing."""
    rows = np.genfromtxt(HERE / f"{name}.csv", delimiter=",", skip_header=1)
    X, y = rows[:, :-1], rows[:, -1]
    if is_gappy:
        X[np.arange(len(X)) % 5 == 0, 1] = np.nan
    return X, y, np.arange(len(y)) % 3 + 1.0


RISING = [0, 0, 1, 1, 0, 0, -1, 0, 0, 0]  # -1: falling
# Of each case the class, its parameters, its table, whether values are missing and rows weigh.
CASES = {
    "gini": ("DecisionTreeClassifier", {}, "iris", False, False),
    "entropy": ("DecisionTreeClassifier", {"criterion": "entropy"}, "iris", False, True),
    "log_loss": ("DecisionTreeClassifier", {"criterion": "log_loss"}, "iris", True, False),
    "gaps": ("DecisionTreeClassifier", {"max_features": 2}, "iris", True, True),
    "balanced": ("DecisionTreeClassifier", {"class_weight": "balanced"}, "iris", False, False),
    "leaves": ("DecisionTreeClassifier", {"max_leaf_nodes": 6}, "iris", False, False),
    "pruned": ("DecisionTreeClassifier", {"ccp_alpha": 0.01}, "iris", False, False),
    "extra": ("ExtraTreeClassifier", {}, "iris", False, False),
    "extra_gaps": ("ExtraTreeClassifier", {"criterion": "entropy"}, "iris", True, False),
    "squared": ("DecisionTreeRegressor", {"max_depth": 5}, "diabetes", False, False),
    "squared_gaps": ("DecisionTreeRegressor", {"max_depth": 5}, "diabetes", True, True),
    "absolute": (
        *("DecisionTreeRegressor", {"criterion": "absolute_error", "max_depth": 4}),
        *("diabetes", False, False),
    ),
    "poisson": (
        *("DecisionTreeRegressor", {"criterion": "poisson", "max_depth": 5}),
        *("diabetes", False, False),
    ),
    "monotonic": (
        *("DecisionTreeRegressor", {"monotonic_cst": RISING, "max_depth": 5}),
        *("diabetes", False, False),
    ),
    "extra_squared": ("ExtraTreeRegressor", {"max_depth": 5}, "diabetes", False, False),
    "forest": ("RandomForestClassifier", {"n_estimators": 5}, "iris", False, False),
    "forest_weights": ("RandomForestClassifier", {"n_estimators": 5}, "iris", True, True),
    "subsample": (
        *("RandomForestClassifier", {"n_estimators": 5, "class_weight": "balanced_subsample"}),
        *("iris", False, False),
    ),
    "forest_squared": (
        *("RandomForestRegressor", {"n_estimators": 3, "max_depth": 5, "max_samples": 0.5}),
        *("diabetes", False, False),
    ),
    "extra_forest": ("ExtraTreesClassifier", {"n_estimators": 5}, "iris", False, False),
    "bagging": ("BaggingClassifier", {"n_estimators": 5, "max_features": 0.5}, "iris", False, True),
}  # fmt: skip


def grow(case, *packages):
    """The trees of a case, fitted with the class that one of the packages has."""
    name, parameters, source, is_gappy, is_weighted = CASES[case]
    model = next(getattr(package, name) for package in packages if hasattr(package, name))
    X, y, weight = table(source, is_gappy)
    fitted = model(random_state=0, **parameters).fit(X, y, weight if is_weighted else None)
    return [each.tree_ for each in getattr(fitted, "estimators_", [fitted])]


if __name__ == "__main__":
    arrays = {
        f"{case} {i} {field}": getattr(grown, field)
        for case in CASES
        for i, grown in enumerate(grow(case, tree, ensemble))
        for field in FIELDS
    }
    np.savez_compressed(FOLDER / f"{sklearn.__version__}.npz", **arrays)
