"""Grow many trees from one table: whole trees over threads, a workspace for each batch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from time import sleep
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from cart.estimators.grower import Grower, prepare_for_growth
from cart.growth.plan import Plan
from cart.primitives.memory import give_back
from cart.primitives.mersenne_twister import first_draws
from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import in_threads
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.columns import Columns
from cart.table.encoding import complete
from cart.table.table import Table
from cart.table.thresholds import fill_thresholds
from cart.tree.tree import Tree
from forest.growing.interruption import Interruption
from forest.growing.workers import results_of, shares_memory

# Batches per worker of another backend, where there are several: enough that none idles for long
# when trees differ in size.
_BATCHES_PER_WORKER = 4
# Rows times features that the roots of all trees look at, for which another thread is worth its
# start.
_WORK_PER_THREAD = 400_000
# Rows of a table whose trees take so long that those who have none left help with the others; and
# the seconds that they sleep where there is nothing to do.
_ROWS_WORTH_HELP, _NAP = 100_000, 1e-4
# Trees on more rows may take so long that one thread, too, leaves the main one free to be
# interrupted: Python hears of a signal between two kernels only.
_MANY_ROWS = 10_000


@dataclass(eq=False)
class Job:
    """What trees are grown from, in one object: a backend that ships it to other machines does so
    once per worker.

    Parameters
    ----------
    table, codes, plan, seeds, weigh, columns : see `grow_trees`
    """

    table: Any
    codes: np.ndarray
    plan: Plan
    seeds: Sequence[int] | np.ndarray
    weigh: Callable
    columns: Columns | None = None

    def __post_init__(self) -> None:
        self.table = prepare_for_growth(self.table, self.codes, self.plan, self.columns)

    def __sizeof__(self) -> int:
        # Dask ships objects that say they are large once, small ones with every task.
        return bytes_of(*self.table, self.codes)


def bytes_of(*fields: Any) -> int:
    """Bytes of those that are arrays, or tuples of them."""
    tuples = (bytes_of(*field) for field in fields if isinstance(field, tuple))
    return sum(tuples) + sum(field.nbytes for field in fields if isinstance(field, np.ndarray))


class _WorkQueue:
    """Where workers are told which trees to grow, and leave them."""

    def __init__(self, n_trees, n_workers, reporter):
        self.trees = [None] * n_trees
        self.growers: list[Grower] = []  # of workers that may be at some
        self._end = n_trees  # trees from here on are not wanted
        self._n_workers = n_workers
        self._reporter = reporter
        self._n_taken = 0
        self._lock = Lock()

    def take(self, n):
        """Numbers of the next trees to grow, n at most; none if all are taken or growth has ended.

        Of several workers none takes more than half of its share of what is left, so that none
        idles for long at the end.
        """
        with self._lock:
            first = self._n_taken
            n_left = max(self._end - first, 0)
            if self._n_workers > 1:
                n = min(n, -(-n_left // (2 * self._n_workers)))
            self._n_taken += min(n, n_left)
            return list(range(first, self._n_taken))

    def leave(self, i, tree):
        """Tree i is grown. Where the callback ends growth there, trees before the last one that it
        was told of fill the gaps, and nobody is told of them."""
        with self._lock:
            if i >= self._end:
                return
            self.trees[i] = tree
            if self._reporter is None or self._reporter.is_stopped:
                return
            self._reporter.step()
            if self._reporter.is_stopped:
                self._end = 1 + max(j for j, grown in enumerate(self.trees) if grown is not None)

    def close(self):
        """End growth at once: the user has gone on, and is not told of trees any more."""
        with self._lock:
            self._end = 0

    def is_done(self):
        """Are all trees there that are wanted?"""
        return all(tree is not None for tree in self.trees[: self._end])


def grow_trees(
    table: Any,
    codes: np.ndarray,
    plan: Plan,
    seeds: Sequence[int] | np.ndarray,
    weigh: Callable,
    interruption: Interruption,
    n_jobs: int | None = None,
    reporter: ProgressReporter | None = None,
    columns: Columns | None = None,
) -> list[Tree | None]:
    """Grow one tree per seed; the same trees for every `n_jobs`.

    Parameters
    ----------
    table : cart.table.table.Table
    codes : ndarray of shape (n_samples,), float64
        Class codes or numbers, see `cart.estimators.target.Target`.
    plan : cart.growth.plan.Plan
    seeds : sequence of int
        A tree's `random_state`.
    weigh : callable
        `weigh(numbers)`: the weight of every row in each of these trees, (n_samples,) or a scalar.
    interruption : forest.growing.interruption.Interruption
        Of the fit. By Ctrl-C threads finish the trees that they are at, and stop.
    n_jobs : int or None
        joblib's.
    reporter : cart.primitives.progress.ProgressReporter, optional
        Told of every tree; growth ends where its callback says so.
    columns : cart.table.columns.Columns, optional
        Of the table, where it is not complete.

    Returns
    -------
    list of cart.tree.tree.Tree or None
        None in place of the trees after the last one, where the callback ended growth, and of
        those that Ctrl-C left out.
    """
    work = len(seeds) * len(codes) * plan.limits.max_features
    n_workers = min(effective_n_jobs(n_jobs), 1 + work // _WORK_PER_THREAD)
    has_our_memory = shares_memory()
    if not has_our_memory and columns is not None:  # which stay here
        table, columns = complete(table, columns, n_jobs), None
    job = Job(table, codes, plan, seeds, weigh, columns)
    queue = _WorkQueue(len(seeds), n_workers, reporter)

    def grow():
        if not has_our_memory:
            _grow_by_backend(job, queue, n_jobs)
        elif n_workers > 1 or len(codes) > _MANY_ROWS:
            in_threads(lambda: _grow_from_queue(job, queue), n_workers, queue.close)
        else:
            _grow_from_queue(job, queue)

    if not interruption.run(grow):
        queue.close()
    give_back(table.codes.nbytes if isinstance(table, Table) else 0)
    fill_thresholds(queue.trees, table, columns, n_jobs)
    return queue.trees


def _grow_by_backend(job, queue, n_jobs):
    """Grow the trees of the queue through joblib's backend at hand."""
    n_workers = effective_n_jobs(n_jobs)
    n_batches = _BATCHES_PER_WORKER * n_workers if n_workers > 1 else 1
    batches = np.array_split(np.arange(len(job.seeds)), min(len(job.seeds), n_batches))
    with results_of(((_grow_batch, job, batch) for batch in batches), n_jobs, False) as results:
        for grown in results:
            for i, tree in grown:
                queue.leave(i, tree)
            if queue.is_done():
                break


