"""Sorted rows of a node along each feature that it looks at: presorted, or sorted on demand.

Along a feature a row is an entry: its code above its number, 32 bits each. Rows with equal codes
are in the order of the table. Both classes keep a node's entries side by side in an array
`entries`, and tell where they begin.

`PresortedRows` (`cart.fast_paths.regression.presorted_rows`), for trees whose nodes look at many
features, sorts the rows once along every feature. A node's entries are then partitioned, in their
order, into those of its children. `RowsSortedOnDemand` partitions only the rows, in the order of
the table, and sorts a node's rows along each feature that it looks at; where most rows have one
value, it picks the others from a list (`cart.fast_paths.column_lists`). Many indicators
need no order: `cart.fast_paths.indicators.rows_with_bits` has bits of rows beside either class.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, also_left, range_of
from cart.fast_paths.column_lists import (
    ColumnLists,
    begin_lists,
    is_list_short,
    note_places,
    pick_rows,
)
from cart.fast_paths.regression.node_sums import divide_stably, partition_rows
from cart.fast_paths.regression.small_nodes.node import (
    enter_small_node,
    restore_rows,
)
from cart.fast_paths.regression.small_nodes.rows_on_demand import has_ties
from cart.jit.decorators import dispatch, inline_kernel, kernel, like
from cart.primitives.gather import expect, take
from cart.primitives.radix_sort import N_DIGITS, ROOM, n_bits_of, sort_short_keys
from cart.primitives.sort_keys import CODE_SHIFT, N_COUNTS, sort_by_radix
from cart.table.frequent_codes import find_unlisted_codes
from cart.table.ranking import MISSING
from cart.table.table import keeps_order

N_PLACES = 8  # features whose entries can be held in order at the same time
# On demand, a column's rows with its most frequent value are not listed if it looks as if at most
# this share of its rows had another one.
_OTHERS_MAX = 1 / 4
PADDING = 16  # items behind each feature's entries, so that features do not share cache sets


class RowOrder(NamedTuple):
    """The order in which scikit-learn leaves a node's samples: that of entries, of which those of
    missing values, the last ones, come before the others."""

    first: int  # where the entries begin; -1: the samples have this order
    column: int
    n_before: int  # how many values are missing


@inline_kernel
def no_order():
    return RowOrder(np.int64(-1), np.int64(0), np.int64(0))


@inline_kernel
def place_in(order, i, n):
    """Where the entry of the i-th of n samples is."""
    place = i - order.n_before
    return order.first + (place if place >= 0 else place + n)


@inline_kernel
def row_at(entries, i):
    return np.uint32(entries[i])


@inline_kernel
def code_at(entries, i):
    return np.uint32(entries[i] >> CODE_SHIFT)


# ---------------------------------------------------------------------------- the protocol


@dispatch
def begin_tree(rows, table, in_bag, n, is_in_bag):
    """Begin a tree with the rows in_bag[:n], ascending; `is_in_bag` says which rows these are."""


@dispatch
def has_list(rows, column):
    """Are rows brought into the order of a column? If not, it is an indicator, see `ones_of`."""


@dispatch
def begin_node(rows, node):
    """Prepare the search of a node."""


@dispatch
def ones_of(rows, column):
    """Number, weight and sum of targets of the node's rows with a 1 along an indicator."""


@dispatch
def sum_zeros(rows, column, node):
    """Weight and sum of targets of the node's rows with a 0 along an indicator, added up as in
    scikit-learn."""


@dispatch
def expect_feature(rows, table, column, node):
    """Prefetch what `load_feature` will read of a column."""


@dispatch
def load_feature(rows, table, column, place, node):
    """Bring the node's rows into the order of a feature, in a free `place` below N_PLACES.

    Returns where in `rows.entries` they begin, and the lowest and the highest code. If these are
    equal, the place stays free. A lowest above the highest forbids any cut of the feature here.
    """


@dispatch
def unlisted_code(rows, column, n):
    """The code whose rows are not listed in a column's entries, in a node of n rows; MISSING if all
    rows are."""


@dispatch
def list_all(rows, table, column, first, node):
    """List all of the node's rows along a column; return where their entries begin, given where
    those of the listed rows do. They stay until the node is divided."""


@dispatch
def room_for(rows, column, place, node):
    """Where in `rows.entries` the node's entries may be written in another order, to stay until the
    node is divided. The next `place` has to be free, too."""


