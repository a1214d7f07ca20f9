"""Copy columns of X to contiguous arrays in the trees' precision, a few at a time."""

import numpy as np

from cart.primitives.threads import in_parts

_IN_CACHE = 1 << 19  # bytes of the rows whose columns are copied one after another
_LINE = 64  # bytes of a cache line
_LEAST_ROWS = 256


class Columns:
    """The columns of X, in the precision in which trees compare values.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64, or sparse
        Not copied; only the columns taken are.
    precision : dtype, optional
        float32 or float64, of the dense columns taken. By default that of X.
    """

    def __init__(self, X, precision=None):
        self.X = X
        self.precision = np.dtype(X.dtype if precision is None else precision)

    def take(self, which, rows=slice(None), out=None):
        """Return the columns `which`, a slice or their numbers, of some rows.

        Returns
        -------
        ndarray of shape (n_columns, n_rows), of the precision, in C order
            `out` if that is given.
        """
        mine = self.X[rows, which]
        taken = np.empty(mine.shape[::-1], self.precision) if out is None else out
        _transpose(mine, taken)
        return taken

    def take_all(self, n_jobs=None):
        """Return all columns; `n_jobs` is as in joblib."""
        n_samples, n_columns = self.X.shape
        taken = np.empty((n_columns, n_samples), self.precision)

        def take(first, end):
            _transpose(self.X[first:end], taken[:, first:end])

        in_parts(take, n_samples, n_jobs, rows_at_once(n_columns))
        return taken


def rows_at_once(n_columns):
    """How many rows to copy at once, so that they stay in the caches from column to column."""
    return max(_LEAST_ROWS, _IN_CACHE // (8 * n_columns + _LINE))


def _transpose(rows, taken):
    n_rows = rows_at_once(len(taken))
    for start in range(0, len(rows), n_rows):
        part = slice(start, start + n_rows)
        taken[:, part] = rows[part].T
