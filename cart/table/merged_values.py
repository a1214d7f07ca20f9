"""Count the distinct values that merge, as they become equal in single precision, and warn of them.

values   [ 0.3   0.7   0.1 + 0.2   0.5 ]     the first and the third differ, but
codes    [  1     3        1        2  ]     not in single precision: one value merges

One value of each code is kept, and all others of the code are compared with it. Usually few differ,
and only these are counted.
"""

import numpy as np
from scipy.sparse import csc_matrix, issparse

from cart.jit.decorators import entry_kernel
from cart.primitives.threads import in_parts
from cart.primitives.user_warning import warn_user
from cart.table.float_table import FloatTable
from cart.table.precision import as_plain_table, kinds_of, native_frame
from cart.table.repeated_codes import RepeatedCodes, Values, differs

# Kinds of dtypes whose values are whole: numbers, dates, durations.
_WHOLE = "iumM"
# Kinds of dtypes that NumPy compares as numbers.
_NUMBERS = "biuf"
# Whole numbers up to these are exact in float32, and in float64.
_WHOLE_MAX, _DOUBLE_MAX = 2**24, 2**53
# With shorter columns, threads would wait for the interpreter longer than they work, and a copy of
# a column would cost more than a look at values that lie far apart.
_MIN_ROWS = 1 << 16
# Rows are checked in blocks of _VALUES_AT_ONCE values, which fit into the caches, but of at least
# _LEAST_ROWS, or calls of NumPy would cost more. Columns are taken in runs of _VALUES_TAKEN values.
_VALUES_AT_ONCE, _LEAST_ROWS, _VALUES_TAKEN = 1 << 13, 16, 1 << 16
_COLUMNS_AT_ONCE, _ROWS_AT_ONCE = 8, 256  # of a table that is compared where it is
# A warning is issued if more than this share of a column's distinct values merges.
_SHARE = 0.01
# Doubles that differ by less than this share of themselves or of the median, 64 units in the last
# place, count as one value that rounding has split. It is looked for in so many rows of a column.
_ROUNDING, _ROWS_SEEN = 2.0**-46, 1 << 14
# Values that differ by more than this share merge only if float32 has no numbers of their size.
_UNDERFLOW = 2.0**-22
# How many columns a warning names.
_NAMED = 10


def exceeds_doubles(X):
    """Whether a table holds integers so large that doubles may not tell them apart."""
    X = as_plain_table(X)
    if _is_sparse(X):
        if {*kinds_of(X)}.isdisjoint("iu"):
            return False
        X = _with_data(X).data
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
        return X.dtype.kind in "iu" and not _survive(X, most=_DOUBLE_MAX)
    whole = [j for j, kind in enumerate(kinds_of(X)) if kind in "iu"]
    return any((np.abs(_in_doubles(X.iloc[:, j])) >= _DOUBLE_MAX).any() for j in whole)


def count_merged_values(X, table, precision, n_jobs=None):
    """Count how many distinct values of each column the cast to its precision merges into others.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or sparse
        As the user gave it.
    table : Table, FloatTable, SparseTable or CategoricalTable
        Of X, cast to the precision.
    precision : dtype
        float32 or float64.
    n_jobs : int or None
        As in joblib: threads that long dense columns are shared among.

    Returns
    -------
    n_merged : ndarray of shape (n_features,), int64
    n_left : ndarray of shape (n_features,), int64
        How many distinct values are left, for columns where any merge.
    """
    X = as_plain_table(X)
    if _is_sparse(X):
        return _count_sparse(_with_data(X), precision)
    n_features, n_samples = table.codes.shape
    n_merged, n_left = np.zeros((2, n_features), np.int64)
    is_ranked = not isinstance(table, FloatTable)
    if is_ranked:
        n_left[:] = table.n_levels()
    may_merge = getattr(table, "n_categories", np.zeros(n_features)) == 0
    if n_samples < _MIN_ROWS or not hasattr(X, "iloc"):
        X = _as_array(X, may_merge)
    may_merge &= n_left < n_samples  # without ranks n_left is 0: not known yet
    if may_merge.any():
        may_merge &= ~_surviving_columns(X)

    def count(first, end):
        room = None if is_ranked else RepeatedCodes.create(n_samples)
        for mine, values in _runs_of_columns(X, may_merge, first, end):
            codes = _rows(table.codes, mine).astype(np.uint32, copy=False)
            if is_ranked:
                if room is None or len(room) < len(mine):
                    room = np.empty((len(mine), n_samples + 1), np.uint32)
                n_merged[mine] = _count_ranked(values, codes, room)
            else:
                start = n_samples * np.arange(len(mine) + 1)
                counts = _count_unranked(values, codes.ravel(), start, room)
                n_merged[mine], n_left[mine] = counts

    if may_merge.any():
        in_parts(count, n_features, n_jobs, 1 if n_samples >= _MIN_ROWS else n_features)
    return n_merged, n_left


