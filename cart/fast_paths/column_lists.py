"""Rows that do not have the most frequent value of a column, listed once: nodes pick theirs.

    column     [ 0 0 7 0 3 0 0 7 ]       in the table
    list       [ 4:3 | 2:7 | 7:7 ]       row:code, by code, then by row
    node       rows 1 2 3 6 7            picks 2:7 and 7:7, in order

So a node of many rows reads the list of a column in place of all its codes, and sorts nothing.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.primitives.sort_keys import CODE_SHIFT
from cart.table.frequent_codes import list_others
from cart.table.ranking import MISSING
from cart.table.sparse_table import order_by_code

_OUTSIDE = np.uint32(0xFFFFFFFF)


class ColumnLists(NamedTuple):
    """The lists of a table's columns, and where the rows of a tree are."""

    start: np.ndarray  # (n_columns + 1,) int64: column c has the entries start[c]:start[c + 1]
    rows: np.ndarray  # (n_entries,) int32
    codes: np.ndarray  # (n_entries,) uint32
    places: np.ndarray  # (n_rows,) uint32: of each row among those of the tree; (0,) without lists

    @classmethod
    def create(cls, table, unlisted):
        """`unlisted`, (n_columns,), has the code that each list leaves out, MISSING for no list."""
        if (unlisted == MISSING).all():  # no kernel need be compiled
            start = np.zeros(len(unlisted) + 1, np.int64)
            return cls(start, np.empty(0, np.int32), *np.empty((2, 0), np.uint32))
        start, rows, codes = list_others(table.codes, unlisted)
        ordered = order_by_code(rows, codes, start, table.level_start)
        return cls(start, *ordered, np.empty(table.codes.shape[1], np.uint32))


@inline_kernel
def begin_lists(lists, rows, n):
    """Begin a tree of rows[:n]."""
    if lists.places.shape[0] > 0:
        lists.places[:] = _OUTSIDE
        note_places(lists, rows, 0, n)


@inline_kernel
def note_places(lists, rows, start, end):
    """Note where the rows[start:end] are."""
    if lists.places.shape[0] > 0:
        for i in range(start, end):
            lists.places[rows[i]] = i


@inline_kernel
def is_list_short(lists, column, n):
    """Whether a node of n rows is better off with the list of a column than with its codes."""
    n_entries = lists.start[column + 1] - lists.start[column]
    return 0 < n_entries < n


@inline_kernel
def pick_rows(lists, column, node, entries):
    """Write the entries of those of a node's rows that are listed along a column, in order; return
    how many there are."""
    n_listed, n = np.int64(0), np.uint64(node.n)
    for k in range(lists.start[column], lists.start[column + 1]):  # no branch: it is unpredictable
        row = np.uint32(lists.rows[k])
        entries[n_listed] = np.uint64(lists.codes[k]) << CODE_SHIFT | np.uint64(row)
        n_listed += np.uint64(np.int64(lists.places[row]) - node.start) < n
    return n_listed
