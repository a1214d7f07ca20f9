"""Surrogates, competitors, improvements and routes against R's rpart, node by node.

rpart prunes by the risk as it grows; its trees are the tops of ours. Its left child may be our
right one: it puts the lower mean, or the lower class, on the left.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cart import DecisionTreeClassifier, DecisionTreeRegressor

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "rpart"
AGREES = {"rel": 1e-9, "abs": 1e-11}


def load(name):
    """What rpart found, and its table: features, response and weights of the rows that it took."""
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    table = pd.read_csv(GOLDEN / f"{golden['data']}.csv", keep_default_na=False, na_values=["NA"])
    table = table[table[golden["response"]].notna()]
    weight = 1.0 + np.arange(1, len(table) + 1) % 3 if golden["weighted"] else None
    return golden, table[golden["features"]], table[golden["response"]], weight


def fit(golden, X, y, weight):
    """Our tree with rpart's limits, unpruned."""
    control = golden["control"]
    is_class = golden["method"] == "class"
    is_text = [not pd.api.types.is_numeric_dtype(X[name]) for name in X]
    criterion = {}
    if (golden["parms"] or {}).get("split") == "information":
        criterion = {"criterion": "entropy"}
    tree = (DecisionTreeClassifier if is_class else DecisionTreeRegressor)(
        min_samples_split=control["minsplit"], min_samples_leaf=control["minbucket"],
        max_depth=control["maxdepth"], surrogates=control["maxsurrogate"], missing="surrogate",
        surrogate_style=["all", "known"][control["surrogatestyle"]],
        competitors=control["maxcompete"], precision="float64", min_category_ratio=0.0,
        categorical_features=is_text if any(is_text) else None, random_state=0, **criterion,
    )  # fmt: skip
    return tree.fit(X, y.astype(str) if is_class else y, sample_weight=weight)
