"""Grow many trees from one table: threads take whole trees from a queue."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from time import sleep
from typing import Any

import numpy as np

from cart.estimators.grower import Grower, prepare_for_growth
from cart.growth.plan import Plan
from cart.primitives.memory import give_back
from cart.primitives.mersenne_twister import first_draws
from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import effective_n_threads, in_threads
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.columns import Columns
from cart.table.encoding import complete
from cart.table.table import Table
from cart.table.thresholds import fill_thresholds
from cart.tree.tree import Tree
from forest.growing.interruption import Interruption
from forest.growing.workers import results_of, shares_memory

# Batches per worker of another backend, if it has several: enough that no worker idles for long
# when trees differ in size.
_BATCHES_PER_WORKER = 4
# Rows times features considered at the roots of all trees, per thread worth starting.
_WORK_PER_THREAD = 400_000
# Number of rows from which on trees take so long that idle threads help with the trees of others;
# and the seconds that they sleep if there is nothing to do.
_ROWS_WORTH_HELP, _NAP = 100_000, 1e-4
# On more rows, even a single worker is a thread of its own, so that the main thread can react to
# Ctrl-C: Python handles signals only between two kernels, which may take long.
_MANY_ROWS = 10_000


@dataclass(eq=False)
class Job:
    """What trees are grown from, in one object, which backends ship to each worker only once.

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
        # Dask ships an object once if it says that it is large, and else with every task.
        return bytes_of(*self.table, self.codes)


def bytes_of(*fields: Any) -> int:
    """Total bytes of those fields that are arrays, or tuples of arrays."""
    tuples = (bytes_of(*field) for field in fields if isinstance(field, tuple))
    return sum(tuples) + sum(field.nbytes for field in fields if isinstance(field, np.ndarray))


class _WorkQueue:
    """Hands out the numbers of trees to grow to workers, and collects the trees."""

    def __init__(self, n_trees, n_workers, reporter):
        self.trees = [None] * n_trees
        self.growers: list[Grower] = []  # those of threads that may still be growing trees
        self._end = n_trees  # trees from this number on are not wanted
        self._n_workers = n_workers
        self._reporter = reporter
        self._n_taken = 0
        self._lock = Lock()

    def take(self, n):
        """Numbers of the next trees to grow, at most n; none if all are taken or growth has ended.

        With several workers, none takes more than half of its share of what is left, so that no
        worker idles for long at the end.
        """
        with self._lock:
            first = self._n_taken
            n_left = max(self._end - first, 0)
            if self._n_workers > 1:
                n = min(n, -(-n_left // (2 * self._n_workers)))
            self._n_taken += min(n, n_left)
            return list(range(first, self._n_taken))

    def leave(self, i, tree):
        """Store tree i and report it.

        If the callback then ends growth, trees before the last stored one are still accepted, to
        fill gaps, but not reported.
        """
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
        """End growth at once, after an interrupt: no further tree is stored or reported."""
        with self._lock:
            self._end = 0

    def is_done(self):
        """Whether all trees that are wanted were stored."""
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
        The `random_state` of each tree.
    weigh : callable
        `weigh(numbers)` returns the weights of the rows in each of the trees with these numbers:
        an array of shape (n_samples,) or a scalar per tree.
    interruption : forest.growing.interruption.Interruption
        The interruption of the fit. On Ctrl-C, threads finish the trees they are growing and stop.
    n_jobs : int or None
        As in joblib.
    reporter : cart.primitives.progress.ProgressReporter, optional
        Is told of every tree; its callback may end growth.
    columns : cart.table.columns.Columns, optional
        The columns of the table; needed if it is not complete.

    Returns
    -------
    list of cart.tree.tree.Tree or None
        None for trees after the last one if the callback ended growth, and for those that Ctrl-C
        left out.
    """
    work = len(seeds) * len(codes) * plan.limits.max_features
    n_workers = min(effective_n_threads(n_jobs), 1 + work // _WORK_PER_THREAD)
    has_our_memory = shares_memory()
    if not has_our_memory and columns is not None:  # columns are not sent to workers
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
    """Grow the trees of the queue on the workers of joblib's active backend."""
    n_workers = effective_n_threads(n_jobs)
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
    """Grow trees of the queue until none is left; then help threads that are still growing."""
    grower = Grower(job.table, job.codes, job.plan, job.columns)
    queue.growers.append(grower)
    while numbers := queue.take(grower.n_at_once):
        for i, tree in zip(numbers, _grow_numbers(job, grower, numbers), strict=True):
            queue.leave(i, tree)
    queue.growers.remove(grower)
    if grower.shares_nodes and len(job.codes) >= _ROWS_WORTH_HELP:
        _help_others(queue)


def _help_others(queue):
    """Help other threads with the nodes they are splitting, until all trees are grown."""
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
        Numbers of the trees; each is only taken when its tree is to be grown.

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
