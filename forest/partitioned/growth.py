"""Grow many trees together, level by level, on a table in partitions.

    every partition     adds up histograms of the open nodes, for the features that they consider
    together            the sums are those of the whole table
    one place           chooses the cuts (`choice`), as the local forest would
    every partition     divides its rows

The subtree of a node of few rows is grown in one place (`small_nodes`).
"""

from typing import Any, NamedTuple

import numpy as np

from cart.growth.general import Origin
from cart.growth.plan import Plan
from cart.splitting.category_subsets import CategoricalTable
from cart.table.table import Table
from cart.tree.tree import Tree
from forest.partitioned import choice
from forest.partitioned.choice_of_subsets import join_cells
from forest.partitioned.engines import Engine
from forest.partitioned.histograms import Request, count, count_roots
from forest.partitioned.node_log import Level, make_trees
from forest.partitioned.open_rows import Fates, divide, gather, list_rows
from forest.partitioned.small_nodes import grow_below, grow_below_held

# Least number of jobs of small nodes per worker at a level, so that no worker idles for long. If
# processes hold all codes, there is one each: Dask would move queued jobs, and codes with them.
_JOBS_PER_WORKER = 4
_SMALL_ROWS, _SMALL_ROWS_HELD = 1 << 13, 1 << 16  # defaults of `Size.small_rows`
_LEAST_JOB_ROWS = 1 << 14  # fewer rows are not worth a job
_ROWS_LISTED = 8  # number of rows that can be listed for one that is sent with its codes


class Size(NamedTuple):
    """How much is done at once."""

    rows_at_once: int = 1 << 20  # rows per piece of a table that is read in pieces
    # Nodes with at most this many rows are brought to one place. None: 2**13 rows, or 2**16 if
    # every process holds all codes, so that they need not be sent.
    small_rows: int | None = None
    histogram_bytes: int = 1 << 27  # size of the histograms of all nodes counted at once
    job_rows: int = 1 << 20  # approximate limit of the rows of small nodes grown in one job
    held_bytes: int = 1 << 30  # every process gets all codes and targets if these are not larger
    open_bytes: int = 1 << 30  # in each process, for in-bag rows of trees grown together
    # Trees grown together. None: as many as memory allows and take about ten seconds.
    trees_at_once: int | None = None


DEFAULT_SIZE = Size()


class PartitionedTable(NamedTuple):
    """A table in partitions, as trees are grown on it."""

    engine: Engine
    codes: Any  # handle of the codes, see `forest.partitioned.histograms.count`
    targets: Any  # handle of ClassTargets or NumberTargets
    table: Table | CategoricalTable  # complete; without codes
    step: float | None  # the length of a step of targets; None for classes
    held: Any = None  # all codes and targets in every process; None: rows are sent for every tree

    @property
    def n_codes(self):
        """Largest number of codes of a feature, including the missing one."""
        return int(self.table.n_levels().max()) + 1


def grow_together(
    data: PartitionedTable, opened: Any, plan: Plan, seeds: np.ndarray, total_weight: float,
    size: Size,
) -> list[Tree]:  # fmt: skip
    """Grow one tree per seed.

    Parameters
    ----------
    data : PartitionedTable
    opened : handle of OpenRows
        The roots of the trees.
    plan : Plan
        With keyed draws, and without `max_leaf_nodes`.
    seeds : ndarray of shape (n_trees,), int64
        Seeds of the draws.
    total_weight : float
        Total weight of the in-bag rows of a tree.
    size : Size

    Returns
    -------
    list of Tree
    """
    growth = _Growth(data, plan, total_weight, size)
    level = growth.roots(opened, seeds)
    segments = np.arange(len(seeds))
    levels = [level]
    while len(segments):
        children, is_open = growth.decide(level, segments, opened)
        if children is None:
            break
        opened = growth.divide(level, segments, opened, is_open)
        segments = np.flatnonzero(is_open)
        level = children
        levels.append(level)
    return make_trees(levels, plan, data.table, data.step)


