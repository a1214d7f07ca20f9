"""Rows that stand in a table more than once, so that out of bag they have copies in bag.

A row out of bag whose copy the trees have seen is predicted by its own y, noise and all: then
forests explain, and features count, what is chance.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cart.primitives.user_warning import warn_user
from forest.inference.training_rows import row_fingerprints

NOTABLE = 0.05  # of the rows
BEYOND = 2.0  # times as many as chance would give
ALIKE = 0.25  # of rows alike in X, how far they agree in y: from 0, as any do, to 1, all


def doubts_on_repeated_rows(fitted: Any) -> Iterator[str]:
    """A sentence on rows that equal others in all columns and in y.

    `fitted` has the training table: `X` and `codes` (numbers or classes), and what it was drawn by,
    `plan`.

    None where they are few, or hardly more than among as many rows of columns that have nothing to
    do with each other; where rows that are alike in all columns agree in y hardly more often than
    any two do, as in tables of few values; or where the forest draws groups of rows.
    """
    X, y, n_rows = fitted.X, fitted.codes, len(fitted.codes)
    if getattr(fitted.plan, "groups", None) is not None:
        return
    _, times = np.unique(row_fingerprints(X, y), return_counts=True)
    n_repeated = times[times > 1].sum()
    if n_repeated < max(2, NOTABLE * n_rows):
        return
    if n_repeated <= BEYOND * min(1.0, (n_rows - 1) * _agreement(fitted)) * n_rows:
        return
    _, times_in_x = np.unique(row_fingerprints(X, np.zeros(n_rows)), return_counts=True)
    by_chance = _agreement_of(y, n_rows)
    if _n_pairs(times) / _n_pairs(times_in_x) < by_chance + ALIKE * (1.0 - by_chance):
        return
    yield (
        f"{n_repeated:,} of {n_rows:,} rows are the same as another one, in y, too. If they are "
        "copies, rows out of bag, and held out, have theirs in bag: all that is said of these is "
        "too good, of noise as well, and errors and p-values are too small. Drop them, or fit with "
        "a group for each row and its copies."
    )


def warn_of_repeated_rows(fitted: Any) -> None:
    """Say the same as a warning, for tests: of noise their p-values are small then."""
    for text in doubts_on_repeated_rows(fitted):
        warn_user(text)


def _agreement(fitted):
    """The chance that two rows agree if columns, and y, do so independently."""
    X, n_rows = fitted.X, len(fitted.codes)
    columns = np.split(X.tocsc().data, X.tocsc().indptr[1:-1]) if issparse(X) else X.T
    chance = 1.0
    for column in (fitted.codes, *columns):
        chance *= _agreement_of(column, n_rows)
    return chance


def _agreement_of(column, n_rows):
    """The chance that two rows agree in a column; of a sparse one, what it has beside zeros."""
    _, times = np.unique(column, return_counts=True)
    zeros = n_rows - len(column)
    return np.square(times / n_rows).sum() + (zeros / n_rows) ** 2


def _n_pairs(times):
    """Ordered pairs of rows that are alike."""
    return (times * (times - 1.0)).sum()
