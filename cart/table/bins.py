"""Bin columns: neighbouring ranks get the same code, so that bins have about equally many rows.

ranks         0 1 2 | 3 | 4 5 | 6 7 8 9
rows of each  2 1 1   5   2 1   1 1 1 1
bin           0       1   2     3              the rows of a rank are never divided
levels        v[0]    v[3] v[4] v[6]           the smallest value of each bin
tops          v[2]    v[3] v[5] v[9]           the largest: a cut lies between top and level
"""

from itertools import pairwise

import numpy as np

from cart.table.distinct_values import Levels
from cart.table.ranking import MISSING

MAX_BINS = 255


def bin_table(table, max_bins):
    """Return the table with at most `max_bins` codes per column.

    A column with at most `max_bins` distinct values keeps a code for each. The others are cut at
    quantiles, as in scikit-learn's histogram gradient boosting: bin i = 1, ..., max_bins ends with
    the value of the ceil(i * n / max_bins)-th row in order, of the n rows that are not missing (all
    rows count equally, whatever they weigh). The rows of a value are never divided, so there are
    fewer bins if one value has more rows than a bin. Two such bins can always be separated by a
    cut, however close their values are. Missing values and categories keep their codes.

    Parameters
    ----------
    table : cart.table.table.Table or cart.splitting.category_subsets.CategoricalTable
        Of ranks. Its codes are overwritten.
    max_bins : int
        From 2 to `MAX_BINS`.

    Returns
    -------
    Table or CategoricalTable
        `levels` are the smallest values of the bins, `tops` the largest.
    """
    is_number = getattr(table, "n_categories", np.zeros(len(table.codes))) == 0
    tie_span = table.tie_span.copy()
    firsts, lasts = [], []  # indices into `levels`, column after column
    for column, (start, end) in enumerate(pairwise(table.level_start)):
        codes = table.codes[column]
        first = last = np.arange(end - start)
        if is_number[column] and end - start > max_bins:
            tie_span[column] = 0
            last = find_last_ranks(codes, max_bins)
            first = np.concatenate(([0], last[:-1] + 1))
            n_ranks = np.diff(last, prepend=-1)  # in every bin
            bins = np.repeat(np.arange(len(last), dtype=np.uint32), n_ranks)
            known = slice(None) if codes.max() != MISSING else codes != MISSING
            codes[known] = bins[codes[known]]
        firsts.append(start + first)
        lasts.append(start + last)
    level_start = np.cumsum([0, *map(len, lasts)])
    values = table.levels.array
    levels, tops = (Levels.of(values[np.concatenate(part)]) for part in (firsts, lasts))
    return table._replace(levels=levels, tops=tops, level_start=level_start, tie_span=tie_span)


def find_last_ranks(codes, max_bins):
    """Find the last rank of every bin of a column.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), uint32
        Ranks, or MISSING.
    max_bins : int

    Returns
    -------
    ndarray of shape (n_bins,), int64, ascending
    """
    known = codes if codes.max() != MISSING else codes[codes != MISSING]
    n_up_to = np.cumsum(np.bincount(known))  # rows of each rank and of those below
    place = -(-len(known) * np.arange(1, max_bins + 1) // max_bins)  # rounded up
    return np.unique(np.searchsorted(n_up_to, place))
