"""Trees from sorted rows: the path for sums that depend on the order of rows.

Sums over a node are taken over `samples`, which are in scikit-learn's order: that of the last
feature looked at, then swapped across the cut. Sorted rows are kept separately:

    samples         node [ 9 4 0 7 3 ]             any order, to the bit scikit-learn's
    entries         node [ 0 3 4 7 9 ] feature 0   ascending codes along each feature
                         [ 4 0 9 3 7 ] feature 1

Entries of missing values come last, in the order in which scikit-learn's exchange leaves them. A
feature that has missing values in the node is searched a second time with these on the left.
"""

from itertools import count
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import (
    MISSING_RIGHT,
    NO_CUT,
    NONE_MISSING,
    cut_between,
    has_missing,
)
from cart.fast_paths.regression.best_cut import N_LANES, Lanes, SearchedRows
from cart.fast_paths.regression.cut_criteria import cuts_of
from cart.fast_paths.regression.cut_score import (
    begin_search,
    grow_if_small,
    slack_of,
)
from cart.fast_paths.regression.large_nodes.screening import (
    Screen,
    is_certain,
    is_worth_screening,
)
from cart.fast_paths.regression.large_nodes.sharing import (
    SharedNode,
    divide_features,
    helper_of,
    screen_features,
)
from cart.fast_paths.regression.node_sums import divide_stably, swap_across
from cart.fast_paths.regression.ordered_search import search_in_order
from cart.fast_paths.regression.presorted_rows import PresortedRows, presorting_pays
from cart.fast_paths.regression.several_means import MOST as MOST_MEANS
from cart.fast_paths.regression.small_nodes.node import SMALL_NODE_MAX
from cart.fast_paths.regression.small_nodes.rows_on_demand import SmallNodeOnDemand
from cart.fast_paths.regression.sorted_rows import (
    RowOrder,
    RowsSortedOnDemand,
    begin_node,
    begin_tree,
    count_known,
    expect_feature,
    has_all_entries,
    has_list,
    is_presorted,
    list_order,
    list_turned,
    load_feature,
    mark_left,
    no_order,
    note_split,
    order_missing,
    place_in,
    room_for,
    row_at,
    unlisted_code,
)
from cart.fast_paths.regression.tree_growth import (
    MeanPath,
    MeanWay,
    TreeGrowth,
    add_up_split,
    begin_growth,
    node_at,
    place_children,
    split_node,
    write_mean,
)
from cart.growth.frontier import NodeStack, may_split
from cart.growth.loop import FoundCut, grow, is_enough, left_child, right_child
from cart.growth.plan import Limits
from cart.jit.decorators import entry_kernel, inline_kernel, like
from cart.splitting.criteria import AbsoluteError, Entropy, Gini, Poisson, SquaredError
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    likely_next,
    mark_barred,
    mark_constant,
    mark_searched,
    next_feature,
)
from cart.table.ranking import MISSING
from cart.table.table import Table, keeps_order, same_value

_LARGEST = 1e100  # limit of sums: their cubes stay finite


class SortedScratch(NamedTuple):
    """The rows of the tree, and the memory in which nodes are searched and divided."""

    rows: NamedTuple  # PresortedRows or RowsSortedOnDemand
    samples: np.ndarray  # (n_rows,) uint32: in scikit-learn's order
    targets: np.ndarray  # (2 * n_rows,) float64: see `cart.fast_paths.regression.cut_score`; or
    # (4 * n_rows,), see `cart.fast_paths.regression.several_means`
    is_left: np.ndarray  # (n_rows,) uint8
    screen: Screen
    lanes: Lanes
    has_missing: bool  # whether the table has missing values
    is_missing: np.ndarray  # (n_rows,) uint8: 0 between searches
    order: np.ndarray  # (n_rows,) uint64
    shared: SharedNode


