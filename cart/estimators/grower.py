"""Grow trees on a fast path that takes the plan, table and weights, else on the general path.

`fast_paths` lists the paths that take a plan and a table. A `Grower` picks the first of them that
also takes the weights of its trees. No other module makes this choice.
"""

import numpy as np

from cart.fast_paths.classification.category_cuts import CategoryCountsPath
from cart.fast_paths.classification.path import ClassCountsPath
from cart.fast_paths.classification.random_cut import RandomClassCountsPath
from cart.fast_paths.classification.random_subsets import RandomCategoryCountsPath
from cart.fast_paths.classification.sorted_cuts import SortedCountsPath
from cart.fast_paths.classification.sparse_cut import (
    MostlyEqualCountsPath,
    SparseClassCountsPath,
    SparseRandomCountsPath,
)
from cart.fast_paths.indicators.class_counts import IndicatorCountsPath
from cart.fast_paths.indicators.means import IndicatorMeanPath
from cart.fast_paths.regression.category_rows import CategoryMeanPath
from cart.fast_paths.regression.histograms.categories import CategoryHistogramPath
from cart.fast_paths.regression.histograms.path import HistogramPath
from cart.fast_paths.regression.random_cut import RandomCategoryMeanPath, RandomMeanPath
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.growth.alternatives import AlternativesFinder
from cart.growth.general import LEARNED, create_workspace, grow_tree, make_records
from cart.primitives.float_order import are_whole, sums_are_exact
from cart.table.encoding import complete
from cart.table.table import Table
from cart.tree.pruning import prune
from cart.tree.tree import Tree

FAST_PATHS = (
    IndicatorCountsPath, MostlyEqualCountsPath, ClassCountsPath, RandomClassCountsPath,
    SparseClassCountsPath, SparseRandomCountsPath, IndicatorMeanPath, HistogramPath, SortedPath,
    RandomMeanPath, CategoryCountsPath, CategoryHistogramPath, CategoryMeanPath,
    RandomCategoryCountsPath, RandomCategoryMeanPath,
)  # fmt: skip


def fast_paths(plan, table=None):
    """The fast paths that can grow trees to this plan (on this table, if it is given).

    Parameters
    ----------
    plan : cart.growth.plan.Plan
    table : Table, FloatTable, SparseTable or CategoricalTable, optional

    Returns
    -------
    list of subclasses of cart.fast_paths.base.FastPath, in order of preference
    """
    if table is None:
        return [path for path in FAST_PATHS if path.knows(plan)]
    return [path for path in FAST_PATHS if path.fits(table, plan)]


def needs_complete_table(plan, weight):
    """Whether growth needs a complete table; if not, a fast path will most likely be taken.

    Parameters
    ----------
    plan : cart.growth.plan.Plan
    weight : ndarray, scalar or None
        Weights of the rows.
    """
    is_whole = weight is None or are_whole(weight)
    return plan.alternatives.are_asked_for or not (is_whole and fast_paths(plan))


def prepare_for_growth(table, codes, plan, columns=None):
    """Make a table complete and wide where growth needs it.

    A table becomes complete unless a fast path fits, and gets codes of 32 bits unless a fast path
    takes narrow ones. Doing this once spares each thread from doing it.

    Parameters
    ----------
    table, codes, plan, columns : see `Grower`

    Returns
    -------
    Table, FloatTable, SparseTable or CategoricalTable
    """
    if not isinstance(table, Table):
        return table
    fast = fast_paths(plan, table)
    table = table if fast else complete(table, columns)
    is_of_use = any(path.takes_narrow(codes, plan) for path in fast)
    return table if is_of_use else table.wide()


