"""Importances from decreases in impurity: MDI, credit to surrogates, and both out of bag."""

from importance.impurity.debiased import Optimism, optimism, unbiased_mdi
from importance.impurity.masking import Masking, masking
from importance.impurity.mdi import mdi
from importance.impurity.stand_ins import surrogate_importance

__all__ = [
    "Masking",
    "Optimism",
    "masking",
    "mdi",
    "optimism",
    "surrogate_importance",
    "unbiased_mdi",
]
