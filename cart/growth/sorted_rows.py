"""Keep a tree's rows sorted along every feature, and divide them with its nodes.

order of a feature    3 0 4 1 2          sorted once per table: rows by code, missing values last
keys of a tree        3 0 1 2            those of the in-bag rows
a node, its children  | 3 1 | 0 2 |      each child keeps the order

A key has the code in its high half, and the row in its low half.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, kernel
from cart.primitives.partition import partition
from cart.primitives.sort_keys import CODE_SHIFT, RECORD, record_of


class SortedRows(NamedTuple):
    """The orders of a table, and work space of a thread that follows a tree."""

    order: np.ndarray  # (n_features, n_rows) uint64: keys, read-only
    codes: np.ndarray  # (n_columns, n_rows) uint32: of the table
    columns: np.ndarray  # (n_features,) int64
    keys: np.ndarray  # (n_features, n_rows) uint64: the tree's rows, node by node
    spare: np.ndarray  # (n_rows,) uint64
    vote: np.ndarray  # (n_rows,) int64: see `cart.splitting.agreement`
    goes_left: np.ndarray  # (n_rows,) uint8
    units: np.ndarray  # (n_rows,) int64: weights, see `cart.splitting.agreement.units_of`

    @classmethod
    def create(cls, table):
        """Sort the rows of a Table or CategoricalTable."""
        n_features, n_rows = len(table.columns), table.codes.shape[1]
        codes = table.codes.astype(np.uint32, copy=False)
        order = np.empty((n_features, n_rows), np.uint64)
        n_codes = int(table.n_levels().max(initial=0))
        n_categories = getattr(table, "n_categories", np.zeros(1, np.int64))
        room = np.zeros(max(n_codes, int(n_categories.max(initial=0))) + 2, np.int64)
        _order(codes, table.columns, room, order)
        return cls(
            order, codes, table.columns,
            np.empty((n_features, n_rows), np.uint64), np.empty(n_rows, np.uint64),
            np.zeros(n_rows, np.int64), np.zeros(n_rows, np.uint8), np.zeros(n_rows, np.int64),
        )  # fmt: skip


@entry_kernel
def _order(codes, columns, room, order):
    """Sort rows by their codes, in a counting sort; missing values come last."""
    most = room.shape[0] - 1
    for feature in range(columns.shape[0]):
        mine = codes[columns[feature]]
        room[:] = 0
        for row in range(mine.shape[0]):
            room[min(np.int64(mine[row]), most - 1) + 1] += 1
        for code in range(most):
            room[code + 1] += room[code]
        for row in range(mine.shape[0]):
            code = min(np.int64(mine[row]), most - 1)
            order[feature, room[code]] = np.uint64(mine[row]) << CODE_SHIFT | np.uint64(row)
            room[code] += 1


@kernel
def begin_tree(rows):
    """Take the rows that have a weight; return how many there are."""
    n = np.int64(0)
    for row in range(rows.units.shape[0]):
        n += rows.units[row] > 0
    if n == rows.units.shape[0]:
        for feature in range(rows.order.shape[0]):
            for i in range(n):
                rows.keys[feature, i] = rows.order[feature, i]
        return n
    for feature in range(rows.order.shape[0]):
        order, keys = rows.order[feature], rows.keys[feature]
        n = np.int64(0)
        for i in range(order.shape[0]):
            keys[n] = order[i]
            n += rows.units[record_of(order[i])] > 0
    return n


class _RowSides(NamedTuple):
    """Which way each row goes (see `cart.primitives.partition`)."""

    side: np.ndarray

    def goes_left(self, i, item):
        return self.side[item & RECORD]


@kernel
def divide_rows(rows, start, end):
    """Divide a node along every feature, by `goes_left`."""
    for feature in range(rows.keys.shape[0]):
        mine = rows.keys[feature, start:end]
        partition(_RowSides(rows.goes_left), mine, end - start, mine, rows.spare)


@kernel
def keep_side(rows, start, end, left):
    """Keep only the left (or else the right) rows of a node in their order, as the other child is a
    leaf; along the first feature, keep all rows, divided."""
    for feature in range(rows.keys.shape[0]):
        mine = rows.keys[feature]
        if feature == 0:
            own = mine[start:end]
            partition(_RowSides(rows.goes_left), own, end - start, own, rows.spare)
        elif left:
            at = start
            for i in range(start, end):
                mine[at] = mine[i]
                at += np.int64(rows.goes_left[record_of(mine[i])])
        else:
            at = end - 1
            for i in range(end - 1, start - 1, -1):
                mine[at] = mine[i]
                at -= 1 - np.int64(rows.goes_left[record_of(mine[i])])
