"""A sparse training table: the ranks of the values that are not 0, column by column.

    column 0 of X   [ 0  3  0  0  -1  0 ]        zero[0] = 1, the rank of 0

    rows            [ 4  1 | column 1 ... ]      column c owns entries entry_start[c]:
    codes           [ 0  2 | ...          ]                            entry_start[c + 1],
                                                 in the order of their codes
To gather a column in a node, all entries of the column are read, and those kept whose row is in the
node, so that nothing is sorted; each thread keeps the `positions` of the rows in the tree's samples
up to date. The entries of the rows of a smaller node are listed by column once, as chains, for the
node and for all nodes below it:

    entry           0  1  2  3  4           of the node's first row, of the next one, ...
    column          7  2  2  0  7
    following      -1 -1  1 -1  0           head[7] = 4, head[2] = 2, head[0] = 3
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix

from cart.jit.decorators import entry_kernel, inline_kernel, kernel, like
from cart.primitives.sort_keys import row_of
from cart.table.distinct_values import Levels, Ties
from cart.table.frequent_codes import list_others
from cart.table.node_samples import (
    Listed,
    divide_keys,
    divide_listed,
    known_range,
    order_listed,
    order_node,
)
from cart.table.table import Table

_SHARE_LISTED = 1 / 16  # of the entries, at most
_ENTRY = np.int64(0xFFFFFFFF)  # of a head
# Places in the state of lists: the first sample of the listed node and the one after its last, the
# number of the list, and the first sample and the size of a node that has too many entries.
_START, _END, _NUMBER, _LARGE_START, _LARGE_SIZE = range(5)


class RowLists(NamedTuple):
    """The entries of a sparse table, row after row."""

    start: np.ndarray  # (n_rows + 1,) int64
    columns: np.ndarray  # (n_entries,) int32
    codes: np.ndarray  # (n_entries,) uint32

    @classmethod
    def of(cls, codes, rows, entry_start, shape):
        """The row lists of a table of this shape, given its entries column after column."""
        by_row = csc_matrix((codes, rows, entry_start), shape).tocsr()
        indices = by_row.indices.astype(np.int32, copy=False)
        return cls(by_row.indptr.astype(np.int64), indices, by_row.data)


class NodeLists(NamedTuple):
    """The entries of a node's rows, listed by column."""

    head: np.ndarray  # (n_columns,) int64: number of the list << 32 | its first entry of a column
    following: np.ndarray  # (capacity,) int32: the next entry of the same column, or -1
    rows: np.ndarray  # (capacity,) int32
    codes: np.ndarray  # (capacity,) uint32
    state: np.ndarray  # (5,) int64: see the places below
    n_usual: int  # a list of at most so many rows serves all nodes below

    @classmethod
    def create(cls, n_columns, n_rows, n_entries):
        """Room for a list that costs less than to read the columns it saves, where nodes look at
        sqrt(n_columns) of them."""
        n_looked_at = math.isqrt(n_columns)
        n_usual = 2 * n_looked_at
        share = min(max(1 / n_looked_at, n_usual / n_rows), _SHARE_LISTED)
        capacity = int(n_entries * share)
        integers, codes = np.empty((2, capacity), np.int32), np.empty(capacity, np.uint32)
        return cls(np.zeros(n_columns, np.int64), *integers, codes, np.zeros(5, np.int64), n_usual)


def _forget_lists(lists):
    """Forget the nodes of the last tree."""
    lists.state[_END] = lists.state[_LARGE_SIZE] = 0


forget_lists = inline_kernel(_forget_lists)


@kernel
def list_node(lists, by_row, samples, start, n, shift):
    """List the entries of a node's rows, unless they are too many; return whether they are listed.

    The list of a node above will do if it has few rows, or less than twice as many. The row of a
    sample is its low 32 bits, shifted right by `shift`.
    """
    state = lists.state
    n_listed = state[_END] - state[_START]
    if is_listed(lists, start, n) & ((n_listed <= lists.n_usual) | (n_listed < 2 * n)):
        return True
    if (state[_LARGE_START] == start) & (state[_LARGE_SIZE] == n):
        return False
    n_entries = 0
    for i in range(start, start + n):
        row = np.uint32(samples[i]) >> shift
        n_entries += by_row.start[row + 1] - by_row.start[row]
        if n_entries > lists.rows.shape[0]:
            state[_LARGE_START], state[_LARGE_SIZE] = start, n
            return False
    state[_START], state[_END], state[_NUMBER] = start, start + n, state[_NUMBER] + 1
    entry, number = 0, state[_NUMBER] << 32
    for i in range(start, start + n):
        row = np.uint32(samples[i]) >> shift
        for k in range(by_row.start[row], by_row.start[row + 1]):
            column = by_row.columns[k]
            lists.following[entry] = first_entry(lists, column)
            lists.head[column] = number | entry
            lists.rows[entry], lists.codes[entry] = row, by_row.codes[k]
            entry += 1
    return True


@inline_kernel
def is_listed(lists, start, n):
    """Whether the entries of the node of samples[start:start + n] are listed."""
    return (lists.state[_START] <= start) & (start + n <= lists.state[_END])


def order_by_code(rows, codes, entry_start, level_start):
    """Return the rows and codes of entries, those of every column in the order of their codes, then
    of their rows.

    Parameters
    ----------
    rows : ndarray of shape (n_entries,), int32
        Ascending in every column.
    codes : ndarray of shape (n_entries,), uint32
    entry_start : ndarray of shape (n_columns + 1,), int64
        Column c has the entries entry_start[c]:entry_start[c + 1].
    level_start : ndarray of shape (n_columns + 1,), int64
        It has level_start[c + 1] - level_start[c] codes.
    """
    ordered = np.empty_like(rows), np.empty_like(codes)
    first = np.empty(np.diff(level_start).max(initial=0) + 1, np.int64)
    _order_by_code(rows, codes, entry_start, level_start, first, *ordered)
    return ordered


