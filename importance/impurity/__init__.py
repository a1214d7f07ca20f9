"""Importances from the decreases of impurity: MDI, and its versions that are judged out of bag."""

from importance.impurity.debiased import Optimism, optimism, unbiased_mdi
from importance.impurity.mdi import mdi
from importance.impurity.surrogates import Masking, masking, surrogate_importance

__all__ = [
    "Masking",
    "Optimism",
    "masking",
    "mdi",
    "optimism",
    "surrogate_importance",
    "unbiased_mdi",
]
