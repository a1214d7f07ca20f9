"""Single or double precision, dates as numbers, and columns of pandas' own types."""

import numpy as np

_DATES = "mM"


def precision_of(estimator):
    """The dtype in which an estimator, ours or scikit-learn's, takes X: that of its trees, whatever
    the parameter was set to since they were grown.

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


def dates_as_seconds(X):
    """X with dates and durations as seconds, dates since 1970 (UTC); missing ones are nan.

    Parameters
    ----------
    X : array-like or sparse
        Columns of a DataFrame, of pandas or polars, and items of a list may differ in type.

    Returns
    -------
    X itself where it holds neither
    """
    if isinstance(X, np.ndarray):
        return _seconds(X) if X.dtype.kind in _DATES else X
    if isinstance(X, (list, tuple)):
        types = {type(value) for row in X if np.iterable(row) for value in row}
        if types.isdisjoint((np.datetime64, np.timedelta64)):
            return X
        return [[_seconds(v) if _is_date(v) else v for v in row] for row in X]
    if hasattr(X, "with_columns") and hasattr(X, "to_dicts"):
        found = {column.name: column.to_numpy() for column in X if column.dtype.is_temporal()}
        found = {name: _seconds(dates) for name, dates in found.items() if _is_date(dates)}
        return X.with_columns(**{n: type(X[n])(n, x) for n, x in found.items()}) if found else X
    if not hasattr(X, "isetitem"):
        return X
    dates = [j for j, kind in enumerate(kinds_of(X)) if kind in _DATES]
    if dates:
        X = X.copy(deep=False)
    for j in dates:
        column = X.iloc[:, j]
        X.isetitem(j, _seconds(column.to_numpy(f"{column.dtype.kind}8[us]")))
    return X


def with_plain_columns(X):
    """X with pandas' categories of text as objects, and its nullable numbers as floats where some
    are missing: scikit-learn's check of tables takes such categories for numbers, too, where they
    stand beside booleans, and pandas puts pd.NA among objects."""
    if not hasattr(X, "isetitem"):
        return X
    plain = {}
    for j, dtype in enumerate(X.dtypes):
        column = X.iloc[:, j]
        if getattr(dtype, "categories", np.empty(0)).dtype.kind not in "biufmM":
            plain[j] = column.astype(object)
        elif hasattr(dtype, "na_value") and dtype.kind in "biuf" and column.isna().any():
            plain[j] = column.to_numpy(np.float64, na_value=np.nan)
    X = X.copy(deep=False) if plain else X
    for j, column in plain.items():
        X.isetitem(j, column)
    return X


def _is_date(values):
    """Is it dates or durations of NumPy, an array of them or one?"""
    return getattr(values, "dtype", np.dtype(object)).kind in _DATES


def _seconds(dates):
    microseconds = dates.astype(f"{dates.dtype.kind}8[us]")
    return np.where(np.isnat(dates), np.nan, microseconds.astype(np.int64) / 1e6)


def kinds_of(X):
    """The kind (as in numpy.dtype.kind) of each column."""
    if hasattr(X, "iloc"):
        return [dtype.kind for dtype in X.dtypes]
    X = X if hasattr(X, "dtype") else np.asarray(X)
    return [X.dtype.kind] * X.shape[1]
