"""A sparse training table: the ranks of the values that are not 0, column by column.

    column 0 of X   [ 0  3  0  0  -1  0 ]        zero[0] = 1, the rank of 0

    rows            [ 4  1 | column 1 ... ]      column c owns entries entry_start[c]:
    codes           [ 0  2 | ...          ]                            entry_start[c + 1],
                                                 in the order of their codes
To gather a column in a node, all entries of the column are read, and those kept whose row is in the
node, so that nothing is sorted; each thread keeps the `positions` of the rows in the tree's samples
up to date. In a small node the entries of its rows are listed by column once, as chains in the
order of the samples:

    entry           0  1  2  3  4           of the last sample, of the one before, ...
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
from cart.table.node_samples import (
    Listed,
    divide_keys,
    divide_listed,
    known_range,
    order_listed,
    order_node,
)
from cart.table.table import Table


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
    """The entries of a small node, listed by column."""

    head: np.ndarray  # (n_columns,) int64: the first entry of a column, valid for node of[column]
    of: np.ndarray  # (n_columns,) int64: the number of the node that the head belongs to
    following: np.ndarray  # (capacity,) int64: the next entry of the same column, or -1
    at: np.ndarray  # (capacity,) int64: position of the sample in the node
    codes: np.ndarray  # (capacity,) uint32
    node: np.ndarray  # (4,) int64: the node's first sample, size, number, and 1 if it is listed

    @classmethod
    def create(cls, n_columns, n_entries):
        """Room for the entries of sqrt(n_columns) / 2 columns of mean density: half as many columns
        as a node of a usual forest looks at."""
        capacity = int(math.sqrt(n_columns) / 2 * n_entries / n_columns)
        integers = [np.zeros(n, np.int64) for n in (n_columns, n_columns, capacity, capacity)]
        return cls(*integers, np.empty(capacity, np.uint32), np.zeros(4, np.int64))


@kernel
def list_node(lists, by_row, samples, start, n, shift):
    """List the node's entries, unless done before or too many; return whether they are listed.

    The row of a sample is its low 32 bits, shifted right by `shift`.
    """
    node, capacity = lists.node, lists.at.shape[0]
    if node[0] == start and node[1] == n:
        return node[3] == 1
    node[0], node[1], node[2], node[3] = start, n, node[2] + 1, 0
    if n > capacity:
        return False
    entry = 0
    for i in range(n - 1, -1, -1):
        row = np.uint32(samples[start + i]) >> shift
        first, end = by_row.start[row], by_row.start[row + 1]
        if entry + end - first > capacity:
            return False
        for k in range(first, end):
            column = by_row.columns[k]
            lists.following[entry] = lists.head[column] if lists.of[column] == node[2] else -1
            lists.of[column], lists.head[column] = node[2], entry
            lists.at[entry], lists.codes[entry] = i, by_row.codes[k]
            entry += 1
    node[3] = 1
    return True


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
    """The first entry of a column in the listed node, or -1."""
    return lists.head[column] if lists.of[column] == lists.node[2] else np.int64(-1)


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
        is_listed = table.codes != unlisted[:, np.newaxis]
        rows = np.nonzero(is_listed)[1].astype(np.int32)
        codes = table.codes[is_listed].astype(np.uint32)
        start = np.append(0, np.cumsum(np.count_nonzero(is_listed, axis=1)))
        shape = table.codes.shape[::-1]
        return cls.create(shape, start, rows, codes, unlisted.astype(np.uint32), table[1:])

    def with_room(self, n_samples, n_rows, n_nodes, n_outputs, n_values):
        lists = NodeLists.create(len(self.zero), len(self.rows))
        return self._replace(listed=Listed.create(n_samples, n_rows), lists=lists)

    def begin_tree(self, samples):
        self.lists.node[:2] = -1
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
                listed.at[n_listed], node.codes[n_listed] = lists.at[entry], lists.codes[entry]
                n_listed += 1
                entry = lists.following[entry]
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