@dispatch
def mark_left(rows, table, cut, node, is_left):
    """Mark in `is_left` which of the node's rows go left at a cut; return how many do."""


@dispatch
def divide_rows(rows, table, features, node, cut, n_left, is_left):
    """Divide the node's rows at a cut, as marked by `mark_left`. The children may look only at
    `features`."""


@dispatch
def divide_feature(rows, column, start, n, depth, n_left, is_left):
    """Divide the node's rows along one feature, as marked by `mark_left`."""


@dispatch
def note_split(rows, table, this, node, cut, n_left):
    """Keep what the split of node `this` consists of besides its Cut: a subset of categories."""


@dispatch
def is_presorted(rows):
    """Are a node's entries along all features available at the same time?"""


@dispatch
def has_all_entries(rows):
    """Are entries along all features divided with the nodes, by `divide_feature`?"""


@dispatch
def hand_to_small_node(rows, small, table, features, samples, targets, node):
    """Hand the node's rows over to `small`, along the features that its subtree may look at.

    Replaces the node's samples by their numbers there. Returns False, with the samples unchanged,
    if that is impossible.
    """


# ------------------------------------------------------------------ rows that are not listed


@inline_kernel
def n_listed_of(entries, first, n, unlisted):
    """How many rows of a node of n rows are listed, if the rows with the code `unlisted` need not
    be (MISSING if all are)."""
    last = first + n - 1
    is_noted = unlisted != MISSING and code_at(entries, last) == MISSING
    return np.int64(row_at(entries, last)) if is_noted else np.int64(n)


@inline_kernel
def note_listed(entries, n_listed, n):
    """Write how many of the n rows are listed, behind them."""
    if n_listed < n:
        entries[n - 1] = np.uint64(MISSING) << CODE_SHIFT | np.uint64(n_listed)


@kernel
def list_rows(entries, codes, code, rows, n_listed, first, to):
    """Write entries of all the `rows` of a node, whose list begins at `first`, from `to` on."""
    n_below, behind = n_listed, to + rows.shape[0]
    while n_below > 0 and code_at(entries, first + n_below - 1) > code:
        n_below -= 1
        behind -= 1
        entries[behind] = entries[first + n_below]
    for i in range(n_below):
        entries[to + i] = entries[first + i]
    at, kept = to + n_below, entries[behind]  # no branch: which rows are listed is unpredictable
    for i in range(rows.shape[0]):
        entries[at] = np.uint64(code) << CODE_SHIFT | np.uint64(rows[i])
        at += codes[rows[i]] == code
    entries[behind] = kept


# ----------------------------------------------------------------------- sorted on demand


class AllListed(NamedTuple):
    """Rows that have a list along every column."""

    name: int = 0  # numba wants a field

    def has_list(self, column):
        return True

    def begin_node(self, node):
        pass

    def ones_of(self, column):
        return np.int64(0), 0.0, 0.0

    def sum_zeros(self, column, node):
        return 0.0, 0.0


