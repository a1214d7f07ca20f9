"""Column and row sums of a table of words, in one pass."""

import numpy as np

from cart.jit.decorators import entry_kernel


@entry_kernel
def add_columns_and_rows(words, columns, rows):
    """Add up the columns and the rows of a table of words, modulo 2**64.

    Parameters
    ----------
    words : ndarray of shape (n_rows * n_columns,), uint64
        Row after row.
    columns : ndarray of shape (n_columns,), uint64
        The sums of the columns are added to these.
    rows : ndarray of shape (n_rows,), uint64
        The sums of the rows are written here.
    """
    n_columns = columns.shape[0]
    for i in range(rows.shape[0]):
        row = words[i * n_columns : (i + 1) * n_columns]
        total = np.uint64(0)
        for j in range(n_columns):
            total += row[j]
            columns[j] += row[j]
        rows[i] = total
