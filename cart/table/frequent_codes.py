"""The most frequent code of each column, and how many cells hold another one, seen in a few rows.

They decide how trees are grown, never which trees. The cells that hold another code can be listed.
"""

import numpy as np

from cart.jit.decorators import entry_kernel
from cart.table.ranking import MISSING
from cart.table.table import has_missing

_ROWS_SEEN = 64
_CELLS_MIN = 1 << 14  # of a table that counts as mostly equal
# A cell counts this many times as much if its column has so few codes that it is read fast.
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
    return _most_of(_some_rows(table))[0]


def is_mostly_equal(table, looked_at, others_max, read_fast=0):
    """Whether few cells seem to hold another value than the most frequent one of their column, in a
    table of some size.

    Parameters
    ----------
    table : Table
    looked_at : int
        How many features nodes look at.
    others_max : tuple of two floats
        The most such cells, as a share of all: where nodes look at half of the features or more,
        and where they look at fewer.
    read_fast : int, default=0
        Columns with at most so many codes are read fast, so that their cells count more.

    Returns
    -------
    bool
    """
    most = others_max[2 * looked_at < len(table.columns)]
    if table.codes.size < _CELLS_MIN or np.mean(_least_shares_of_others(table)) > most:
        return False
    times = np.where(table.n_levels() <= read_fast, _TIMES_IF_READ_FAST, 1.0)
    return bool(np.mean(_most_of(_some_rows(table))[1] * times) <= most)


def find_unlisted_codes(table, others_max):
    """Choose the code of each column whose rows are not listed: the most frequent one, if at most
    this share of the rows seems to hold another one, and none is missing.

    Parameters
    ----------
    table : Table
    others_max : float

    Returns
    -------
    ndarray of shape (n_columns,), uint32
        MISSING for all other columns.
    """
    codes = np.full(len(table.codes), MISSING)
    columns = np.flatnonzero(_least_shares_of_others(table) <= others_max)
    most, shares = _most_of(_some_rows(table)[columns])
    are_most = shares <= others_max
    codes[columns[are_most]] = most[are_most]
    if has_missing(table):
        for column in columns[are_most]:
            if table.codes[column].max() == MISSING:
                codes[column] = MISSING
    return codes


def _least_shares_of_others(table):
    """The least share of each column's cells that can hold another code than the frequent one: each
    of the other values is in a row of its own."""
    return (table.n_levels() - 1) / table.codes.shape[1]


def _most_of(codes):
    """The median code of each column, and the share of the cells that hold another one, or none."""
    most = np.sort(codes, axis=1)[:, codes.shape[1] // 2]
    is_other = (codes != most[:, np.newaxis]) | (codes == MISSING)
    return most, np.mean(is_other, axis=1)


def _some_rows(table):
    """The codes of some rows, evenly spaced."""
    return table.codes[:, :: max(1, table.codes.shape[1] // _ROWS_SEEN)]


def list_others(codes, unlisted):
    """List the cells of each column that hold another code than the one that is not listed.

    Parameters
    ----------
    codes : ndarray of shape (n_columns, n_rows), unsigned integers
    unlisted : ndarray of shape (n_columns,), uint32
        MISSING for a column of which nothing is listed.

    Returns
    -------
    start : ndarray of shape (n_columns + 1,), int64
        Column c has the cells start[c]:start[c + 1].
    rows : ndarray of shape (n_cells,), int32
        Ascending in each column.
    codes : ndarray of shape (n_cells,), uint32
    """
    start = np.zeros(len(unlisted) + 1, np.int64)
    _count_others(codes, unlisted, start[1:])
    np.cumsum(start, out=start)
    rows, listed = np.empty(start[-1] + 1, np.int32), np.empty(start[-1] + 1, np.uint32)
    _list_others(codes, unlisted, start, rows, listed)
    return start, rows[:-1], listed[:-1]


@entry_kernel
def _count_others(codes, unlisted, counts):
    """Count the rows of each column with another code than the one that is not listed."""
    for column in range(codes.shape[0]):
        if unlisted[column] != MISSING:
            for i in range(codes.shape[1]):
                counts[column] += codes[column, i] != unlisted[column]


@entry_kernel
def _list_others(codes, unlisted, start, listed_rows, listed_codes):
    """Write the rows that `_count_others` counts, and their codes; an item more is written."""
    for column in range(codes.shape[0]):
        at = start[column]
        for i in range(codes.shape[1] if at < start[column + 1] else 0):
            listed_rows[at], listed_codes[at] = i, codes[column, i]  # no branch
            at += codes[column, i] != unlisted[column]