class Grower:
    """Grows trees on one table, one after another, in one thread.

    Parameters
    ----------
    table : Table, FloatTable, SparseTable or CategoricalTable
    codes : ndarray of shape (n_rows,) or (n_rows, n_outputs), float64
        See `cart.estimators.target.Target`.
    plan : cart.growth.plan.Plan
    columns : cart.table.columns.Columns, optional
        The columns of the table; needed if it is not complete.
    is_fast : bool, default=True
        False takes the general path, whatever the table.
    """

    def __init__(self, table, codes, plan, columns=None, is_fast=True):
        self._table = table
        self._columns = columns
        self._codes = codes
        self._plan = plan
        self._finder = None
        if plan.alternatives.are_asked_for:
            self._finder = AlternativesFinder(table, codes, plan)
            self._plan = self._finder.plan
            is_fast = is_fast and not self._finder.sends_missing
        paths = fast_paths(self._plan, table) if is_fast else ()
        self._fast = [path(table, codes, self._plan) for path in paths]
        if self._finder is not None and is_fast and SortedCountsPath.fits(table, self._plan):
            finder, weigh = self._finder.surrogates, self._finder.unaltered
            self._fast.insert(0, SortedCountsPath(table, codes, self._plan, finder, weigh))
        self._workspace = None

    @property
    def n_at_once(self):
        """How many trees are best grown in one call."""
        return max((fast.n_at_once for fast in self._fast), default=1)

    def grow(self, weights, seeds):
        """Grow trees.

        Parameters
        ----------
        weights : sequence of ndarray of shape (n_rows,), or scalars
            For each tree, the weight of every row; rows of weight 0 are not in the tree. An array
            of float64 is not copied.
        seeds : sequence of int
            Seed of each tree's draws, in [0, 2**31 - 1).

        Returns
        -------
        list of Tree
            If the table is not complete, they may have no thresholds yet: see `fill_thresholds`.
        """
        if self._finder is None:
            return self._grow(weights, seeds)
        trees = []
        for weight, seed in zip(weights, seeds, strict=True):
            trees += self._grow([weight], [seed])
            self._finder.add_to(trees[-1], weight, seed)
        return trees

    @property
    def shares_nodes(self):
        """See `cart.fast_paths.base.FastPath.shares_nodes`."""
        return any(path.shares_nodes for path in self._fast)

    def helper(self):
        """See `cart.fast_paths.base.FastPath.helper`."""
        return next(filter(None, (path.helper() for path in self._fast)), None)

    def _grow(self, weights, seeds):
        grown = self._grow_fast(weights, seeds) if self._fast else None
        if grown is None:
            return [self._grow_in_general(*pair) for pair in zip(weights, seeds, strict=True)]
        n_features = len(self._table.columns)
        trees = [Tree.grown(nodes, n_features, categories) for nodes, categories in grown]
        if self._plan.ccp_alpha > 0.0:
            trees = [prune(tree, self._plan.ccp_alpha) for tree in trees]
        for tree in trees:
            self._note_classes(tree)
            if not self._table.is_complete:
                tree.has_cuts = True
        return trees

    def _grow_fast(self, weights, seeds):
        """List of (Nodes, Categories) from the first path that accepts the weights, or None."""
        if not isinstance(weights, np.ndarray):
            n_rows = len(self._codes)
            weights = np.stack([np.broadcast_to(weight, n_rows) for weight in weights])
        weights = np.ascontiguousarray(weights, np.float64)
        is_whole = sums_are_exact(weights)
        path = next((path for path in self._fast if path.accepts(weights, is_whole)), None)
        return path and [(nodes, path.categories) for nodes in path.grow(weights, seeds, is_whole)]

    def _grow_in_general(self, weight, seed):
        if self._workspace is None:
            n_rows = len(self._codes)
            is_plain = isinstance(self._table, Table)
            # The general path is compiled for wide codes only.
            self._wide = complete(self._table, self._columns).wide() if is_plain else self._table
            self._workspace = create_workspace(self._plan, n_rows, n_rows, self._wide)
        records = make_records(self._codes, weight)
        route = LEARNED
        if self._finder is not None:
            route = self._finder.route(weight, seed)
        tree = grow_tree(self._wide, records, self._plan, seed, self._workspace, route=route)
        self._note_classes(tree)
        return tree

    def _note_classes(self, tree):
        """Store in a tree of several outputs how many classes each output has."""
        if self._plan.n_outputs > 1 and self._plan.n_values > 1:
            tree._n_classes = self._codes.max(axis=0).astype(np.int64) + 1
