"""Routes: where rows without the value of their node's split go during growth.

A route is a part of a `way` of growth. `Learned` is scikit-learn's: the search has tried either
side. `BySurrogates` sends rows by other features, and if these are missing, too, to the side of the
majority; without surrogates, it sends all of them there.
"""

from typing import NamedTuple

import numpy as np

from cart.growth.sorted_rows import SortedRows, begin_tree, divide_rows
from cart.jit.decorators import dispatch
from cart.primitives.sort_keys import row_of
from cart.splitting.agreement import (
    CandidateDraw,
    Ranking,
    Sent,
    rank_surrogates,
    side_by_surrogates,
)
from cart.table.ranking import MISSING


@dispatch
def begin_routes(route):
    """Begin a tree."""


@dispatch
def route_missing(route, node, split, samples, start, n):
    """Replace missing codes of a node by codes that go left or right of the split."""


class Learned(NamedTuple):
    """Rows go to the side that was better in training."""

    name: int = 0  # numba needs at least one field

    def begin_routes(self):
        pass

    def route_missing(self, node, split, samples, start, n):
        pass


class BySurrogates(NamedTuple):
    """Rows go by the first surrogate whose value they have, else to the side of most weight."""

    rows: SortedRows
    ranking: Ranking
    draw: CandidateDraw

    def begin_routes(self):
        begin_tree(self.rows)

    def route_missing(self, node, split, samples, start, n):
        rows, ranking, left_code = self.rows, self.ranking, split.left_code
        left, right, n_rows = np.int64(0), np.int64(0), np.int64(0)
        for i in range(n):
            row = row_of(samples[start + i])
            is_known = node.codes[i] != MISSING
            goes_left = is_known and node.codes[i] <= left_code
            unit = rows.units[row] if is_known else np.int64(0)
            rows.goes_left[row] = goes_left
            rows.vote[row] = unit if goes_left else -unit
            left += unit if goes_left else np.int64(0)
            right += np.int64(0) if goes_left else unit
            n_rows += is_known
        if n_rows < n:
            sent = Sent(left, right, n_rows)
            rank_surrogates(
                ranking, rows.keys, start, start + n, rows.vote, self.draw, split.feature, sent
            )
            for i in range(n):
                if node.codes[i] == MISSING:
                    row = row_of(samples[start + i])
                    side = side_by_surrogates(ranking, rows.codes, rows.columns, row)
                    goes_left = left >= right if side < 0 else side == 1
                    rows.goes_left[row] = goes_left
                    node.codes[i] = np.uint32(left_code + (0 if goes_left else 1))
        divide_rows(rows, start, start + n)
