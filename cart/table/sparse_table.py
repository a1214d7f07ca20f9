"""A sparse training table: of every column the ranks of the values that are not 0.

    column 0 of X   [ 0  3  0  0  -1  0 ]        zero[0] = 1, the rank of 0

    rows            [ 1  4 | column 1 ... ]      column c owns entries entry_start[c]:
    codes           [ 2  0 | ...          ]                            entry_start[c + 1]

A node that looks at a column meets the column's entries, and asks of each row where it stands among
the tree's samples; so a thread keeps `positions` up to date.
"""

from typing import NamedTuple

import numpy as np

from cart.primitives.sort_keys import row_of
from cart.table.distinct_values import Levels, Ties
from cart.table.node_samples import Listed, divide_keys, divide_listed, order_listed, order_node
from cart.table.table import (
    are_tied,
    keep_codes,
    keep_no_subset,
    keep_sides,
    no_categories,
    search_levels,
    top_of_code,
    value_of_code,
    write_no_list,
)


class SparseTable(NamedTuple):
    """Sparse training data as the kernels see it; read-only. See `Table`."""

    entry_start: np.ndarray  # (n_columns + 1,) int64: column c owns entries start[c]:start[c + 1]
    rows: np.ndarray  # (n_entries,) int32: rows of the non-zero values, ascending per column
    codes: np.ndarray  # (n_entries,) uint32: rank among the column's distinct values
    zero: np.ndarray  # (n_columns,) uint32: rank of 0, where the column has zeros
    levels: Levels  # as in Table
    tops: Levels
    level_start: np.ndarray
    ties: Ties
    tie_span: np.ndarray
    columns: np.ndarray
    listed: Listed | None = None  # a thread's own

    def without(self, features):
        """The same table without one feature, or without several."""
        return self._replace(columns=np.delete(self.columns, features))

    def with_room(self, n_samples, n_rows, n_nodes, n_outputs, n_values):
        return self._replace(listed=Listed.create(n_samples, n_rows))

    def begin_tree(self, samples):
        self.listed.positions[:] = -1
        self.listed.positions[samples] = np.arange(len(samples))

    def end_tree(self, nodes):
        pass

    def gather(self, column, samples, start, n, node, may_list):
        """Meet the column's entries and ask which of them lie in the node."""
        zero = self.zero[column]
        lowest = np.uint32(0xFFFFFFFF)
        highest = np.uint32(0)
        n_listed = 0
        for entry in range(self.entry_start[column], self.entry_start[column + 1]):
            i = self.listed.positions[self.rows[entry]] - start
            if 0 <= i < n:
                code = self.codes[entry]
                lowest = min(lowest, code)
                highest = max(highest, code)
                self.listed.at[n_listed] = i
                node.codes[n_listed] = code
                n_listed += 1
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

    value_of = value_of_code
    top_of = top_of_code
    same_value = are_tied
    code_up_to = search_levels

    def next_cut(self, p):
        unlisted = self.listed.unlisted
        return unlisted[1] if unlisted[0] < p + 1 < unlisted[1] else p + 1

    def update_positions(self, samples, start, n):
        for i in range(start, start + n):
            self.listed.positions[row_of(samples[i])] = i

    is_categorical = no_categories
    find_places = keep_codes
    keep_subset = keep_no_subset
    replace_by_sides = keep_sides
    write_list = write_no_list

    def keeps_order(self):
        return False  # to keep it would cost the zeros
