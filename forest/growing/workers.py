"""Tasks on the workers of whatever backend joblib has at hand: threads, processes, machines."""

import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition, local
from types import FunctionType
from typing import Any, TypeVar
from warnings import catch_warnings, simplefilter

from joblib import effective_n_jobs, wrap_non_picklable_objects
from joblib.parallel import SequentialBackend, get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from cart.jit.interrupts import HeldInterrupts
from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import has_room_for
from forest.growing.dask_tasks import results_of_dask

T = TypeVar("T")
_THREADS = {"prefer": "threads"}
_OF_POOL = 3  # threads that a pool has beside its workers
_SHARED = "c"  # large arrays in files: kernels take none that are read-only, and a write stays here
_here = local()  # `work`: the work that this thread has a task of


class WorkIsOver(BaseException):
    """Nobody wants the result of the task any more."""


def go_on() -> None:
    """To be called between the steps of long tasks: ends those that nobody waits for any more."""
    work = getattr(_here, "work", None)
    if work is not None and work.is_over:
        raise WorkIsOver


def each_step(items: Iterable[T], watch: ProgressReporter | None) -> Iterator[T]:
    """Items of a long task, which ends between two of them where nobody waits for it any more.

    `watch` is told of every item that has been dealt with.
    """
    for item in items:
        go_on()
        yield item
        if watch is not None:
            watch.step()


def shares_memory(**wish: Any) -> bool:
    """Do the workers of joblib's backend at hand share our memory?

    Parameters
    ----------
    **wish : `prefer` or `require`
        As of `results_of`.
    """
    backend, _ = get_active_backend(**(wish or _THREADS))
    return getattr(backend, "supports_sharedmem", False)


class _Work:
    """The tasks of threads that are under way."""

    def __init__(self) -> None:
        self.is_over = False
        self._n_running = 0
        self._change = Condition()

    def call(self, function: Callable, *args: Any) -> Any:
        with self._change:
            if self.is_over:
                return None
            self._n_running += 1
        outer, _here.work = getattr(_here, "work", None), self
        try:
            return function(*args)
        except WorkIsOver:
            return None
        finally:
            _here.work = outer
            with self._change:
                self._n_running -= 1
                self._change.notify_all()

    def end(self) -> None:
        """No further task begins; waits for those that have begun."""
        with self._change:
            self.is_over = True
            while self._n_running:
                self._change.wait(0.1)  # Ctrl-C is heard, also if another thread is told


def _as_sent(part, work):
    """A part of a task, as processes can be sent it: pickle knows no function within a function."""
    is_local = work is None and isinstance(part, FunctionType) and "<" in part.__qualname__
    return wrap_non_picklable_objects(part) if is_local else part


@contextmanager
def results_of(
    tasks: Iterable[tuple], n_jobs: int | None, ordered: bool = True, verbose: int = 0,
    **wish: Any,
) -> Iterator[Iterable]:  # fmt: skip
    """The results of tasks, as they come; a context manager.

    When its block ends, also by Ctrl-C or before all results were taken, no thread has a task any
    more: those that have begun are waited for, and may end early by `go_on`.

    Parameters
    ----------
    tasks : iterable of tuple
        A function and its arguments.
    n_jobs : int or None
        joblib's.
    ordered : bool, default=True
        In the order of the tasks? Else as they are done.
    verbose : int
    **wish : `prefer` or `require`
        joblib's; prefer="threads" unless given.

    Yields
    ------
    iterable
        Of the results.
    """
    wish = wish or _THREADS
    backend, _ = get_active_backend(**wish)
    if type(backend).__name__ == "DaskDistributedBackend":
        with results_of_dask(backend, tasks, ordered) as found:
            yield found
        return
    how = "list"  # "multiprocessing", for one, knows no other
    if isinstance(backend, SequentialBackend) or backend.supports_return_generator:
        how = "generator" if ordered else "generator_unordered"
    work = _Work() if shares_memory(**wish) else None
    n_threads = effective_n_jobs(n_jobs) if work is not None else 1
    if n_threads > 1 and not has_room_for(n_threads + _OF_POOL):
        n_jobs = 1
    parallel = Parallel(n_jobs=n_jobs, verbose=verbose, return_as=how, mmap_mode=_SHARED, **wish)
    call = delayed(operator.call if work is None else work.call)
    calls = (call(*(_as_sent(part, work) for part in task)) for task in tasks)
    results: Any = None
    if work is None:
        try:
            results = parallel(calls)
            yield results
        finally:
            _close(results)
        return
    try:
        # A pool that Ctrl-C cuts in two as it is made, or ended, leaves threads for ever.
        with HeldInterrupts():
            parallel.__enter__()
            results = parallel(calls)
        yield results
    finally:
        try:
            work.end()
        finally:
            with HeldInterrupts():
                _close(results)
                parallel.__exit__(None, None, None)


def _close(results):
    """End results, where they are a generator."""
    if hasattr(results, "close"):
        with catch_warnings():  # that there are results which nobody wants
            simplefilter("ignore")
            results.close()