def _is_sparse(X):
    return issparse(X) or hasattr(X, "sparse")  # a DataFrame has it if all its columns are sparse


def _with_data(X):
    """X as a sparse matrix whose `data` are the values it stores."""
    X = X if issparse(X) else X.sparse.to_coo()
    return X if X.format in ("csr", "csc", "coo") else X.tocsc()


def _count_sparse(X, precision):
    """As `count_merged_values`, for a sparse table; 0 counts as a value."""
    if _survive(X.data):
        return np.zeros((2, X.shape[1]), np.int64)
    X = csc_matrix(X, copy=True)
    X.sum_duplicates()
    has_zero = np.diff(X.indptr) < X.shape[0]
    values = np.insert(X.data, X.indptr[1:][has_zero], 0)
    start = X.indptr + np.append(0, np.cumsum(has_zero))
    cast = values.astype(precision) + precision.type(0)  # turns -0 into 0
    codes = cast.view(np.uint32) if precision == np.float32 else _numbered(cast)
    room = RepeatedCodes.create(X.shape[0])
    values = Values.of(_in_64_bits(values)[:, np.newaxis], np.zeros(X.shape[1]), start[:-1])
    return _count_unranked(values, codes, start, room)


def _numbered(values):
    """Numbers that are equal where the values are."""
    return np.unique(values, return_inverse=True)[1].astype(np.uint32)


def _as_array(X, is_number):
    """X as an array of numbers, with zeros in columns that hold none.

    A DataFrame is only converted (perhaps by a copy) if all columns have the same NumPy dtype, as
    taking them one by one is slow. Otherwise it is returned.
    """
    if hasattr(X, "iloc"):
        dtypes = [*set(X.dtypes)]
        return X.to_numpy() if len(dtypes) == 1 and _is_plain(dtypes[0]) else X
    X = np.asarray(X)
    if not _is_plain(X.dtype):
        numbers = np.zeros(X.shape)
        numbers[:, is_number] = X[:, is_number]
        return numbers
    return X


def _is_plain(dtype):
    return isinstance(dtype, np.dtype) and dtype.kind in _NUMBERS


def _in_64_bits(values):
    """Numbers as float64 or int64: different ones stay different; nan may become anything."""
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)


def _count_ranked(values, codes, one_of):
    """Count how many distinct values of each column merge; in each column, `one_of` has room for
    one row of each rank, and of missing values."""
    places, n_found = np.empty(codes.size, np.int64), np.zeros(len(codes), np.int64)
    places = places[: _find_differing(values, codes, one_of, places, n_found)]
    return _count_distinct(values, places, codes.shape[1] * np.arange(len(codes) + 1))


@entry_kernel
def _find_differing(values, codes, one_of, places, n_found):
    """Write the places, column after column, of values that differ from the one kept of their
    rank; return how many there are. `n_found`, 0 for each column, counts them."""
    n = np.uint32(codes.shape[1])  # one_of[:, n] is for missing values
    for column in range(codes.shape[0]):
        for i in range(n):
            one_of[column, min(codes[column, i], n)] = i
    for first in range(0, n, _ROWS_AT_ONCE):  # a cache line of a row has values of several columns
        for column in range(codes.shape[0]):
            mine, start, n_here = codes[column], np.int64(column) * n, n_found[column]
            for i in range(first, min(first + _ROWS_AT_ONCE, n)):
                kept = np.int64(one_of[column, min(mine[i], n)])
                places[start + n_here] = start + i
                n_here += kept != i and mine[i] < n and differs(values, column, kept, i)
            n_found[column] = n_here
    n_in_all = np.int64(0)
    for column in range(codes.shape[0]):
        for k in range(n_found[column]):
            places[n_in_all + k] = places[np.int64(column) * n + k]
        n_in_all += n_found[column]
    return n_in_all


