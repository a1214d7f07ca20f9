"""The training table: all columns as ranks, built once and shared by all trees and threads.

A code is the rank of a value among the distinct values of its column, its levels:

    column 0    X      = [ 0.5  0.1  nan  0.5  2.0 ]
                codes  = [ 1    0    ?    1    2   ]         ? = MISSING
                levels = [ 0.1  0.5  2.0 | column 1 ... ]
                           ^               ^
                           level_start[0]  level_start[1]

Cuts depend on ranks only. Levels are read to write a threshold; whether two values are so close
that scikit-learn treats them as equal is noted in `ties`.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel
from cart.primitives.sort_keys import row_of
from cart.table.distinct_values import Levels, Ties, last_tied, level_at
from cart.table.node_samples import divide_keys, order_node
from cart.table.ranking import MISSING


@dispatch
def gather(table, column, samples, start, n, node, may_list):
    """Copy the codes of samples[start:start + n] in one column to the `node`.

    Returns the lowest code, the highest, and the number of samples whose codes were copied: all n,
    or with `may_list` perhaps only the few that are not 0 in a sparse table, which it lists.
    """


@dispatch
def order_codes(table, node, codes, keep_order):
    """Sort the node's keys by the codes gathered."""


@dispatch
def divide_codes(table, node, codes, left_code, missing_left, keep_order):
    """Divide the node's keys left | right; return how many go left."""


@dispatch
def value_of(table, column, code):
    """The value, float64, that a code of a column stands for; the smallest if there are several."""


@dispatch
def top_of(table, column, code):
    """The largest value, float64, that a code of a column stands for."""


@inline_kernel
def threshold_between(table, column, left_code, right_code):
    """The threshold halfway between the two values beside a cut."""
    low, high = top_of(table, column, left_code), value_of(table, column, right_code)
    threshold = low / 2.0 + high / 2.0
    return threshold if threshold < high else low  # if it was rounded up to `high`


@dispatch
def same_value(table, column, low, high):
    """Whether two codes of a column, low <= high, count as one value.

    They do if their values are so close that scikit-learn would not cut between them.
    """


@dispatch
def code_up_to(table, column, lowest, highest, threshold):
    """Find a code in [lowest, highest) that separates values up to a threshold from the others.

    The threshold lies between the values of `lowest` and `highest`.
    """


@dispatch
def next_cut(table, p):
    """The next position after `p` to cut the ordered samples at; unlisted samples are skipped."""


@dispatch
def update_positions(table, samples, start, n):
    """Update the table's record of positions after samples[start:start + n] changed places."""


@dispatch
def keeps_order(table):
    """Whether samples keep the order of the feature searched before, if sums depend on it (see
    `cart.splitting.splitter`)."""


def has_missing(table):
    """Whether any value of a table is missing."""
    return table.codes.dtype == np.uint32 and table.codes.max(initial=0) == MISSING


class Table(NamedTuple):
    """Training data as kernels see them; read-only.

    A thread's copy (`with_room`) may have room to write to, for one tree after another. `columns`
    says which stored column is feature 0, 1, ...: to leave out a feature takes a new `columns`
    only, and nothing is copied or sorted again.
    """

    codes: np.ndarray  # (n_columns, n_samples) ranks, or MISSING: uint32, or what `narrow` makes
    levels: Levels  # (n_levels,): distinct values ascending, column after column; see `complete`
    tops: Levels  # the same as `levels`; with bins (see cart.table.bins) the largest value of each
    level_start: np.ndarray  # (n_columns + 1,) int64: column c owns levels[start[c]:start[c + 1]]
    ties: Ties  # codes whose values count as one
    tie_span: np.ndarray  # (n_columns,) uint32: their largest distance in ranks; 0 for bins
    columns: np.ndarray  # (n_features,) int64: the column of each feature

    @property
    def is_complete(self):
        """Whether the table has the values of its codes."""
        return len(self.levels.array) == self.level_start[-1]

    def n_levels(self):
        """How many levels each column has, (n_columns,) int64."""
        return self.level_start[1:] - self.level_start[:-1]  # np.diff takes eight times as long

    def without(self, features):
        """Return the table without one or several features."""
        return self._replace(columns=np.delete(self.columns, features))

    def narrow(self, dtype=np.uint16):
        """Return the table with narrower codes, of which the caches hold more; the table itself if
        the dtype is not narrower, or too narrow, or a value is missing."""
        n_codes = self.n_levels().max()
        if self.codes.itemsize <= np.dtype(dtype).itemsize:
            return self
        if n_codes > np.iinfo(dtype).max + 1 or self.codes.max() == MISSING:
            return self
        return self._replace(codes=self.codes.astype(dtype))

    def wide(self):
        """Return the table with codes of 32 bits."""
        return self._replace(codes=self.codes.astype(np.uint32, copy=False))

    def with_room(self, n_samples, n_rows, n_nodes, n_outputs, n_values):
        """Return the table for a thread that grows trees on up to `n_samples` of its rows."""
        return self

    def begin_tree(self, samples):
        """Prepare to grow a tree on these rows."""

    def end_tree(self, nodes):
        """Return what `nodes` does not hold of the tree just grown: its Categories, or None."""

    def gather(self, column, samples, start, n, node, may_list):
        codes = self.codes[column]
        lowest = codes[row_of(samples[start])]
        highest = lowest
        for i in range(n):
            code = codes[row_of(samples[start + i])]
            node.codes[i] = code
            lowest = min(lowest, code)
            highest = max(highest, code)
        return lowest, highest, n

    def order_codes(self, node, codes, keep_order):
        order_node(node, codes, self.tie_span[codes.column] + np.uint32(1), keep_order)

    def divide_codes(self, node, codes, left_code, missing_left, keep_order):
        return divide_keys(node, codes.n, left_code, missing_left, keep_order)

    def value_of(self, column, code):
        return level_at(self.levels, self.level_start[column] + code)

    def top_of(self, column, code):
        return level_at(self.tops, self.level_start[column] + code)

    def same_value(self, column, low, high):
        if low == high:
            return True
        if high - low > self.tie_span[column]:
            return False
        return np.int64(high) <= last_tied(self.ties, column, low)

    def code_up_to(self, column, lowest, highest, threshold):
        first = self.level_start[column]
        low = np.int64(lowest)
        high = np.int64(highest)
        while high - low > 1:
            middle = (low + high) // 2
            if level_at(self.levels, first + middle) <= threshold:
                low = middle
            else:
                high = middle
        return low

    def next_cut(self, p):
        return p + 1

    def update_positions(self, samples, start, n):
        pass

    # The protocol of `cart.splitting.category_subsets`, for a table without categories.
    def is_categorical(self, column):
        return False

    def find_places(self, context, codes):
        return codes, 0

    def keep_subset(self, n_present, left_place):
        pass

    def list_subset(self, n_present, listed):
        return 0

    def replace_by_sides(self, codes, n, column):
        pass

    def draw_places(self, column, codes, draw, feature):
        return np.int64(0)

    def write_list(self, i, column):
        pass

    def keeps_order(self):
        return True
