"""Grow many trees from one table: whole trees over threads, a workspace for each batch."""

from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice, takewhile

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from cart.draw import DRAW_SEED_MAX
from cart.grower import Grower
from cart.stream import first_draws

# Batches per worker, where there are several: enough that none idles for long when trees differ
# in size.
_BATCHES_PER_WORKER = 4
# Trees on more rows may take so long that one thread, too, leaves the main one free to be
# interrupted: Python hears of a signal between two kernels only.
_QUICK_ROWS = 10_000
# Seconds until Ctrl-C is heard where the system tells another thread of it.
_WAKE_UP = 0.1


class GrowthInterrupted(KeyboardInterrupt):
    """The user interrupted the growth.

    Attributes
    ----------
    trees : list of cart.tree.Tree or None
        None in place of those that were not finished.
    """

    def __init__(self, trees):
        super().__init__()
        self.trees = trees


class Job:
    """What trees are grown from, in one object: a backend that ships it to other machines does so
    once per worker.

    Parameters
    ----------
    table, codes, plan, seeds, weigh : see `grow_trees`
    """

    def __init__(self, table, codes, plan, seeds, weigh):
        self.table = table
        self.codes = codes
        self.plan = plan
        self.seeds = seeds
        self.weigh = weigh

    def __sizeof__(self):
        # Dask ships objects that say they are large once, small ones with every task.
        return bytes_of(*self.table, self.codes)


def bytes_of(*fields):
    """Bytes of those that are arrays."""
    return sum(array.nbytes for array in fields if isinstance(array, np.ndarray))


class _Shop:
    """Where threads leave their trees, and learn that they are to stop."""

    def __init__(self, n_trees, watch):
        self.trees = [None] * n_trees
        self.is_closed = False
        self._watch = watch

    def leave(self, i, tree):
        self.trees[i] = tree
        if self._watch is not None:
            self._watch.step()


def grow_trees(table, codes, plan, seeds, weigh, n_jobs=None, watch=None):
    """Grow one tree per seed; the same trees for every `n_jobs`.

    Parameters
    ----------
    table : cart.table.Table
    codes : ndarray of shape (n_samples,), float64
        Class codes or numbers, see `cart.target.Target`.
    plan : cart.plan.Plan
    seeds : sequence of int
        A tree's `random_state`.
    weigh : callable
        `weigh(numbers)`: the weight of every row in each of these trees, (n_samples,) or a scalar.
    n_jobs : int or None
        joblib's.
    watch : forest.progress.Watch, optional
        Told of every tree.

    Returns
    -------
    list of cart.tree.Tree

    Raises
    ------
    GrowthInterrupted
        By Ctrl-C. Threads finish the trees that they are at, and stop.
    """
    n_workers = effective_n_jobs(n_jobs)
    n_batches = _BATCHES_PER_WORKER * n_workers if n_workers > 1 else 1
    batches = np.array_split(np.arange(len(seeds)), min(len(seeds), n_batches))
    job, shop = Job(table, codes, plan, seeds, weigh), _Shop(len(seeds), watch)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
    is_shared = shares_memory()

    def grow():
        tasks = (delayed(_grow_batch)(job, batch, shop if is_shared else None) for batch in batches)
        for batch, trees in parallel(tasks):
            if not is_shared:
                for i, tree in zip(batch, trees, strict=True):
                    shop.leave(i, tree)

    try:
        if n_workers == 1 and len(codes) > _QUICK_ROWS:
            _run_aside(grow)
        else:
            grow()
    except KeyboardInterrupt:
        shop.is_closed = True
        raise GrowthInterrupted(list(shop.trees)) from None
    return shop.trees


def shares_memory():
    """Do the workers of joblib's backend at hand share our memory?"""
    return getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False)


def _run_aside(function):
    """Run it in another thread, and wait."""
    aside = ThreadPoolExecutor(1)
    try:
        work = aside.submit(function)
        while not wait((work,), timeout=_WAKE_UP).done:
            pass
        work.result()
    finally:
        aside.shutdown(wait=False)


def _grow_batch(job, batch, shop):
    """Grow some trees; return their numbers and, where there is no shop to leave them, them."""
    trees = []
    to_grow = batch if shop is None else takewhile(lambda i: not shop.is_closed, batch)
    for i, tree in grow_each(job, to_grow):
        if shop is None:
            trees.append(tree)
        else:
            shop.leave(i, tree)
    return batch, trees


def grow_each(job, numbers):
    """Grow some trees, one after the other, in one thread.

    Parameters
    ----------
    job : Job
    numbers : iterable of int
        Which of the trees; asked for the next when it is to be grown.

    Yields
    ------
    number : int
    tree : cart.tree.Tree
    """
    grower = Grower(job.table, job.codes, job.plan)
    numbers = iter(numbers)
    while some := list(islice(numbers, grower.n_at_once)):
        seeds = first_draws([job.seeds[i] for i in some], DRAW_SEED_MAX)
        yield from zip(some, grower.grow(job.weigh(some), seeds), strict=True)
