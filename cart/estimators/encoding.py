"""Encode checked columns as the table that trees are grown on, as the parameters require."""

import numpy as np
from scipy.sparse import issparse

from cart.splitting.category_subsets import CategoricalTable
from cart.table.bins import bin_table
from cart.table.columns import Columns
from cart.table.encoding import FEW_VALUES, encode
from cart.table.float_table import FloatTable
from cart.table.merged_values import count_merged_values, exceeds_doubles, warn_of_merged_values
from cart.table.table import Table

# A sparse table is made dense, for faster growth, if the share of its nonzero values is at least
# _DENSE_FROM (by splitter), and their number at most _DENSE_MAX, since it takes more memory.
_DENSE_FROM, _DENSE_MAX = {"best": 1 / 4, "random": 1 / 16}, 1 << 22


def encode_table(estimator, given, columns, splitter, keeps_values):
    """Encode columns, and count the distinct values that were merged by casting them.

    Parameters
    ----------
    estimator : estimator
        Gets `n_merged_values_`.
    given : array-like of shape (n_samples, n_features), or sparse
        X as the user gave it.
    columns : cart.table.columns.Columns
        The columns of X as returned by `check_table`, in the estimator's precision.
    splitter : {"best", "random"}
    keeps_values : bool
        False allows a `Table` that is not complete.

    Returns
    -------
    Table, FloatTable, SparseTable or CategoricalTable

    Warns
    -----
    UserWarning
        If columns lose many of their distinct values.
    """
    table = _encode_values(estimator, columns, splitter, keeps_values)
    n_merged, n_left = np.zeros((2, estimator.n_features_in_), np.int64)
    is_single = columns.precision == np.float32
    if is_single or exceeds_doubles(given):
        n_jobs = getattr(estimator, "n_jobs", None)
        n_merged, n_left = count_merged_values(given, table, columns.precision, n_jobs)
    estimator.n_merged_values_ = n_merged
    names = getattr(estimator, "feature_names_in_", range(len(n_merged)))
    precision = "single" if is_single else "double"
    warn_of_merged_values(given, n_merged, n_left, names, precision)
    return _finish(estimator, table)


def encode_columns(estimator, X, splitter):
    """Encode the columns of X as trees are grown on them, in X's own precision.

    Parameters
    ----------
    estimator : estimator, ours or scikit-learn's
    X : ndarray of shape (n_samples, n_features), or sparse
    splitter : see `encode_table`

    Returns
    -------
    Table, FloatTable, SparseTable or CategoricalTable
    """
    refuse_impossible_bins(estimator, X, splitter)
    return _finish(estimator, _encode_values(estimator, Columns(X), splitter))


def _encode_values(estimator, columns, splitter, keeps_values=True):
    """The columns with a code for every distinct value."""
    n_jobs = getattr(estimator, "n_jobs", None)  # trees have no such parameter: one thread
    if np.any(getattr(estimator, "is_categorical_", False)):
        return CategoricalTable.encode(columns, estimator._category_encoder.n_categories, n_jobs)
    X = columns.X
    if issparse(X) and _DENSE_FROM[splitter] * np.prod(X.shape) <= X.nnz <= _DENSE_MAX:
        columns, keeps_values = Columns(X.toarray(order="F")), True
    is_plain = not asks_for_alternatives(estimator)
    is_single = columns.precision == np.float32 and not issparse(columns.X)
    if splitter == "random" and is_single and is_plain:
        return FloatTable.encode(columns, n_jobs)
    # Bins need the values; in a small table, keeping them is faster than looking them up later.
    has_bins = getattr(estimator, "max_bins", None) is not None
    keeps_values = keeps_values or has_bins or columns.X.size <= FEW_VALUES
    return encode(columns, n_jobs=n_jobs, keeps_values=keeps_values)


def _finish(estimator, table):
    """Bin an encoded table as `max_bins` requires, and narrow its codes as far as is useful."""
    max_bins = getattr(estimator, "max_bins", None)  # scikit-learn's estimators have none
    table = table if max_bins is None else bin_table(table, max_bins)
    if not isinstance(table, Table):
        return table
    # Kernels are compiled for each dtype, so ranks take two bytes even where one would do.
    return table.narrow() if max_bins is None else table.narrow(np.uint8)


def asks_for_alternatives(estimator):
    """Whether the estimator needs ranks for surrogates, competitors or its `missing` rule.

    That is, whether it keeps surrogates or competitors, or sends rows with missing values
    by another rule than scikit-learn's.
    """
    return (
        getattr(estimator, "surrogates", 0) != 0
        or getattr(estimator, "competitors", 0) != 0
        or getattr(estimator, "missing", "learned") in ("surrogate", "majority")
    )


def takes_sparse(estimator):
    """Whether the parameters of the estimator permit a sparse table."""
    return (
        not asks_for_alternatives(estimator)
        and estimator.categorical_features is None
        and getattr(estimator, "max_bins", None) is None
    )


def refuse_impossible_alternatives(estimator, X):
    """Raise a ValueError if surrogates or competitors contradict other parameters or the table.

    Raises
    ------
    ValueError
        If missing="surrogate" and surrogates=0, or X is sparse.
    """
    if getattr(estimator, "missing", "learned") == "surrogate" and estimator.surrogates == 0:
        raise ValueError(
            'missing="surrogate" needs surrogate splits, but surrogates=0 keeps none; set '
            'surrogates="auto" or a number, or missing="majority".'
        )
    if asks_for_alternatives(estimator) and issparse(X):
        raise ValueError(
            'Surrogates, competitors and missing="majority" need a dense table, but X is sparse, '
            "and so has no missing values; use X.toarray(), or leave these parameters out."
        )


def refuse_impossible_bins(estimator, X, splitter):
    """Raise a ValueError if `max_bins` is set but the table or the splitter cannot have bins.

    Raises
    ------
    ValueError
        If `max_bins` is set, and X is sparse or the splitter is "random".
    """
    if getattr(estimator, "max_bins", None) is None:
        return
    if issparse(X):
        raise ValueError(
            f"max_bins={estimator.max_bins} needs a dense table, but X is sparse; use X.toarray() "
            "or max_bins=None."
        )
    if splitter == "random":
        raise ValueError(
            'splitter="random" draws thresholds between values, but '
            f'max_bins={estimator.max_bins} keeps only bins; use splitter="best" or '
            "max_bins=None."
        )
