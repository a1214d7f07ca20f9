"""Importances from the decreases of impurity: MDI, and its versions that are judged out of bag."""

from importance.impurity.debiased import Optimism, optimism, unbiased_mdi
from importance.impurity.mdi import mdi

__all__ = ["Optimism", "mdi", "optimism", "unbiased_mdi"]
