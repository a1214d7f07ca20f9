"""Random forests and Bagging: ensembles, their draws, votes and out-of-bag predictions."""

from cart.estimators import load
from cart.interop import old_names
from forest.estimators import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest.inference import nearest_rows, outlier_scores, proximity

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "load",
    "nearest_rows",
    "outlier_scores",
    "proximity",
]

old_names.keep_functions(__name__)
