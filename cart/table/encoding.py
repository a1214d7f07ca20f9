"""X to codes: the ranks of a table's values, and the values that ranks stand for."""

from itertools import chain

import numpy as np
from scipy.sparse import csc_matrix, issparse

from cart.jit.decorators import entry_kernel
from cart.primitives.memory import give_back
from cart.primitives.threads import in_parts
from cart.table.columns import rows_at_once
from cart.table.distinct_values import Levels, Ties
from cart.table.ranking import Scratch, rank, rank_sparse
from cart.table.sparse_table import RowLists, SparseTable
from cart.table.table import Table

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
    n_levels, ties, levels = zip(*chain.from_iterable(found), strict=True)
    found.clear()  # ties are joined: a copy
    level_start = np.cumsum(np.concatenate([[0], *n_levels]))
    is_kept = all(some is not None for some in levels)
    if not is_kept:
        levels = [np.empty(0, columns.precision)]
    levels = Levels.of(levels[0] if len(levels) == 1 else np.concatenate(levels))
    ties = Ties.join(ties)
    give_back(codes.nbytes)
    return Table(codes, levels, levels, level_start, ties, ties.tie_span, np.arange(n_columns))


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
    levels, ties = Levels.of(values), Ties.find(values, level_start)
    by_row = csc_matrix((codes, X.indices, X.indptr), X.shape).tocsr()
    return SparseTable(
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        codes,
        zero,
        levels,
        levels,
        level_start,
        ties,
        ties.tie_span,
        np.arange(X.shape[1]),
        RowLists(
            by_row.indptr.astype(np.int64), by_row.indices.astype(np.int32, copy=False), by_row.data
        ),
    )
