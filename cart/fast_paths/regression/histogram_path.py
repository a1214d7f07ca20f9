"""Grow regression trees by squared error: the fast path of sums per code.

Where sums are exact in any order, as those of whole numbers are, nothing need be sorted: the rows
of a node are added up per code, and the codes that occur are met in order. That pays where columns
have few codes. On bins it is done with any targets; there the last bits of sums may differ from
those of scikit-learn, which takes them in the order of its sort.
"""

from itertools import starmap

import numpy as np

from cart.fast_paths.base import (
    FastPath,
    may_be_split,
    push,
    write_split,
)
from cart.fast_paths.cache_copies import create_cache_copies
from cart.fast_paths.regression.cut_score import WEIGHT, weight_at, write_target, y_at
from cart.fast_paths.regression.histogram import (
    CODES_MAX,
    HistogramRows,
    HistogramScratch,
    search_histograms,
)
from cart.fast_paths.regression.node_sums import (
    SQUARES,
    TOTAL,
    DrawnFeatures,
    SwapScratch,
    add_up_children,
    add_up_node,
    decrease_of,
    flags_of,
    impurity_of,
    place_children,
    write_mean,
)
from cart.fast_paths.regression.screening import slack_of
from cart.fast_paths.regression.small_node import (
    SMALL_NODE_MAX,
    SmallNode,
    enter_small_node,
    rank_codes,
    read_code,
    restore_rows,
    small_node_max,
    write_code,
)
from cart.fast_paths.regression.small_subtree import grow_small_subtree
from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.float_order import WHOLE_MAX, are_whole
from cart.splitting.criteria import EPSILON, SquaredError
from cart.splitting.feature_draw import (
    restart,
)
from cart.table.table import same_value
from cart.tree.nodes import from_node

CACHE_COPY_BYTES = (
    2**17,
    2**15,
    2**12,
)  # of a column of the near tiers (see `cart.fast_paths.cache_copies`)
_PARTIAL_MAX = SMALL_NODE_MAX // 4  # of a small node that looks at some features
_LARGEST = 1e50  # of targets, and of weights, for products of their squares to be numbers


@inline_kernel
def _fill_cache_copy(rows, start, n, nearer):
    """Copy n rows from `start` on."""
    for column in range(nearer.codes.shape[0]):
        codes = rows.codes[column]
        copied = nearer.codes[column]
        for i in range(n):
            copied[i] = codes[rows.rows[start + i]]
    for i in range(n):
        row = rows.rows[start + i]
        write_target(nearer.targets, i, weight_at(rows.targets, row), y_at(rows.targets, row))
        nearer.rows[i] = i


@inline_kernel
def _divide(rows, column, left_code, start, n, spare):
    """Divide the rows of a node; return the first that goes right."""
    codes = rows.codes[column]
    left = start
    right = 0
    for i in range(start, start + n):
        row = rows.rows[i]
        goes_left = np.int64(codes[row] <= left_code)
        rows.rows[left] = row
        spare[right] = row
        left += goes_left
        right += 1 - goes_left
    for i in range(right):
        rows.rows[left + i] = spare[i]
    return left


@inline_kernel
def _hand_to_small_node(rows, small, table, features, start, n, mean):
    """Give the node's rows numbers and words; False, and nothing done, if that is impossible."""
    if not enter_small_node(small, rows.rows, start, n, rows.targets, mean):
        return False
    for j in range(features.shape[0]):
        column = table.columns[features[j]]
        codes = rows.codes[column]
        for i in range(n):
            write_code(small, i, column, codes[small.rows[i]])
        if table.tie_span[column] > 0 and _may_be_equal(small, table, column, n):
            restore_rows(small, rows.rows, start, n)  # if there is a cut depends on the node
            return False
    rank_codes(small, n)
    return True


@inline_kernel
def _may_be_equal(small, table, column, n):
    """Do two codes of the rows count as one value?"""
    for i in range(n):
        for j in range(n):
            low, high = read_code(small, i, column), read_code(small, j, column)
            if 0 < high - low <= np.int64(table.tie_span[column]) and same_value(
                table, column, low, high
            ):
                return True
    return False


@entry_kernel
def _grow_trees(
    table, all_nodes, all_cuts, draw, stack, tiers, scratch, small, drawn, swap, sums, weights,
    y, seeds, limits, n_small, first_node,
):  # fmt: skip
    """Grow one tree per row of `weights`; tree t has the nodes from first_node[t] on."""
    farthest = 0.0
    for row in range(y.shape[0]):
        farthest = max(farthest, abs(y[row]))
    far = tiers[0]
    for t in range(weights.shape[0]):
        restart(draw, seeds[t])
        n = 0
        for row in range(y.shape[0]):
            write_target(far.targets, row, weights[t, row], y[row])
            far.rows[n] = row
            n += weights[t, row] > 0.0
        nodes, cuts = from_node(all_nodes, first_node[t]), all_cuts[first_node[t] :]
        n_nodes = _grow(
            table, nodes, cuts, draw, stack, tiers, scratch, small, drawn, swap, sums, n,
            farthest, limits, n_small,
        )  # fmt: skip
        first_node[t + 1] = first_node[t] + n_nodes


