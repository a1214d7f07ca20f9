"""SHAP values: what each feature adds to the prediction of each row, exactly, and out of bag."""

from importance.shap.result import ShapValues
from importance.shap.values import shap_values

__all__ = ["ShapValues", "shap_values"]
