"""Detect rows that are in a table more than once, so that out-of-bag rows have copies in bag.

If a tree was grown on a copy of an out-of-bag row, it predicts that row by its own y, including the
noise. The forest then seems to explain noise, and features seem important that are not.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cart.primitives.user_warning import warn_user
from forest.inference.training_rows import row_fingerprints

NOTABLE = 0.05  # least share of repeated rows
BEYOND = 2.0  # least ratio of repeated rows to those expected by chance
ALIKE = 0.25  # least agreement in y of rows equal in X: 0 is that of any two rows, 1 is complete


def doubts_on_repeated_rows(fitted: Any) -> Iterator[str]:
    """Yield a sentence about rows that equal others in all columns and in y, if they are notable.

    `fitted` has the training table, `X` and `codes` (numbers or classes), and the draws, `plan`.

    Nothing is yielded if repeated rows are few; if they are hardly more than in a table of as many
    rows with independent columns; if rows equal in all columns agree in y hardly more often than
    any two rows do, as in tables of few values; or if the forest draws groups of rows.
    """
    X, y, n_rows = fitted.X, fitted.codes, len(fitted.codes)
    if getattr(fitted.draws, "groups", None) is not None:
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
        f"{n_repeated:,} of {n_rows:,} rows equal another row, including y. If they are copies, "
        "out-of-bag and held-out rows have copies among the training rows: scores and "
        "importances are too high, even for noise, and errors and p-values are too small. Drop "
        "the copies, or fit with a group for each row and its copies."
    )


def warn_of_repeated_rows(fitted: Any) -> None:
    """Warn about repeated rows, for tests: with them, p-values are small even for noise."""
    for text in doubts_on_repeated_rows(fitted):
        warn_user(text)


def _agreement(fitted):
    """The probability that two rows agree in all columns and y, if these were independent."""
    X, n_rows = fitted.X, len(fitted.codes)
    columns = np.split(X.tocsc().data, X.tocsc().indptr[1:-1]) if issparse(X) else X.T
    return prod(_agreement_of(column, n_rows) for column in (fitted.codes, *columns))


def _agreement_of(column, n_rows):
    """The probability that two rows agree in a column; `column` may omit zeros (if sparse)."""
    _, times = np.unique(column, return_counts=True)
    zeros = n_rows - len(column)
    return np.square(times / n_rows).sum() + (zeros / n_rows) ** 2


def _n_pairs(times):
    """Number of ordered pairs of equal rows, given how often each distinct row occurs."""
    return (times * (times - 1.0)).sum()
