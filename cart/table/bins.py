"""Bins: neighbouring ranks of a column under one code, about as many rows in each."""

from itertools import pairwise

import numpy as np

from cart.table.distinct_values import Levels
from cart.table.ranking import MISSING

MAX_BINS = 255


def bin_table(table, max_bins):
    """A table of few codes per column.

    A column of at most `max_bins` distinct values keeps a code for each. The others are cut at
    quantiles, as scikit-learn's histogram gradient boosting cuts them: bin i = 1, ..., max_bins
    ends with the value of the row that is ceil(i * n / max_bins)-th in order, of n that are not
    missing (all of them count, whatever they weigh). A value is never divided, so there are fewer
    bins where one value has more rows than a bin. Between two such bins there is always a cut,
    however near their values. Missing values and categories keep their codes.

    Parameters
    ----------
    table : cart.table.table.Table or cart.splitting.category_subsets.CategoricalTable
        Of ranks. Its codes are written over.
    max_bins : int
        From 2 to `MAX_BINS`.

    Returns
    -------
    Table or CategoricalTable
        `levels` are the smallest values of the bins, `tops` the largest.
    """
    is_number = getattr(table, "n_categories", np.zeros(len(table.codes))) == 0
    tie_span = table.tie_span.copy()
    firsts, lasts = [], []  # levels, column after column
    for column, (start, end) in enumerate(pairwise(table.level_start)):
        codes = table.codes[column]
        first = last = np.arange(end - start)
        if is_number[column] and end - start > max_bins:
            tie_span[column] = 0
            last = find_last_ranks(codes, max_bins)
            first = np.concatenate(([0], last[:-1] + 1))
            n_ranks = np.diff(last, prepend=-1)  # of every bin
            _replace(codes, np.repeat(np.arange(len(last), dtype=np.uint32), n_ranks))
        firsts.append(start + first)
        lasts.append(start + last)
    level_start = np.cumsum([0, *map(len, lasts)])
    values = table.levels.array
    levels, tops = (Levels.of(values[np.concatenate(part)]) for part in (firsts, lasts))
    return table._replace(levels=levels, tops=tops, level_start=level_start, tie_span=tie_span)


def find_last_ranks(codes, max_bins):
    """The last rank of every bin of a column.

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
    n_up_to = np.cumsum(np.bincount(known))  # rows of a rank and those below
    place = -(-len(known) * np.arange(1, max_bins + 1) // max_bins)  # in whole numbers, rounded up
    return np.unique(np.searchsorted(n_up_to, place))


def _replace(codes, bins):
    """Write the bin of every rank over the ranks."""
    known = slice(None) if codes.max() != MISSING else codes != MISSING
    codes[known] = bins[codes[known]]
