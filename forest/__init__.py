"""Random forests: many trees, their bootstrap, their votes and what they say out of bag."""

from forest.estimators import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest.proximity import nearest_rows, outlier_scores, proximity

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "nearest_rows",
    "outlier_scores",
    "proximity",
]
