"""The folds of a cross-validation: which rows are held out together."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

Fold = tuple[np.ndarray, np.ndarray]  # rows to grow on, rows held out
_WHAT = (
    "cv must be a number of folds, the fold number of each row, a splitter, or pairs of training "
    "rows and held-out rows"
)


def folds_of(
    cv: Any, X: Any, codes: np.ndarray, is_classification: bool, random_state: Any
) -> list[Fold]:
    """The folds that `cv` stands for.

    Parameters
    ----------
    cv : int, array-like of shape (n_samples,), splitter, or iterable of pairs
        A number of folds, to be drawn at random (stratified by class); the number of each row's
        fold; an object with a method `split`; or, for each fold, the rows to grow on and the rows
        held out.
    X : ndarray of shape (n_samples, n_features), or sparse
    codes : ndarray of shape (n_samples,), float64
        Class codes, or numbers.
    is_classification : bool
    random_state : int, RandomState instance or None
        Seed of the draw.

    Returns
    -------
    list of (ndarray, ndarray), int64
        For each fold, the rows to grow on and the rows held out.

    Raises
    ------
    ValueError
        If `cv` is none of these, there are fewer than two folds, or a fold has no rows on one side.
    """
    n_rows = len(codes)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv={cv} must be at least 2: one fold is held out.")
        if n_rows < 2:
            raise ValueError(f"Cross-validation needs at least 2 rows, but n_samples={n_rows}.")
        numbers = _draw(min(int(cv), n_rows), codes, is_classification, random_state)
        folds = _by_number(numbers)
    elif hasattr(cv, "split") and not isinstance(cv, str):  # str.split is another method
        folds = _split(cv, X, codes)
    else:
        folds = _given(cv, n_rows)
    if len(folds) < 2:
        raise ValueError(f"cv makes {len(folds)} fold(s), but at least 2 are needed.")
    for rows, held_out in folds:
        if len(rows) == 0 or len(held_out) == 0:
            raise ValueError("A fold has no training rows or no held-out rows.")
    return folds


def require_weights(folds: list[Fold], weight: np.ndarray) -> None:
    """Raise a ValueError if a fold grows on rows of weight 0 only, or all folds hold out only such.

    Parameters
    ----------
    folds : list of (ndarray, ndarray)
    weight : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
    """
    for i, (rows, _) in enumerate(folds):
        if not weight[rows].any():
            raise ValueError(f"All training rows of fold {i} have weight 0; choose another cv.")
    if not any(weight[held_out].any() for _, held_out in folds):
        raise ValueError("All held-out rows have weight 0; choose another cv.")


def _split(splitter, X, codes):
    try:
        return list(splitter.split(X, codes))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"{type(splitter).__name__} needs groups, which are not known here; pass its folds: "
            "cv=list(splitter.split(X, y, groups))."
        ) from error


def _draw(n_folds, codes, is_classification, random_state):
    """Draw each row's fold: shuffled rows, class by class, are dealt to the folds in turn."""
    order = check_random_state(random_state).permutation(len(codes))
    if is_classification:
        order = order[np.argsort(codes[order], kind="stable")]
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) % n_folds
    return numbers


def _by_number(numbers):
    return [
        (np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold))
        for fold in np.unique(numbers)
    ]


def _given(cv, n_rows):
    if isinstance(cv, (bool, str)) or not isinstance(cv, Iterable):
        raise ValueError(f"{_WHAT}, but is {cv!r}.")
    cv = list(cv)
    if not any(isinstance(item, (tuple, list)) for item in cv):
        if len(cv) != n_rows:
            raise ValueError(
                f"cv has fold numbers for {len(cv)} rows, but there are {n_rows} rows."
            )
        numbers = np.asarray(cv).reshape(n_rows, -1)
        if numbers.shape[1] > 1:
            raise ValueError(f"{_WHAT}; a row needs one number, not {numbers.shape[1]}.")
        return _by_number(numbers[:, 0])
    for item in cv:
        if len(item) != 2:
            raise ValueError(f"{_WHAT}; one item has {len(item)} parts, not 2.")
    return [(_as_rows(rows, n_rows), _as_rows(held_out, n_rows)) for rows, held_out in cv]


def _as_rows(rows, n_rows):
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    is_number = rows.ndim == 1 and (rows.dtype.kind in "iu" or len(rows) == 0)
    if not is_number or np.any((rows < 0) | (rows >= n_rows)):
        raise ValueError(f"{_WHAT}; rows must be numbers from 0 to {n_rows - 1}, but are {rows!r}.")
    return rows.astype(np.int64)
