"""The training table: every column as ranks, built once and shared by all trees and threads."""

from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, issparse

from cart.jit.decorators import dispatch, entry_kernel
from cart.primitives.sort_keys import row_of
from cart.primitives.threads import in_parts
from cart.table.columns import rows_at_once
from cart.table.distinct_values import Levels, Ties, last_alike, level_at
from cart.table.node_samples import Listed, divide_keys, divide_listed, order_listed, order_node
from cart.table.ranking import MISSING, Scratch, rank, rank_sparse

# Values that are ranked at once: fewer are not worth a thread, more do not stay in the caches. But
# of fewer columns than these a line of memory, as rows have them, would be read again and again.
BLOCK = 1 << 17
LEAST_COLUMNS = 4
LEAST_PER_THREAD = 2  # columns: a thread that shares lines with another is better than none
# A table of more values is ranked in so many runs at least, or in fewer of LEAST_COLUMNS, which
# bounds what a run writes to.
_RUNS = 8

_FEW_LEVELS = 8  # cells for each: levels that are so few are worth their memory
_NARROW_MAX = 1 << 16  # rows whose ranks 16 bits can tell apart


@dispatch
def gather(table, column, samples, start, n, node, may_list):
    """Copy the codes of samples[start:start + n] in one column into the `node`.

    Returns the lowest and the highest, and of how many samples the codes were copied: all n, or
    with `may_list` perhaps the few that are not 0 in a sparse table, which the table lists.
    """
    return table.gather(column, samples, start, n, node, may_list)


@dispatch
def order_codes(table, node, n, n_listed, column, lowest, highest, n_missing, keep_order):
    """Sort the node's keys along the codes gathered."""
    table.order_codes(node, n, n_listed, column, lowest, highest, n_missing, keep_order)


@dispatch
def divide_codes(table, node, n, n_listed, column, left_code, missing_left, keep_order):
    """Bring the node's keys into the order left | right; return how many go left."""
    return table.divide_codes(node, n, n_listed, column, left_code, missing_left, keep_order)


@dispatch
def value_of(table, column, code):
    """The value, float64, that a code of a column stands for; of several the smallest."""
    return table.value_of(column, code)


@dispatch
def top_of(table, column, code):
    """The largest value, float64, that a code of a column stands for."""
    return table.top_of(column, code)


@dispatch
def same_value(table, column, low, high):
    """Do two codes of a column, low <= high, count as one value?

    They do if no cut between them keeps scikit-learn's distance from the values on either side.
    """
    return table.same_value(column, low, high)


@dispatch
def code_up_to(table, column, lowest, highest, threshold):
    """A code in [lowest, highest) that separates the values up to a threshold from the others.

    The values of `lowest` and `highest` lie on either side of it.
    """
    return table.code_up_to(column, lowest, highest, threshold)


@dispatch
def next_cut(table, p):
    """The next position after `p` to cut ordered samples at; there is none among the unlisted."""
    return table.next_cut(p)


@dispatch
def remember(table, samples, start, n):
    """Note that samples[start:start + n] have changed places."""
    table.remember(samples, start, n)


@dispatch
def keeps_order(table):
    """Do samples keep the order of the features looked at before (see
    `cart.splitting.splitter`)?"""
    return table.keeps_order()


# What tables of ranks answer.


def _level(self, column, code):
    return level_at(self.levels, self.level_start[column] + code)


def _top(self, column, code):
    return level_at(self.tops, self.level_start[column] + code)


def _is_within_reach(self, column, low, high):
    if low == high:
        return True
    if high - low > self.tie_span[column]:
        return False
    return np.int64(high) <= last_alike(self.close, column, low)


def _search_levels(self, column, lowest, highest, threshold):
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


# What tables without categories answer to the protocol of `cart.splitting.category_subsets`.


def _no_categories(self, column):
    return False


def _keep_codes(
    self, splitter, criterion, node, n, n_missing, draw, feature, limits, lowest, highest
):
    return lowest, highest, 0


def _nothing_to_keep(self, node, n_present, left_place):
    pass


def _keep_sides(self, node, n, column):
    pass


def _nothing_to_write(self, node, i, column):
    pass


