"""The most frequent code of each column, and how many cells hold another one, seen in a few rows.

These are to choose how trees are grown. What they are grown to does not depend on them.
"""

import numpy as np

from cart.table.ranking import MISSING
from cart.table.table import has_missing

_ROWS_SEEN = 64
_CELLS_MIN = 1 << 14  # of a table that counts as mostly equal
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


def is_mostly_equal(table, others_max, read_fast=0):
    """Whether at most this share of the cells seem to hold another value than the most frequent one
    of their column, in a table of some size. Columns with at most `read_fast` codes are read fast,
    so that their cells count more."""
    if table.codes.size < _CELLS_MIN or np.mean(_least_shares_of_others(table)) > others_max:
        return False
    times = np.where(np.diff(table.level_start) <= read_fast, _TIMES_IF_READ_FAST, 1.0)
    return bool(np.mean(_shares_of_others(table) * times) <= others_max)


def codes_of_most(table, others_max):
    """The most frequent code of each column, if at most this share of the rows seems to hold
    another one, and none is missing.

    Parameters
    ----------
    table : Table
    others_max : float

    Returns
    -------
    ndarray of shape (n_columns,), of the dtype of the codes
        MISSING for all other columns.
    """
    codes = np.full(len(table.codes), MISSING, table.codes.dtype)
    columns = np.flatnonzero(_least_shares_of_others(table) <= others_max)
    seen = _some_rows(table)[columns]
    most = np.sort(seen, axis=1)[:, seen.shape[1] // 2]
    are_most = np.mean(seen != most[:, np.newaxis], axis=1) <= others_max
    codes[columns[are_most]] = most[are_most]
    if has_missing(table):
        for column in columns[are_most]:
            if table.codes[column].max() == MISSING:
                codes[column] = MISSING
    return codes


def _least_shares_of_others(table):
    """The least share of each column's cells that can hold another code than the frequent one: each
    of the other values is in a row of its own."""
    return (np.diff(table.level_start) - 1) / table.codes.shape[1]


def _shares_of_others(table):
    """The share of each column's cells that hold another code than the frequent one, or none."""
    codes = _some_rows(table)
    is_other = (codes != frequent_codes(table)[:, np.newaxis]) | (codes == MISSING)
    return np.mean(is_other, axis=1)


def _some_rows(table):
    """The codes of some rows, evenly spaced."""
    return table.codes[:, :: max(1, table.codes.shape[1] // _ROWS_SEEN)]
