"""CART: one decision tree, grown by numba kernels, scikit-learn's node for node."""

import importlib
from typing import Any

from cart.estimators import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    load,
)
from cart.estimators.category_encoder import count_unseen
from cart.estimators.pruning import (
    CpTable,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    cp_table,
    cv_prune,
    plot_cp,
    prune_at,
)
from cart.estimators.reading import TreePath, explain_path, summary
from cart.interop import old_names

old_names.install()

__all__ = [
    "CpTable",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "PrunedTreeClassifier",
    "PrunedTreeRegressor",
    "TreePath",
    "count_unseen",
    "cp_table",
    "cv_prune",
    "explain_path",
    "export_graphviz",
    "export_text",
    "load",
    "plot_cp",
    "plot_tree",
    "prune_at",
    "summary",
]


def __getattr__(name: str) -> Any:
    """Import the exports on first use: they alone import `sklearn.tree`, which is slow."""
    if name in ("export_graphviz", "export_text", "plot_tree"):
        return getattr(importlib.import_module("cart.interop.export"), name)
    raise AttributeError(f"module 'cart' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of this module and all public names."""
    return sorted({*globals(), *__all__})