@inline_kernel
def _search(scratch, growth, table, node, limits):
    """Draw features and search them.

    Returns the best Cut, the number of constant features, and the RowOrder in which scikit-learn
    leaves the samples: that of the last feature that varies.
    """
    rows, screen, draw, drawn = scratch.rows, scratch.screen, growth.draw, growth.drawn
    searched, n = _begin_node(scratch, growth, node, limits), node.n
    slack = slack_of(n, growth.y_max)
    screens = is_presorted(rows) and is_worth_screening(searched, slack, node.impurity)
    n_places = N_LANES - 1 if scratch.has_missing else N_LANES
    best, order = NO_CUT, no_order()
    screen.gain[:] = 0.0
    drawing = begin_draw(draw, node.row, node.n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        n_drawn, n_placed = 0, 0
        while j >= 0 and (screens or n_placed < n_places):
            feature, n_known = draw.features[j], np.int64(n)
            column = table.columns[feature]
            expect_feature(rows, table, table.columns[likely_next(draw, drawing, j, 0)], node)
            at, lowest, highest = load_feature(rows, table, column, n_placed, node)
            if lowest < highest == MISSING:
                n_known = count_known(rows.entries, at, n)
                order = list_order(rows, table, order, node)
                order_missing(scratch, table, growth.swap, node, at, n_known, order)
            if lowest < highest and keeps_order(table):
                order = RowOrder(at, np.int64(column), n - n_known)
            if lowest > highest:  # the guard of categories bars the feature
                drawing = mark_barred(draw, drawing, j)
            elif same_value(table, column, lowest, highest):
                drawing = mark_constant(draw, drawing, j)
                if scratch.has_missing and has_list(rows, column):  # may be overwritten next
                    order = _take_order(scratch, node, list_order(rows, table, order, node))
            else:
                drawing = mark_searched(draw, drawing, j)
                places = at, room_for(rows, column, n_placed, node)
                unlisted, direction = unlisted_code(rows, column, n), limits.monotonic[feature]
                drawn.feature[n_drawn], drawn.column[n_drawn] = feature, column
                _note_drawn(drawn, n_drawn, places, n_known, n, direction, unlisted)
                n_drawn, n_placed = n_drawn + 1, n_placed + has_list(rows, column)
                n_placed += 1 < n_known < n
            j, drawing = next_feature(draw, drawing, limits.max_features)
        if screens:
            screen_features(scratch.shared, screen, searched, drawn, n_drawn, slack, table)
        if screens and is_certain(screen, slack):
            left, right = screen.best[1], screen.best[2]
            best = cut_between(table, screen.best[0], left, right, 0.0, screen.best[3])
        else:
            if scratch.has_missing:
                n_drawn = list_turned(rows.entries, drawn, n_drawn, n)
            best = search_in_order(scratch, drawn, n_drawn, node, searched, best, table)
    return best, end_draw(draw, drawing), list_order(rows, table, order, node)


@inline_kernel
def _begin_node(scratch, growth, node, limits):
    """Prepare the search of a node; return its SearchedRows."""
    begin_node(scratch.rows, node)
    return SearchedRows(
        growth.criterion, scratch.rows.entries, scratch.targets, node.n,
        limits.min_samples_leaf - 1, node.weight, node.total,
        begin_search(growth.criterion, scratch.samples, scratch.targets, growth.sums, node),
        limits.is_monotonic or limits.min_weight_leaf > 0.0, limits.min_weight_leaf, node.bounds,
        growth.y_max, scratch.rows,
    )  # fmt: skip


@inline_kernel
def _note_drawn(drawn, k, places, n_known, n, direction, unlisted):
    """Write what is known of the k-th of the features to be searched, of n rows."""
    drawn.first[k], drawn.turned[k] = places
    drawn.n_known[k], drawn.missing[k] = n_known, MISSING_RIGHT if n_known < n else NONE_MISSING
    drawn.direction[k], drawn.unlisted[k] = direction, unlisted


@inline_kernel
def _take_order(scratch, node, order):
    """Bring the node's samples into an order; return that they have it."""
    if order.first >= 0:
        for i in range(node.n):
            place = place_in(order, i, node.n)
            scratch.samples[node.start + i] = row_at(scratch.rows.entries, place)
    return no_order()


@entry_kernel
def _grow_trees(table, growth, scratch, weights, y, seeds, limits, first_node):
    """Grow one tree per row of `weights`; the nodes of tree t begin at first_node[t]."""
    for t in range(weights.shape[0]):
        tree = _begin_tree(growth, table, scratch, weights[t], y, seeds[t], first_node[t])
        first_node[t + 1] = first_node[t] + _grow(tree, table, scratch, limits)


@inline_kernel
def _begin_tree(growth, table, scratch, weights, y, seed, first_node):
    """Begin a tree whose nodes start at `first_node`: return its TreeGrowth, the root pending."""
    samples, is_in_bag = scratch.samples, scratch.is_left
    tree = begin_growth(growth, first_node, samples, scratch.targets, weights, y, seed)
    for row in range(y.shape[0]):
        is_in_bag[row] = weights[row] > 0.0
    begin_tree(scratch.rows, table, samples, tree.stack.end[0], is_in_bag)
    return tree


@inline_kernel
def _grow(growth, table, scratch, limits):
    """Grow one tree, whose root is pending; return how many nodes it has."""
    rows, samples, targets = scratch.rows, scratch.samples, scratch.targets
    height = 1
    n_nodes = 0
    while height > 0:
        height -= 1
        node = node_at(growth, height)
        is_leaf = not may_split(node, limits)
        if not is_leaf:
            n_grown = grow_if_small(
                growth.criterion, growth, table, scratch, node, height, n_nodes, limits
            )
            if n_grown >= 0:
                n_nodes = n_grown
                continue
        this = n_nodes
        n_nodes += 1
        write_mean(growth, this, node)
        if is_leaf:
            continue
        cut, n_constant, order = _search(scratch, growth, table, node, limits)
        if cut.feature < 0:
            continue
        n_left = _divide_samples(scratch, growth.swap, table, node, cut, order)
        children = add_up_split(growth, samples, targets, node, node.start + n_left)
        if not is_enough(children.decrease, limits):
            continue
        split_node(growth, this, node, cut, children, limits)
        note_split(rows, table, this, node, cut, n_left)
        left, right = left_child(node, children, 0), right_child(node, children, 0)
        if may_split(left, limits) or may_split(right, limits):
            features = growth.draw.features[n_constant:]
            divide_features(
                scratch.shared, rows, table, features, node, cut, n_left, scratch.is_left
            )
        height, n_nodes = place_children(growth, node, children, n_constant, n_nodes, limits)
    return n_nodes


@inline_kernel
def _divide_samples(scratch, swap, table, node, cut, order):
    """Divide the node's samples, once they are in this order; return how many go left."""
    samples, is_left = scratch.samples, scratch.is_left
    _take_order(scratch, node, order)
    n_left = mark_left(scratch.rows, table, cut, node, is_left)
    if keeps_order(table):
        swap_across(samples, node.start, node.end, is_left, swap)
    else:
        divide_stably(samples, node.start, node.end, is_left, scratch.order)
    return n_left


@like(MeanWay)
class SortedWay(NamedTuple):
    """What best-first growth works on; see the protocol of `cart.growth.loop`.

    Depth-first growth has a loop of its own, `_grow`.
    """

    table: tuple
    growth: TreeGrowth
    scratch: SortedScratch
    stack: NodeStack
    limits: Limits

    def search(self, node):
        mine = node_at(self.growth, node.row)
        cut, n_constant, order = _search(self.scratch, self.growth, self.table, mine, self.limits)
        return node, FoundCut(cut.feature, cut, order), n_constant

    def divide(self, node, found):
        scratch, growth = self.scratch, self.growth
        mine = node_at(growth, node.row)
        n_left = _divide_samples(scratch, growth.swap, self.table, mine, found.cut, found.last)
        divide_features(
            scratch.shared, scratch.rows, self.table, growth.draw.features, mine, found.cut, n_left,
            scratch.is_left,
        )  # fmt: skip
        return add_up_split(growth, scratch.samples, scratch.targets, mine, node.start + n_left)

    def write_split(self, tree, this, node, found, children):
        n_left, mine = children.middle - node.start, node_at(tree, node.row)
        split_node(tree, this, mine, found.cut, children, self.limits)
        note_split(self.scratch.rows, self.table, this, mine, found.cut, n_left)


@entry_kernel
def _grow_best_first(table, growth, rows, weights, y, seeds, limits, first_node):
    """Grow one tree, best first."""
    scratch, candidates = rows
    tree = _begin_tree(growth, table, scratch, weights[0], y, seeds[0], 0)
    way = SortedWay(table, tree, scratch, tree.stack, limits)
    first_node[1] = grow(way, tree, candidates)


class SortedPath(MeanPath):
    """Grows trees by squared error, Poisson deviance and absolute error, on any columns and
    targets; and by Gini impurity and entropy where weights are not whole numbers."""

    criteria: tuple[type, ...] = (SquaredError, Poisson, Gini, Entropy, AbsoluteError)
    most_outputs = MOST_MEANS
    takes_missing = takes_bounds = takes_leaves = True
    _partial_max = SMALL_NODE_MAX // 2
    _presort_share = 1 / 5  # of the features: presorting pays if nodes look at this share or more

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        self._criterion = cuts_of(plan, self._y)
        self._helpers = count()

    @classmethod
    def knows(cls, plan):
        is_free = not (plan.limits.is_monotonic or plan.min_weight_fraction_leaf)
        return super().knows(plan) and (plan.criterion is not AbsoluteError or is_free)

    @classmethod
    def fits(cls, table, plan):
        is_median = plan.criterion is AbsoluteError
        return super().fits(table, plan) and not (is_median and has_missing(table))

    def accepts(self, weights, is_whole):
        if self._plan.criterion is AbsoluteError:
            return is_whole and self._criterion.takes(weights)
        return super().accepts(weights, is_whole) and self._is_in_range(weights)

    def _is_in_range(self, weights):
        """Whether gains and bounds of scores, with cubes of sums and products of two weights,
        neither overflow nor underflow."""
        heaviest = weights.sum(axis=-1).max()
        return heaviest > 1.0 / _LARGEST and self._y_max < _LARGEST / max(heaviest, 1.0)

    @classmethod
    def takes_narrow(cls, codes, plan):
        return False

    @property
    def _has_small_nodes(self):
        limits, fraction = self._plan.limits, self._plan.min_weight_fraction_leaf
        return not (limits.is_monotonic or fraction > 0.0)

    def _grow_trees(self, table, growth, scratch, *others):
        if self._is_best_first:
            _grow_best_first(table, growth, (scratch, self._candidates), *others)
        else:
            _grow_trees(table, growth, scratch, *others)

    def _create_scratch(self):
        self._table = self._table.wide()  # the kernels are compiled for 32 bits
        return super()._create_scratch()

    @property
    def shares_nodes(self):
        is_usual = self._plan.n_values == 1 and self.table_kind is Table
        return is_usual and self._presorting_pays(self._table, self._plan)

    def helper(self):
        if self._scratch is None or not has_all_entries(self._scratch[-1].rows):
            return None
        draw, _, _, drawn, *_, scratch = self._scratch
        number, features = next(self._helpers), draw.features
        return helper_of(number, self._table, self._criterion, scratch, drawn, features)

    @classmethod
    def _presorting_pays(cls, table, plan):
        return presorting_pays(table, plan, cls._presort_share)

    def _create_small(self):
        limits, table = self._plan.limits, self._table
        if self.table_kind is not Table or self._presorting_pays(table, self._plan):
            return super()._create_small()
        is_served = self._has_small_nodes and SmallNodeOnDemand.serves(table, limits.max_features)
        return SmallNodeOnDemand.create(table, limits.max_features, is_served)

    def _create_rows(self):
        n_rows = len(self._y)
        samples, targets = np.empty(n_rows, np.uint32), np.empty(self._per_row * n_rows)
        rows = self._create_sorted(self._table, samples, targets)
        return SortedScratch(
            rows, samples, targets, np.empty(n_rows, np.uint8),
            Screen.create(n_rows), Lanes.create(), has_missing(self._table),
            np.zeros(n_rows, np.uint8), np.empty(n_rows, np.uint64), SharedNode.create(),
        )  # fmt: skip

    def _create_sorted(self, table, samples, targets):
        pays = self._presorting_pays(self._table, self._plan)
        kind = PresortedRows if pays else RowsSortedOnDemand
        return kind.create(table, lists_all=self._plan.criterion is AbsoluteError)
