"""SHAP values, by the package shap: not our code."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from importance.core.fitted_forest import is_classification, names_of, trees_of
from importance.core.result import Importances

BIAS = (
    "Shares out what the forest says, not what it gets right: a feature that the trees overfit "
    "has its share (Lundberg et al. 2020)."
)
MAX_ROWS = 200


def mean_absolute_shap(
    forest: Any, X: Any, *, max_rows: int = MAX_ROWS, missing_ok: bool = False
) -> Any:
    """Mean of |SHAP| over rows, by shap's TreeExplainer (path-dependent).

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
    X : array-like of shape (n_samples, n_features)
        The rows to explain.
    max_rows : int, default=200
        Explain so many, evenly spaced: the time is that of rows times leaves.
    missing_ok : bool, default=False
        Return None where shap is not installed or the forest has no form that it knows.

    Returns
    -------
    Importances
        Summed over classes. The standard error is over the rows explained; there is no
        `per_tree`.

    Raises
    ------
    ImportError
        If shap is not installed.
    ValueError
        If the forest has no form in scikit-learn, see `forest.interop.bridge.to_sklearn`, or X is
        sparse.
    """
    trees_of(forest)
    try:
        from shap import TreeExplainer

        if issparse(X):
            raise ValueError("SHAP values of sparse tables are not supported; pass a dense one.")
        model = _to_sklearn(forest)
    except (ImportError, ValueError, TypeError):
        if missing_ok:
            return None
        raise
    rows = np.asarray(X, dtype=np.float64)[:: -(-len(X) // max_rows)]
    values = TreeExplainer(model).shap_values(rows, check_additivity=False)
    values = np.abs(np.stack(values, axis=-1) if isinstance(values, list) else values)
    per_row = values.sum(axis=2) if values.ndim == 3 else values
    return Importances(
        "mean_absolute_shap", per_row.mean(axis=0), per_row.std(axis=0) / np.sqrt(len(per_row)),
        None, names_of(forest),
        unit="mean |SHAP| of the predicted "
        + ("class shares" if is_classification(forest) else "value"),
        uncertainty="over rows",
        bias=BIAS,
    )  # fmt: skip


def _to_sklearn(forest):
    from forest.interop.bridge import to_sklearn  # imports scikit-learn's ensembles

    return forest if type(forest).__module__.startswith("sklearn.") else to_sklearn(forest)