def _count_unranked(values, codes, start, repeated):
    """Count how many distinct values of each column merge, and how many are left; column k has the
    codes start[k]:start[k + 1]."""
    places, n_left = repeated.compare(values, codes, start)
    return _count_distinct(values, places, start), n_left


def _count_distinct(values, places, start):
    """Count the distinct values of each column at these places, which ascend."""
    bounds = np.searchsorted(places, start)
    n_distinct = np.diff(bounds)
    for k in np.flatnonzero(n_distinct > 1):
        n_distinct[k] = values.distinct(k, places[bounds[k] : bounds[k + 1]] - start[k])
    return n_distinct


def _runs_of_columns(X, may_merge, first, end):
    """Yield those of columns first, ..., end - 1 whose values may merge, some at a time: their
    numbers, and their Values."""
    width = max(1, _VALUES_TAKEN // len(X))
    if not isinstance(X, np.ndarray):
        for mine, part in _parts_of_a_frame(X, first + np.flatnonzero(may_merge[first:end]), width):
            differ = np.flatnonzero(~_surviving_columns(part))
            if len(differ) > 0:
                yield mine[differ], Values.of(_in_64_bits(part), differ)
        return
    # A short column is compared where it is: most of its values are not looked at.
    stays = len(X) < _MIN_ROWS and X.flags.carray and X.dtype in (np.float64, np.int64)
    width = max(width, _COLUMNS_AT_ONCE) if stays else width
    for start in range(first, end, width):
        mine = start + np.flatnonzero(may_merge[start : min(start + width, end)])
        if len(mine) > 0:
            skipped = 0 if stays else mine[0]
            run = X if stays else X[:, skipped : mine[-1] + 1]
            yield mine, Values.of(_in_64_bits(run), mine - skipped)


def _parts_of_a_frame(X, columns, width):
    """Yield columns of a DataFrame as arrays: several of one dtype at a time, others one by one."""
    of_type = {}
    for j, dtype in zip(columns, X.dtypes.iloc[columns], strict=True):
        of_type.setdefault(dtype, []).append(j)
    for dtype, mine in of_type.items():
        for k in range(0, len(mine), width):
            some = np.array(mine[k : k + width])
            if _is_plain(dtype):
                yield some, X.iloc[:, some].to_numpy()
            elif dtype.kind == "f":
                yield some, _in_doubles(X.iloc[:, some])
            else:
                if dtype.kind in "iu":  # doubles may merge large integers, but keep them large
                    is_large = np.abs(_in_doubles(X.iloc[:, some])) > _WHOLE_MAX
                    some = some[is_large.any(axis=0)]
                for j in some:
                    yield np.array([j]), _as_numbers(X.iloc[:, j])[:, np.newaxis]


def _in_doubles(part):
    return part.to_numpy(np.float64, na_value=np.nan)


def _rows(array, rows):
    """Take some rows, ascending; without a copy if they are contiguous."""
    first, end = rows[0], rows[-1] + 1
    return array[first:end] if end - first == len(rows) else array[rows]


def _surviving_columns(X):
    """Whether each column holds float32 numbers and nan only; of a DataFrame, as far as dtypes
    tell."""
    if not isinstance(X, np.ndarray):
        return np.array([_fits(dtype) for dtype in X.dtypes])
    if X.dtype.kind != "f" or _fits(X.dtype):
        return _survive(X, axis=0)
    # Rows are contiguous: checking a few of them at a time is faster than copying columns.
    survive = np.ones(X.shape[1], bool)
    n_rows = max(_LEAST_ROWS, _VALUES_AT_ONCE // X.shape[1])
    for first in range(0, len(X), n_rows):
        if not survive.any():
            break
        rows = X[first : first + n_rows]
        is_same = rows.astype(np.float32) == rows
        if not is_same.all():  # faster than all(axis=0), and seldom true
            survive &= (is_same | np.isnan(rows)).all(axis=0)
    return survive


def _as_numbers(column):
    """A column of a DataFrame as an array of numbers."""
    values = _in_doubles(column) if column.hasnans else np.asarray(column)
    return values if _is_plain(values.dtype) else values.astype(np.float64)


def _fits(dtype):
    """Whether every value of a dtype is a float32 number."""
    return isinstance(dtype, np.dtype) and np.can_cast(dtype, np.float32)


def _survive(values, axis=None, most=_WHOLE_MAX):
    """Whether every value is a float32 number; of integers, whether none exceeds `most`."""
    if _fits(values.dtype):
        return True if axis is None else np.ones(values.shape[1], bool)
    if values.dtype.kind in "iu":  # a cast to float64 may make different values equal
        lowest, highest = values.min(axis, initial=0), values.max(axis, initial=0)
        return (lowest >= -most) & (highest <= most)
    return (values.astype(np.float32) == values).all(axis)


def _first_rows(X):
    """The first rows of a table, so that its columns can be taken one by one."""
    if issparse(X):
        return X.tocsc()[:_ROWS_SEEN]
    return X.iloc[:_ROWS_SEEN] if hasattr(X, "iloc") else np.asarray(X)[:_ROWS_SEEN]


def _share_beyond_rounding(X, j):
    """Share of the merging neighbours in column j that rounding did not split."""
    if hasattr(X, "iloc"):
        column = _in_doubles(X.iloc[:, j])
    else:
        column = X[:, [j]].toarray() if issparse(X) else X[:, j].astype(np.float64)
    values = np.unique(column[~np.isnan(column)])
    merges = np.diff(values.astype(np.float32)) == 0
    if not merges.any():
        return 1.0
    gap, size = np.diff(values)[merges], np.abs(values[1:][merges])
    # In a centred column, values near 0 are differences of typical ones, and rounded like these.
    rounding = _ROUNDING * np.maximum(size, np.median(np.abs(values)))
    return np.mean((gap > rounding) | (gap > _UNDERFLOW * size))


def warn_of_merged_values(X, n_merged, n_levels, names, precision="single"):
    """Warn of columns of which many distinct values are equal in single or double precision.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or sparse
        As the user gave it.
    n_merged : ndarray of shape (n_features,), int64
        From `count_merged_values`.
    n_levels : ndarray of shape (n_features,), int64
        How many distinct values of each column are left.
    names : sequence of str or int
        Of the columns.
    precision : {"single", "double"}, default="single"

    Warns
    -----
    UserWarning
        If more than 1 % of the distinct values of a column merge, or any integers or dates.
        Values that only rounding keeps apart in double precision do not count.
    """
    if not n_merged.any():
        return
    X = native_frame(X)
    is_whole = np.array([kind in _WHOLE for kind in kinds_of(X)])
    limit = np.where(is_whole, 0.0, _SHARE * (n_merged + n_levels))
    rows = _first_rows(X)
    bad = [
        j
        for j in np.flatnonzero(n_merged > limit)
        if is_whole[j] or n_merged[j] * _share_beyond_rounding(rows, j) > limit[j]
    ]
    if len(bad) == 0:
        return
    listed = ", ".join(
        f"{names[j]} ({n_merged[j]} of {n_merged[j] + n_levels[j]})" for j in bad[:_NAMED]
    )
    more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    remedy = 'Set precision="float64" to keep them apart.'
    if exceeds_doubles(X):
        remedy = (
            "Doubles represent integers exactly only up to 2**53: subtract the column's minimum, "
            "or list it in categorical_features."
        )
    warn_user(
        f"Distinct values of X become equal in {precision} precision; columns (merged of "
        f"distinct values): {listed}{more}. {remedy}"
    )
