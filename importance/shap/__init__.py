"""SHAP values, exact and optionally out of bag: each feature's contribution to each prediction."""

from importance.shap.mean_absolute import falls_out_of_bag, mean_absolute_shap, rows_to_explain
from importance.shap.result import ShapValues
from importance.shap.values import shap_values, trees_to_explain

__all__ = [
    "ShapValues", "falls_out_of_bag", "mean_absolute_shap", "rows_to_explain", "shap_values",
    "trees_to_explain",
]  # fmt: skip
