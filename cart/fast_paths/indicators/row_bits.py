"""Rows as bits: a bit for each column of two values (indicator), as one-hot columns are.

A row's bits say which sums it is added to, in vectors of columns; so all indicators of a node cost
a pass over its rows, whichever of them it draws:

    row   weight   bits           sums of weights with a 1
    4       2      1 0 1 0        2 0 2 0
    7       1      1 1 0 0        3 1 2 0
    9       1      0 1 0 0        3 2 2 0
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.table.ranking import MISSING
from cart.table.table import has_missing

BITS = 64  # of a word
FEW_MAX = 255  # uint8, in which the rows of a node are counted, a few at a time
WEIGHT_MAX = 31  # of a row that is counted so
_LEAST = 24  # indicators for which bits pay


class RowBits(NamedTuple):
    """The indicators of a table, row by row."""

    words: np.ndarray  # (n_rows, n_words) uint64: the code of a row in column 64 k + b of `place`
    place: np.ndarray  # (n_columns,) int64: where the bits have a column; -1: nowhere

    @classmethod
    def of(cls, table):
        """The bits of a Table."""
        codes = table.codes
        columns = np.flatnonzero(_are_indicators(table))
        place = np.full(len(codes), -1)
        place[columns] = np.arange(len(columns))
        words = np.zeros((codes.shape[1], -(-len(columns) // BITS)), "<u8")
        for k in range(words.shape[1]):
            are_ones = codes[columns[BITS * k : BITS * (k + 1)]] == 1
            packed = np.packbits(are_ones, axis=0, bitorder="little").T
            words[:, k : k + 1].view(np.uint8)[:, : packed.shape[1]] = packed
        return cls(words, place)


@inline_kernel
def bit_in(words, row, place):
    """The bit of a row, 0 or 1, at this place of its words."""
    return np.int64(words[row, place // BITS] >> np.uint64(place % BITS)) & 1


def bits_pay(table, max_features, least_columns, least_looked_at):
    """Whether a table has so many indicators that nodes are searched faster by bits.

    Parameters
    ----------
    table : Table
    max_features : int
        How many features a node looks at.
    least_columns : float
        The share of the columns that have to be indicators.
    least_looked_at : float
        The share of the indicators that a node has to look at; more, where these are more than
        four times as many as rows, so that most nodes have few rows for so many sums.

    Returns
    -------
    bool
    """
    n_two = np.count_nonzero(_are_indicators(table))
    if n_two < max(_LEAST, least_columns * len(table.codes)):
        return False
    least = least_looked_at * n_two * max(1.0, n_two / (4 * table.codes.shape[1]))
    return max_features >= least


def _are_indicators(table):
    """Which columns have at most two values, which are no tie, and no missing ones."""
    have_two = (table.n_levels() <= 2) & (table.tie_span == 0)
    if has_missing(table):
        columns = np.flatnonzero(have_two)
        have_two[columns] = [table.codes[column].max() != MISSING for column in columns]
    return have_two
