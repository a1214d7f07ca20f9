"""The tree estimators, and what they do with X, y and parameters before trees are grown."""

from cart.estimators.saved_state import load
from cart.estimators.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "load",
]
