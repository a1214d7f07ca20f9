"""Golden trees of rpart, and their comparison with ours."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cart import DecisionTreeClassifier, DecisionTreeRegressor

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "rpart"

# Fits that our trees cannot express, see tests/test_golden_rpart.py.
OTHERS = {"stagec_use_0", "stagec_style_1_use_0", "stagec_style_1_use_1"}


class Case:
    """One fit: rpart's input, and its results (`golden`)."""

    def __init__(self, name):
        self.golden = json.loads((GOLDEN / f"{name}.json").read_text())
        table = read(self.golden["data"])
        table = table[table[self.golden["response"]].notna()]
        self.X = table[self.golden["features"]].reset_index(drop=True)
        self.is_classification = self.golden["method"] == "class"
        y = table[self.golden["response"]].to_numpy()
        if self.is_classification:  # labels as rpart writes them
            y = np.array([label if isinstance(label, str) else str(int(label)) for label in y])
        self.y = y
        row = 1 + np.arange(len(y))
        self.weight = 1.0 + row % 3 if self.golden["weighted"] else np.ones(len(y))
        self.folds = row % 10

    @property
    def thinned(self):
        """X with a fifth of its cells missing, as README.md says."""
        i, j = np.indices(self.X.shape) + 1
        return self.X.mask((7 * i + 3 * j) % 5 == 0)

    def estimator(self, **params):
        """Our estimator with the same limits."""
        control, parms = self.golden["control"], self.golden["parms"] or {}
        labels = [column for column in self.X if self.X[column].dtype.kind not in "fi"]
        params = {
            "min_samples_split": control["minsplit"],
            "min_samples_leaf": control["minbucket"],
            "max_depth": control["maxdepth"],
            "precision": "float64",
            "categorical_features": labels or None,
            "min_category_ratio": 0.0,
            **params,
        }
        if self.X.isna().any(axis=None):
            params = {
                "missing": "surrogate",
                "surrogates": control["maxsurrogate"],
                "surrogate_style": ("all", "known")[control["surrogatestyle"]],
                **params,
            }
        if not self.is_classification:
            return DecisionTreeRegressor(**params)
        criterion = {"information": "entropy"}.get(parms.get("split"), "gini")
        params = {"criterion": criterion, "loss": parms.get("loss"), **params}
        return DecisionTreeClassifier(priors=parms.get("prior"), **params)


@cache
def read(name):
    path = GOLDEN / f"{name}.csv"
    return pd.read_csv(path, keep_default_na=False, na_values=["NA"], dtype={"Panel": str})


def pairs_of_nodes(golden, model):
    """Walk rpart's tree and ours together, down to where they differ.

    Yields rpart's node, the number of ours, and whether the sides of the split are swapped; None if
    the nodes differ in kind or in their split.
    """
    by_id = {node["id"]: node for node in golden["nodes"]}
    tree = model.tree_
    todo = [(1, 0)]
    while todo:
        number, ours = todo.pop()
        theirs = by_id[number]
        left, right = tree.children_left[ours], tree.children_right[ours]
        if ("primary" in theirs) != (left >= 0):
            yield theirs, ours, None
            continue
        if left < 0:
            yield theirs, ours, False
            continue
        is_mirrored = compare_splits(theirs["primary"], model, ours)
        yield theirs, ours, is_mirrored
        if is_mirrored is not None:
            todo.append((2 * number, right if is_mirrored else left))
            todo.append((2 * number + 1, left if is_mirrored else right))


def compare_splits(theirs, model, node):
    """Whether the sides are swapped, if two splits divide the same values; otherwise None."""
    tree = model.tree_
    if model.feature_names_in_[tree.feature[node]] != theirs["feature"]:
        return None
    if "threshold" in theirs:
        if not np.isclose(tree.threshold[node], theirs["threshold"], rtol=1e-9):
            return None
        return not theirs["less_is_left"]
    listed, listed_left = tree.categories.of(node)
    listed = set(model.categories_[tree.feature[node]][listed].tolist())
    left, right = set(theirs["left"]), set(theirs["right"])
    ours = listed if listed_left else (left | right) - listed
    if ours & (left | right) == left:
        return False
    return True if ours & (left | right) == right else None
