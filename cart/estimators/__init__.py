"""The tree estimators, and how they check and encode X, y and parameters before growth."""

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
