"""Grow classification trees on whole class counts: the fast path for Gini impurity and entropy.

Rows are packed (see `cart.fast_paths.classification.packed_rows`). A node has its class counts from
the division of its parent, so if it is not searched, its rows are not read again.
"""

from functools import cached_property
from itertools import starmap
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NO_CUT, FastPath, tree_at, write_leaf, write_way_of_missing
from cart.fast_paths.cache_copies import create_cache_copies, nearest_copy
from cart.fast_paths.classification.class_rows import ClassRows, ClassScratch
from cart.fast_paths.classification.cumulative_counts import ClassNode, PrefixCounts
from cart.fast_paths.classification.cuts import (
    BestCuts,
    begin_search,
    begin_tree,
    divide_words,
    end_search,
    expect_next,
    search_feature,
    write_cut,
)
from cart.fast_paths.classification.impurities import (
    EntropyCuts,
    GiniCuts,
    child_impurities,
    impurity_of,
    write_shares,
)
from cart.fast_paths.classification.packed_rows import Layout, pack_rows, total_weight
from cart.fast_paths.classification.several_outputs import (
    CODES_MAX,
    JointLayout,
    join_classes,
    mean_over_outputs,
    one_hot,
)
from cart.growth.frontier import NodeStack, push_root, with_weight
from cart.growth.loop import Children, decrease_of, grow
from cart.growth.node_step import bounds_at, pass_on_bounds
from cart.growth.plan import Limits
from cart.jit.decorators import entry_kernel, inline_kernel
from cart.splitting.criteria import Entropy, Gini
from cart.splitting.feature_draw import (
    Draw,
    begin_draw,
    end_draw,
    key_children,
    mark,
    move_key,
    next_feature,
    restart,
)
from cart.tree.recompute import DEPTH_FIRST, GINI, WEIGHTS, WHOLE_COUNTS

CACHE_COPY_BYTES = 2**19, 2**16  # of a column in each copy, see `cart.fast_paths.cache_copies`
_CLASSES_MAX = 256  # of all outputs together
_WEIGHT_MAX = 2**26  # its square is exact in double precision
# For entropy, each thread keeps a table with an item for each unit of a tree's weight: these limit
# the weight, in all or per row, whichever allows more.
_TABLE_MAX, _PER_ROW = 2**20, 8


class ClassCountsWay(NamedTuple):
    """What the path works on; see the protocol of `cart.growth.loop`."""

    cuts: tuple  # searches and divides, see cart.fast_paths.classification.cuts
    criterion: tuple  # of cart.fast_paths.classification.impurities
    table: tuple
    layout: Layout
    tiers: tuple  # of ClassRows
    scratch: ClassScratch
    prefix: PrefixCounts
    draw: Draw
    stack: NodeStack
    limits: Limits

    def load(self, node):
        weight = total_weight(self.scratch.pending[node.row], self.layout)
        return with_weight(node, np.float64(weight), node.impurity)

    def write_leaf(self, tree, this, node):
        counts = self.scratch.pending[node.row]
        weight = total_weight(counts, self.layout)
        write_leaf(tree.nodes, this, node.impurity, node.end - node.start, weight)
        write_shares(self.criterion, tree.nodes.value[this], counts, weight)
        if self.limits.is_monotonic:
            value, bounds = tree.nodes.value[this, 0], bounds_at(self.scratch, node.row)
            value[0] = min(max(value[0], bounds.lower), bounds.upper)
            if value.shape[0] == 2:
                value[1] = 1.0 - value[0]

    def search(self, node):
        node = nearest_copy(self.tiers, node, self.layout)
        counts, weight = self.scratch.pending[node.row], np.int64(node.weight)
        searched = ClassNode(self.criterion, self.prefix, self.layout, counts, weight)
        draw, limits = self.draw, self.limits
        best = NO_CUT
        begin_search(self.cuts, self, node, searched)
        drawing = begin_draw(draw, node.row, node.n_constant)
        j, drawing = next_feature(draw, drawing, limits.max_features)
        while j >= 0:
            feature = draw.features[j]
            expect_next(self.cuts, self, node, drawing, j)
            is_constant, best = search_feature(self.cuts, self, node, searched, feature, best)
            drawing = mark(draw, drawing, j, is_constant)
            j, drawing = next_feature(draw, drawing, limits.max_features)
        best = end_search(self.cuts, self, node, searched, best)
        return node, best, end_draw(draw, drawing)

    def divide(self, node, cut):
        counts, left_counts = self.scratch.pending[node.row], self.scratch.pending[node.row + 1]
        n_left = divide_words(self.cuts, self, node, cut, left_counts)
        weight, left_weight = np.int64(node.weight), total_weight(left_counts, self.layout)
        left, right = child_impurities(self.criterion, left_counts, counts, left_weight, weight)
        decrease = decrease_of(node, left, right, np.float64(left_weight), self.scratch.total[0])
        for c in range(counts.shape[0]):
            counts[c] -= left_counts[c]
        if self.limits.is_monotonic:
            share = np.float64(left_counts[0]) / np.float64(left_weight) / 2.0
            share += np.float64(counts[0]) / np.float64(weight - left_weight) / 2.0
            direction, bounds = self.limits.monotonic[cut.feature], self.scratch
            pass_on_bounds(bounds.lower, bounds.upper, node.row, direction, share)
        return Children(node.start + n_left, left, right, decrease, 0.0)

    def move_row(self, row, to):
        scratch = self.scratch
        for c in range(scratch.pending.shape[1]):
            scratch.pending[to, c] = scratch.pending[row, c]
        scratch.lower[to], scratch.upper[to] = scratch.lower[row], scratch.upper[row]
        move_key(self.draw, row, to)

    def write_split(self, tree, this, node, cut, children):
        write_cut(self.cuts, self, tree, this, node, cut, children)
        start, end = node.start, node.end
        write_way_of_missing(tree.nodes, this, cut, children.middle - start, end - start)
        key_children(self.draw, node.row)


