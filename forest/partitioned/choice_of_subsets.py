"""Splits on subsets of categories, chosen from the histograms of a node's rows.

As in `cart.splitting.category_subsets`, categories get places in an order, and the scan searches
places as if they were ranks. A local node orders equal categories, and adds up sums, in the order
of the categories' first rows. So a cell has one more number, whose maximum is taken over
partitions:

    cells[code]      [ numbers ... | FIRST - row ]        row: the first of the node with this code
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import kernel
from cart.primitives.sort_keys import sort_positions_by_value
from cart.splitting.splitter import place_best_subsets
from forest.partitioned.histograms import FIRST


def join_cells(one, other):
    """Join the cells of two partitions, whose last number stands for the first row."""
    both = one + other
    np.maximum(one[..., -1], other[..., -1], out=both[..., -1])
    return both


class CellSplitter(NamedTuple):
    """The splitter that `cart.splitting.category_subsets` needs, for nodes whose samples are cells.

    The cells are records, category by category.
    """

    rows: np.ndarray  # (n_cells,) int64: number of rows of each record
    first: np.ndarray  # (n_codes,) int64: FIRST minus the first row of each category in the node

    def find_subsets(self, context, codes):
        n_cells = codes.n - codes.n_missing
        n_present, n_rows = _sum_up(self, context.table.subsets, context.node, n_cells)
        return place_best_subsets(context, codes, n_present, n_rows, False)


@kernel
def _sum_up(splitter, subsets, node, n):
    """Find a node's categories in the order of their first rows, and sum up their responses.

    Returns the number of categories and the number of rows that have one.
    """
    n_present = 0
    n_rows = 0
    squares = 0.0
    for i in range(n):
        c = node.codes[i]
        if i == 0 or c != node.codes[i - 1]:
            subsets.present[n_present] = c
            subsets.score[n_present, 0] = np.float64(np.int64(FIRST) - splitter.first[c])
            n_present += 1
            subsets.weight[c] = 0.0
            subsets.response[c] = 0.0
        n_rows += splitter.rows[i]
        weight, target = node.records[i, 0], node.records[i, 1]
        subsets.weight[c] += weight
        if node.records.shape[1] > 2:  # sums of targets, and of their squares
            subsets.response[c, 0] = target
            squares += node.records[i, 2]
        elif subsets.response.shape[1] > 1:
            subsets.response[c, int(target)] = weight
            squares += weight
        else:
            subsets.response[c, 0] += weight * target
            squares += weight * target
    subsets.squares[0] = squares
    sort_positions_by_value(subsets.score, 0, n_present, subsets.spare)
    for p in range(n_present):
        subsets.spare[1, p] = subsets.present[subsets.spare[0, p]]
    for p in range(n_present):
        subsets.present[p] = subsets.spare[1, p]
    return n_present, n_rows
