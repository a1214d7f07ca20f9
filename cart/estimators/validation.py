"""What every fit begins with: a checked table, and the old fit kept until the new one stands."""

from contextlib import contextmanager

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_array, check_X_y, get_tags
from sklearn.utils.validation import _check_sample_weight, validate_data

from cart.estimators.category_encoder import CategoryEncoder, as_columns, find_categorical
from cart.splitting.category_subsets import CategoricalTable
from cart.table.bins import bin_table
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.float_table import FloatTable
from cart.table.precision import (
    count_merged_values,
    dates_as_seconds,
    precision_of,
    warn_of_merged_values,
)
from cart.table.table import Table

_MANY_VALUES = 1 << 17  # of a table


@contextmanager
def restored_on_failure(estimator):
    """Give the estimator back its attributes when fitting fails or is interrupted."""
    attributes = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(attributes)
        raise


def check_table(estimator, X, y, reset=True):
    """Check a training table as scikit-learn does.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like of shape (n_samples, n_features)
        nan is a missing value, where the estimator allows them.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    reset : bool, default=True
        False compares X with the table of the fit before.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32 or float64
        In the estimator's precision; but an array of float64 numbers is handed back as it is.
    y : ndarray

    Raises
    ------
    ValueError
        If X or y holds what is not finite in the estimator's precision.
    """
    precision = precision_of(estimator)
    if reset and _is_plain(estimator, X) and _needs_no_check(X, y, precision):
        estimator.n_features_in_ = X.shape[1]
        if X.dtype != precision:
            _refuse_what_overflows(X)
        return X, y
    is_double = type(X) is np.ndarray and X.dtype == np.float64
    options = {"dtype": X.dtype if is_double else precision, "accept_sparse": "csc"}
    options["ensure_all_finite"] = missing_values_rule(estimator)
    options["multi_output"] = True
    X = dates_as_seconds(X)
    if getattr(estimator, "categorical_features", None) is None:
        X, y = validate_data(estimator, X, y, reset=reset, **options)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        X, y = check_X_y(encode_categories(estimator, X, reset), y, **options)
    refuse_sparse_gaps(X)
    if is_double and precision == np.float32:
        _refuse_what_overflows(X)
    return X, y


def _is_plain(estimator, X):
    """Would scikit-learn's checks of X look at its numbers and its shape alone?

    They take longer than a small tree takes to grow, than a row takes to walk down a hundred
    trees, or many down one.
    """
    return (
        type(X) is np.ndarray
        and X.dtype.kind == "f"
        and X.ndim == 2
        and X.size > 0
        and getattr(estimator, "categorical_features", None) is None
        and not hasattr(estimator, "feature_names_in_")  # of the fit before
    )


def _needs_no_check(X, y, precision):
    """Would the checks of a plain training table find nothing, and convert nothing?"""
    return (
        X.dtype in (np.float64, precision)
        and type(y) is np.ndarray
        and y.dtype.kind in "biuf"
        and y.shape == X.shape[:1]
        and _has_finite_sum(X)
        and _has_finite_sum(y)
    )


