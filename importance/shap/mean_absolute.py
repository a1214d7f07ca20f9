"""Mean |SHAP| as an importance, over all rows or a sample of them, with all trees or out of bag."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from cart.table.precision import native_frame
from importance.core.adoption import take_steps
from importance.core.result import Importances, mean_and_error
from importance.shap.values import EVERYONE, explain, forest_or_tree, trees_out_of_bag

MAX_ROWS = 1_000
FALL = 0.1  # share of the value below which a fall is not reported
REACH = 2.0  # standard errors within which a fall may be chance


def mean_absolute_shap(
    forest: Any, X: Any, *, out_of_bag: bool = False, max_rows: int = MAX_ROWS,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Mean of |SHAP| over rows (path-dependent), summed over classes.

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table the forest was fitted on.
    out_of_bag : bool, default=False
        Explain each row only by the trees for which it is out of bag.
    max_rows : int, default=1000
        Explain at most this many rows, evenly spaced; `unit` says how many.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    verbose, callback
        See `cart.primitives.progress.ProgressReporter`; a step is one part of the rows and trees.

    Returns
    -------
    Importances
        The standard error is over the explained rows, or over the groups of them that the forest
        draws as a whole (`fit(..., groups=)`). There is no `per_tree`.

    Raises
    ------
    TypeError, ValueError
        See `importance.shap_values`.
    """
    forest = forest_or_tree(forest)
    X = take_steps(forest, X)
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    rows = rows_to_explain(n_samples, max_rows)
    takes = trees_out_of_bag(forest, X).take(rows, axis=1) if out_of_bag else EVERYONE
    some_rows = _safe_indexing(X.tocsr() if issparse(X) else native_frame(X), rows)
    found = explain(
        forest, some_rows, takes, n_jobs=n_jobs, verbose=verbose, callback=callback
    ).mean_abs(per_row=True)
    name = "mean_absolute_shap_oob" if out_of_bag else "mean_absolute_shap"
    some = f", {len(rows):,} of {n_samples:,} rows" if len(rows) < n_samples else ""
    groups = getattr(getattr(forest, "_bootstrap", None), "groups", None)
    units = groups[rows] if groups is not None and len(groups) == n_samples else None
    assert found.per_row is not None
    _, error = mean_and_error(found.per_row, units)
    return replace(found, measure=name, unit=found.unit + some, standard_error=error)


def rows_to_explain(n_samples: int, max_rows: int = MAX_ROWS) -> np.ndarray:
    """Numbers of at most `max_rows` rows of a table, evenly spaced."""
    return np.arange(n_samples)[:: -(-n_samples // max_rows)]


def falls_out_of_bag(
    inside: Importances, outside: Importances, units: np.ndarray | None = None
) -> np.ndarray:
    """Whether |SHAP| is clearly smaller out of bag, by at least a tenth, (n_features,) bool.

    Differences are taken row by row. Out of bag, fewer trees explain a row, which makes the mean
    |SHAP| larger by chance, so a fall is seldom chance; `python -m benchmarks shap` measures how
    seldom.

    Parameters
    ----------
    inside, outside : Importances
        Importances of the same rows, see `mean_absolute_shap`.
    units : ndarray of shape (n_rows,), int64, optional
        Which unit, such as a person, each row belongs to, numbered from 0. Rows of a unit are not
        treated as independent.
    """
    assert inside.per_row is not None
    assert outside.per_row is not None
    fall, error = mean_and_error(inside.per_row - outside.per_row, units)
    return fall > np.maximum(FALL * inside.values, REACH * error)