class Table(NamedTuple):
    """Training data as the kernels see it; read-only.

    A thread's copy (`with_room`) may have room to write to, for one tree after another.
    `columns` says which stored column is feature 0, 1, ...: leaving a feature out is a new
    `columns`, and nothing is copied or sorted again.
    """

    codes: np.ndarray  # (n_columns, n_samples) ranks, or MISSING: uint32, or what `narrow` makes
    levels: Levels  # (n_levels,): distinct values ascending, column after column; see `complete`
    tops: (
        Levels  # `levels` again; of bins (see cart.table.bins) the largest values, not the smallest
    )
    level_start: np.ndarray  # (n_columns + 1,) int64: column c owns levels[start[c]:start[c + 1]]
    close: Ties  # codes whose values count as one
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

    def order_codes(self, node, n, n_listed, column, lowest, highest, n_missing, keep_order):
        order_node(
            node, n, lowest, highest, n_missing, self.tie_span[column] + np.uint32(1), keep_order
        )

    def divide_codes(self, node, n, n_listed, column, left_code, missing_left, keep_order):
        return divide_keys(node, n, left_code, missing_left, keep_order)

    value_of = _level
    top_of = _top
    same_value = _is_within_reach
    code_up_to = _search_levels

    def next_cut(self, p):
        return p + 1

    def remember(self, samples, start, n):
        pass

    is_categorical = _no_categories
    find_places = _keep_codes
    keep_subset = _nothing_to_keep
    take_sides = _keep_sides
    write_list = _nothing_to_write

    def keeps_order(self):
        return True


class SparseTable(NamedTuple):
    """Sparse training data as the kernels see it; read-only. See `Table`."""

    entry_start: np.ndarray  # (n_columns + 1,) int64: column c owns entries start[c]:start[c + 1]
    rows: np.ndarray  # (n_entries,) int32: rows of the non-zero values, ascending per column
    codes: np.ndarray  # (n_entries,) uint32: rank among the column's distinct values
    zero: np.ndarray  # (n_columns,) uint32: rank of 0, where the column has zeros
    levels: Levels  # as in Table
    tops: Levels
    level_start: np.ndarray
    close: Ties
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

    def order_codes(self, node, n, n_listed, column, lowest, highest, n_missing, keep_order):
        if n_listed < n:
            order_listed(node, self.listed, n, n_listed, lowest, highest, self.zero[column])
        else:
            order_node(node, n, lowest, highest, 0, np.uint32(1), keep_order)

    def divide_codes(self, node, n, n_listed, column, left_code, missing_left, keep_order):
        if n_listed < n:
            return divide_listed(node, self.listed, n, n_listed, left_code, self.zero[column])
        return divide_keys(node, n, left_code, missing_left, keep_order)

    value_of = _level
    top_of = _top
    same_value = _is_within_reach
    code_up_to = _search_levels

    def next_cut(self, p):
        unlisted = self.listed.unlisted
        return unlisted[1] if unlisted[0] < p + 1 < unlisted[1] else p + 1

    def remember(self, samples, start, n):
        for i in range(start, start + n):
            self.listed.positions[row_of(samples[i])] = i

    is_categorical = _no_categories
    find_places = _keep_codes
    keep_subset = _nothing_to_keep
    take_sides = _keep_sides
    write_list = _nothing_to_write

    def keeps_order(self):
        return False  # to keep it would cost the zeros


