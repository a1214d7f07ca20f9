"""Which features matter: functions of a fitted forest, each with its uncertainty and its bias."""

from importance.drop_column import drop_column
from importance.held_out import held_out_permutation
from importance.impurity import mdi
from importance.janitza import janitza
from importance.permutation import oob_permutation
from importance.result import Importances
from importance.selection import Selection, select_features
from importance.shadow import Shadows, shadow
from importance.significance import Significance, permutation_test
from importance.subsampling import over_data

__all__ = [
    "FeatureSelector",
    "Importances",
    "Selection",
    "Shadows",
    "Significance",
    "drop_column",
    "held_out_permutation",
    "janitza",
    "mdi",
    "oob_permutation",
    "over_data",
    "permutation_test",
    "select_features",
    "shadow",
]


def __getattr__(name):
    if name == "FeatureSelector":
        from importance.selector import FeatureSelector  # slow to import

        return FeatureSelector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
