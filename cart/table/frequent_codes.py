"""The most frequent code of each column, and how many cells hold another one, seen in a few rows.

These are to choose how trees are grown. What they are grown to does not depend on them.
"""

import numpy as np

from cart.table.ranking import MISSING

_ROWS_SEEN = 64
# A table is mostly equal from so many cells on, if at most this share of them holds another value
# than the most frequent one of its column; or this one, where nodes look at few of the features.
_CELLS_MIN, _OTHERS_MAX, _OTHERS_MAX_OF_FEW = 1 << 14, 1 / 8, 1 / 18


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


def is_mostly_equal(table, looked_at):
    """Whether it is faster to list the rows with other values than to read all, where nodes look at
    so many features."""
    is_few = 2 * looked_at < len(table.columns)
    most = _OTHERS_MAX_OF_FEW if is_few else _OTHERS_MAX
    return table.codes.size >= _CELLS_MIN and share_of_others(table) <= most


def share_of_others(table):
    """The share of cells that hold another code than their column's frequent one, or none."""
    codes = _some_rows(table)
    return np.mean((codes != frequent_codes(table)[:, np.newaxis]) | (codes == MISSING))


def _some_rows(table):
    """The codes of some rows, evenly spaced."""
    return table.codes[:, :: max(1, table.codes.shape[1] // _ROWS_SEEN)]