def encode(columns, n_categories=None, n_jobs=None, keeps_values=True):
    """Rank the values of columns.

    Parameters
    ----------
    columns : cart.table.columns.Columns
        Finite, or nan where a value is missing (dense only). Distinct doubles never count as one
        value.
    n_categories : ndarray of shape (n_features,), int64, optional
        Of the columns that hold categories 0, 1, ... (less than 0: missing); 0 for numbers.
    n_jobs : int or None
        joblib's: threads that dense columns are shared among.
    keeps_values : bool, default=True
        False leaves the values of dense columns where they are, unless few are distinct: the table
        has no levels until it is completed (see `complete`), and its codes are narrow where so few
        rows are sure to need no more.

    Returns
    -------
    Table or SparseTable
    """
    if issparse(columns.X):
        return _encode_sparse(csc_matrix(columns.X))
    n_samples, n_columns = columns.X.shape
    if n_categories is None:
        n_categories = np.zeros(n_columns, np.int64)
    codes = np.empty((n_columns, n_samples), _type_of_codes(columns, keeps_values))
    is_wide = codes.dtype == np.uint32
    is_small = codes.size <= BLOCK
    width = n_columns if is_small else max(1, min(BLOCK // n_samples, n_columns // _RUNS))
    run_width = max(width, LEAST_COLUMNS)
    found = [()] * n_columns  # of each run, where its first column stands

    def rank_runs(first, end):
        scratch = Scratch.create(n_samples)
        levels = np.empty(width * n_samples + n_categories.sum(), columns.precision)

        def rank_some(values, n_categories, ranks):
            start = rank(values, n_categories, ranks, levels, scratch)
            mine = levels[: start[-1]]
            keeps = keeps_values or _FEW_LEVELS * len(mine) <= values.size
            return np.diff(start), Ties.find(mine, start), mine.copy() if keeps else None

        for run in _runs(first, end, run_width):
            ranks = codes[run] if is_wide else np.empty(codes[run].shape, np.uint32)
            # Values of 32 bits stand where their ranks will.
            room = ranks.view(np.float32) if columns.precision == np.float32 else None
            arrays = columns.take(run.start, run.stop, out=room), n_categories[run], ranks
            parts = _runs(0, len(ranks), width)
            found[run.start] = [rank_some(*(array[part] for array in arrays)) for part in parts]
            if not is_wide:
                codes[run] = ranks

    in_parts(rank_runs, n_columns, n_jobs, n_columns if is_small else LEAST_PER_THREAD)
    n_levels, close, levels = zip(*chain.from_iterable(found), strict=True)
    level_start = np.cumsum(np.concatenate([[0], *n_levels]))
    is_kept = all(some is not None for some in levels)
    if not is_kept:
        levels = [np.empty(0, columns.precision)]
    levels = Levels.of(levels[0] if len(levels) == 1 else np.concatenate(levels))
    close = Ties.join(close)
    return Table(codes, levels, levels, level_start, close, close.tie_span, np.arange(n_columns))


def _type_of_codes(columns, keeps_values):
    if keeps_values or columns.X.shape[0] > _NARROW_MAX:
        return np.uint32
    with np.errstate(over="ignore", invalid="ignore"):  # infinities of either sign: wide codes too
        return np.uint32 if np.isnan(columns.X.sum()) else np.uint16


def _runs(first, end, width):
    """So many at once, as slices; scikit-learn's `gen_batches` checks parameters every time."""
    return [slice(start, min(start + width, end)) for start in range(first, end, width)]


def complete(table, columns, n_jobs=None):
    """A table with the values of its codes.

    Parameters
    ----------
    table : Table, or one that has its values anyway
        Of these columns.
    columns : cart.table.columns.Columns
    n_jobs : int or None
        joblib's.

    Returns
    -------
    Table
        The same one if it is complete.
    """
    if not isinstance(table, Table) or table.is_complete:
        return table
    levels = Levels.of(look_up(table, columns, 0, len(table.codes), n_jobs))
    return table._replace(levels=levels, tops=levels)


def look_up(table, columns, first, end, n_jobs=None):
    """The values of the codes of columns first, ..., end - 1, which are met in the rows.

    Parameters
    ----------
    table, columns, n_jobs : see `complete`
    first, end : int

    Returns
    -------
    ndarray of shape (n_levels,), of the precision of the columns
        Column after column.
    """
    start = table.level_start[first : end + 1] - table.level_start[first]
    levels = np.empty(start[-1], columns.precision)

    def fill(begin, behind):
        n_rows = rows_at_once(end - first)
        shape = end - first, min(n_rows, behind - begin)
        values, codes = np.empty(shape, columns.precision), np.empty(shape, np.uint32)
        for row in range(begin, behind, n_rows):
            rows = slice(row, min(row + n_rows, behind))
            n = rows.stop - row
            columns.take(first, end, rows, out=values[:, :n])
            codes[:, :n] = table.codes[first:end, rows]  # compiled for one kind
            _place(values, codes, n, start, levels)

    in_parts(fill, table.codes.shape[1], n_jobs, max(1, BLOCK // (end - first)))
    return levels


@entry_kernel
def _place(values, codes, n, start, levels):
    """Put values of some columns, and of n rows, where their codes say, column after column."""
    for column in range(values.shape[0]):
        mine = levels[start[column] : start[column + 1]]
        for i in range(n):
            if codes[column, i] < mine.shape[0]:  # else it is missing
                mine[codes[column, i]] = values[column, i]


def _encode_sparse(X):
    if not X.has_canonical_format or not X.data.all():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    codes, zero, values, level_start = rank_sparse(X)
    levels, close = Levels.of(values), Ties.find(values, level_start)
    return SparseTable(
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        codes,
        zero,
        levels,
        levels,
        level_start,
        close,
        close.tie_span,
        np.arange(X.shape[1]),
    )
