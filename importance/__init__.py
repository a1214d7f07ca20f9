"""Which features matter: functions of a fitted forest, each with its uncertainty and its bias."""

from importance.conditional import conditional_permutation
from importance.debiased import Optimism, optimism, unbiased_mdi
from importance.drop_column import drop_column
from importance.impurity import mdi
from importance.permutation import oob_permutation
from importance.result import Importances

__all__ = [
    "Importances",
    "Optimism",
    "conditional_permutation",
    "drop_column",
    "mdi",
    "oob_permutation",
    "optimism",
    "unbiased_mdi",
]