def _has_finite_sum(X):
    """False where a number is not finite; perhaps also where the largest are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite(X.sum())


def _refuse_what_overflows(X):
    """Refuse numbers that single precision does not have, as scikit-learn does."""
    ends = np.array([X.min(), X.max()])
    if np.isnan(ends).any():
        ends = np.array([np.fmin.reduce(X, axis=None), np.fmax.reduce(X, axis=None)])
    with np.errstate(over="ignore"):
        assert_all_finite(ends.astype(np.float32), allow_nan=True, input_name="X")


def check_rows(estimator, X):
    """Check rows to be sent down the trees of a fitted estimator, ours or scikit-learn's.

    Parameters
    ----------
    estimator : estimator
    X : array-like of shape (n_samples, n_features)

    Returns
    -------
    ndarray of shape (n_samples, n_features), float32 or float64, C order, or csr_matrix
    """
    plain = _take_plain(estimator, X)
    if plain is not None:
        return plain
    options = {"dtype": precision_of(estimator), "accept_sparse": "csr", "order": "C"}
    options["ensure_all_finite"] = missing_values_rule(estimator)
    X = dates_as_seconds(X)
    if getattr(estimator, "categorical_features", None) is None:
        X = validate_data(estimator, X, reset=False, **options)
    else:
        validate_data(estimator, X, reset=False, skip_check_array=True)
        X = check_array(encode_categories(estimator, X, False), **options)
    refuse_sparse_gaps(X)
    return X


def _take_plain(estimator, X):
    """Rows as the checks would return them, where these would find nothing; else None."""
    if not _is_plain(estimator, X) or X.shape[1] != getattr(estimator, "n_features_in_", None):
        return None
    with np.errstate(over="ignore"):
        X = X.astype(precision_of(estimator), order="C", copy=False)
    return X if _has_finite_sum(X) else None


def encode_categories(estimator, X, reset):
    """X with its categories as numbers.

    Parameters
    ----------
    estimator : estimator
        With `reset` it learns the categories: it gets `is_categorical_` and `categories_`.
    X : array-like of shape (n_samples, n_features)
    reset : bool

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64

    Raises
    ------
    ValueError
        If the categorical features do not fit the table or the other parameters.
    """
    X = as_columns(X)
    if not reset:
        return estimator._category_encoder.transform(X)
    mask = find_categorical(estimator.categorical_features, X)
    if mask.any() and estimator.criterion == "absolute_error":
        raise ValueError(
            'criterion="absolute_error" cannot split on subsets of categories: no order of the '
            'categories is known to hold the best subset. Use "squared_error", or '
            "categorical_features=None with ordinal codes."
        )
    if mask.any() and np.any(np.resize(estimator.monotonic_cst or 0, len(mask))[mask]):
        raise ValueError("monotonic_cst must be 0 for categorical features: they have no order.")
    encoder = CategoryEncoder(mask)
    X = encoder.fit(X)
    estimator._category_encoder = encoder
    estimator.is_categorical_ = mask
    estimator.categories_ = encoder.categories
    return X


def encode_table(estimator, given, columns, splitter, keeps_values=True):
    """Encode columns and tell what was lost when they were cast to float32.

    Parameters
    ----------
    estimator : estimator
        Gets `n_merged_values_`. Its method `fit` is the caller.
    given : array-like of shape (n_samples, n_features), or sparse
        X as the user gave it.
    columns : cart.table.columns.Columns
        Those of X from `check_table`, in the estimator's precision.
    splitter : {"best", "random"}
    keeps_values : bool, default=True
        False allows for a `Table` that is not complete.

    Returns
    -------
    Table, FloatTable, SparseTable or CategoricalTable

    Warns
    -----
    UserWarning
        If columns lose much.
    """
    table = _encode_values(estimator, columns, splitter, keeps_values)
    n_features = estimator.n_features_in_
    if columns.precision == np.float64:
        estimator.n_merged_values_ = np.zeros(n_features, np.int64)
        return _finish(estimator, table)
    estimator.n_merged_values_, n_left = count_merged_values(given, table, _n_jobs_of(estimator))
    names = getattr(estimator, "feature_names_in_", range(n_features))
    warn_of_merged_values(given, estimator.n_merged_values_, n_left, names, stacklevel=4)
    return _finish(estimator, table)


def encode_columns(estimator, X, splitter):
    """The columns of X as trees are grown on them.

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
    n_jobs = _n_jobs_of(estimator)
    if np.any(getattr(estimator, "is_categorical_", False)):
        return CategoricalTable.encode(columns, estimator._category_encoder.n_categories, n_jobs)
    if splitter == "random" and columns.precision == np.float32 and not issparse(columns.X):
        return FloatTable.encode(columns, n_jobs)
    # Bins know their values, and to look up those of a small table takes longer than to keep them.
    has_bins = getattr(estimator, "max_bins", None) is not None
    keeps_values = keeps_values or has_bins or columns.X.size < _MANY_VALUES
    return encode(columns, n_jobs=n_jobs, keeps_values=keeps_values)


def _n_jobs_of(estimator):
    """Threads that the estimator may take; a tree has no such parameter and takes one."""
    return getattr(estimator, "n_jobs", None)


def _finish(estimator, table):
    """The table, just encoded, with as many codes as the estimator allows, in few bytes."""
    max_bins = getattr(estimator, "max_bins", None)  # scikit-learn's have none
    table = table if max_bins is None else bin_table(table, max_bins)
    if not isinstance(table, Table):
        return table
    # Kernels are compiled for each type: ranks have two bytes even where one would do.
    return table.narrow() if max_bins is None else table.narrow(np.uint8)


def refuse_impossible_bins(estimator, X, splitter):
    """Refuse bins that such a table or splitter cannot have.

    Raises
    ------
    ValueError
        If `max_bins` is set, and X is sparse or the splitter "random".
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
            f'splitter="random" draws thresholds between values, but max_bins={estimator.max_bins} '
            'keeps bins only; use splitter="best" or max_bins=None.'
        )


def missing_values_rule(estimator):
    """What scikit-learn's `ensure_all_finite` has to be for the estimator."""
    return "allow-nan" if get_tags(estimator).input_tags.allow_nan else True


def refuse_sparse_gaps(X):
    """Refuse missing values in a sparse table, as scikit-learn does."""
    if issparse(X):
        assert_all_finite(X, input_name="X")


def check_criterion(criterion, y):
    """Refuse targets that a criterion is not made for.

    Raises
    ------
    ValueError
        If y has negative values, or none that is positive, and the criterion is "poisson".
    """
    if criterion == "poisson":
        if np.any(y < 0):
            raise ValueError(
                "Some value(s) of y are negative which is not allowed for Poisson regression."
            )
        if np.sum(y) <= 0:
            raise ValueError("Sum of y is not positive which is necessary for Poisson regression.")


def check_sample_weight(sample_weight, X):
    """Sample weights as float64 of shape (n_samples,), or None.

    Raises
    ------
    ValueError
        If a weight is negative or not finite.
    """
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def require_weight(weight):
    """Refuse a table in which no row has a weight.

    Raises
    ------
    ValueError
        If `weight` is 0 everywhere.
    """
    if not np.any(weight):
        raise ValueError("Every row has weight 0; at least one must be positive.")
