"""Regression trees on tables with many indicators, numbers beside them or not.

The path of sorted rows, with sorted rows of the columns of numbers only (see `rows_with_bits`).
"""

import numpy as np

from cart.fast_paths.indicators.row_bits import WEIGHT_MAX, RowBits, bits_pay
from cart.fast_paths.indicators.rows_with_bits import RowsWithBits
from cart.fast_paths.indicators.small_bits import SmallBits
from cart.fast_paths.regression.small_nodes.node import SMALL_NODE_MAX
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.splitting.criteria import Poisson, SquaredError
from cart.table.distinct_values import Levels
from cart.table.table import Table
from cart.table.thresholds import write_thresholds

# Of the columns that are indicators, and of these that a node looks at, where the path is taken.
_LEAST_SHARES = 3 / 5, 1 / 6


class IndicatorMeanPath(SortedPath):
    """Grows trees by squared error or Poisson deviance where many columns have two values."""

    criteria = (SquaredError, Poisson)
    most_outputs = 1
    _partial_max = SMALL_NODE_MAX

    @classmethod
    def fits(cls, table, plan):
        is_usual = type(table) is Table and not plan.is_binned and super().fits(table, plan)
        return is_usual and bits_pay(table, plan.limits.max_features, *_LEAST_SHARES)

    @classmethod
    def takes_narrow(cls, codes, plan):
        return True

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        self._heaviest = np.zeros(1, np.int64)
        self._whole_table = table  # with its values, if it is complete

    def accepts(self, weights, is_whole):
        self._heaviest[0] = weights.max() if is_whole and weights.max() <= WEIGHT_MAX else 0
        return super().accepts(weights, is_whole)

    def _create_scratch(self):
        self._bits = RowBits.of(self._table)
        self._table = _numbers_first(self._table, self._bits)
        return super()._create_scratch()

    def _create_small(self):
        return SmallBits.beside(super()._create_small(), self._bits, len(self._table.codes))

    def _create_sorted(self, table, samples, targets):
        first = len(table.codes)
        table = table._replace(level_start=table.level_start[: first + 1])
        numbers = super()._create_sorted(table, samples, targets)
        return RowsWithBits.beside(numbers, self._bits, first, self._heaviest, targets)

    def _complete(self, features, thresholds):
        if self._whole_table.is_complete:
            write_thresholds(features, thresholds, self._whole_table)


def _numbers_first(table, bits):
    """A table without values or the codes of its indicators, which follow its other columns."""
    is_number = bits.place < 0
    order = np.concatenate([np.flatnonzero(is_number), np.flatnonzero(~is_number)])
    at = np.empty_like(order)
    at[order] = np.arange(len(order))
    n_levels, ties = table.n_levels()[order], table.ties
    n_indicators = len(order) - np.count_nonzero(is_number)
    tie_start = np.append(ties.start[:-1][is_number], np.full(n_indicators + 1, len(ties.code)))
    nothing = Levels.of(np.empty(0))
    return table._replace(
        codes=table.codes[is_number], columns=at[table.columns], levels=nothing, tops=nothing,
        level_start=np.concatenate([[0], np.cumsum(n_levels)]), tie_span=table.tie_span[order],
        ties=ties._replace(start=tie_start),
    )  # fmt: skip
