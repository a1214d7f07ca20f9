"""The base class of the fast paths, and the kernels with which they write leaves and splits.

A fast path grows the same trees as `cart.growth.general`, faster, on one kind of table. Its class
attributes say which kind, and what it takes: missing values, constraints, several outputs.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from cart.growth.best_first import Candidates, finished, most_nodes
from cart.growth.frontier import NodeStack
from cart.jit.decorators import inline_kernel
from cart.primitives.float_order import WHOLE_MAX
from cart.splitting.category_subsets import CategoricalTable
from cart.splitting.feature_draw import Draw
from cart.splitting.splitter import BestSplitter
from cart.table.ranking import MISSING
from cart.table.sparse_table import SparseTable
from cart.table.table import Table, has_missing, same_value
from cart.table.thresholds import cut_of, write_thresholds
from cart.tree.batch import Batch
from cart.tree.compact import Compact, compress_if_large
from cart.tree.nodes import UNDEFINED, Grown, from_node
from cart.tree.recompute import DEPTH_FIRST, MISSING_WAYS, WEIGHTS

# Limits of a batch, small trees that are grown in one call of the kernel: rows in all, and trees.
# Larger batches would save calls but take more memory at once.
_ROWS_AT_ONCE, _TREES_AT_ONCE = 3 << 11, 50


class GrownTree(NamedTuple):
    """The arrays that kernels write: the nodes of one tree, or of several trees in a row."""

    nodes: Grown
    cuts: np.ndarray  # (n_nodes,) uint64: shares the thresholds' memory, `cart.table.thresholds`


@inline_kernel
def tree_at(trees, first):
    """The tree whose nodes begin at `first`: views of the same arrays."""
    return GrownTree(from_node(trees.nodes, first), trees.cuts[first:])


NONE_MISSING, MISSING_RIGHT, MISSING_LEFT = range(3)  # where a cut sends missing values, if any


class Cut(NamedTuple):
    """The best cut of a node; `feature` is -1 where there is none."""

    feature: int
    left_code: int  # rows with a code up to this one go left
    right_code: int  # the next code
    score: float
    missing: int  # NONE_MISSING, MISSING_RIGHT or MISSING_LEFT
    threshold: float  # of a random splitter; otherwise it follows from the codes


NO_CUT = Cut(-1, 0, 0, -np.inf, NONE_MISSING, 0.0)


@inline_kernel
def range_of(codes, n):
    """The lowest and the highest of the first n codes, in a pass that is vectorized."""
    lowest, highest = MISSING, np.uint32(0)
    for i in range(n):
        lowest, highest = min(lowest, codes[i]), max(highest, codes[i])
    return lowest, highest


@inline_kernel
def also_left(cut):
    """The code that goes left besides those up to `left_code`: MISSING, or else `left_code`."""
    return np.int64(MISSING) if cut.missing == MISSING_LEFT else np.int64(cut.left_code)


@inline_kernel
def is_cut(table, column, low, high):
    """Would scikit-learn cut between two codes, low < high? Not if their values are ties."""
    is_far = np.int64(high) - np.int64(low) > np.int64(table.tie_span[column])
    return is_far or not same_value(table, column, low, high)


@inline_kernel
def cut_between(table, feature, left_code, right_code, score, missing):
    """The Cut between two codes. MISSING as right code becomes the code after the highest."""
    column = table.columns[feature]
    n_codes = table.level_start[column + 1] - table.level_start[column]
    return Cut(feature, left_code, min(np.int64(right_code), n_codes), score, missing, 0.0)


@inline_kernel
def write_leaf(nodes, this, impurity, n, weight):
    """Write all of node `this` as a leaf, except its value."""
    nodes.feature[this] = UNDEFINED
    nodes.impurity[this] = impurity
    nodes.n_node_samples[this] = n
    nodes.weighted_n_node_samples[this] = weight
    if nodes.missing_go_to_left.shape[0] > 0:
        nodes.missing_go_to_left[this] = 0


@inline_kernel
def write_way_of_missing(nodes, this, cut, n_left, n):
    """Write where missing values go at a split: with the majority if the node had none."""
    if nodes.missing_go_to_left.shape[0] > 0:
        goes_left = 2 * n_left > n
        if cut.missing != NONE_MISSING:
            goes_left = cut.missing == MISSING_LEFT
        nodes.missing_go_to_left[this] = goes_left


@inline_kernel
def write_split(nodes, this, cut, cuts):
    """Turn the leaf `this` into a split. `cuts` holds the two codes where the threshold will be
    written later (see `cart.table.thresholds`)."""
    nodes.feature[this] = cut.feature
    cuts[this] = cut_of(cut.left_code, cut.right_code)


class FastPath(ABC):
    """Grows trees on one table, in one thread.

    Parameters
    ----------
    table : cart.table.table.Table
    codes : ndarray of shape (n_rows, 1), float64
        See `cart.estimators.target.Target`.
    plan : cart.growth.plan.Plan
        One that `fits`.
    """

    criteria: tuple[type, ...] = ()  # the classes of cart.splitting.criteria that it supports
    splitter: type = BestSplitter
    table_kind: type = Table
    takes_missing = False  # missing values
    takes_bounds = False  # min_weight_fraction_leaf, monotonic constraints
    takes_leaves = False  # max_leaf_nodes, with which growth is best first
    most_outputs = 1

    def __init__(self, table, codes, plan):
        self._table = table
        is_one = plan.n_outputs == 1
        self._y = np.ascontiguousarray(codes).reshape(-1 if is_one else codes.shape)
        self._plan = plan
        self._capacity = 0  # trees
        self._scratch = None

    @classmethod
    def knows(cls, plan):
        """Whether it can grow trees to this plan, on a suitable table."""
        limits = plan.limits
        return (
            plan.criterion in cls.criteria
            and type(plan.splitter) is cls.splitter
            and plan.n_outputs <= cls.most_outputs
            and (cls.takes_leaves or limits.max_leaf_nodes < 0)
            and (cls.takes_bounds or not (limits.is_monotonic or plan.min_weight_fraction_leaf))
        )

    @classmethod
    def fits(cls, table, plan):
        """Whether it can grow trees on this table, to this plan."""
        is_known = type(table) is cls.table_kind and cls.knows(plan)
        return is_known and (cls.takes_missing or not has_missing(table))

    @classmethod
    def takes_narrow(cls, codes, plan):
        """Whether it can use a table of narrow codes (8 or 16 bits), given the targets `codes`."""
        return True

    @property
    def n_at_once(self):
        """How many trees to grow in one call of the kernel."""
        if self._is_single:
            return 1
        return min(_TREES_AT_ONCE, max(1, _ROWS_AT_ONCE // len(self._y)))

    def accepts(self, weights, is_whole):
        """Whether it can grow trees with these weights. `grow` may rely on the answer."""
        return len(weights) == 1 or not self._is_single

    @property
    def _is_single(self):
        """Whether a call grows one tree only: limits of weight and subsets belong to one tree."""
        has_subsets = self.table_kind is CategoricalTable
        return has_subsets or self._plan.min_weight_fraction_leaf > 0.0

    def _limits(self, weights):
        """The limits of trees with these weights."""
        limits, fraction = self._plan.limits, self._plan.min_weight_fraction_leaf
        return limits._replace(min_weight_leaf=fraction * weights.sum()) if fraction else limits

    def grow(self, weights, seeds, is_whole):
        """Grow trees with weights that `accepts` has accepted.

        Parameters
        ----------
        weights : ndarray of shape (n_trees, n_rows), float64
        seeds : sequence of int
        is_whole : bool
            Whether the weights are whole numbers.

        Returns
        -------
        list of cart.tree.batch.OneOfBatch or cart.tree.compact.Compact
            If the table is not complete, they hold cuts in place of thresholds, see
            `cart.table.thresholds`.
        """
        if self._scratch is None:
            self._table = self._with_room(self._table)
            n_rows = self._n_rows_of_stack
            self._candidates = Candidates.create(self._room)
            scratch = self._create_scratch()  # first: all of it is written, so reuse freed memory
            self._scratch = (
                Draw.create(len(self._table.columns), self._plan.hashed_names, n_rows),
                NodeStack.create(n_rows),
                *scratch,
            )
        if self.table_kind is CategoricalTable:
            self._table.begin_tree(None)
        if self._is_best_first:
            return list(map(self._grow_best_first, weights, seeds))
        if self._capacity < len(weights):
            self._capacity = len(weights)
            n_nodes = self._capacity * 2 * len(self._y)
            self._notes_ways = self.takes_missing and has_missing(self._table)
            self._nodes = Grown.create(
                n_nodes, self._plan.n_outputs, self._plan.n_values, self._notes_ways
            )
            self._cuts = self._nodes.threshold.view(np.uint64)
        first_node = np.zeros(len(weights) + 1, np.int64)
        trees = GrownTree(self._nodes, self._cuts)
        self._grow(weights, np.asarray(seeds, np.int64), first_node, trees)
        grown = Grown._make(array[: first_node[-1]] for array in self._nodes)
        self.categories = self._end_trees(grown)
        flags = self._flags(weights, is_whole)
        kept = Compact.of_grown(grown, flags & ~MISSING_WAYS if self._notes_ways else flags)
        self._complete(*kept.splits)
        return [kept] if len(weights) == 1 else Batch(kept, first_node).trees()

    def _with_room(self, table):
        """The table with room for trees on all of its rows."""
        n_rows, plan = len(self._y), self._plan
        return table.with_room(n_rows, n_rows, 2 * n_rows, plan.n_outputs, plan.n_values)

    @property
    def shares_nodes(self):
        """Whether other threads can help with large nodes, by calling what `helper` returns."""
        return False

    def helper(self):
        """Return a function for another thread to call while this one grows a tree, or None.

        The function does a share of the work on the current node and returns whether there was any.
        None means that nothing is shared, or not yet.
        """
        return None

    def _grow_best_first(self, weight, seed):
        """Grow one tree, best first."""
        nodes = Grown.create(self._room, self._plan.n_outputs, self._plan.n_values, True)
        trees, first_node = GrownTree(nodes, nodes.threshold.view(np.uint64)), np.zeros(2, np.int64)
        self._grow(weight[np.newaxis], np.array([seed]), first_node, trees)
        nodes = finished(self._candidates, first_node[1], *nodes)
        self.categories = self._end_trees(nodes)
        self._complete(*nodes.splits)
        return compress_if_large(nodes)

    def _complete(self, features, thresholds):
        """Write the thresholds of grown trees if the table has values."""
        if self._has_cuts and self._table.is_complete:
            write_thresholds(features, thresholds, self._table)

    def _end_trees(self, nodes):
        """Complete a tree grown on a table with categories: write its thresholds and return its
        Categories. For other tables, return None."""
        table = self._table
        if self.table_kind is not CategoricalTable:
            return None
        if self.splitter is BestSplitter:
            write_thresholds(nodes.feature, nodes.threshold, table)
        is_subset = table.n_categories[table.columns[np.maximum(nodes.feature, 0)]] > 0
        nodes.threshold[is_subset & (nodes.feature >= 0)] = np.nan
        return table.end_tree(nodes)

    def _flags(self, weights, is_whole):
        """Which arrays of trees with these weights can be recomputed, see `cart.tree.recompute`."""
        is_exact = is_whole and weights.sum() < WHOLE_MAX
        return DEPTH_FIRST | WEIGHTS if is_exact else DEPTH_FIRST

    @property
    def _has_cuts(self):
        """Whether kernels write cuts, which become thresholds once the table is complete; a random
        cut has its threshold."""
        return self.splitter is BestSplitter and isinstance(self._table, (Table, SparseTable))

    @property
    def _is_best_first(self):
        return self._plan.limits.max_leaf_nodes > 0

    @property
    def _room(self):
        """How many nodes a tree may have at most if it is grown best first; 0 if it is not."""
        limits = self._plan.limits
        return most_nodes(len(self._y), limits) if self._is_best_first else 0

    @property
    def _n_rows_of_stack(self):
        return max(len(self._y), self._room) + 2

    @abstractmethod
    def _create_scratch(self):
        """Create the arrays that the kernel works in."""

    @abstractmethod
    def _grow(self, weights, seeds, first_node, trees):
        """Call the kernel, which writes tree t to the nodes first_node[t] to first_node[t + 1] of
        `trees`. Best-first growth is called for one tree at a time."""
