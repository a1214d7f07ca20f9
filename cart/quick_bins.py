"""Grow regression trees by squared error on a table of bins: the fast path of sums per bin.

Sums are taken in the order of the table, and bin by bin; scikit-learn takes them in the order of
its sort. Where they are exact, as for whole numbers, the trees are the same; elsewhere the last
bits differ. Codes are bytes here, and small nodes take a near copy of theirs along.
"""

from typing import NamedTuple

import numpy as np

from cart.bins import MAX_BINS
from cart.criteria import EPSILON, SquaredError
from cart.draw import begin_draw, end_draw, mark_constant, mark_searched, next_feature, restart
from cart.jit import entry_kernel, inline_kernel
from cart.mean_score import mean_score
from cart.nodes import from_node
from cart.quick import (
    NO_CUT,
    Cut,
    Quick,
    may_be_split,
    push,
    write_leaf,
    write_split,
    write_thresholds,
)
from cart.radix import N_DIGITS, ROOM, n_bits_of, sort_short_keys
from cart.table import same_value

WEIGHT, SUM, SQUARE = range(3)  # columns of `targets`
NEAR = 1024  # nodes of so many rows take a near copy along, for the caches to hold
_ROWS_PER_BIN = 1  # from so many on, the rows of a node are added up per bin, not sorted
_ROWS_MAX = 2**24  # whose number fits into a key beside a code


class Rows(NamedTuple):
    """Some rows: those of a node side by side, and what their numbers point to."""

    rows: np.ndarray  # (n,) uint32, ascending in a node
    codes: np.ndarray  # (n_columns, n) uint8
    targets: np.ndarray  # (n, 3) float64: weight, times y, times y squared

    @classmethod
    def near(cls, n, n_columns):
        return cls(np.empty(n, np.uint32), np.empty((n_columns, n), np.uint8), np.empty((n, 3)))


class Bench(NamedTuple):
    """What a thread writes to while it grows a tree."""

    bins: np.ndarray  # (MAX_BINS, 2) float64: weight and sum of the bins of the node at hand
    keys: np.ndarray  # (n + ROOM,) uint32: code above place
    spare: np.ndarray  # (n + ROOM,) uint32
    digits: np.ndarray  # (N_DIGITS,) int32
    sums: np.ndarray  # (n + 2, 3) float64: weight, sum and squares of the nodes that wait

    @classmethod
    def create(cls, n):
        return cls(
            np.empty((MAX_BINS, 2)),
            np.empty(n + ROOM, np.uint32),
            np.empty(n + ROOM, np.uint32),
            np.empty(N_DIGITS, np.int32),
            np.empty((n + 2, 3)),
        )


