"""The most frequent code of each column, and how many cells hold another one, seen in a few rows.

These are to choose how trees are grown. What they are grown to does not depend on them.
"""

import numpy as np

_ROWS_SEEN = 64


def frequent_codes(table):
    """The median code in a few rows: the most frequent one, if more than half of a column have it.

    Parameters
    ----------
    table : Table

    Returns
    -------
    ndarray of shape (n_columns,), of the dtype of the codes
    """
    codes = _some_rows(table)
    return np.sort(codes, axis=1)[:, codes.shape[1] // 2]


def share_of_others(table):
    """The share of cells that do not hold their column's frequent code."""
    return np.mean(_some_rows(table) != frequent_codes(table)[:, np.newaxis])


def _some_rows(table):
    """The codes of some rows, evenly spaced."""
    return table.codes[:, :: max(1, table.codes.shape[1] // _ROWS_SEEN)]
