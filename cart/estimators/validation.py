"""Checks of tables, weights and targets; atomic replacement of an old fit by a new one."""

from contextlib import contextmanager
from math import isfinite, isnan

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.utils import _safe_indexing, assert_all_finite, check_array, check_X_y, get_tags
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from cart.estimators.category_encoder import (
    as_columns,
    encode_categories,
    find_categorical,
    match_categories,
)
from cart.estimators.target import refuse_missing_target
from cart.table.precision import (
    are_dates,
    as_plain_table,
    is_pandas,
    native_frame,
    plain_numbers,
    precision_of,
)
from cart.tree.tree import Tree

# A tree has up to two nodes per row, and its node and feature numbers have 31 bits.
ROWS_MAX, COLUMNS_MAX = 2**30, 2**31 - 1


@contextmanager
def fitted_at_once(estimator):
    """Context with a draft to fit, whose attributes become the estimator's at the end, all at once.

    If fitting fails or is interrupted, the estimator is not changed. Another thread sees the old
    fit or the new one, never a mixture; see `as_of_now`.
    """
    draft = copy_of(estimator)
    yield draft
    estimator.__dict__ = vars(draft)


def copy_of(estimator, **changes):
    """A copy of the estimator that shares the values of its attributes, but for some `changes`."""
    copy = type(estimator).__new__(type(estimator))
    copy.__dict__.update(vars(estimator), **changes)
    return copy


def as_of_now(estimator):
    """A view of the estimator that keeps its present fit, even if another thread fits it again.

    It shares the estimator's dict of attributes, which a fit replaces as a whole.
    """
    view = object.__new__(type(estimator))
    view.__dict__ = vars(estimator)
    return view


# Parts of error messages of NumPy, Python, and pandas' categories.
_NO_NUMBERS = "could not convert", "float() argument", "Cannot cast"
TAKE_TEXT = (
    'convert it to numbers, or list it in categorical_features ("from_dtype" lists all columns '
    "of text and categories of a DataFrame); for dates use pandas.to_datetime"
)


@contextmanager
def naming_text(X, categorical, remedy):
    """Context in which errors about text (or date objects) instead of numbers name the column.

    `categorical` are the columns in which text is permitted, as in `find_categorical`; `remedy`
    ends the message.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        is_of_numbers = any(words in str(error) for words in _NO_NUMBERS)
        name = _column_of_text(X, categorical) if is_of_numbers else None
        if name is None:
            raise
        raise type(error)(f"{error} in column {name!r}; {remedy}.") from error


def _column_of_text(X, categorical):
    """Name (or number, in an array) of the first column that is neither numbers nor categories."""
    if not hasattr(X, "columns"):
        X = np.asarray(X, None if hasattr(X, "dtype") else object)
        if X.ndim != 2 or X.dtype.kind in "biuf":
            return None
    names = np.asarray(getattr(X, "columns", range(X.shape[1])), dtype=object)
    is_category = find_categorical(() if categorical is None else categorical, X)
    for j in np.flatnonzero(~is_category).tolist():
        column = _safe_indexing(X, j, axis=1)
        if getattr(getattr(column, "dtype", None), "kind", "O") in "biuf":
            continue  # also nullable numbers, whose pd.NA NumPy cannot convert
        try:
            np.asarray(column).astype(np.float64)
        except (TypeError, ValueError):
            return names[j]
    return None


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
        False checks that the columns of X are those of the previous fit.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32 or float64
        In the estimator's precision; but an array of float64 is returned as it is.
    y : ndarray

    Raises
    ------
    ValueError
        If X or y holds numbers that are not finite in the estimator's precision, or X has more than
        `ROWS_MAX` rows or `COLUMNS_MAX` columns.
    """
    refuse_too_large(X)
    X, precision = native_frame(X), precision_of(estimator)
    if hasattr(estimator, "categorical_features"):
        match_categories(estimator, X, reset)
    if issparse(y):
        check_array(y, input_name="y")  # raises scikit-learn's TypeError
    refuse_missing_target(y)
    given = getattr(estimator, "categorical_features", None)
    is_plain = reset and given is None
    plain = _take_plain_table(estimator, X, y, precision) if is_plain else None
    if plain is not None:
        return plain
    is_double = type(X) is np.ndarray and X.dtype == np.float64
    options = {"dtype": X.dtype if is_double else precision, "accept_sparse": "csc"}
    options["ensure_all_finite"] = missing_values_rule(estimator)
    options["multi_output"] = True
    X, dates = as_plain_table(X), are_dates(X)
    if reset and dates is not None:
        estimator._are_dates = dates  # thresholds there are shown as dates
    with naming_text(X, given, TAKE_TEXT):
        if given is None:
            X, y = validate_data(estimator, X, y, reset=reset, **options)
        else:
            X = as_columns(X)
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            X, y = check_X_y(encode_categories(estimator, X, reset), y, **options)
    refuse_missing(estimator, X)
    is_unchecked = get_config()["assume_finite"] and not issparse(X)
    if is_unchecked or (is_double and precision == np.float32):
        # Also under `assume_finite`.
        _refuse_if_infinite((np.fmin.reduce(X, axis=None), np.fmax.reduce(X, axis=None)), precision)
    return X, y


