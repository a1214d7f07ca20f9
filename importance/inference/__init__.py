"""Uncertainty and tests of importances: refits, subsampling, p-values, shadows, selection."""

from importance.inference.conditional_test import conditional_test
from importance.inference.janitza import janitza
from importance.inference.p_values import Significance, permutation_test
from importance.inference.shadow import Selection, Shadows, select_features, shadow
from importance.inference.subsampling import over_data

__all__ = [
    "Selection",
    "Shadows",
    "Significance",
    "conditional_test",
    "janitza",
    "over_data",
    "permutation_test",
    "select_features",
    "shadow",
]