@inline_kernel
def _search(table, rows, draw, bench, start, n, n_constant, weight, total, limits):
    """Draw features and search each; return the best Cut and how many are constant."""
    best = NO_CUT
    first = limits.min_samples_leaf - 1
    begin_draw(draw, np.uint64(0), n_constant)
    j = next_feature(draw, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = table.columns[feature]
        n_bins = table.level_start[column + 1] - table.level_start[column]
        if first == 0 and n >= _ROWS_PER_BIN * n_bins:
            is_constant, best = _choose_bin(
                table, rows, bench.bins[:n_bins], feature, column, start, n, weight, total, best
            )
        else:
            is_constant, best = _choose_place(
                table, rows, bench, feature, column, start, n, first, weight, total, best
            )
        if is_constant:
            mark_constant(draw, j)
        else:
            mark_searched(draw, j)
        j = next_feature(draw, limits.max_features)
    return best, end_draw(draw)


@inline_kernel
def _choose_bin(table, rows, bins, feature, column, start, n, weight, total, best):
    """Add up the rows of every bin, then judge the cuts between bins.

    Returns whether the feature is constant in the node, and the better of `best` and its best Cut.
    """
    codes = rows.codes[column]
    bins[:] = 0.0
    for i in range(start, start + n):
        row = rows.rows[i]
        code = codes[row]
        bins[code, WEIGHT] += rows.targets[row, WEIGHT]
        bins[code, SUM] += rows.targets[row, SUM]
    lowest = 0
    while bins[lowest, WEIGHT] == 0.0:
        lowest += 1
    left_weight = bins[lowest, WEIGHT]
    left_sum = bins[lowest, SUM]
    low = lowest
    for code in range(lowest + 1, bins.shape[0]):
        if bins[code, WEIGHT] == 0.0:
            continue
        if _is_cut(table, column, low, code):
            found = mean_score(left_weight, left_sum, weight, total)
            if found > best.score:
                best = Cut(feature, low, code, found)
        left_weight += bins[code, WEIGHT]
        left_sum += bins[code, SUM]
        low = code
    return same_value(table, column, lowest, low), best


@inline_kernel
def _choose_place(table, rows, bench, feature, column, start, n, first, weight, total, best):
    """Sort the rows, then judge the cuts between them; returns what `_choose_bin` does."""
    codes = rows.codes[column]
    keys = bench.keys
    place_bits = np.uint32(n_bits_of(np.uint32(n - 1)))
    lowest = np.uint32(MAX_BINS)
    highest = np.uint32(0)
    for i in range(n):
        code = np.uint32(codes[rows.rows[start + i]])
        lowest = min(lowest, code)
        highest = max(highest, code)
        keys[i] = code << place_bits | np.uint32(i)
    if same_value(table, column, np.int64(lowest), np.int64(highest)):
        return True, best
    if n == 2 and best.feature >= 0:  # two rows can be cut in one way only
        return False, best
    if sort_short_keys(keys, n, place_bits, lowest, highest, bench.spare, bench.digits):
        keys = bench.spare
    mask = (np.uint32(1) << place_bits) - np.uint32(1)
    left_weight = 0.0
    left_sum = 0.0
    for i in range(n - 1 - first):
        row = rows.rows[start + np.int64(keys[i] & mask)]
        left_weight += rows.targets[row, WEIGHT]
        left_sum += rows.targets[row, SUM]
        if i < first or keys[i] ^ keys[i + 1] <= mask:
            continue
        low = np.int64(keys[i] >> place_bits)
        high = np.int64(keys[i + 1] >> place_bits)
        if _is_cut(table, column, low, high):
            found = mean_score(left_weight, left_sum, weight, total)
            if found > best.score:
                best = Cut(feature, low, high, found)
    return False, best


@inline_kernel
def _is_cut(table, column, low, high):
    """Are two codes, low < high, two values for scikit-learn?"""
    return high - low > np.int64(table.reach[column]) or not same_value(table, column, low, high)


@inline_kernel
def _take_near(far, start, n, near):
    """Copy n rows from `start` on."""
    for column in range(near.codes.shape[0]):
        codes = far.codes[column]
        copied = near.codes[column]
        for i in range(n):
            copied[i] = codes[far.rows[start + i]]
    for i in range(n):
        row = far.rows[start + i]
        near.targets[i, WEIGHT] = far.targets[row, WEIGHT]
        near.targets[i, SUM] = far.targets[row, SUM]
        near.targets[i, SQUARE] = far.targets[row, SQUARE]
        near.rows[i] = i


@inline_kernel
def _divide(rows, column, left_code, start, n, spare, left, right):
    """Divide the rows of a node, add up either side; return how many go left."""
    codes = rows.codes[column]
    n_left = 0
    n_right = 0
    left[:] = 0.0
    right[:] = 0.0
    for i in range(start, start + n):
        row = rows.rows[i]
        if codes[row] <= left_code:
            side = left
            rows.rows[start + n_left] = row
            n_left += 1
        else:
            side = right
            spare[n_right] = row
            n_right += 1
        side[WEIGHT] += rows.targets[row, WEIGHT]
        side[SUM] += rows.targets[row, SUM]
        side[SQUARE] += rows.targets[row, SQUARE]
    for i in range(n_right):
        rows.rows[start + n_left + i] = spare[i]
    return n_left


@inline_kernel
def _impurity(sums):
    mean = sums[SUM] / sums[WEIGHT]
    return sums[SQUARE] / sums[WEIGHT] - mean * mean


@entry_kernel
def _grow_trees(
    table, all_nodes, draw, waiting, cuts, far, near, bench, weights, y, seeds, limits, first_node
):
    """Grow one tree per row of `weights`; tree t has the nodes from first_node[t] on."""
    for t in range(weights.shape[0]):
        restart(draw, seeds[t])
        n = 0
        bench.sums[0] = 0.0
        for row in range(y.shape[0]):
            weight = weights[t, row]
            far.targets[row, WEIGHT] = weight
            far.targets[row, SUM] = weight * y[row]
            far.targets[row, SQUARE] = weight * y[row] * y[row]
            for k in range(3):
                bench.sums[0, k] += far.targets[row, k]
            far.rows[n] = row
            n += weight > 0.0
        nodes = from_node(all_nodes, first_node[t])
        n_nodes = _grow(table, nodes, draw, waiting, cuts, far, near, bench, n, limits)
        first_node[t + 1] = first_node[t] + n_nodes


@inline_kernel
def _grow(table, nodes, draw, waiting, cuts, far, near, bench, n_rows, limits):
    """Grow one tree, whose sums wait in bench.sums[0]; return how many nodes it has."""
    push(waiting, 0, 0, n_rows, 0, 0, -1, False, 0, _impurity(bench.sums[0]))
    total_weight = bench.sums[0, WEIGHT]
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        start, end = waiting.start[height], waiting.end[height]
        level, depth = waiting.level[height], waiting.depth[height]
        impurity = waiting.impurity[height]
        n = end - start
        weight = bench.sums[height, WEIGHT]
        total = bench.sums[height, SUM]
        this = n_nodes
        n_nodes += 1
        write_leaf(nodes, this, waiting, height, impurity, n, weight)
        nodes.value[this, 0, 0] = total / weight
        if not may_be_split(n, depth, impurity, limits):
            continue
        if level == 0 and n <= near.rows.shape[0]:
            _take_near(far, start, n, near)
            level, start, end = 1, 0, n
        rows = near if level == 1 else far
        cut, n_constant = _search(
            table, rows, draw, bench, start, n, waiting.n_constant[height], weight, total, limits
        )
        if cut.feature < 0:
            continue
        right_sums = bench.sums[height]
        left_sums = bench.sums[height + 1]
        column = table.columns[cut.feature]
        n_left = _divide(rows, column, cut.left_code, start, n, bench.spare, left_sums, right_sums)
        left, right = _impurity(left_sums), _impurity(right_sums)
        decrease = (weight / total_weight) * (
            impurity - (right_sums[WEIGHT] / weight * right) - (left_sums[WEIGHT] / weight * left)
        )
        if decrease + EPSILON < limits.min_impurity_decrease:
            continue
        write_split(nodes, this, cut, n_left, n - n_left, cuts)
        middle = start + n_left
        depth += 1
        push(waiting, height, middle, end, level, depth, this, False, n_constant, right)
        push(waiting, height + 1, start, middle, level, depth, this, True, n_constant, left)
        height += 2
    write_thresholds(nodes, n_nodes, cuts, table)
    return n_nodes


class QuickBins(Quick):
    """Grows regression trees by squared error on bins."""

    criteria = (SquaredError,)

    @classmethod
    def fits(cls, table, plan):
        return plan.is_binned and super().fits(table, plan) and table.codes.shape[1] <= _ROWS_MAX

    def _create_scratch(self):
        n_columns, n_rows = self._table.codes.shape
        return (
            Rows(
                np.empty(n_rows, np.uint32),
                self._table.codes.astype(np.uint8),
                np.empty((n_rows, 3)),
            ),
            Rows.near(min(NEAR, n_rows), n_columns),
            Bench.create(n_rows),
        )

    def _grow(self, weights, seeds, first_node):
        _grow_trees(
            self._table, self._nodes, *self._scratch, weights, self._y, seeds, self._plan.limits,
            first_node,
        )  # fmt: skip
