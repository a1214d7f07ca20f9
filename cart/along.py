"""The rows of a tree, ready to be brought into the order of a feature in every node.

`Lists` are sorted once, along every feature, and divided with the nodes: for trees whose nodes
look at most features. `Sorter` sorts a node's rows along each feature that is looked at. Rows of
equal codes stand in the order of the table.

Either holds the rows of a node side by side, from `start` on, in an order of its own.
"""

from typing import NamedTuple

import numpy as np

from cart.jit import dispatch, entry_kernel, inline_kernel
from cart.order import N_COUNTS, sort_by_radix
from cart.radix import N_DIGITS, ROOM, n_bits_of, sort_short_keys


class Along(NamedTuple):
    """A node's rows along the feature at hand."""

    codes: np.ndarray  # (n,) uint32, ascending
    rows: np.ndarray  # (n,) uint32

    @classmethod
    def create(cls, n):
        return cls(np.empty(n, np.uint32), np.empty(n, np.uint32))


# ---------------------------------------------------------------------------- the protocol


@dispatch
def begin_tree(rows, table, in_bag, n, is_in_bag):
    """Take up the rows in_bag[:n] of a tree, ascending; `is_in_bag` says of every row whether."""
    rows.begin_tree(table, in_bag, n, is_in_bag)


@dispatch
def code_range(rows, table, column, start, n):
    """The lowest and the highest code of a feature in the node."""
    return rows.code_range(table, column, start, n)


@dispatch
def bring_along(rows, along, column, start, n, lowest, highest):
    """Bring the node's rows into the order of the feature whose range was asked for last."""
    rows.bring_along(along, column, start, n, lowest, highest)


@dispatch
def mark_left(rows, table, column, left_code, start, n, is_left):
    """Mark the node's rows in `is_left`: codes up to `left_code` go left."""
    rows.mark_left(table, column, left_code, start, n, is_left)


@dispatch
def divide_rows(rows, table, column, start, n, is_left):
    """Divide the node's rows as `mark_left` has marked them along that column."""
    rows.divide_rows(table, column, start, n, is_left)


# ----------------------------------------------------------------------------------- lists


class Lists(NamedTuple):
    """The rows of the tree along every feature, sorted once and divided with the nodes."""

    sorted_rows: np.ndarray  # (n_columns, n_rows) uint32: of the table
    entries: np.ndarray  # (n_columns, n_rows) uint64: code above row
    spare: np.ndarray  # (n_rows,) uint64

    @classmethod
    def create(cls, table):
        shape = table.codes.shape
        lists = cls(
            np.empty(shape, np.uint32), np.empty(shape, np.uint64), np.empty(shape[1], np.uint64)
        )
        counts = np.empty(N_COUNTS, np.int64)
        _sort_rows(table.codes, lists.sorted_rows, lists.entries[0], lists.spare, counts)
        return lists

    def begin_tree(self, table, in_bag, n, is_in_bag):
        for feature in range(table.columns.shape[0]):
            column = table.columns[feature]
            sorted_rows = self.sorted_rows[column]
            codes = table.codes[column]
            entries = self.entries[column]
            at = 0
            for i in range(sorted_rows.shape[0]):
                row = sorted_rows[i]
                entries[at] = np.uint64(codes[row]) << np.uint64(32) | np.uint64(row)
                at += is_in_bag[row]

    def code_range(self, table, column, start, n):
        entries = self.entries[column]
        lowest = np.uint32(entries[start] >> np.uint64(32))
        return lowest, np.uint32(entries[start + n - 1] >> np.uint64(32))

    def bring_along(self, along, column, start, n, lowest, highest):
        entries = self.entries[column, start : start + n]
        for i in range(n):
            along.codes[i] = np.uint32(entries[i] >> np.uint64(32))
            along.rows[i] = np.uint32(entries[i])

    def mark_left(self, table, column, left_code, start, n, is_left):
        entries = self.entries[column]
        for i in range(start, start + n):
            is_left[np.uint32(entries[i])] = np.uint32(entries[i] >> np.uint64(32)) <= left_code

    def divide_rows(self, table, column, start, n, is_left):
        for feature in range(table.columns.shape[0]):
            if table.columns[feature] != column:  # which is divided already
                _divide_list(self.entries[table.columns[feature]], self.spare, is_left, start, n)


