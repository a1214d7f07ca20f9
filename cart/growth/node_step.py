"""The general path: the steps of `cart.growth.loop` for any criterion, splitter and table."""

from typing import NamedTuple

import numpy as np

from cart.growth.frontier import NodeStack, with_weight
from cart.growth.loop import Children, FoundCut, decrease_of
from cart.growth.plan import Limits
from cart.growth.routing import BySurrogates, Learned, begin_routes, route_missing
from cart.jit.decorators import inline_kernel
from cart.splitting import criterion as protocol
from cart.splitting.category_subsets import write_list
from cart.splitting.feature_draw import Draw, key_children, move_key
from cart.splitting.splitter import (
    Bounds,
    SearchContext,
    best_split,
    cut_at,
    divide,
    gather_sides,
)
from cart.table.node_samples import NodeSamples, load_node
from cart.tree.nodes import LEAF, UNDEFINED


class Inherited(NamedTuple):
    """What pending nodes have from their parents; each has a row of the stack."""

    parent: np.ndarray  # int64: the parent's number; -1 for the root
    is_left: np.ndarray  # uint8: whether the node is the left child
    lower: np.ndarray  # float64: bounds of the prediction, see Bounds
    upper: np.ndarray  # float64

    @classmethod
    def create(cls, capacity):
        return cls(
            np.empty(capacity, np.int64), np.empty(capacity, np.uint8), np.empty(capacity),
            np.empty(capacity),
        )  # fmt: skip


class TreeRows(NamedTuple):
    """The rows of the current tree."""

    records: np.ndarray  # (n_rows, 1 + n_outputs) float64: weight and targets
    samples: np.ndarray  # (n,) uint64: the in-bag samples, in the order of the nodes
    weight: float  # of all samples
    keep_order: bool  # whether sums depend on the order of the samples


class GeneralWay(NamedTuple):
    """The buffers of the general path, with the protocol of `cart.growth.loop`."""

    splitter: tuple
    criterion: tuple
    node: NodeSamples
    draw: Draw
    table: tuple
    rows: TreeRows
    inherited: Inherited
    stack: NodeStack
    limits: Limits
    route: Learned | BySurrogates

    def load(self, pending):
        start, n = pending.start, pending.end - pending.start
        node, rows, criterion = self.node, self.rows, self.criterion
        load_node(node, rows.records, rows.samples, start, n, rows.keep_order)
        protocol.load(criterion, node.records, node.keys, n, rows.keep_order)
        impurity = pending.impurity
        if pending.depth == 0:
            impurity = protocol.impurity(criterion, node.records, node.keys, n)
        return with_weight(pending, criterion.weight[0], impurity)

    def write_leaf(self, tree, this, node):
        parent = self.inherited.parent[node.row]
        if parent >= 0:
            if self.inherited.is_left[node.row]:
                tree.children_left[parent] = this
            else:
                tree.children_right[parent] = this
        tree.children_left[this] = LEAF
        tree.children_right[this] = LEAF
        tree.feature[this] = UNDEFINED
        tree.threshold[this] = UNDEFINED
        tree.missing_go_to_left[this] = 0
        tree.impurity[this] = node.impurity
        tree.n_node_samples[this] = node.end - node.start
        tree.weighted_n_node_samples[this] = node.weight
        value = tree.value[this]
        protocol.write_value(self.criterion, value)
        if self.limits.is_monotonic:
            bounds = bounds_at(self.inherited, node.row)
            value[0, 0] = min(max(value[0, 0], bounds.lower), bounds.upper)
            if value.shape[1] == 2:
                value[0, 1] = 1.0 - value[0, 0]

    def search(self, node):
        split, last_feature, n_constant = best_split(
            context_of(self, node), self.rows.samples, node.start, node.end - node.start,
            node.row, node.n_constant,
        )  # fmt: skip
        return node, FoundCut(split.feature, split, last_feature), n_constant

    def divide(self, node, found):
        n, keys, criterion = node.end - node.start, self.node.keys, self.criterion
        context, samples = context_of(self, node), self.rows.samples
        gather_sides(context, found.cut, samples, node.start, n)
        route_missing(self.route, self.node, found.cut, samples, node.start, n)
        n_left = divide(context, found.cut, found.last, samples, node.start, n)
        side = cut_at(criterion, self.node, n_left, n)
        left, right = protocol.children_impurity(
            criterion, side, self.node.records, keys, n_left, n
        )
        value_left, value_right = protocol.side_values(criterion, side)
        decrease = decrease_of(node, left, right, side.weight, self.rows.weight)
        value = value_left / 2.0 + value_right / 2.0
        return Children(node.start + n_left, left, right, decrease, value)

    def move_row(self, row, to):
        inherited = self.inherited
        inherited.parent[to] = inherited.parent[row]
        inherited.is_left[to] = inherited.is_left[row]
        inherited.lower[to] = inherited.lower[row]
        inherited.upper[to] = inherited.upper[row]
        move_key(self.draw, row, to)

    def write_split(self, tree, this, node, found, children):
        split, middle = found.cut, children.middle
        tree.feature[this] = split.feature
        tree.threshold[this] = split.threshold
        # If no value was missing in training, missing values follow the majority.
        majority_left = middle - node.start > node.end - middle
        tree.missing_go_to_left[this] = split.missing_left if split.has_missing else majority_left
        write_list(self.table, this, split.column)
        inherited, row = self.inherited, node.row
        inherited.parent[row], inherited.parent[row + 1] = this, this
        inherited.is_left[row], inherited.is_left[row + 1] = False, True
        # Rows that lack the feature, which the search left out, may have moved it over the bounds.
        value = min(max(children.value, inherited.lower[row]), inherited.upper[row])
        direction = self.limits.monotonic[found.feature]
        pass_on_bounds(inherited.lower, inherited.upper, row, direction, value)
        key_children(self.draw, row)


@inline_kernel
def context_of(way, node):
    """The SearchContext of a node."""
    return SearchContext(
        way.splitter, way.criterion, way.node, way.draw, way.table, way.limits,
        bounds_at(way.inherited, node.row), way.rows.keep_order,
    )  # fmt: skip


@inline_kernel
def begin_inheritance(way):
    """Set what the root inherits, which is nothing, and begin the routes of the tree."""
    begin_routes(way.route)
    inherited = way.inherited
    inherited.parent[0] = -1
    inherited.is_left[0] = 0
    inherited.lower[0] = -np.inf
    inherited.upper[0] = np.inf


@inline_kernel
def bounds_at(inherited, row):
    return Bounds(inherited.lower[row], inherited.upper[row])


@inline_kernel
def pass_on_bounds(lower, upper, row, direction, value):
    """Write the bounds of the children of a node, which is split at a feature with a monotonic
    constraint: the right child takes the node's row of the stack, the left one the next."""
    low, high = lower[row], upper[row]
    for is_left in (True, False):
        is_below = (direction > 0) == is_left
        lower[row + is_left] = low if direction == 0 or is_below else value
        upper[row + is_left] = value if direction != 0 and is_below else high
