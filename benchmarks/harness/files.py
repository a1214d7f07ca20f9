"""Tables from CSV and Parquet files."""

import numpy as np

from benchmarks.harness.errors import DataError
from cartwood.table import read as read_table
from cartwood.terminal import UserError

SUFFIXES = (".csv", ".parquet")
MAX_CLASSES = 20  # an integer target with more distinct values is a regression target


def read(path, target, task):
    """Read a table and check that forests can be fitted to it.

    Parameters
    ----------
    path : pathlib.Path
        A file with one of SUFFIXES.
    target : str or None
        Column to predict.
    task : {"classification", "regression"} or None
        None decides by the values of the target.

    Returns
    -------
    task : str
    X : ndarray of shape (n_samples, n_features), float64
    y : ndarray of shape (n_samples,)
    feature_names : list of str
    """
    frame = _frame(path)
    columns = ", ".join(map(str, frame.columns))
    if target is None:
        raise DataError(f"--target is needed with a file; the columns of {path} are {columns}.")
    if target not in frame.columns:
        raise DataError(f"{path} has no column {target!r}; its columns are {columns}.")
    y = frame.pop(target)
    task = task or _task_of(y)
    is_text = [not _is_numeric(frame[name]) for name in frame.columns]
    _refuse("non-numeric features (encode them as numbers first)", frame.columns[is_text])
    _refuse("missing values (fill or drop them first)", frame.columns[frame.isna().any()])
    _refuse("missing values (drop these rows first)", [target] * bool(y.isna().any()))
    is_text = not _is_numeric(y)
    _refuse("non-numeric target (for regression)", [target] * (task == "regression" and is_text))
    X = frame.to_numpy(np.float64)
    _refuse("infinite values", frame.columns[np.isinf(X).any(axis=0)])
    values = _values(y, task)
    _refuse("infinite values", [target] * (task == "regression" and bool(np.isinf(values).any())))
    return task, X, values, [str(name) for name in frame.columns]


def _frame(path):
    try:
        return read_table(path)
    except UserError as error:
        raise DataError(str(error)) from error


def _is_numeric(column):
    from pandas.api.types import is_numeric_dtype

    return is_numeric_dtype(column) and column.dtype.kind != "c"


def _task_of(y):
    if not _is_numeric(y) or y.dtype.kind == "b":
        return "classification"
    few = y.dtype.kind in "iu" and y.nunique() <= MAX_CLASSES
    return "classification" if few else "regression"


def _values(y, task):
    if task == "regression":
        return y.to_numpy(np.float64)
    return y.to_numpy() if _is_numeric(y) else y.astype(str).to_numpy(dtype=str)


def _refuse(problem, columns):
    if len(columns):
        raise DataError(f"{problem} in: {', '.join(map(str, columns))}.")