def _take_plain_table(estimator, X, y, precision):
    """X and y as the full checks would return them, if these would find nothing; else None."""
    numbers = plain_numbers(X)
    is_plain = _is_plain(numbers) and numbers.dtype in (np.float64, precision) and y is not None
    ends = _ends_of(numbers) if is_plain else (np.nan,)
    if is_plain and isnan(ends[0]) and _takes_missing(estimator):
        ends = np.fmin.reduce(numbers, axis=None), np.fmax.reduce(numbers, axis=None)
    if not all(map(isfinite, ends)):
        return None
    if numbers is not X or hasattr(estimator, "feature_names_in_"):  # names, new or of an old fit
        validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = numbers.shape[1]
    if numbers.dtype != precision:
        _refuse_if_infinite(ends, precision)
        if numbers is not X and not np.may_share_memory(numbers, X.iloc[:, 0].to_numpy()):
            numbers = numbers.astype(precision)  # to_numpy copied: keep a copy of half the size
    y = y.to_numpy() if is_pandas(y, "Series") and isinstance(y.dtype, np.dtype) else y
    is_plain = type(y) is np.ndarray and y.dtype.kind in "biuf" and y.shape == (len(numbers),)
    if not (is_plain and _is_finite(y)):
        y = _check_y(y, multi_output=True, estimator=estimator)
        check_consistent_length(numbers, y)
    return numbers, y


def _is_plain(X):
    """Whether scikit-learn's checks of X would look at nothing but its numbers and shape.

    Those checks take longer than growing a small tree, and longer than sending one row down a
    hundred trees or many rows down one.
    """
    return type(X) is np.ndarray and X.dtype.kind in "fiub" and X.ndim == 2 and X.size > 0


def _is_finite(X):
    """Whether all numbers are finite: the extremes tell, and are found faster than a sum."""
    return all(map(isfinite, _ends_of(X)))


def _ends_of(X):
    """The lowest and the highest number; nan if there is one."""
    with np.errstate(invalid="ignore"):
        return np.minimum.reduce(X, axis=None), np.maximum.reduce(X, axis=None)


def refuse_too_large(X):
    """Raise a ValueError if X has more rows or columns than can be numbered.

    Raises
    ------
    ValueError
        If X has more than `ROWS_MAX` rows or `COLUMNS_MAX` columns.
    """
    limits = {"rows": ROWS_MAX, "columns": COLUMNS_MAX}
    for (what, limit), n in zip(limits.items(), getattr(X, "shape", ()), strict=False):
        if isinstance(n, int) and n > limit:  # lazy tables may not know their size
            raise ValueError(
                f"X has {n:,} {what}, but at most {limit:,} are supported; fit on a part of them."
            )


def _refuse_if_infinite(numbers, precision):
    """Raise a ValueError if one of the numbers, perhaps of X, is infinite in the precision."""
    with np.errstate(over="ignore"):
        numbers = np.array(numbers, precision)
    if not np.isfinite(numbers).all():
        with config_context(assume_finite=False):
            assert_all_finite(numbers, allow_nan=True, input_name="X")


def check_rows(estimator, X, converts=True):
    """Check rows to be sent down the trees of a fitted estimator, ours or scikit-learn's.

    Parameters
    ----------
    estimator : estimator
    X : array-like of shape (n_samples, n_features)
    converts : bool, default=True
        False may return an array in any order, and an array of float64 unconverted and unchecked,
        if the caller's walk down the trees rounds it, handles missing values and refuses infinite
        ones.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float32 or float64, C order, or csr_matrix
    """
    X = native_frame(X)
    plain = _take_plain(estimator, X, converts)
    if plain is not None:
        return plain
    options = {"dtype": precision_of(estimator), "accept_sparse": "csr", "order": "C"}
    options["ensure_all_finite"] = missing_values_rule(estimator)
    X = as_plain_table(X)
    given = getattr(estimator, "is_categorical_", None)
    with naming_text(X, given, "the model was fitted on numbers there"):
        if not _knows_categories(estimator):
            X = validate_data(estimator, X, reset=False, **options)
        else:
            X = as_columns(X)
            validate_data(estimator, X, reset=False, skip_check_array=True)
            X = check_array(encode_categories(estimator, X, False), **options)
    refuse_missing(estimator, X)
    return X


