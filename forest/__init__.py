"""Random forests and Bagging: many estimators, their draws, votes and out-of-bag predictions."""

from forest.estimators.bagging import BaggingClassifier, BaggingRegressor
from forest.estimators.forests import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest.inference.proximity import nearest_rows, outlier_scores, proximity

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "nearest_rows",
    "outlier_scores",
    "proximity",
]
