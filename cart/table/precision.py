"""Single or double precision: what a column loses as float32, and dates as numbers."""

import numpy as np
from scipy.sparse import csc_matrix, issparse

from cart.primitives.threads import in_parts
from cart.primitives.user_warning import warn_user
from cart.table.float_table import FloatTable
from cart.table.ranking import MISSING
from cart.table.repeated_codes import RepeatedCodes
from cart.table.sparse_table import SparseTable

# Kinds of dtypes whose values are whole: numbers, dates, durations.
_WHOLE = "iumM"
_DATES = "mM"
# Whole numbers up to here are float32 numbers.
_WHOLE_MAX = 2**24
# Threads that look at shorter columns wait for the interpreter longer than they work.
_MIN_ROWS = 1 << 16
# Of rows, so many as the caches hold.
_VALUES_AT_ONCE = 1 << 13
# More than this share of a column's distinct values has to merge before it is worth a warning.
_SHARE = 0.01
# How many columns a warning names.
_NAMED = 10


def precision_of(estimator):
    """The dtype in which an estimator, ours or scikit-learn's, takes X.

    Returns
    -------
    numpy.dtype
        float32 or float64.
    """
    return np.dtype(getattr(estimator, "precision", "float32"))


def dates_as_seconds(X):
    """X with dates and durations as seconds, dates since 1970 (UTC); missing ones are nan.

    Parameters
    ----------
    X : array-like or sparse
        Columns of a pandas DataFrame may differ in type.

    Returns
    -------
    X itself where it holds neither
    """
    if isinstance(X, np.ndarray):
        return _seconds(X) if X.dtype.kind in _DATES else X
    if not hasattr(X, "isetitem"):
        return X
    dates = [j for j, kind in enumerate(_kinds(X)) if kind in _DATES]
    if dates:
        X = X.copy(deep=False)
    for j in dates:
        column = X.iloc[:, j]
        X.isetitem(j, _seconds(column.to_numpy(f"{column.dtype.kind}8[us]")))
    return X


def _seconds(dates):
    microseconds = dates.astype(f"{dates.dtype.kind}8[us]")
    return np.where(np.isnat(dates), np.nan, microseconds.astype(np.int64) / 1e6)


def count_merged_values(X, table, n_jobs=None):
    """How many distinct values of each column the cast to float32 merges into others.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or sparse
        As the user gave it.
    table : Table, FloatTable, SparseTable or CategoricalTable
        Of the same cast to float32.
    n_jobs : int or None
        joblib's: threads that long dense columns are shared among.

    Returns
    -------
    n_merged : ndarray of shape (n_features,), int64
    n_left : ndarray of shape (n_features,), int64
        Distinct values that are left, of columns where any merge.
    """
    n_features = len(table.columns)
    n_merged, n_left = np.zeros((2, n_features), np.int64)
    if isinstance(table, SparseTable):
        for j, values, codes in _sparse_columns(X):
            n_left[j] = codes.max() + 1
            n_merged[j] = _count_ranked(values, codes, n_left[j])
        return n_merged, n_left
    n_samples = table.codes.shape[1]
    may_merge = getattr(table, "n_categories", np.zeros(n_features)) == 0
    is_ranked = not isinstance(table, FloatTable)
    if is_ranked:
        n_left = np.diff(table.level_start)
        may_merge &= n_left < n_samples
    X = dates_as_seconds(X)
    if n_samples < _MIN_ROWS:
        X = _as_array(X)
    columns = list(_dense_columns(X, may_merge))
    are_known = isinstance(X, np.ndarray) and X.dtype.kind == "f"  # not to survive

    def count(first, end):
        repeated = None if is_ranked else RepeatedCodes.create(n_samples)
        for j, column in columns[first:end]:
            values, codes = _as_numbers(column), table.codes[j]
            if is_ranked:
                n_merged[j] = _count_ranked(values, codes, n_left[j])
            elif are_known or not _survive(values):
                n_merged[j], n_left[j] = _count_unranked(values, codes, repeated)

    in_parts(count, len(columns), n_jobs if n_samples >= _MIN_ROWS else 1)
    return n_merged, n_left


def _as_array(X):
    """A DataFrame of one NumPy type of numbers as an array, which may be a copy: to take columns
    from it one by one is slow."""
    dtypes = [*set(X.dtypes)] if hasattr(X, "iloc") else []
    is_one = len(dtypes) == 1 and isinstance(dtypes[0], np.dtype) and dtypes[0].kind in "fiu"
    return X.to_numpy() if is_one else X


def _count_unranked(values, codes, repeated):
    """How many distinct values merge, and how many are left, where the codes are no ranks."""
    few, n_others = repeated.candidates(codes)
    if len(few) == 0:
        return 0, n_others
    values = np.sort(values[few])
    single = values.astype(np.float32)  # in order too
    n_single = 1 + np.count_nonzero(single[1:] != single[:-1])
    return 1 + np.count_nonzero(values[1:] != values[:-1]) - n_single, n_others + n_single


