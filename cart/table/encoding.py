"""Encode X as a table: rank the values of its columns, and look up the values of ranks."""

from itertools import chain

import numpy as np
from scipy.sparse import csc_matrix, issparse

from cart.jit.decorators import entry_kernel
from cart.primitives.memory import give_back
from cart.primitives.threads import in_parts
from cart.table.columns import rows_at_once
from cart.table.distinct_values import Levels, Ties
from cart.table.ranking import Scratch, rank, rank_sparse
from cart.table.sparse_table import SparseTable
from cart.table.table import Table

# Values that are ranked at once: fewer are not worth a thread, more exceed the caches.
BLOCK = 1 << 17
# Columns that are copied at once, at least: a cache line of a row holds several columns, and would
# be read again for each of them.
LEAST_COLUMNS = 4
LEAST_PER_THREAD = 2  # columns: even a thread that shares cache lines with another is a gain
# A table of more than FEW_VALUES is ranked in at least _RUNS runs of columns, to bound the memory
# of a run; in fewer runs, if they would have less than LEAST_COLUMNS.
FEW_VALUES, _RUNS = 1 << 19, 8

_FEW_LEVELS = 8  # cells per level: with at least so many, levels take little memory and are kept
_NARROW_MAX = 1 << 16  # rows, whose ranks fit into 16 bits


def encode(columns, n_categories=None, n_jobs=None, keeps_values=True):
    """Rank the values of columns.

    Parameters
    ----------
    columns : cart.table.columns.Columns
        Finite, or nan where a value is missing (dense only). Distinct doubles never count as equal.
    n_categories : ndarray of shape (n_features,), int64, optional
        Of the columns that hold categories 0, 1, ... (less than 0: missing); 0 for numbers.
    n_jobs : int or None
        As in joblib: threads that dense columns are shared among.
    keeps_values : bool, default=True
        If False, the values of dense columns are not stored, unless few of them are distinct: the
        table has no levels until it is completed (see `complete`).

    Returns
    -------
    Table or SparseTable
        Codes of numbers are narrow if there are so few rows that 16 bits are sure to be enough.
    """
    if issparse(columns.X):
        return _encode_sparse(csc_matrix(columns.X))
    n_samples, n_columns = columns.X.shape
    codes = np.empty((n_columns, n_samples), _type_of_codes(columns, n_categories))
    if n_categories is None:
        n_categories = np.zeros(n_columns, np.int64)
    is_wide = codes.dtype == np.uint32
    is_small = codes.size <= BLOCK
    most = n_columns if codes.size <= FEW_VALUES else n_columns // _RUNS
    width = n_columns if is_small else max(1, min(BLOCK // n_samples, most))
    run_width = max(width, LEAST_COLUMNS)
    found = [()] * n_columns  # what each run has found, at the index of its first column

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
            # Values of 32 bits are put where their ranks will replace them.
            room = ranks.view(np.float32) if columns.precision == np.float32 else None
            arrays = columns.take(run, out=room), n_categories[run], ranks
            parts = _runs(0, len(ranks), width)
            found[run.start] = [rank_some(*(array[part] for array in arrays)) for part in parts]
            if not is_wide:
                codes[run] = ranks

    in_parts(rank_runs, n_columns, n_jobs, n_columns if is_small else LEAST_PER_THREAD)
    n_levels, ties, levels = zip(*chain.from_iterable(found), strict=True)
    found.clear()  # lets go of the parts, which are freed once they are joined below
    level_start = np.cumsum(np.concatenate([[0], *n_levels]))
    if any(some is None for some in levels):
        levels = [np.empty(0, columns.precision)]
    levels = Levels.of(levels[0] if len(levels) == 1 else np.concatenate(levels))
    ties = ties[0] if len(ties) == 1 else Ties.join(ties)
    give_back(codes.nbytes)
    return Table(codes, levels, levels, level_start, ties, ties.tie_span, np.arange(n_columns))


def _type_of_codes(columns, n_categories):
    if n_categories is not None or columns.X.shape[0] > _NARROW_MAX:
        return np.uint32
    # A sum that overflows in both directions is nan, too: then codes are wide without need.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.uint32 if np.isnan(columns.X.sum()) else np.uint16


def _runs(first, end, width):
    """Slices of length `width` (scikit-learn's `gen_batches` checks its parameters every time)."""
    return [slice(start, min(start + width, end)) for start in range(first, end, width)]


def complete(table, columns, n_jobs=None):
    """Return a table with the values of its codes.

    Parameters
    ----------
    table : Table, or a table of another class, which always has its values
        Of these columns.
    columns : cart.table.columns.Columns
    n_jobs : int or None
        As in joblib.

    Returns
    -------
    Table
        The same table if it is complete.
    """
    if not isinstance(table, Table) or table.is_complete:
        return table
    levels = Levels.of(look_up(table, columns, slice(None), n_jobs))
    return table._replace(levels=levels, tops=levels)


def look_up(table, columns, which, n_jobs=None):
    """Look up the values of the codes of some columns in the rows of X.

    Parameters
    ----------
    table, columns, n_jobs : see `complete`
    which : slice or ndarray of int
        The columns.

    Returns
    -------
    ndarray of shape (n_levels,), of the precision of the columns
        Column after column.
    """
    start = np.concatenate(([0], np.cumsum(table.n_levels()[which])))
    n_columns = len(start) - 1
    levels = np.empty(start[-1], columns.precision)

    def fill(begin, behind):
        n_rows = rows_at_once(n_columns)
        shape = n_columns, min(n_rows, behind - begin)
        values, codes = np.empty(shape, columns.precision), np.empty(shape, np.uint32)
        for row in range(begin, behind, n_rows):
            rows = slice(row, min(row + n_rows, behind))
            n = rows.stop - row
            columns.take(which, rows, out=values[:, :n])
            codes[:, :n] = table.codes[which, rows]  # uint32, for the kernel
            _place(values, codes, n, start, levels)

    in_parts(fill, table.codes.shape[1], n_jobs, max(1, BLOCK // n_columns))
    return levels


@entry_kernel
def _place(values, codes, n, start, levels):
    """Write the values of some columns in n rows to `levels`, at the positions of their codes."""
    for column in range(values.shape[0]):
        mine = levels[start[column] : start[column + 1]]
        for i in range(n):
            if codes[column, i] < mine.shape[0]:  # not missing
                mine[codes[column, i]] = values[column, i]


def _encode_sparse(X):
    if not X.has_canonical_format or not X.data.all():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    codes, zero, values, level_start = rank_sparse(X)
    levels, ties = Levels.of(values), Ties.find(values, level_start)
    start, rows = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    values = levels, levels, level_start, ties, ties.tie_span, np.arange(X.shape[1])
    return SparseTable.create(X.shape, start, rows, codes, zero, values)