class _Growth:
    """Grows trees level by level; holds what stays the same from level to level."""

    def __init__(self, data, plan, total_weight, size):
        self._data = data
        self._plan = plan
        self._size = size
        # Whether several processes each hold all codes, so that only row numbers are sent to them.
        self._is_held_apart = data.held is not None and data.engine.n_processes > 1
        small_rows = _SMALL_ROWS_HELD if self._is_held_apart else _SMALL_ROWS
        self._small_rows = small_rows if size.small_rows is None else size.small_rows
        self._n_numbers = plan.n_values if data.step is None else 3
        self._chooser = choice.Chooser.create(
            plan, data.table, data.n_codes, self._n_numbers, total_weight, data.step
        )
        self._keeps_first = isinstance(data.table, CategoricalTable)
        self._limits = self._chooser.limits

    def roots(self, opened, seeds):
        """The Level of the roots."""
        data = self._data
        common = (self._n_numbers,)
        cells = data.engine.reduce(count_roots, np.add, data.targets, opened, common=common)
        keys = np.empty(len(seeds), np.uint64)
        choice.root_keys(np.asarray(seeds, np.uint64), keys)
        impurity = np.empty(len(seeds))
        choice.impurities(self._chooser, cells, impurity)
        return Level(0, np.arange(len(seeds)), keys, cells, impurity, data.step is None)

    def decide(self, level, segments, opened):
        """Decide on the open nodes of a level.

        Parameters
        ----------
        level : Level
        segments : ndarray of shape (n_segments,), int
            The open nodes of the level, in the order of the segments.
        opened : handle of OpenRows

        Returns
        -------
        children : Level or None
        is_open : ndarray of shape (n_children,), bool
            Which of the children are open.
        """
        is_small = level.n_rows[segments] <= self._small_rows
        self._grow_small(level, segments, np.flatnonzero(is_small), opened)
        large = np.flatnonzero(~is_small & level.may_split(self._limits)[segments])
        items = segments[large]
        choices = self._choose(opened, large, level.key[items], level.cells[items])
        is_cut = choices.found == choice.CUT
        if not is_cut.any():
            return None, None
        items, choices = items[is_cut], choice.Choices(*(array[is_cut] for array in choices))
        keys = np.empty((len(items), 2), np.uint64)
        choice.child_keys(level.key[items], keys)
        children = level.split(items, choices, keys)
        return children, children.may_split(self._limits)

    def divide(self, level, segments, opened, is_open):
        """Handle of the open rows of the children."""
        data = self._data
        feature = level.feature[segments]
        stays = np.zeros((len(segments), 2), bool)
        stays[feature >= 0] = is_open.reshape(-1, 2)
        left_code = (level.cut[segments] >> np.uint64(32)).astype(np.int64)
        fates = Fates(
            feature, left_code, level.missing_left[segments] == 1, stays,
            *level.subsets_of(segments),
        )  # fmt: skip
        return data.engine.map(divide, data.codes, opened, common=(fates,))

    def _choose(self, opened, segments, keys, own):
        """Choose cuts for the nodes of some segments, given their keys and sums of cells."""
        data, n_features = self._data, len(self._plan.hashed_names)
        shape = data.n_codes, self._n_numbers + self._keeps_first
        n_categories = data.n_codes - 1 if self._keeps_first else 0
        join = join_cells if self._keeps_first else np.add
        choices = choice.Choices.create(len(keys), self._n_numbers, n_categories)
        todo = np.arange(len(keys))
        for n_wanted in (min(self._limits.max_features, n_features), n_features):
            n_at_once = max(1, self._size.histogram_bytes // (8 * n_wanted * shape[0] * shape[1]))
            for first in range(0, len(todo), n_at_once):
                some = todo[first : first + n_at_once]
                features = np.empty((len(some), n_wanted), np.int32)
                choice.first_features(self._chooser.context.draw, keys[some], features)
                request = Request(segments[some], features, shape, self._keeps_first)
                tables = data.codes, data.targets, opened
                cells = data.engine.reduce(count, join, *tables, common=(request,))
                choice.choose(self._chooser, features, keys[some], own[some], cells, some, choices)
            todo = np.flatnonzero(choices.found == choice.MORE)  # the first ones were constant
        return choices

    def _grow_small(self, level, segments, small, opened):
        """Grow the subtrees of the small nodes among the segments."""
        data = self._data
        if len(small) == 0:
            return
        sizes = level.n_rows[segments[small]]
        # Jobs get consecutive nodes with about equally many rows in total.
        n_jobs = data.engine.n_workers * (1 if self._is_held_apart else _JOBS_PER_WORKER)
        most = self._size.job_rows * (_ROWS_LISTED if self._is_held_apart else 1)
        rows = min(most, max(_LEAST_JOB_ROWS, -(-int(sizes.sum()) // n_jobs)))
        ends = np.flatnonzero(np.diff((np.cumsum(sizes) - 1) // rows)) + 1
        jobs = np.split(small, ends)
        asked = []
        for job in jobs:
            origins = [
                Origin(key, level.depth, self._chooser.total_weight)
                for key in level.key[segments[job]]
            ]
            asked.append((job, (origins, self._plan, data.table, data.step)))
        if data.held is None:
            handles = data.codes, data.targets, opened
            grown = data.engine.collect(gather, grow_below, handles, asked)
        else:
            grown = data.engine.collect(list_rows, grow_below_held, (opened,), asked, data.held)
        for job, trees in zip(jobs, grown, strict=True):
            level.below.update(zip(segments[job].tolist(), trees, strict=True))
