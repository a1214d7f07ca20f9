"""Presorted rows: sorted once along every feature, and partitioned with the nodes.

Nodes of even depth have their entries in the first half of the array; nodes of odd depth, in the
second:

    depth 0   feature 0 [ 3l 5r 8l 9r ]    feature 1 [ 1r 2l 6r 7l ]     l, r: the row goes left,
    depth 1   feature 0 [ 3l 8l | 5r 9r ]  feature 1 [ 2l 7l | 1r 6r ]         or right

Of indicators and counts most values are equal. The rows with the most frequent value of such a
column are not listed, except in nodes of few rows:

    all rows   [ 4 8 | 1 2 3 5 6 9 | 7 ]     below, at and above the most frequent value
    listed     [ 4 8 7 . . . . . 3 ]         the last item is how many are listed, if not all are

To list all of them again, where they are needed in order, the node's rows are kept in the order of
the table, too.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import also_left
from cart.fast_paths.regression.node_sums import divide_stably
from cart.fast_paths.regression.small_nodes.node import (
    MISSING_RANK,
    SMALL_NODE_MAX,
    enter_small_node,
    restore_rows,
)
from cart.fast_paths.regression.small_nodes.ranked_rows import write_word
from cart.fast_paths.regression.small_nodes.rows_on_demand import SmallNodeOnDemand
from cart.fast_paths.regression.sorted_rows import (
    PADDING,
    AllListed,
    code_at,
    divide_feature,
    list_all,
    list_rows,
    n_listed_of,
    note_listed,
    row_at,
    unlisted_code,
)
from cart.jit.decorators import entry_kernel, inline_kernel, kernel, like
from cart.primitives.sort_keys import CODE_SHIFT
from cart.splitting.criteria import SquaredError
from cart.table.frequent_codes import is_mostly_equal
from cart.table.ranking import MISSING
from cart.table.table import Table, same_value

_MARK = np.uint32(1 << 31)
# Nodes of fewer rows list them all. Most small nodes, which rank all their rows, are among them.
_LISTED_MIN = SMALL_NODE_MAX // 2 + 1
_SAVED_MIN = 2  # columns: what lists have to save, in all, to be worth the rows' own order

# The most values of a table to be presorted by squared error, which takes 0.7 GB in each thread,
# and by other criteria (0.17 GB).
_PRESORT_MAX, _PRESORT_MAX_OTHERS = 2**25, 2**23
# Where columns are many, presorting may pay from a higher share of the features on: if rows are
# few, or if at most _OTHERS_MAX of the cells seem to hold another value than the most frequent one
# of their column, since nodes then pick their rows from lists (`cart.fast_paths.column_lists`).
_FEW_ROWS, _MANY_COLUMNS, _WIDE_SHARE = 2048, 64, 2 / 5
_OTHERS_MAX = 1 / 8


def presorting_pays(table, plan, share):
    """Whether presorting a table is faster than sorting the rows of nodes on demand.

    Parameters
    ----------
    table : Table or CategoricalTable
    plan : cart.growth.plan.Plan
    share : float
        Presorting is usually faster if nodes look at this share of the features or more.
    """
    looked_at, (n_columns, n_rows) = plan.limits.max_features, table.codes.shape
    is_plain, n_features = type(table) is Table, len(table.columns)
    is_usual = plan.criterion is SquaredError and plan.n_outputs == 1
    most = _PRESORT_MAX if is_usual else _PRESORT_MAX_OTHERS
    if is_plain and n_rows <= _FEW_ROWS and n_columns >= _MANY_COLUMNS:
        is_served = is_usual and SmallNodeOnDemand.serves(table, looked_at)
        share, most = (_WIDE_SHARE, 2**22) if is_served else (share, 2**20)
    elif is_plain and n_columns >= _MANY_COLUMNS and looked_at < _WIDE_SHARE * n_features:
        is_listed = is_mostly_equal(table, looked_at, (_OTHERS_MAX, _OTHERS_MAX))
        share = _WIDE_SHARE if is_listed else share
    return looked_at >= share * n_features and table.codes.size <= most


@like(AllListed)
class PresortedRows(NamedTuple):
    """The rows of the tree along every feature, sorted once and partitioned with the nodes."""

    sorted_rows: np.ndarray  # (n_columns, n_rows) uint32: of the table; _MARK: the first of a code
    n_known: np.ndarray  # (n_columns,) int64: rows whose value is not missing
    entries: np.ndarray  # (2 * n_columns * stride,) uint64: of every feature: even depths, then odd
    stride: int
    unlisted: np.ndarray  # (n_columns,) uint32: the code whose rows are not listed, or MISSING
    unlisted_rows: np.ndarray  # (n_columns, 2) int64: where they begin and end in sorted_rows
    rows: np.ndarray  # (n_rows,) uint32: of the tree, ascending in a node; (0,) if all are listed
    spare_rows: np.ndarray  # as rows
    codes: np.ndarray  # of the table

    @classmethod
    def create(cls, table, lists_all=True):
        """Sort the rows. Unless `lists_all`, those of a value that half of them have, or more, are
        not listed, in columns without missing values."""
        n_columns, n_rows = shape = table.codes.shape
        stride = n_rows + PADDING
        sorted_rows, modes = np.empty(shape, np.uint32), np.empty(n_columns, np.uint32)
        n_known, mode_rows = np.empty(n_columns, np.int64), np.empty((n_columns, 2), np.int64)
        n_codes = table.n_levels().max(initial=0)  # more than rows, if there are many categories
        begin = np.empty(n_codes + 2, np.int32)
        _sort_rows(table.codes, table.level_start, sorted_rows, n_known, (modes, mode_rows), begin)
        n_equal = np.diff(mode_rows)[:, 0]
        n_equal[(2 * n_equal < n_rows) | (n_known < n_rows)] = 0
        lists_all = lists_all or n_equal.sum() < _SAVED_MIN * n_rows
        modes[(n_equal == 0) | lists_all] = MISSING
        return cls(
            sorted_rows, n_known, np.empty(2 * n_columns * stride, np.uint64), stride, modes,
            mode_rows, *np.empty((2, 0 if lists_all else n_rows), np.uint32), table.codes,
        )  # fmt: skip

    def begin_tree(self, table, in_bag, n, is_in_bag):
        for i in range(min(n, self.rows.shape[0])):
            self.rows[i] = in_bag[i]
        for feature in range(table.columns.shape[0]):
            column = table.columns[feature]
            if not _is_sorted(self, column):
                continue
            sorted_rows, n_known = self.sorted_rows[column], self.n_known[column]
            entries, code = self.entries[column * self.stride :], unlisted_code(self, column, n)
            if code == MISSING:
                at = _write_in_bag(sorted_rows[:n_known], np.uint32(0), entries, is_in_bag)
                _write_in_bag(sorted_rows[n_known:], MISSING, entries[at:], is_in_bag)
            else:
                first, end = self.unlisted_rows[column, 0], self.unlisted_rows[column, 1]
                at = _write_in_bag(sorted_rows[:first], np.uint32(0), entries, is_in_bag)
                after = code + np.uint32(1)
                at += _write_in_bag(sorted_rows[end:], after, entries[at:], is_in_bag)
                note_listed(entries, at, n)

    def expect_feature(self, table, column, node):
        pass

    def load_feature(self, table, column, place, node):
        first = first_of(self, column, node.start, node.depth)
        code = unlisted_code(self, column, node.n)
        n_listed = n_listed_of(self.entries, first, node.n, code)
        if n_listed == 0:
            return first, code, code
        lowest, highest = code_at(self.entries, first), code_at(self.entries, first + n_listed - 1)
        if n_listed < node.n:
            lowest, highest = min(lowest, code), max(highest, code)
        return first, lowest, highest

    def unlisted_code(self, column, n):
        return self.unlisted[column] if n >= _LISTED_MIN else MISSING

    def list_all(self, table, column, first, node):
        code = unlisted_code(self, column, node.n)
        n_listed = n_listed_of(self.entries, first, node.n, code)
        if n_listed == node.n:
            return first
        to = first_of(self, column, node.start, node.depth + 1)
        rows = self.rows[node.start : node.end]
        list_rows(self.entries, self.codes[column], code, rows, n_listed, first, to)
        return to

    def room_for(self, column, place, node):
        return first_of(self, column, node.start, node.depth + 1)

    def mark_left(self, table, cut, node, is_left):
        column, n_left = table.columns[cut.feature], np.int64(0)
        first = first_of(self, column, node.start, node.depth)
        code = unlisted_code(self, column, node.n)
        n_listed = n_listed_of(self.entries, first, node.n, code)
        if n_listed < node.n:
            goes_left = code <= cut.left_code
            for i in range(node.start, node.end):
                is_left[self.rows[i]] = goes_left
            n_left += (node.n - n_listed) * goes_left
        entries, other = self.entries[first : first + n_listed], also_left(cut)
        for i in range(n_listed):
            code = code_at(entries, i)
            goes_left = (code <= cut.left_code) | (code == other)
            is_left[row_at(entries, i)] = goes_left
            n_left += goes_left
        divide_own_rows(self, node, is_left)
        return n_left

    def divide_rows(self, table, features, node, cut, n_left, is_left):
        for j in range(features.shape[0]):
            column = table.columns[features[j]]
            divide_feature(self, column, node.start, node.n, node.depth, n_left, is_left)

    def divide_feature(self, column, start, n, depth, n_left, is_left):
        if not _is_sorted(self, column):
            return
        first, to = first_of(self, column, start, depth), first_of(self, column, start, depth + 1)
        code = unlisted_code(self, column, n)
        n_listed = n_listed_of(self.entries, first, n, code)
        entries, divided = self.entries[first : first + n_listed], self.entries[to : to + n]
        left = np.int64(0)
        for i in range(n_listed):
            goes_left = is_left[row_at(entries, i)]
            divided[left if goes_left else n_left + i - left] = entries[i]
            left += goes_left
        if code != MISSING:
            _end_list(self, column, start, n_left, to, left)
            _end_list(self, column, start + n_left, n - n_left, to + n_left, n_listed - left)

    def note_split(self, table, this, node, cut, n_left):
        pass

    def is_presorted(self):
        return True

    has_all_entries = is_presorted

    def hand_to_small_node(self, small, table, features, samples, targets, node):
        start, n, mean = node.start, node.n, node.total / node.weight
        if not enter_small_node(small, samples, start, n, targets, mean):
            return False
        for j in range(features.shape[0]):
            column = table.columns[features[j]]
            if not _is_sorted(self, column):
                continue
            first = first_of(self, column, start, node.depth)
            first = list_all(self, table, column, first, node)
            entries = self.entries[first : first + n]
            before, tie_span = code_at(entries, 0), table.tie_span[column]
            rank = np.int64(0)
            for i in range(n):
                code = code_at(entries, i)
                gap = np.int64(code) - np.int64(before)
                # 0 < gap <= tie_span in one comparison: whether codes are equal is unpredictable.
                may_tie = np.uint64(gap - 1) < np.uint64(tie_span)
                if may_tie and same_value(table, column, before, code):
                    restore_rows(small, samples, start, n)  # where a cut lies depends on the node
                    return False
                before = code
                rank = MISSING_RANK if code == MISSING else rank + (gap > 0)
                write_word(small, np.int64(small.number[row_at(entries, i)]), column, code, rank)
        return True


@inline_kernel
def first_of(presorted, column, start, depth):
    """Where the entries of a node along a column begin."""
    return ((depth & 1) * presorted.sorted_rows.shape[0] + column) * presorted.stride + start


@inline_kernel
def _is_sorted(presorted, column):
    """Is this one of the columns that are presorted? Indicators, which come after, need not be."""
    return column < presorted.n_known.shape[0]


@inline_kernel
def divide_own_rows(presorted, node, is_left):
    """Divide the rows that are kept in the order of the table, if they are, as marked."""
    if presorted.rows.shape[0] > 0 and node.n >= _LISTED_MIN:
        divide_stably(presorted.rows, node.start, node.end, is_left, presorted.spare_rows)


@inline_kernel
def _end_list(presorted, column, start, n, first, n_listed):
    """End the list of a child, which begins at `first`; small nodes list all rows."""
    if n >= _LISTED_MIN:
        note_listed(presorted.entries[first:], n_listed, n)
    elif n > 1:
        rows, code = presorted.rows[start : start + n], presorted.unlisted[column]
        list_rows(presorted.entries, presorted.codes[column], code, rows, n_listed, first, first)


@kernel
def _write_in_bag(marked, code, entries, is_in_bag):
    """Write the entries of the rows that are in-bag, in order; return how many there are.

    The first rows have `code`, and each further mark begins the next code. Looking codes up instead
    would read all over a column.
    """
    code, at = np.uint64(code) - np.uint64(1), 0
    for i in range(marked.shape[0]):
        row = marked[i] & ~_MARK
        code += np.uint64(marked[i] >= _MARK)
        entries[at] = code << CODE_SHIFT | np.uint64(row)
        at += np.int64(is_in_bag[row])
    return at


@entry_kernel
def _sort_rows(codes, level_start, sorted_rows, n_known, modes, begin):
    """Sort the rows of every column by code. Codes are dense: to count them is to sort.

    begin   [ 0 2 3 6 ]      where the rows of each code begin, those of missing values last

    `modes` gets the most frequent code of every column, and where its rows begin and end.
    """
    mode, mode_rows = modes
    for column in range(codes.shape[0]):
        n_codes = level_start[column + 1] - level_start[column]
        begin[: n_codes + 2] = 0
        for i in range(codes.shape[1]):
            begin[min(np.int64(codes[column, i]), n_codes) + 1] += 1
        most = np.int64(0)
        for code in range(n_codes):
            n_equal = np.int64(begin[code + 1])
            begin[code + 1] += begin[code]
            if n_equal > most:
                most, mode[column] = n_equal, code
                mode_rows[column, 0], mode_rows[column, 1] = begin[code], begin[code + 1]
        n_known[column] = begin[n_codes]
        rows = sorted_rows[column]
        for i in range(codes.shape[1]):
            code = min(np.int64(codes[column, i]), n_codes)
            rows[begin[code]] = np.uint32(i)
            begin[code] += 1
        first = np.int64(0)
        for code in range(n_codes + 1):
            if first < codes.shape[1]:
                rows[first] |= _MARK
            first = begin[code]