@like(AllListed)
class RowsSortedOnDemand(NamedTuple):
    """The rows of nodes in the order of the table, sorted along each feature looked at."""

    rows: np.ndarray  # (n_rows,) uint32, ascending in a node
    spare_rows: np.ndarray  # (n_rows,) uint32
    codes: np.ndarray  # (n_rows,) uint32: of the current feature
    entries: np.ndarray  # (N_PLACES * stride,) uint64
    stride: int
    spare_entries: np.ndarray  # (n_rows,) uint64
    counts: np.ndarray  # (N_COUNTS,) int64
    keys: np.ndarray  # (n_rows + ROOM,) uint32: code above place, where 32 bits are enough
    spare_keys: np.ndarray  # (n_rows + ROOM,) uint32
    digits: np.ndarray  # (N_DIGITS,) int32
    unlisted: np.ndarray  # (n_columns,) uint32: the code whose rows need not be listed, or MISSING
    lists: ColumnLists  # of the rows with other codes

    @classmethod
    def create(cls, table, lists_all=True):
        """Unless `lists_all`, rows with the value that most rows of a column seem to have are not
        listed, where most rows of the node have it."""
        n = table.codes.shape[1]
        unlisted = np.full(len(table.codes), MISSING, np.uint32)
        if not lists_all:
            unlisted = find_unlisted_codes(table, _OTHERS_MAX)
        return cls(
            *(np.empty(n, np.uint32) for _ in range(3)),
            np.empty(N_PLACES * (n + PADDING), np.uint64), n + PADDING, np.empty(n, np.uint64),
            np.empty(N_COUNTS, np.int64), *(np.empty(n + ROOM, np.uint32) for _ in range(2)),
            np.empty(N_DIGITS, np.int32), unlisted, ColumnLists.create(table, unlisted),
        )  # fmt: skip

    def begin_tree(self, table, in_bag, n, is_in_bag):
        for i in range(n):
            self.rows[i] = in_bag[i]
        begin_lists(self.lists, self.rows, n)

    def expect_feature(self, table, column, node):
        if not is_list_short(self.lists, column, node.n):
            expect(table.codes[column], self.rows[node.start : node.end], np.uint32(0))

    def load_feature(self, table, column, place, node):
        n, rows, codes = node.n, self.rows[node.start : node.end], self.codes
        unlisted, first = self.unlisted[column], place * self.stride
        entries = self.entries[first : first + n]
        if is_list_short(self.lists, column, n):
            n_listed = pick_rows(self.lists, column, node, entries)
            if n_listed == 0:
                return first, unlisted, unlisted
            if 2 * n_listed < n:
                note_listed(entries, n_listed, n)
                low, high = code_at(entries, 0), code_at(entries, n_listed - 1)
                return first, min(low, unlisted), max(high, unlisted)
        take(table.codes[column], rows, codes)
        lowest, highest = range_of(codes, n)
        if lowest == highest:
            return first, lowest, highest
        low, high = lowest, highest
        if unlisted != MISSING:
            n_listed = _pack_others(self, rows, unlisted)
            if 2 * n_listed < n:
                rows, codes = self.spare_rows[:n_listed], self.keys
                low, high = range_of(codes, n_listed)
                note_listed(entries, n_listed, n)
        _sort_entries(self, entries, rows, codes, low, high)
        return first, lowest, highest

    def unlisted_code(self, column, n):
        return self.unlisted[column]

    def list_all(self, table, column, first, node):
        rows, code = self.rows[node.start : node.end], self.unlisted[column]
        n_listed = n_listed_of(self.entries, first, node.n, code)
        if n_listed < node.n:
            list_rows(self.entries, table.codes[column], code, rows, n_listed, first, first)
        return first

    def room_for(self, column, place, node):
        return (place + 1) * self.stride

    def mark_left(self, table, cut, node, is_left):
        codes, other = table.codes[table.columns[cut.feature]], also_left(cut)
        n_left = 0
        for i in range(node.start, node.end):
            code = codes[self.rows[i]]
            goes_left = (code <= cut.left_code) | (code == other)
            is_left[self.rows[i]] = goes_left
            n_left += goes_left
        return n_left

    def divide_rows(self, table, features, node, cut, n_left, is_left):
        column = table.columns[cut.feature]
        if column < table.codes.shape[0]:
            codes = table.codes[column]
            partition_rows(self.rows, self.spare_rows, codes, cut, node.start, node.n)
        else:  # an indicator
            divide_stably(self.rows, node.start, node.end, is_left, self.spare_rows)
        note_places(self.lists, self.rows, node.start, node.end)

    def divide_feature(self, column, start, n, depth, n_left, is_left):
        pass

    def note_split(self, table, this, node, cut, n_left):
        pass

    def is_presorted(self):
        return False

    has_all_entries = is_presorted

    def hand_to_small_node(self, small, table, features, samples, targets, node):
        start, n, mean = node.start, node.n, node.total / node.weight
        if not enter_small_node(small, samples, start, n, targets, mean):
            return False
        if has_ties(small, table, n):
            restore_rows(small, samples, start, n)  # where a cut lies depends on the node
            return False
        return True


@inline_kernel
def _pack_others(self, rows, frequent):
    """Write the rows with another code than the frequent one to `spare_rows`, and their codes to
    `keys`; return how many there are."""
    n = np.int64(0)
    for i in range(rows.shape[0]):  # no branch: which rows are packed is unpredictable
        code = self.codes[i]
        self.keys[n], self.spare_rows[n] = code, rows[i]
        n += code != frequent
    return n


