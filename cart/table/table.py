"""The training table: every column as ranks, built once and shared by all trees and threads.

A code is the rank of a value among the distinct values of its column, its levels:

    column 0    X      = [ 0.5  0.1  nan  0.5  2.0 ]
                codes  = [ 1    0    ?    1    2   ]         ? = MISSING
                levels = [ 0.1  0.5  2.0 | column 1 ... ]
                           ^               ^
                           level_start[0]  level_start[1]

Cuts depend on ranks alone; levels are read where a threshold is written, and where two values are
so close that scikit-learn takes them for one.
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
    """Copy the codes of samples[start:start + n] in one column into the `node`.

    Returns the lowest and the highest, and of how many samples the codes were copied: all n, or
    with `may_list` perhaps the few that are not 0 in a sparse table, which the table lists.
    """


@dispatch
def order_codes(table, node, codes, keep_order):
    """Sort the node's keys along the codes gathered."""


@dispatch
def divide_codes(table, node, codes, left_code, missing_left, keep_order):
    """Bring the node's keys into the order left | right; return how many go left."""


@dispatch
def value_of(table, column, code):
    """The value, float64, that a code of a column stands for; of several the smallest."""


@dispatch
def top_of(table, column, code):
    """The largest value, float64, that a code of a column stands for."""


@inline_kernel
def threshold_between(table, column, left_code, right_code):
    """Halfway between the two values beside a cut."""
    low, high = top_of(table, column, left_code), value_of(table, column, right_code)
    threshold = low / 2.0 + high / 2.0
    return threshold if threshold < high else low  # rounded up to it


@dispatch
def same_value(table, column, low, high):
    """Do two codes of a column, low <= high, count as one value?

    They do if no cut between them keeps scikit-learn's distance from the values on either side.
    """


@dispatch
def code_up_to(table, column, lowest, highest, threshold):
    """A code in [lowest, highest) that separates the values up to a threshold from the others.

    The values of `lowest` and `highest` lie on either side of it.
    """


@dispatch
def next_cut(table, p):
    """The next position after `p` to cut ordered samples at; there is none among the unlisted."""


@dispatch
def update_positions(table, samples, start, n):
    """Note that samples[start:start + n] have changed places."""


@dispatch
def keeps_order(table):
    """Do samples keep the order of the features looked at before (see
    `cart.splitting.splitter`)?"""


def has_missing(table):
    """Is any value of a table missing?"""
    return table.codes.dtype == np.uint32 and table.codes.max(initial=0) == MISSING


class Table(NamedTuple):
    """Training data as the kernels see it; read-only.

    A thread's copy (`with_room`) may have room to write to, for one tree after another.
    `columns` says which stored column is feature 0, 1, ...: leaving a feature out is a new
    `columns`, and nothing is copied or sorted again.
    """

    codes: np.ndarray  # (n_columns, n_samples) ranks, or MISSING: uint32, or what `narrow` makes
    levels: Levels  # (n_levels,): distinct values ascending, column after column; see `complete`
    tops: Levels  # `levels` again; of bins (see cart.table.bins) the largest values of each
    level_start: np.ndarray  # (n_columns + 1,) int64: column c owns levels[start[c]:start[c + 1]]
    ties: Ties  # codes whose values count as one
    tie_span: np.ndarray  # (n_columns,) uint32: by how many ranks these differ at most; of bins 0
    columns: np.ndarray  # (n_features,) int64: the column of each feature

    @property
    def is_complete(self):
        """Has it the values of its codes?"""
        return len(self.levels.array) == self.level_start[-1]

    def without(self, features):
        """The same table without one feature, or without several."""
        return self._replace(columns=np.delete(self.columns, features))

    def narrow(self, dtype=np.uint16):
        """The same table with codes of that type, of which the caches hold more, where it is enough
        for them and no value is missing."""
        n_codes = np.diff(self.level_start).max()
        if self.codes.itemsize <= np.dtype(dtype).itemsize:
            return self
        if n_codes > np.iinfo(dtype).max + 1 or self.codes.max() == MISSING:
            return self
        return self._replace(codes=self.codes.astype(dtype))

    def wide(self):
        """The same table with codes of 32 bits."""
        return self._replace(codes=self.codes.astype(np.uint32, copy=False))

    def with_room(self, n_samples, n_rows, n_nodes, n_outputs, n_values):
        """The same table for a thread that grows trees on up to `n_samples` of its rows."""
        return self

    def begin_tree(self, samples):
        """Prepare to grow a tree on these rows."""

    def end_tree(self, nodes):
        """What the nodes do not say of the tree that was grown: its Categories, or None."""

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

    # Without categories; the protocol is that of `cart.splitting.category_subsets`.
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