@inline_kernel
def _grow(
    table, nodes, cuts, draw, stack, tiers, scratch, small, drawn, swap, sums, n_rows,
    farthest, limits, n_small,
):  # fmt: skip
    """Grow one tree; return how many nodes it has."""
    add_up_node(tiers[0].rows, tiers[0].targets, 0, n_rows, sums[0])
    total_weight = sums[0, WEIGHT]
    impurity = impurity_of(total_weight, sums[0, TOTAL], sums[0, SQUARES])
    push(stack, 0, 0, n_rows, 0, 0, 0, impurity)
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        start, end = stack.start[height], stack.end[height]
        tier, depth = stack.tier[height], stack.depth[height]
        impurity = stack.impurity[height]
        weight, total = sums[height, WEIGHT], sums[height, TOTAL]
        n = end - start
        may_split = may_be_split(n, depth, impurity, limits)
        n_constant = stack.n_constant[height]
        for nearer in range(tier + 1, len(tiers)):
            if may_split and n <= tiers[nearer].rows.shape[0]:
                _fill_cache_copy(tiers[tier], start, n, tiers[nearer])
                tier, start, end = nearer, 0, n
                stack.start[height], stack.end[height] = start, end
        rows = tiers[tier]
        if may_split and n <= n_small:
            features = draw.features[n_constant:]
            if _hand_to_small_node(rows, small, table, features, start, n, total / weight):
                n_nodes = grow_small_subtree(
                    small, table, nodes, draw, drawn, swap, stack, sums, cuts, rows.rows,
                    height + 1, n_nodes, total_weight, farthest, limits,
                )  # fmt: skip
                continue
        this = n_nodes
        n_nodes += 1
        write_mean(nodes, this, impurity, n, sums[height])
        if not may_split:
            continue
        cut, n_constant = search_histograms(
            table, rows, draw, scratch, start, n, n_constant, weight, total, slack_of(n, farthest),
            limits,
        )  # fmt: skip
        if cut.feature < 0:
            continue
        column = table.columns[cut.feature]
        middle = _divide(rows, column, cut.left_code, start, n, scratch.spare)
        left, right, left_weight = add_up_children(
            rows.rows, rows.targets, start, middle, end, sums[height], sums[height + 1],
            sums[height],
        )  # fmt: skip
        decrease = decrease_of(weight, left_weight, impurity, left, right, total_weight)
        if decrease + EPSILON < limits.min_impurity_decrease:
            continue
        write_split(nodes, this, cut, cuts)
        height, n_nodes = place_children(
            nodes, stack, sums, height, n_nodes, start, middle, end, tier, depth + 1,
            n_constant, left, right, limits,
        )  # fmt: skip
    return n_nodes


def _n_codes(table):
    """Of the column that has most."""
    return int(np.diff(table.level_start).max())


class HistogramPath(FastPath):
    """Grows regression trees by squared error where columns have few codes."""

    criteria = (SquaredError,)

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        self._farthest = np.abs(self._y).max()
        self._is_whole = are_whole(self._y)

    @classmethod
    def fits(cls, table, plan):
        return (
            super().fits(table, plan)
            and table.codes.dtype != np.uint32  # narrow where there are few
            and _n_codes(table) <= CODES_MAX
        )

    @classmethod
    def takes_narrow(cls, codes, plan):
        return plan.is_binned or are_whole(codes)

    def _accepts(self, weights, is_whole):
        heaviest = weights.sum(axis=1).max()
        if max(self._farthest, heaviest, 1.0 / heaviest) > _LARGEST:
            return False
        if self._plan.is_binned:
            return True
        is_exact = heaviest * self._farthest**2 < WHOLE_MAX
        return is_exact and self._is_whole and is_whole

    def _flags(self, weights, is_whole):
        return flags_of(super()._flags(weights, is_whole), self._y, weights)

    def _create_scratch(self):
        codes = self._table.codes
        n_columns, n_rows = codes.shape
        n_features = len(self._table.columns)
        near = create_cache_copies(codes, self._plan.limits.max_features, CACHE_COPY_BYTES)
        return (
            tuple(starmap(HistogramRows.create, [(n_rows, codes), *near])),
            HistogramScratch.create(n_rows, _n_codes(self._table)),
            SmallNode.create(n_rows, n_columns, n_features),
            DrawnFeatures.create(n_features),
            SwapScratch.create(SMALL_NODE_MAX),
            np.empty((n_rows + 2, 3)),
        )

    def _grow(self, weights, seeds, first_node):
        limits = self._plan.limits
        _grow_trees(
            self._table, self._nodes, self._cuts, *self._scratch, weights, self._y, seeds, limits,
            small_node_max(limits.max_features, len(self._table.columns), _PARTIAL_MAX), first_node,
        )  # fmt: skip
