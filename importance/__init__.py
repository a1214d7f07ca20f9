"""Which features matter: functions of a fitted forest, each with its uncertainty and its bias."""

from importance.drop_column import drop_column
from importance.find_groups import correlation_groups, one_hot_groups
from importance.impurity import mdi
from importance.permutation import oob_permutation
from importance.result import Importances

__all__ = [
    "Importances",
    "correlation_groups",
    "drop_column",
    "mdi",
    "one_hot_groups",
    "oob_permutation",
]
