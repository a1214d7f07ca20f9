"""The state of a tree that grows by sums: its pending nodes, and the arrays it is written to.

The stack has the rows and the impurity of a pending node, `sums` has its sums in the same row:

    height       0              1
    stack   [ start end ... | start end ... ]      the top is grown next
    sums    [ W   S   R ... | W   S   R ... ]      weight, sum of w y, the criterion's third sum
                                                   (of squares, say), and the bounds of its value
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import (
    FastPath,
    has_missing,
    tree_at,
    write_leaf,
    write_split,
    write_way_of_missing,
)
from cart.fast_paths.regression import class_weights
from cart.fast_paths.regression.cut_score import (
    WEIGHT,
    copy_row,
    root_impurity,
    sum_children,
    sum_node,
    take_row,
    write_value,
)
from cart.fast_paths.regression.node_sums import LOWER, REST, TOTAL, UPPER, SwapScratch
from cart.fast_paths.regression.several_means import sizes_of
from cart.fast_paths.regression.small_nodes.node import small_node_max
from cart.fast_paths.regression.small_nodes.ranked_rows import SmallNode
from cart.fast_paths.rows_across import create_across, write_across
from cart.growth.frontier import (
    NodeStack,
    may_split,
    pending_at,
    push,
    push_root,
    with_weight,
)
from cart.growth.loop import Children, decrease_of, left_child, right_child
from cart.growth.node_step import pass_on_bounds
from cart.jit.decorators import inline_kernel
from cart.primitives.float_order import are_whole
from cart.primitives.gather import take
from cart.splitting.criteria import Entropy, Gini, SquaredError
from cart.splitting.feature_draw import Draw, key_children, move_key, restart
from cart.splitting.splitter import Bounds
from cart.tree.nodes import Grown
from cart.tree.recompute import SUMS, SUMS_MAX, WEIGHTS


class DrawnFeatures(NamedTuple):
    """The features of the current node that are to be searched, in the order of the draw."""

    feature: np.ndarray  # (2 n_features,) int64: may be listed twice if it has missing values
    column: np.ndarray  # (2 n_features,) int64: of the table
    first: np.ndarray  # (2 n_features,) int64: where its entries begin
    turned: np.ndarray  # (2 n_features,) int64: where they may be, missing values in front
    n_known: np.ndarray  # (2 n_features,) int64: rows whose value is not missing
    missing: np.ndarray  # (2 n_features,) int64: where missing values go
    direction: np.ndarray  # (2 n_features,) int64: of a monotonic constraint, or 0
    unlisted: np.ndarray  # (2 n_features,) int64: the code whose rows are not listed, or MISSING

    @classmethod
    def create(cls, n_features):
        return cls(*np.zeros((8, 2 * n_features), np.int64))


class TierRows(NamedTuple):
    """The samples of a tier, each node's side by side, and the codes and targets they point to."""

    samples: np.ndarray  # (n,) uint32: in scikit-learn's order, or ascending in a node
    codes: np.ndarray  # (n_columns, at least n), of the table's type
    targets: np.ndarray  # (n * per_row,) float64: as the criterion keeps them
    across: np.ndarray  # codes as in `cart.fast_paths.rows_across`, in the nearest tier; else empty

    @classmethod
    def create(cls, per_row, n, codes, is_nearest=False):
        across = create_across(n, len(codes) if is_nearest else 0)
        return cls(np.empty(n, np.uint32), codes, np.empty(per_row * n), across)

    def room_of(self):
        return self.samples.shape[0]

    def copy_rows(self, start, n, nearer, criterion):
        samples = self.samples[start : start + n]
        for column in range(nearer.codes.shape[0]):
            take(self.codes[column], samples, nearer.codes[column])
        if nearer.across.shape[0] > 0:
            write_across(nearer.across, nearer.codes, n)
        for i in range(n):
            copy_row(criterion, self.targets, samples[i], nearer.targets, i)
            nearer.samples[i] = i


class TreeGrowth(NamedTuple):
    """A tree, or several in a row, and what all regression paths grow it with."""

    criterion: tuple  # of cart.fast_paths.regression.cut_criteria
    nodes: Grown
    cuts: np.ndarray  # (n_nodes,) uint64: see `cart.fast_paths.base.write_split`
    draw: Draw
    stack: NodeStack
    sums: np.ndarray  # (n_rows + 2, at least 5) float64: of pending nodes
    drawn: DrawnFeatures
    swap: SwapScratch
    small: NamedTuple  # of cart.fast_paths.regression.small_nodes
    total_weight: float
    y_max: float  # the largest size of a target