def _grow_batch(job, batch):
    return list(grow_each(job, batch))


def _grow_from_queue(job, queue):
    """Grow trees of the queue until none is left; then help those who still grow some."""
    grower = Grower(job.table, job.codes, job.plan, job.columns)
    queue.growers.append(grower)
    while numbers := queue.take(grower.n_at_once):
        for i, tree in zip(numbers, _grow_numbers(job, grower, numbers), strict=True):
            queue.leave(i, tree)
    queue.growers.remove(grower)
    if grower.shares_nodes and len(job.codes) >= _ROWS_WORTH_HELP:
        _help_others(queue)


def _help_others(queue):
    """Help others with the nodes that they are at, until all trees are grown."""
    helpers: dict = {}
    while not queue.is_done():
        has_helped = False
        for grower in queue.growers.copy():
            if (help_out := helpers.get(grower) or grower.helper()) is not None:
                helpers[grower] = help_out
                has_helped |= help_out()
        if not has_helped:
            sleep(_NAP)


def grow_each(job: Job, numbers: Iterable[int]) -> Iterator[tuple[int, Tree]]:
    """Grow some trees, one after the other, in one thread.

    Parameters
    ----------
    job : Job
    numbers : iterable of int
        Which of the trees; asked for the next when it is to be grown.

    Yields
    ------
    number : int
    tree : cart.tree.tree.Tree
    """
    grower = Grower(job.table, job.codes, job.plan, job.columns)
    numbers = iter(numbers)
    while some := list(islice(numbers, grower.n_at_once)):
        yield from zip(some, _grow_numbers(job, grower, some), strict=True)


def _grow_numbers(job, grower, numbers):
    seeds = first_draws([job.seeds[i] for i in numbers], DRAW_SEED_MAX)
    return grower.grow(job.weigh(numbers), seeds)
