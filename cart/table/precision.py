"""Choose single or double precision; convert dates and columns of pandas' own dtypes to numbers."""

import sys
from contextlib import suppress

import numpy as np

_DATES = "mM"


def precision_of(estimator):
    """The dtype in which an estimator, ours or scikit-learn's, takes X.

    That is the dtype its trees were grown in, even if the parameter was changed since.

    Returns
    -------
    numpy.dtype
        float32 or float64.
    """
    for each in (*getattr(estimator, "estimators_", ())[:1], estimator):
        for name in ("_grown_in", "precision"):
            if getattr(each, name, None) is not None:
                return np.dtype(getattr(each, name))
    return np.dtype(np.float32)


def as_plain_table(X):
    """Return X without anything that scikit-learn's checks would misread.

    Parameters
    ----------
    X : array-like or sparse

    Returns
    -------
    X itself, or with dates in seconds, the sparse truth values of a DataFrame as 0 and 1, a
    DataFrame of narwhals as what it wraps, and a table of Arrow as a DataFrame

    Raises
    ------
    TypeError
        If X is a lazy table.
    ValueError
        If X is a masked array with masked values, since numbers lie under the mask.
    """
    if hasattr(type(X), "collect"):
        raise TypeError(f"X is a lazy table, a {type(X).__name__}; pass X.collect().")
    if np.ma.is_masked(X):
        raise ValueError(
            f"X has {np.ma.count_masked(X)} masked value(s), which would count as the numbers "
            "under the mask; pass X.astype(float).filled(np.nan) if they are missing."
        )
    X = dates_as_seconds(native_frame(X))
    if not hasattr(X, "isetitem"):
        return X
    flags = [j for j, t in enumerate(X.dtypes) if t.kind == "b" and hasattr(t, "subtype")]
    return with_columns(X, {j: X.iloc[:, j].astype("Sparse[uint8]") for j in flags})


def native_frame(X):
    """The DataFrame that a DataFrame of narwhals wraps, pandas' of a table of Arrow, and without
    `attrs`; others unchanged.

    pandas copies `attrs`, in depth, with every column that is taken.
    """
    X = X.to_native() if type(X).__module__.startswith("narwhals.") else X
    if type(X).__module__ == "pyarrow.lib" and hasattr(X, "to_pandas"):
        with suppress(ImportError):  # without pandas it is what NumPy makes of it
            from pandas import ArrowDtype

            X = X.to_pandas(types_mapper=ArrowDtype)
    if hasattr(X, "isetitem") and X.attrs:
        return sys.modules["pandas"].DataFrame(X)
    return X


def plain_numbers(X):
    """The values of a pandas DataFrame of numbers as an array; anything else unchanged."""
    if not is_pandas(X, "DataFrame"):
        return X
    dtypes = set(X.dtypes)
    is_plain = all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes)
    # Left to itself, pandas makes objects of numbers beside truth values.
    return X.to_numpy(np.result_type(*dtypes)) if is_plain and dtypes else X


def is_pandas(X, name):
    """Whether X is of this class of pandas, and not of a subclass."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and type(X) is getattr(pandas, name)


def with_columns(X, columns):
    """The DataFrame of pandas with other columns at some positions."""
    X = X.copy(deep=False) if columns else X
    for j, column in columns.items():
        X.isetitem(j, column)
    return X


def dates_as_seconds(X):
    """Return X with dates (since 1970, UTC) and durations in seconds; missing ones become nan.

    Parameters
    ----------
    X : array-like or sparse
        Columns of a DataFrame (pandas or polars) and items of a list may differ in type.

    Returns
    -------
    X itself if it holds neither
    """
    if isinstance(getattr(X, "dtype", None), np.dtype):  # also an array of dask
        return _seconds(np.asarray(X)) if _is_date(X) else X
    if isinstance(X, (list, tuple)):
        types = {type(value) for row in X if np.iterable(row) for value in row}
        if types.isdisjoint((np.datetime64, np.timedelta64)):
            return X
        return [[float(_seconds(v)) if _is_date(v) else v for v in row] for row in X]
    if hasattr(type(X), "to_dicts"):  # of polars
        found = {column.name: column.to_numpy() for column in X if column.dtype.is_temporal()}
        found = {name: _seconds(dates) for name, dates in found.items() if _is_date(dates)}
        return X.with_columns(**{n: type(X[n])(n, x) for n, x in found.items()}) if found else X
    if not hasattr(X, "isetitem"):
        return X
    dates = [(j, f"{kind}8[us]") for j, kind in enumerate(kinds_of(X)) if kind in _DATES]
    return with_columns(X, {j: _seconds(X.iloc[:, j].to_numpy(dtype)) for j, dtype in dates})


def are_dates(X):
    """Which columns of a DataFrame (pandas or polars) or an array hold dates, (n_features,) bool.

    Returns
    -------
    ndarray, or None if no column does
    """
    if hasattr(X, "dtypes"):
        found = [getattr(t, "kind", "") == "M" or str(t).startswith("Date") for t in X.dtypes]
        return np.array(found) if any(found) else None
    is_of_dates = getattr(getattr(X, "dtype", None), "kind", "") == "M"
    return np.ones(X.shape[-1:], bool) if is_of_dates else None


def with_plain_columns(X):
    """Return X with text categories and Arrow's texts as objects, and nullable numbers as floats if
    any are missing.

    scikit-learn's check of X would take such texts beside booleans for numbers, and pandas would
    convert a missing nullable number to pd.NA in an object array.
    """
    if not hasattr(X, "isetitem"):
        return X
    plain = {}
    for j, dtype in enumerate(X.dtypes):
        column = X.iloc[:, j]
        if _holds_texts(dtype):
            plain[j] = column.astype(object)
        elif hasattr(dtype, "na_value") and dtype.kind in "biuf" and column.isna().any():
            plain[j] = column.to_numpy(np.float64, na_value=np.nan)
    return with_columns(X, plain)


def _holds_texts(dtype):
    """Whether this is a dtype of pandas for texts: of categories, or of Arrow."""
    kind = dtype.categories.dtype.kind if hasattr(dtype, "categories") else dtype.kind
    return not isinstance(dtype, np.dtype) and kind not in "biufmM"


def _is_date(values):
    """Whether this is a NumPy date or duration, or an array of them."""
    return getattr(values, "dtype", np.dtype(object)).kind in _DATES


def _seconds(dates):
    microseconds = dates.astype(f"{dates.dtype.kind}8[us]")
    return np.where(np.isnat(dates), np.nan, microseconds.astype(np.int64) / 1e6)


def kinds_of(X):
    """A list of the kind (as in numpy.dtype.kind) of each column."""
    if hasattr(X, "iloc"):
        return [dtype.kind for dtype in X.dtypes]
    if hasattr(type(X), "to_dicts"):  # of polars
        return [column[:0].to_numpy().dtype.kind for column in X]
    X = X if hasattr(X, "dtype") else np.asarray(X)
    return [X.dtype.kind] * X.shape[1]