class Node(NamedTuple):
    """A pending node, taken from the stack."""

    start: int
    end: int
    n: int
    tier: int
    depth: int
    n_constant: int
    impurity: float
    weight: float
    total: float
    rest: float
    bounds: Bounds
    row: int  # of the stack and of the sums


@inline_kernel
def begin_growth(growth, first_node, samples, targets, weights, y, seed):
    """Begin a tree on the rows that have a weight, whose nodes start at `first_node`: write what is
    kept of the rows; return its TreeGrowth, with the root pending."""
    criterion, sums, n = growth.criterion, growth.sums, np.int64(0)
    tree = tree_at(growth, first_node)
    restart(growth.draw, seed)
    for row in range(y.shape[0]):
        take_row(criterion, targets, row, weights[row], y)
        samples[n] = row
        n += weights[row] > 0.0
    sum_node(criterion, samples, targets, 0, n, sums[0])
    sums[0, LOWER], sums[0, UPPER] = -np.inf, np.inf
    push_root(growth.stack, n, root_impurity(criterion, samples, targets, n, sums[0]))
    return TreeGrowth(
        criterion, tree.nodes, tree.cuts, growth.draw, growth.stack, sums, growth.drawn,
        growth.swap, growth.small, sums[0, WEIGHT], growth.y_max,
    )  # fmt: skip


@inline_kernel
def node_at(growth, height):
    """The pending node at this height of the stack."""
    return node_of(growth, pending_at(growth.stack, height))


@inline_kernel
def bounds_at(growth, row):
    """The bounds of the node whose sums are in this row."""
    return Bounds(growth.sums[row, LOWER], growth.sums[row, UPPER])


@inline_kernel
def node_of(growth, pending):
    """The Node of a PendingNode, which need not be on the stack."""
    sums = growth.sums[pending.row]
    return Node(
        pending.start, pending.end, pending.end - pending.start, pending.tier, pending.depth,
        pending.n_constant, pending.impurity, sums[WEIGHT], sums[TOTAL], sums[REST],
        bounds_at(growth, pending.row), pending.row,
    )  # fmt: skip


@inline_kernel
def write_mean(growth, this, node):
    """Write node `this` as a leaf, including its value, clipped to its bounds."""
    sums, value = growth.sums[node.row], growth.nodes.value[this]
    write_leaf(growth.nodes, this, node.impurity, node.end - node.start, sums[WEIGHT])
    write_value(growth.criterion, value, sums)
    value[0, 0] = min(max(value[0, 0], sums[LOWER]), sums[UPPER])


@inline_kernel
def split_node(growth, this, node, cut, children, limits):
    """Turn node `this` into a split, and write its children's bounds to their rows of sums."""
    write_split(growth.nodes, this, cut, growth.cuts)
    write_way_of_missing(growth.nodes, this, cut, children.middle - node.start, node.n)
    direction = np.int64(0)
    if limits.is_monotonic:
        direction = np.int64(limits.monotonic[cut.feature])
    lower, upper = growth.sums[:, LOWER], growth.sums[:, UPPER]
    pass_on_bounds(lower, upper, node.row, direction, children.value)
    key_children(growth.draw, node.row)


@inline_kernel
def place_children(growth, node, children, n_constant, n_nodes, limits):
    """Write the children of a split that are leaves, if it is their turn; push the others.

    Returns the number of pending nodes and the number of nodes written.
    """
    stack, sums, height = growth.stack, growth.sums, node.row
    left, right = left_child(node, children, n_constant), right_child(node, children, n_constant)
    if may_split(with_weight(left, sums[left.row, WEIGHT], left.impurity), limits):
        push(stack, right)
        push(stack, left)
        return height + 2, n_nodes
    write_mean(growth, n_nodes, left)
    if may_split(with_weight(right, sums[right.row, WEIGHT], right.impurity), limits):
        push(stack, right)
        return height + 1, n_nodes + 1
    write_mean(growth, n_nodes + 1, right)
    return height, n_nodes + 2