def _count_ranked(values, codes, n_left):
    """How many distinct values merge into those that are left, whose ranks the codes are."""
    rows = None  # that are looked at; all
    if codes.max() == MISSING:
        rows = np.flatnonzero(codes != MISSING)
        codes = codes[rows]
    if n_left == len(codes):
        return 0
    # Values that have a rank for themselves are not looked at, nor all sorted.
    if 2 * n_left > len(codes):
        shared = np.flatnonzero((np.bincount(codes) > 1).take(codes))
        codes, rows = codes[shared], shared if rows is None else rows[shared]
    values = values if rows is None else values[rows]
    if _survive(values[:_VALUES_AT_ONCE]) and _survive(values):
        return 0
    one_of = np.empty(n_left, values.dtype)
    one_of[codes] = values
    return len(np.unique(values[one_of[codes] != values]))


def _dense_columns(X, may_merge):
    """The number of each column in which values may merge, and it as it was given."""
    if hasattr(X, "iloc"):
        for j, dtype in enumerate(X.dtypes):
            if may_merge[j] and not _fits(dtype):
                yield j, X.iloc[:, j]
        return
    X = np.asarray(X)
    if not _fits(X.dtype) and may_merge.any():
        for j in np.flatnonzero(may_merge & ~_surviving_columns(X)):
            yield j, X[:, j]


def _surviving_columns(X):
    """Which columns have float32 numbers only? Rows of a table lie together: to look at a few of
    them at a time is faster than to take its columns out."""
    survive = np.full(X.shape[1], X.dtype.kind == "f")
    n_rows = max(1, _VALUES_AT_ONCE // X.shape[1])
    for first in range(0, len(X), n_rows):
        if not survive.any():
            break
        rows = X[first : first + n_rows]
        is_same = rows.astype(np.float32) == rows
        if not is_same.all():  # sooner known than of every column
            survive &= is_same.all(axis=0)
    return survive


def _as_numbers(column):
    """A column as an array of numbers."""
    if getattr(column, "hasnans", False):
        return column.to_numpy(np.float64, na_value=np.nan)
    values = np.asarray(column)
    return values if values.dtype.kind in "iuf" else values.astype(np.float64)


def _fits(dtype):
    """Is every value of that dtype a float32 number?"""
    return isinstance(dtype, np.dtype) and np.can_cast(dtype, np.float32)


def _sparse_columns(X):
    """The number of each column in which values may merge, its values, with a zero where it has
    one, and their ranks as float32."""
    X = csc_matrix(X if issparse(X) else X.sparse.to_coo())
    if _survive(X.data):
        return
    X = X.copy()
    X.sum_duplicates()
    for j in range(X.shape[1]):
        values = X.data[X.indptr[j] : X.indptr[j + 1]]
        if _survive(values):
            continue
        single = values.astype(np.float32)
        if len(values) < X.shape[0]:
            values, single = np.append(values, values.dtype.type(0)), np.append(single, 0)
        yield j, values, np.unique(single, return_inverse=True)[1]


def _survive(values):
    """Is every value a float32 number? Of whole numbers, small ones only are known to be."""
    if _fits(values.dtype):
        return True
    if values.dtype.kind in "iu":  # as float64, two that differ may be equal
        return values.min(initial=0) >= -_WHOLE_MAX and values.max(initial=0) <= _WHOLE_MAX
    return (values.astype(np.float32) == values).all()


def warn_of_merged_values(X, n_merged, n_levels, names):
    """Name the columns of which single precision loses much.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or sparse
        As the user gave it.
    n_merged : ndarray of shape (n_features,), int64
        From `count_merged_values`.
    n_levels : ndarray of shape (n_features,), int64
        How many distinct values of each column are left.
    names : sequence of str or int
        Of the columns.

    Warns
    -----
    UserWarning
        If more than 1 % of the distinct values of a column merge, or any of integers or dates.
    """
    if not n_merged.any():
        return
    is_whole = np.array([kind in _WHOLE for kind in _kinds(X)])
    bad = np.flatnonzero(n_merged > np.where(is_whole, 0.0, _SHARE * (n_merged + n_levels)))
    if len(bad) == 0:
        return
    listed = ", ".join(
        f"{names[j]} ({n_merged[j]} of {n_merged[j] + n_levels[j]})" for j in bad[:_NAMED]
    )
    more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    warn_user(
        f"In single precision, distinct values of X become equal; columns (how many of the "
        f'distinct values): {listed}{more}. precision="float64" keeps them apart.',
    )


def _kinds(X):
    """The kind (as in numpy.dtype.kind) of each column."""
    if hasattr(X, "iloc"):
        return [dtype.kind for dtype in X.dtypes]
    X = X if hasattr(X, "dtype") else np.asarray(X)
    return [X.dtype.kind] * X.shape[1]
