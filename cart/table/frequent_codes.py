"""The most frequent code of each column, and how many cells hold another one, seen in a few rows.

These are to choose how trees are grown. What they are grown to does not depend on them.
"""

import numpy as np

from cart.table.ranking import MISSING

_ROWS_SEEN = 64
# A table is mostly equal from so many cells on, if at most this share of them holds another value
# than the most frequent one of its column; or this one, where nodes look at few of the features.
_CELLS_MIN, _OTHERS_MAX, _OTHERS_MAX_OF_FEW = 1 << 14, 1 / 8, 1 / 18
# So many times as much a cell counts, if its column has so few codes that it is read fast.
_TIMES_IF_READ_FAST = 2.5


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


def is_mostly_equal(table, looked_at, read_fast=0):
    """Whether it is faster to list the rows with other values than to read all, where nodes look at
    so many features. Columns with at most `read_fast` codes are read fast."""
    is_few = 2 * looked_at < len(table.columns)
    most = _OTHERS_MAX_OF_FEW if is_few else _OTHERS_MAX
    if table.codes.size < _CELLS_MIN:
        return False
    times = np.where(np.diff(table.level_start) <= read_fast, _TIMES_IF_READ_FAST, 1.0)
    return bool(np.mean(_shares_of_others(table) * times) <= most)


def share_of_others(table):
    """The share of cells that hold another code than their column's frequent one, or none."""
    return np.mean(_shares_of_others(table))


def _shares_of_others(table):
    """The same of each column."""
    codes = _some_rows(table)
    is_other = (codes != frequent_codes(table)[:, np.newaxis]) | (codes == MISSING)
    return np.mean(is_other, axis=1)


def _some_rows(table):
    """The codes of some rows, evenly spaced."""
    return table.codes[:, :: max(1, table.codes.shape[1] // _ROWS_SEEN)]
