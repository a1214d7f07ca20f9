"""Which features matter: functions of a fitted forest, each with its uncertainty and its bias."""

from cart.interop import old_names
from importance.conditional import conditional_permutation
from importance.core import Importances, of_output
from importance.drop_column import drop_column
from importance.impurity import (
    Masking,
    Optimism,
    masking,
    mdi,
    optimism,
    surrogate_importance,
    unbiased_mdi,
)
from importance.inference import (
    Selection,
    Shadows,
    Significance,
    conditional_test,
    janitza,
    over_data,
    permutation_test,
    select_features,
    shadow,
)
from importance.permutation import forest_permutation, held_out_permutation, oob_permutation
from importance.report import Comparison, compare, correlation_groups, one_hot_groups
from importance.shap import ShapValues, shap_values

__all__ = [
    "Comparison",
    "FeatureSelector",
    "Importances",
    "Masking",
    "Optimism",
    "Selection",
    "Shadows",
    "ShapValues",
    "Significance",
    "compare",
    "conditional_permutation",
    "conditional_test",
    "correlation_groups",
    "drop_column",
    "forest_permutation",
    "held_out_permutation",
    "janitza",
    "masking",
    "mdi",
    "of_output",
    "one_hot_groups",
    "oob_permutation",
    "optimism",
    "over_data",
    "permutation_test",
    "select_features",
    "shadow",
    "shap_values",
    "surrogate_importance",
    "unbiased_mdi",
]


old_names.keep_functions(__name__)


def __getattr__(name: str) -> type:
    if name == "FeatureSelector":
        from importance.inference.selector import FeatureSelector  # slow to import

        return FeatureSelector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of this module and all public names."""
    return sorted({*globals(), *__all__})
