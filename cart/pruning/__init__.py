"""Pruning as the book does it: by risk, and as far as cross-validation says."""

from cart.pruning.cp_table import CpTable, cp_table, prune_at
from cart.pruning.cross_validation import cv_prune
from cart.pruning.estimators import PrunedTreeClassifier, PrunedTreeRegressor

__all__ = [
    "CpTable",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
    "cp_table",
    "cv_prune",
    "prune_at",
]
