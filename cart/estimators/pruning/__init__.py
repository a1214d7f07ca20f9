"""Cost-complexity pruning by risk, as Breiman et al. do it, as far as cross-validation says."""

from cart.estimators.pruning.cp_table import CpTable, cp_table, prune_at
from cart.estimators.pruning.cross_validation import cv_prune
from cart.estimators.pruning.estimators import PrunedTreeClassifier, PrunedTreeRegressor
from cart.estimators.pruning.plot import plot_cp

__all__ = [
    "CpTable",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
    "cp_table",
    "cv_prune",
    "plot_cp",
    "prune_at",
]
