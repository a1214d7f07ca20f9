"""Which features matter: functions of a fitted forest, each with its uncertainty and its bias."""

from importance.conditional.conditional import conditional_permutation
from importance.core.result import Importances
from importance.drop_column.drop_column import drop_column
from importance.impurity.debiased import Optimism, optimism, unbiased_mdi
from importance.impurity.mdi import mdi
from importance.inference.janitza import janitza
from importance.inference.p_values import Significance, permutation_test
from importance.inference.selection import Selection, select_features
from importance.inference.shadow import Shadows, shadow
from importance.inference.subsampling import over_data
from importance.permutation.forest_level import forest_permutation
from importance.permutation.held_out import held_out_permutation
from importance.permutation.oob import oob_permutation
from importance.report.comparison import Comparison, compare
from importance.report.find_groups import correlation_groups, one_hot_groups

__all__ = [
    "Comparison",
    "FeatureSelector",
    "Importances",
    "Optimism",
    "Selection",
    "Shadows",
    "Significance",
    "compare",
    "conditional_permutation",
    "correlation_groups",
    "drop_column",
    "forest_permutation",
    "held_out_permutation",
    "janitza",
    "mdi",
    "one_hot_groups",
    "oob_permutation",
    "optimism",
    "over_data",
    "permutation_test",
    "select_features",
    "shadow",
    "unbiased_mdi",
]


def __getattr__(name):
    if name == "FeatureSelector":
        from importance.inference.selector import FeatureSelector  # slow to import

        return FeatureSelector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
