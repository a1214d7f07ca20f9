"""Columns of X as contiguous arrays in the trees' precision, a few at a time."""

import numpy as np

from cart.primitives.threads import in_parts

_IN_CACHE = 1 << 19  # bytes, of rows whose columns are taken one after another
_LINE = 64  # bytes of memory that are read at once
_LEAST_ROWS = 256


class Columns:
    """The columns of a table, in the precision that trees compare in.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64, or sparse
        Not copied; what is taken is.
    precision : dtype, optional
        float32 or float64; that of X unless given. In which dense columns are taken.
    """

    def __init__(self, X, precision=None):
        self.X = X
        self.precision = np.dtype(X.dtype if precision is None else precision)

    def take(self, first, end, rows=slice(None), out=None):
        """Columns first, ..., end - 1, of some rows.

        Returns
        -------
        ndarray of shape (end - first, n_rows), of the precision, in C order
            `out` where it is given.
        """
        mine = self.X[rows, first:end]
        taken = np.empty(mine.shape[::-1], self.precision) if out is None else out
        _transpose(mine, taken)
        return taken

    def take_all(self, n_jobs=None):
        """All columns; `n_jobs` is joblib's."""
        n_samples, n_columns = self.X.shape
        taken = np.empty((n_columns, n_samples), self.precision)

        def take(first, end):
            _transpose(self.X[first:end], taken[:, first:end])

        in_parts(take, n_samples, n_jobs, rows_at_once(n_columns))
        return taken


def rows_at_once(n_columns):
    """So many rows that what is read of them is still in the caches when they are taken."""
    return max(_LEAST_ROWS, _IN_CACHE // (8 * n_columns + _LINE))


def _transpose(rows, taken):
    n_rows = rows_at_once(len(taken))
    for start in range(0, len(rows), n_rows):
        part = slice(start, start + n_rows)
        taken[:, part] = rows[part].T