@entry_kernel
def _order_by_code(rows, codes, entry_start, level_start, first, ordered_rows, ordered_codes):
    """See `order_by_code`; `first` has room for the codes of a column, and one more."""
    for column in range(entry_start.shape[0] - 1):
        begin, end = entry_start[column], entry_start[column + 1]
        n_codes = level_start[column + 1] - level_start[column] if begin < end else 0
        first[: n_codes + 1] = 0
        for entry in range(begin, end):
            first[codes[entry] + 1] += 1
        for code in range(n_codes):
            first[code + 1] += first[code]
        for entry in range(begin, end):
            place = begin + first[codes[entry]]
            first[codes[entry]] += 1
            ordered_rows[place], ordered_codes[place] = rows[entry], codes[entry]


@inline_kernel
def first_entry(lists, column):
    """The first entry of a column in the list, or -1."""
    head = lists.head[column]
    return head & _ENTRY if head >> 32 == lists.state[_NUMBER] else np.int64(-1)


@like(Table)
class SparseTable(NamedTuple):
    """Sparse training data as kernels see them; read-only. See `Table`."""

    entry_start: np.ndarray  # (n_columns + 1,) int64: column c owns entries start[c]:start[c + 1]
    rows: np.ndarray  # (n_entries,) int32: rows of the non-zero values, by code, then ascending
    codes: np.ndarray  # (n_entries,) uint32: rank among the column's distinct values, ascending
    zero: np.ndarray  # (n_columns,) uint32: rank of 0, if the column has zeros
    levels: Levels  # as in Table
    tops: Levels
    level_start: np.ndarray
    ties: Ties
    tie_span: np.ndarray
    columns: np.ndarray
    by_row: RowLists
    listed: Listed | None = None  # a thread's own
    lists: NodeLists | None = None  # a thread's own

    is_complete = Table.is_complete

    @classmethod
    def create(cls, shape, entry_start, rows, codes, zero, values):
        """The table of these entries, in which the rows of each column ascend. `values` are the
        fields from `levels` to `columns`."""
        by_row = RowLists.of(codes, rows, entry_start, shape)
        ordered = order_by_code(rows, codes, entry_start, values[2])
        return cls(entry_start, *ordered, zero, *values, by_row)

    @classmethod
    def of(cls, table, unlisted):
        """Make a sparse table of a Table without missing values: in each column, one code takes the
        place of 0 and has no entries. `unlisted`, (n_columns,), has these codes."""
        zero = unlisted.astype(np.uint32)
        return cls.create(table.codes.shape[::-1], *list_others(table.codes, zero), zero, table[1:])

    def with_room(self, n_samples, n_rows, n_nodes, n_outputs, n_values):
        lists = NodeLists.create(len(self.zero), n_rows, len(self.rows))
        return self._replace(listed=Listed.create(n_samples, n_rows), lists=lists)

    def begin_tree(self, samples):
        _forget_lists(self.lists)
        self.listed.positions[:] = -1
        self.listed.positions[samples] = np.arange(len(samples))

    def end_tree(self, nodes):
        pass

    def gather(self, column, samples, start, n, node, may_list):
        """Gather the codes of a column's entries in the node; see `cart.table.table.gather`."""
        zero = self.zero[column]
        lists, listed = self.lists, self.listed
        n_listed = 0
        if list_node(lists, self.by_row, samples, start, n, np.uint32(0)):
            entry = first_entry(lists, column)
            while entry >= 0:
                i = listed.positions[lists.rows[entry]] - start
                listed.at[n_listed], node.codes[n_listed] = i, lists.codes[entry]
                n_listed += np.uint64(i) < np.uint64(n)
                entry = np.int64(lists.following[entry])
        else:
            for entry in range(self.entry_start[column], self.entry_start[column + 1]):
                i = listed.positions[self.rows[entry]] - start
                listed.at[n_listed], node.codes[n_listed] = i, self.codes[entry]
                n_listed += np.uint64(i) < np.uint64(n)  # no branch: it would be mispredicted
        lowest, highest, _ = known_range(node.codes, n_listed)
        if n_listed < n:
            lowest = min(lowest, zero)
            highest = max(highest, zero)
        if may_list and 2 * n_listed < n:
            return lowest, highest, n_listed
        self.listed.unlisted[:] = 0
        for j in range(n_listed):
            self.listed.spare_codes[j] = node.codes[j]
        for i in range(n):
            node.codes[i] = zero
        for j in range(n_listed):
            node.codes[self.listed.at[j]] = self.listed.spare_codes[j]
        return lowest, highest, n

    def order_codes(self, node, codes, keep_order):
        if codes.n_listed < codes.n:
            order_listed(node, self.listed, codes, self.zero[codes.column])
        else:
            order_node(node, codes, np.uint32(1), keep_order)

    def divide_codes(self, node, codes, left_code, missing_left, keep_order):
        n, n_listed = codes.n, codes.n_listed
        if n_listed < n:
            zero = self.zero[codes.column]
            return divide_listed(node, self.listed, n, n_listed, left_code, zero)
        return divide_keys(node, n, left_code, missing_left, keep_order)

    def next_cut(self, p):
        unlisted = self.listed.unlisted
        return unlisted[1] if unlisted[0] < p + 1 < unlisted[1] else p + 1

    def update_positions(self, samples, start, n):
        for i in range(start, start + n):
            self.listed.positions[row_of(samples[i])] = i

    def keeps_order(self):
        return False  # to keep it, all zeros would have to be moved