@inline_kernel
def _divide_list(entries, spare, is_left, start, n):
    n_left = 0
    n_right = 0
    for i in range(start, start + n):
        entry = entries[i]
        left = np.int64(is_left[np.uint32(entry)])
        entries[start + n_left] = entry
        spare[n_right] = entry
        n_left += left
        n_right += 1 - left
    for i in range(n_right):
        entries[start + n_left + i] = spare[i]


@entry_kernel
def _sort_rows(codes, sorted_rows, keys, spare, counts):
    n = codes.shape[1]
    for column in range(codes.shape[0]):
        highest = np.uint32(0)
        for i in range(n):
            highest = max(highest, codes[column, i])
            keys[i] = np.uint64(codes[column, i]) << np.uint64(32) | np.uint64(i)
        sort_by_radix(keys, n, n_bits_of(highest), counts, spare)
        for i in range(n):
            sorted_rows[column, i] = np.uint32(keys[i])


# ---------------------------------------------------------------------------------- sorter


class Sorter(NamedTuple):
    """The node's rows in the order of the table, sorted along each feature looked at."""

    rows: np.ndarray  # (n_rows,) uint32, ascending in a node
    spare_rows: np.ndarray  # (n_rows,) uint32
    codes: np.ndarray  # (n_rows,) uint32: of the feature at hand
    keys: np.ndarray  # (n_rows + ROOM,) uint32
    spare_keys: np.ndarray  # (n_rows + ROOM,) uint32
    digits: np.ndarray  # (N_DIGITS,) int32
    wide_keys: np.ndarray  # (n_rows,) uint64: where 32 bits are too few
    spare_wide_keys: np.ndarray  # (n_rows,) uint64
    counts: np.ndarray  # (N_COUNTS,) int64

    @classmethod
    def create(cls, table):
        n = table.codes.shape[1]
        return cls(
            *(np.empty(n, np.uint32) for _ in range(3)),
            np.empty(n + ROOM, np.uint32),
            np.empty(n + ROOM, np.uint32),
            np.empty(N_DIGITS, np.int32),
            np.empty(n, np.uint64),
            np.empty(n, np.uint64),
            np.empty(N_COUNTS, np.int64),
        )

    def begin_tree(self, table, in_bag, n, is_in_bag):
        for i in range(n):
            self.rows[i] = in_bag[i]

    def code_range(self, table, column, start, n):
        codes = table.codes[column]
        lowest = np.uint32(0xFFFFFFFF)
        highest = np.uint32(0)
        for i in range(n):
            code = codes[self.rows[start + i]]
            lowest = min(lowest, code)
            highest = max(highest, code)
            self.codes[i] = code
        return lowest, highest

    def bring_along(self, along, column, start, n, lowest, highest):
        top = highest - lowest
        place_bits = np.uint32(n_bits_of(np.uint32(n - 1)))
        if n_bits_of(top) + place_bits < 32:
            for i in range(n):
                self.keys[i] = (self.codes[i] - lowest) << place_bits | np.uint32(i)
            keys = self.keys
            if sort_short_keys(
                keys, n, place_bits, np.uint32(0), top, self.spare_keys, self.digits
            ):
                keys = self.spare_keys
            mask = (np.uint32(1) << place_bits) - np.uint32(1)
            for i in range(n):
                along.codes[i] = (keys[i] >> place_bits) + lowest
                along.rows[i] = self.rows[start + np.int64(keys[i] & mask)]
            return
        for i in range(n):
            code = np.uint64(self.codes[i] - lowest)
            self.wide_keys[i] = code << np.uint64(32) | np.uint64(self.rows[start + i])
        sort_by_radix(self.wide_keys, n, n_bits_of(top), self.counts, self.spare_wide_keys)
        for i in range(n):
            along.codes[i] = np.uint32(self.wide_keys[i] >> np.uint64(32)) + lowest
            along.rows[i] = np.uint32(self.wide_keys[i])

    def mark_left(self, table, column, left_code, start, n, is_left):
        codes = table.codes[column]
        for i in range(start, start + n):
            is_left[self.rows[i]] = codes[self.rows[i]] <= left_code

    def divide_rows(self, table, column, start, n, is_left):
        n_left = 0
        n_right = 0
        for i in range(start, start + n):
            row = self.rows[i]
            left = np.int64(is_left[row])
            self.rows[start + n_left] = row
            self.spare_rows[n_right] = row
            n_left += left
            n_right += 1 - left
        for i in range(n_right):
            self.rows[start + n_left + i] = self.spare_rows[i]