@entry_kernel
def grow_trees(way, trees, candidates, weights, classes, seeds, first_node):
    """Grow one tree per row of `weights`; the nodes of tree t begin at first_node[t]."""
    for t in range(weights.shape[0]):
        _begin_tree(way, weights[t], classes, seeds[t])
        n_nodes = grow(way, tree_at(trees, first_node[t]), candidates)
        first_node[t + 1] = first_node[t] + n_nodes


@inline_kernel
def _begin_tree(way, weight, classes, seed):
    """Begin a tree, with its root pending."""
    root = way.scratch.pending[0]
    restart(way.draw, seed)
    n_rows = pack_rows(weight, classes, way.layout, way.tiers[0].words, root)
    begin_tree(way.cuts, way, n_rows)
    total = total_weight(root, way.layout)
    way.scratch.total[0] = total
    way.scratch.lower[0], way.scratch.upper[0] = -np.inf, np.inf
    push_root(way.stack, n_rows, impurity_of(way.criterion, root, total))


class ClassCountsPath(FastPath):
    """Grows classification trees on weights that are whole numbers."""

    criteria: tuple[type, ...] = (Gini, Entropy)
    takes_missing = takes_bounds = takes_leaves = True
    copy_bytes: tuple[int, ...] = CACHE_COPY_BYTES
    most_outputs = _CLASSES_MAX

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        self._n_classes = plan.n_values * plan.n_outputs
        self._criterion = self._create_criterion(0)
        if plan.n_outputs > 1:
            self._y, self._places = join_classes(self._y, plan.n_values)

    @classmethod
    def knows(cls, plan):
        n_values, n_outputs = plan.n_values, plan.n_outputs
        is_known = super().knows(plan) and n_values * n_outputs <= _CLASSES_MAX
        return is_known and (n_outputs == 1 or n_values**n_outputs <= CODES_MAX)

    def accepts(self, weights, is_whole):
        """Whether the weights are whole numbers that fit into words; sets the layout of words."""
        n_rows, top = len(self._y), weights.sum(axis=1).max()
        if not (super().accepts(weights, is_whole) and is_whole and top <= _WEIGHT_MAX):
            return False
        self._layout = self._create_layout(weights.max())
        if self._plan.criterion is Entropy and len(self._criterion.table) <= top:
            if top > max(_TABLE_MAX, _PER_ROW * n_rows) or top * self._plan.n_outputs > _WEIGHT_MAX:
                return False
            self._criterion = self._create_criterion(int(top))
        return self._layout is not None

    def _create_criterion(self, weight):
        """The criterion of trees that weigh at most `weight`."""
        is_gini, n_outputs = self._plan.criterion is Gini, self._plan.n_outputs
        each = GiniCuts(n_outputs) if is_gini else EntropyCuts.create(weight, n_outputs)
        return each if n_outputs == 1 else mean_over_outputs(each)

    def _create_layout(self, top_weight):
        n_rows = len(self._y)
        if self._plan.n_outputs == 1:
            return Layout.of(n_rows, self._n_classes, top_weight)
        layout = Layout.of(n_rows, len(self._places), top_weight)
        return layout and JointLayout(*layout, self._places, *self._one_hot)

    @cached_property
    def _one_hot(self):
        return one_hot(self._places, self._n_classes)

    def _flags(self, weights, is_whole):
        if self._plan.limits.is_monotonic:
            return DEPTH_FIRST | WEIGHTS
        follows = DEPTH_FIRST | WHOLE_COUNTS
        return follows | GINI if self._plan.criterion is Gini else follows

    def _create_scratch(self):
        n_rows = len(self._y)
        return (
            self._create_cuts(),
            self._create_tiers(),
            ClassScratch.create(n_rows, self._n_classes, self._n_rows_of_stack),
            PrefixCounts.create(self._n_entries, self._n_classes),
        )

    @property
    def _n_entries(self):
        """The most entries that a node searches at once."""
        return len(self._y)

    def _create_cuts(self):
        return BestCuts()

    def _create_tiers(self):
        codes, limits = self._table.codes, self._plan.limits
        n_looked_at = 0 if self._is_best_first else limits.max_features
        near = create_cache_copies(codes, n_looked_at, self.copy_bytes)  # for depth first only
        return tuple(starmap(ClassRows.create, [(len(self._y), codes), *near]))

    def _way(self, weights):
        draw, stack, cuts, tiers, scratch, prefix = self._scratch
        return ClassCountsWay(
            cuts, self._criterion, self._table, self._layout, tiers, scratch, prefix, draw, stack,
            self._limits(weights),
        )  # fmt: skip

    def _grow(self, weights, seeds, first_node, trees):
        grow_trees(self._way(weights), trees, self._candidates, weights, self._y, seeds, first_node)