@inline_kernel
def _sort_entries(self, entries, rows, codes, lowest, highest):
    """Sort rows by their codes, which may be in `self.keys`, into `entries`."""
    n, top = rows.shape[0], highest - lowest
    place_bits = np.uint32(n_bits_of(np.uint32(n - 1)))
    if n_bits_of(top) + place_bits >= 32:
        for i in range(n):
            row = np.uint64(rows[i])
            entries[i] = np.uint64(codes[i]) << CODE_SHIFT | row
        sort_by_radix(entries, n, n_bits_of(highest), self.counts, self.spare_entries)
        return
    keys = self.keys
    for i in range(n):
        keys[i] = (codes[i] - lowest) << place_bits | np.uint32(i)
    if sort_short_keys(keys, n, place_bits, np.uint32(0), top, self.spare_keys, self.digits):
        keys = self.spare_keys
    mask = (np.uint32(1) << place_bits) - np.uint32(1)
    for i in range(n):
        row = np.uint64(rows[np.int64(keys[i] & mask)])
        code = np.uint64((keys[i] >> place_bits) + lowest)
        entries[i] = code << CODE_SHIFT | row


# ------------------------------------------------------------------------- missing values


@inline_kernel
def list_order(rows, table, order, node):
    """The same order once all rows are listed along its column; see `list_all`."""
    if order.first < 0:
        return order
    first = list_all(rows, table, order.column, order.first, node)
    return RowOrder(first, order.column, order.n_before)


@inline_kernel
def count_known(entries, first, n):
    """How many of a node's entries, of which the last is missing, are known."""
    while code_at(entries, first + n - 1) == MISSING:
        n -= 1
    return n


@kernel
def order_missing(scratch, table, swap, node, at, n_known, order):
    """Bring the entries of missing values, behind the known ones, into scikit-learn's order.

    scikit-learn takes the samples in the order of the feature before, and exchanges missing values
    with known ones from the end.
    """
    if not keeps_order(table):
        return
    entries, is_missing, n, end = scratch.rows.entries, scratch.is_missing, node.n, at + node.n
    for i in range(at + n_known, end):
        is_missing[row_at(entries, i)] = 1
    before = entries
    if order.first < 0:
        before, order = scratch.order, RowOrder(np.int64(0), np.int64(0), np.int64(0))
        for i in range(n):
            before[i] = scratch.samples[node.start + i]
    coming, n_coming, in_front = swap.coming, np.int64(0), min(order.n_before, n_known)
    for begin, size in ((np.int64(0), in_front), (in_front, n_known - in_front)):
        first = place_in(order, begin, n)
        for i in range(first, first + size):  # no branch: who is missing is unpredictable
            coming[n_coming] = row_at(before, i)
            n_coming += np.int64(is_missing[row_at(before, i)])
    n_coming = np.int64(0)
    for i in range(n - 1, n_known - 1, -1):
        row = row_at(before, place_in(order, i, n))
        stays = np.int64(is_missing[row])
        row = row if stays else coming[n_coming]
        n_coming += 1 - stays
        entries[at + i] = np.uint64(MISSING) << CODE_SHIFT | np.uint64(row)
    for i in range(at + n_known, end):
        is_missing[row_at(entries, i)] = 0


@kernel
def list_turned(entries, drawn, n_drawn, n):
    """List the drawn features with missing values a second time, with these in front, for which
    entries are copied; return how many features are drawn now."""
    at = n_drawn
    for k in range(n_drawn):
        at += 1 < drawn.n_known[k] < n
    n_listed = at
    for k in range(n_drawn - 1, -1, -1):
        n_known, first, turned = drawn.n_known[k], drawn.first[k], drawn.turned[k]
        if 1 < n_known < n:
            at -= 1
            _copy_drawn(drawn, k, at)
            drawn.first[at], drawn.missing[at] = turned, MISSING_LEFT
            for i in range(n - n_known):
                entries[turned + i] = entries[first + n_known + i]
            for i in range(n_known):
                entries[turned + n - n_known + i] = entries[first + i]
        at -= 1
        _copy_drawn(drawn, k, at)
    return n_listed


@inline_kernel
def _copy_drawn(drawn, k, to):
    """Write what is known of the k-th drawn feature to another place of the list."""
    drawn.feature[to], drawn.column[to], drawn.first[to] = (
        drawn.feature[k], drawn.column[k], drawn.first[k],
    )  # fmt: skip
    drawn.n_known[to], drawn.missing[to] = drawn.n_known[k], drawn.missing[k]
    drawn.direction[to], drawn.unlisted[to] = drawn.direction[k], drawn.unlisted[k]