class MeanWay:
    """Methods that the ways of all paths on sums share; see the protocol of `cart.growth.loop`."""

    def load(self, node):
        return with_weight(node, self.growth.sums[node.row, WEIGHT], node.impurity)

    def write_leaf(self, tree, this, node):
        write_mean(tree, this, node)

    def move_row(self, row, to):
        sums = self.growth.sums
        for k in range(sums.shape[1]):
            sums[to, k] = sums[row, k]
        move_key(self.growth.draw, row, to)


@inline_kernel
def add_up_split(growth, samples, targets, node, middle):
    """Write the sums of both children of a divided node; return its Children."""
    halves = sum_children(growth.criterion, samples, targets, node, middle, growth.sums)
    return children_with(growth, node, middle, halves)


@inline_kernel
def children_with(growth, node, middle, halves):
    """The Children of a node with these Halves."""
    left, right, left_weight, value = halves
    decrease = decrease_of(node, left, right, left_weight, growth.total_weight)
    return Children(middle, left, right, decrease, value)


_OF_CLASSES = Gini, Entropy


class MeanPath(FastPath):
    """Base class of the paths that grow trees by sums of weights and targets.

    They grow classification trees only if weights are not whole numbers; otherwise classes are
    counted (`cart.fast_paths.classification`). For the Gini impurity of two classes, targets are 1
    in the first class.
    """

    criteria: tuple[type, ...] = (SquaredError,)
    _partial_max = 0  # most rows of a small node if nodes look at some of the features only
    _more_sums = 0  # of a node, besides those that all paths have
    _per_row = 2  # how many numbers are kept of a row
    _has_small_nodes = True  # whether nodes of few rows may be grown as small ones

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        if plan.criterion in _OF_CLASSES:
            self._more_sums = plan.n_values
        if plan.n_outputs > 1:
            self._per_row, self._more_sums = sizes_of(plan.n_outputs)
        if plan.criterion is Gini and plan.n_values == 2:
            self._y = 1.0 - self._y

    @classmethod
    def knows(cls, plan):
        are_few = plan.n_values <= class_weights.MOST and not plan.limits.is_monotonic
        is_one = plan.n_outputs == 1
        return (
            super().knows(plan)
            and (plan.criterion not in _OF_CLASSES or are_few)
            and (plan.criterion is SquaredError or is_one)
        )

    def accepts(self, weights, is_whole):
        is_counted = self._plan.criterion in _OF_CLASSES and is_whole  # by other paths
        return super().accepts(weights, is_whole) and not is_counted

    @cached_property
    def _y_max(self):
        return np.abs(self._y).max()

    @cached_property
    def _is_whole(self):
        return are_whole(self._y)

    def _flags(self, weights, is_whole):
        flags = super()._flags(weights, is_whole)
        is_one = self._plan.n_outputs == 1
        if self._plan.criterion is not SquaredError or self._plan.limits.is_monotonic or not is_one:
            return flags  # neither impurities nor values follow from sums
        with np.errstate(over="ignore", under="ignore"):  # infinite is not exact
            is_exact = flags & WEIGHTS and weights.sum(axis=1).max() * self._y_max**2 < SUMS_MAX
        return flags | SUMS if is_exact and self._is_whole else flags

    def _create_scratch(self):
        n_features, n_rows = len(self._table.columns), len(self._y)
        return (
            np.empty((self._n_rows_of_stack, UPPER + 1 + self._more_sums)),
            DrawnFeatures.create(n_features),
            SwapScratch.create(n_rows),
            self._create_small(),
            self._create_rows(),
        )

    def _create_small(self):
        table, max_features = self._table, self._plan.limits.max_features
        n_rows, n_columns, n_features = len(self._y), len(table.codes), len(table.columns)
        n_max = small_node_max(max_features, n_features, self._partial_max)
        n_max = n_max if self._has_small_nodes else 0
        return SmallNode.create(n_rows, n_columns, n_features, n_max, has_missing(table))

    def _grow(self, weights, seeds, first_node, trees):
        *scratch, rows = self._scratch
        growth = TreeGrowth(self._criterion, *trees, *scratch, 0.0, self._y_max)
        limits = self._limits(weights)
        self._grow_trees(self._table, growth, rows, weights, self._y, seeds, limits, first_node)
