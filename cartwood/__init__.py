"""Cartwood's public API: all estimators and importances under one name, and the command line.

Names are imported from `cart` (a single tree), `forest` (many) and `importance` when they are first
used, so `import cartwood` itself takes no time.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cart import (
        CpTable,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreeClassifier,
        ExtraTreeRegressor,
        PrunedTreeClassifier,
        PrunedTreeRegressor,
        TreePath,
        count_unseen,
        cp_table,
        cv_prune,
        explain_path,
        export_graphviz,
        export_text,
        load,
        plot_cp,
        plot_tree,
        prune_at,
        summary,
    )
    from forest import (
        BaggingClassifier,
        BaggingRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
        nearest_rows,
        outlier_scores,
        proximity,
    )
    from forest.interop.bridge import from_sklearn, to_sklearn
    from importance import (
        Comparison,
        Importances,
        Masking,
        Optimism,
        Selection,
        Shadows,
        ShapValues,
        Significance,
        compare,
        conditional_permutation,
        conditional_test,
        correlation_groups,
        drop_column,
        forest_permutation,
        held_out_permutation,
        janitza,
        masking,
        mdi,
        of_output,
        one_hot_groups,
        oob_permutation,
        optimism,
        over_data,
        permutation_test,
        select_features,
        shadow,
        shap_values,
        surrogate_importance,
        unbiased_mdi,
    )
    from importance.inference.selector import FeatureSelector

    __version__: str

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "Comparison",
    "CpTable",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "FeatureSelector",
    "Importances",
    "Masking",
    "Optimism",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Selection",
    "Shadows",
    "ShapValues",
    "Significance",
    "TreePath",
    "__version__",
    "compare",
    "conditional_permutation",
    "conditional_test",
    "correlation_groups",
    "count_unseen",
    "cp_table",
    "cv_prune",
    "drop_column",
    "explain_path",
    "export_graphviz",
    "export_text",
    "forest_permutation",
    "from_sklearn",
    "held_out_permutation",
    "janitza",
    "load",
    "masking",
    "mdi",
    "nearest_rows",
    "of_output",
    "one_hot_groups",
    "oob_permutation",
    "optimism",
    "outlier_scores",
    "over_data",
    "permutation_test",
    "plot_cp",
    "plot_tree",
    "proximity",
    "prune_at",
    "select_features",
    "shadow",
    "shap_values",
    "summary",
    "surrogate_importance",
    "to_sklearn",
    "unbiased_mdi",
]

_BRIDGES = ("from_sklearn", "to_sklearn")


def __getattr__(name: str) -> Any:
    """Import a public name from the package that defines it."""
    if name == "__version__":
        return metadata.version("cartwood")
    if name == "load":
        return import_module("forest").load  # cart's `load`, which importing forest extends
    if name in _BRIDGES:
        return getattr(import_module("forest.interop.bridge"), name)
    if name in __all__:
        for package in ("cart", "forest", "importance"):
            module = import_module(package)
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'cartwood' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of this module and all public names."""
    return sorted({*globals(), *__all__})
