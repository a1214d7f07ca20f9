"""Regression trees by squared error from histograms: the path for columns with few codes.

If sums are exact in any order, as sums of whole numbers are, nothing has to be sorted: a node's
rows are added up by code, and the codes that occur are visited in order. Tables of bins are grown
so with any targets; the last bits of sums may then differ from scikit-learn's, which adds in the
order of its sort.

Rows lie in tiers (see `cart.fast_paths.cache_copies`). A node's rows are side by side in ascending
order, and the partition is stable:

    rows    node [ 0 3 4 7 8 9 ]          numbers into codes and targets of the tier
            ->   [ 0 4 9 | 3 7 8 ]        left | right
"""

from functools import partial
from itertools import starmap

import numpy as np

from cart.fast_paths.cache_copies import create_cache_copies, nearest_copy
from cart.fast_paths.regression.cut_criteria import SquaredErrorCuts
from cart.fast_paths.regression.cut_score import slack_of
from cart.fast_paths.regression.histograms.histogram import (
    CODES_MAX,
    HistogramScratch,
    divide_rows,
    grow_small,
    note_split,
    search_node,
)
from cart.fast_paths.regression.histograms.numbers import Numbers
from cart.fast_paths.regression.small_nodes.node import SMALL_NODE_MAX
from cart.fast_paths.regression.tree_growth import (
    MeanPath,
    TierRows,
    add_up_split,
    begin_growth,
    node_at,
    place_children,
    split_node,
    write_mean,
)
from cart.growth.frontier import may_split, pending_at, push
from cart.growth.loop import is_enough
from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.float_order import WHOLE_MAX, are_whole
from cart.table.frequent_codes import is_mostly_equal
from cart.table.table import Table

CACHE_COPY_BYTES = (2**17, 2**15, 2**12)  # of a column, see `cart.fast_paths.cache_copies`
# Sorted rows, of which those with a column's most frequent value are not listed, are faster if at
# most this share of the cells hold another value; the second where nodes look at less than half of
# the features.
_OTHERS_MAX = 1 / 4, 1 / 6
_LARGEST = 1e50  # limit of targets and weights: products of their squares stay finite


@entry_kernel
def _grow_trees(table, growth, rows, weights, y, seeds, limits, first_node):
    """Grow one tree per row of `weights`; the nodes of tree t begin at first_node[t]."""
    tiers, scratch = rows
    samples, targets = tiers[0].samples, tiers[0].targets
    for t in range(weights.shape[0]):
        tree = begin_growth(growth, first_node[t], samples, targets, weights[t], y, seeds[t])
        first_node[t + 1] = first_node[t] + _grow(tree, table, tiers, scratch, limits)


@inline_kernel
def _grow(growth, table, tiers, scratch, limits):
    """Grow one tree, whose root is pending; return how many nodes it has."""
    small, columns = growth.small, scratch.columns
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        node = node_at(growth, height)
        is_leaf = not may_split(node, limits)
        if not is_leaf:
            pending = nearest_copy(tiers, pending_at(growth.stack, height), growth.criterion)
            push(growth.stack, pending)
            node = node_at(growth, height)
        rows = tiers[node.tier]
        if not is_leaf and node.n <= small.n_max:
            n_grown = grow_small(columns, growth, table, rows, node, height, n_nodes, limits)
            if n_grown >= 0:
                n_nodes = n_grown
                continue
        this = n_nodes
        n_nodes += 1
        write_mean(growth, this, node)
        if is_leaf:
            continue
        slack = slack_of(node.n, growth.y_max)
        cut, n_constant = search_node(scratch, rows, table, growth.draw, node, slack, limits)
        if cut.feature < 0:
            continue
        middle = divide_rows(columns, scratch, rows, table, cut, node)
        children = add_up_split(growth, rows.samples, rows.targets, node, middle)
        if not is_enough(children.decrease, limits):
            continue
        split_node(growth, this, node, cut, children, limits)
        note_split(columns, table, this, cut)
        height, n_nodes = place_children(growth, node, children, n_constant, n_nodes, limits)
    return n_nodes


def _n_codes(table):
    """How many codes the column with the most has."""
    return int(table.n_levels().max())


class HistogramPath(MeanPath):
    """Grows regression trees by squared error where columns have few codes."""

    _partial_max = SMALL_NODE_MAX // 4
    _may_round = True  # whether bins are taken with targets whose sums are not exact
    _narrows = False  # whether tables with few codes may come with wide ones
    _criterion, _grow_trees = SquaredErrorCuts(), staticmethod(_grow_trees)

    @classmethod
    def fits(cls, table, plan):
        is_narrow = cls._narrows or table.codes.dtype != np.uint32
        if not (super().fits(table, plan) and is_narrow and _n_codes(table) <= CODES_MAX):
            return False
        has_lists = type(table) is Table and not plan.is_binned
        return not (has_lists and is_mostly_equal(table, plan.limits.max_features, _OTHERS_MAX))

    @classmethod
    def takes_narrow(cls, codes, plan):
        return plan.is_binned or are_whole(codes)

    def _are_in_range(self, weights):
        """Whether products of squared sums stay finite."""
        heaviest = weights.sum(axis=1).max()
        return max(self._y_max, heaviest) <= _LARGEST and heaviest >= 1.0 / _LARGEST

    def accepts(self, weights, is_whole):
        if not self._are_in_range(weights):
            return False
        if self._plan.is_binned and self._may_round:
            return True
        with np.errstate(under="ignore"):
            is_exact = weights.sum(axis=1).max() * self._y_max**2 < WHOLE_MAX
        return is_exact and self._is_whole and is_whole

    def _create_rows(self):
        codes = self._table.codes
        n_rows = codes.shape[1]
        copies = create_cache_copies(codes, self._plan.limits.max_features, CACHE_COPY_BYTES)
        return (
            tuple(starmap(partial(TierRows.create, self._per_row), [(n_rows, codes), *copies])),
            HistogramScratch.create(n_rows, _n_codes(self._table), self._create_columns()),
        )

    def _create_columns(self):
        return Numbers()