def _take_plain(estimator, X, converts):
    """Rows as the full checks would return them, if these would find nothing; else None."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:  # without names, a DataFrame needs the full checks, which warn
        if not (is_pandas(X, "DataFrame") and np.array_equal(X.columns.to_numpy(), names)):
            return None
        X = plain_numbers(X)
    is_plain = _is_plain(X) and X.shape[1] == getattr(estimator, "n_features_in_", None)
    if not is_plain or _knows_categories(estimator):
        return None
    precision = precision_of(estimator)
    if not converts and X.dtype == np.float64 and precision == np.float32:
        return X
    with np.errstate(over="ignore"):
        X = X.astype(precision, order="C" if converts else "K", copy=False)
    if _is_finite(X):
        return X
    return X if _takes_missing(estimator) and not np.isinf(X).any() else None


def _knows_categories(estimator):
    """Whether the trees were grown with `categorical_features`, whatever it was set to since."""
    return hasattr(estimator, "_category_encoder")


def missing_values_rule(estimator):
    """The argument `ensure_all_finite` of scikit-learn's checks for this estimator."""
    if get_tags(estimator).input_tags.allow_nan or _refuses_missing(estimator):
        return "allow-nan"
    return True


def _takes_missing(estimator):
    return get_tags(estimator).input_tags.allow_nan and not _refuses_missing(estimator)


def _refuses_missing(estimator):
    return getattr(estimator, "missing", None) == "refuse"


def refuse_missing(estimator, X):
    """Raise a ValueError for missing values in a sparse table, or under missing="refuse".

    Raises
    ------
    ValueError
    """
    if issparse(X):
        if np.isnan(X.data).any():
            raise ValueError(
                "Input X contains NaN: missing values are supported in dense tables only; use "
                "X.toarray()."
            )
        assert_all_finite(X, input_name="X")
    if issparse(X) or not _refuses_missing(estimator):
        return
    columns = np.flatnonzero(np.isnan(X).any(axis=0)).tolist()
    if columns:
        names = getattr(estimator, "feature_names_in_", None)
        first = columns[0] if names is None else repr(names[columns[0]])
        raise ValueError(
            f"X has missing values in {len(columns)} column(s), first in column {first}, but "
            'missing="refuse". Fill them in, or set missing="learned", "surrogate" or "majority".'
        )


def check_criterion(criterion, y):
    """Raise a ValueError for targets that the criterion cannot handle.

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
    """Check sample weights and return them as float64 of shape (n_samples,), or None.

    Raises
    ------
    ValueError
        If a weight is negative, missing or not finite.
    """
    if sample_weight is None:
        return None
    refuse_missing_target(sample_weight, "sample_weight")
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def check_class_weight(class_weight):
    """Raise a ValueError for class weights that are not finite and non-negative, as kernels need.

    Parameters
    ----------
    class_weight : dict, list of dict (one per output), str or None
        A str and None hold no numbers, and pass.

    Raises
    ------
    ValueError
        If a weight is not a number, negative or not finite.
    """
    for of_output in class_weight if isinstance(class_weight, (list, tuple)) else [class_weight]:
        for label, weight in of_output.items() if isinstance(of_output, dict) else ():
            if not _is_weight(weight):
                raise ValueError(
                    f"class_weight gives class {label!r} the weight {weight!r}; weights must be "
                    "finite, non-negative numbers."
                )


def _is_weight(weight):
    try:
        return np.ndim(weight) == 0 and 0.0 <= np.float64(weight) < np.inf
    except (TypeError, ValueError):
        return False


def require_weight(weight):
    """Raise a ValueError unless the sum of the weights is positive and finite.

    Raises
    ------
    ValueError
        If `weight` is 0 everywhere, nan, or its sum overflows.
    """
    with np.errstate(over="ignore"):
        total = np.sum(weight)
    if total == 0.0:
        raise ValueError("Every row has weight 0; at least one must be positive.")
    if np.isnan(total):
        raise ValueError("The weights of the rows contain NaN; leave these rows out.")
    if not np.isfinite(total):
        raise ValueError("The weights of the rows have no finite sum; divide them by the largest.")


def require_tree(tree, caller, takes_sklearn=False):
    """Check that the argument of a function is one fitted tree, and return a view of it.

    Raises
    ------
    TypeError
        If it is a forest or no tree at all, or if it is a tree of scikit-learn and `takes_sklearn`
        is False.
    sklearn.exceptions.NotFittedError
    """
    name = type(tree).__name__
    if hasattr(tree, "estimators_"):
        raise TypeError(
            f"{caller} needs a single tree, but {name} has {len(tree.estimators_)}; pass one of "
            "them, such as forest.estimators_[0]."
        )
    if not hasattr(tree, "get_n_leaves"):
        raise TypeError(
            f"{caller} needs a fitted tree, but got {name}; for a Pipeline pass pipeline[-1], "
            "for a search best_estimator_."
        )
    check_is_fitted(tree, "tree_")
    tree = as_of_now(tree)
    if not (takes_sklearn or isinstance(tree.tree_, Tree)):
        raise TypeError(
            f"{caller} needs a tree of Cartwood, but this {name} is not one; pass "
            "cartwood.from_sklearn(tree)."
        )
    return tree
