"""Run tasks on the workers of joblib's active backend: threads, processes or machines."""

import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition, local
from types import FunctionType
from typing import Any, TypeVar
from warnings import catch_warnings, simplefilter

from joblib import wrap_non_picklable_objects
from joblib.parallel import SequentialBackend, get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from cart.jit.interrupts import HeldInterrupts
from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import effective_n_threads, has_room_for
from forest.growing.dask_tasks import results_of_dask

T = TypeVar("T")
_THREADS = {"prefer": "threads"}
_OF_POOL = 3  # threads that a pool has beside its workers
_SHARED = "c"  # map large arrays copy-on-write: kernels take no read-only ones
_here = local()  # `work`: the _Work that this thread's task belongs to


class WorkIsOver(BaseException):
    """Raised in a task whose result is not wanted any more."""


def go_on() -> None:
    """End the task if its result is not wanted any more; to be called between its steps."""
    work = getattr(_here, "work", None)
    if work is not None and work.is_over:
        raise WorkIsOver


def each_step(items: Iterable[T], watch: ProgressReporter | None) -> Iterator[T]:
    """Yield the items of a long task, calling `go_on` before each.

    `watch` is told of every item that was processed.
    """
    for item in items:
        go_on()
        yield item
        if watch is not None:
            watch.step()


def shares_memory(**wish: Any) -> bool:
    """Whether the workers of joblib's active backend share our memory.

    Parameters
    ----------
    **wish : `prefer` or `require`
        As for `results_of`.
    """
    backend, _ = get_active_backend(**(wish or _THREADS))
    return getattr(backend, "supports_sharedmem", False)


class _Work:
    """Keeps count of the tasks that run in threads, so as to end them and wait for them."""

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
        """Let no further task begin, and wait for those that have begun."""
        with self._change:
            self.is_over = True
            while self._n_running:
                self._change.wait(0.1)  # with a timeout, so that Ctrl-C takes effect


def _as_sent(part, work):
    """Wrap a local function for other processes, since pickle cannot send it; else no change."""
    is_local = work is None and isinstance(part, FunctionType) and "<" in part.__qualname__
    return wrap_non_picklable_objects(part) if is_local else part


@contextmanager
def results_of(
    tasks: Iterable[tuple], n_jobs: int | None, ordered: bool = True, verbose: int = 0,
    **wish: Any,
) -> Iterator[Iterable]:  # fmt: skip
    """Context with an iterable of the results of tasks, as they come.

    When its block ends, even by Ctrl-C or before all results were taken, no thread is running a
    task any more: those that have begun are waited for, and may end early by `go_on`.

    Parameters
    ----------
    tasks : iterable of tuple
        A function and its arguments.
    n_jobs : int or None
        As in joblib.
    ordered : bool, default=True
        Yield results in the order of the tasks; False yields each when it is done.
    verbose : int
    **wish : `prefer` or `require`
        As in joblib; prefer="threads" by default.

    Yields
    ------
    iterable
        The results.
    """
    wish = wish or _THREADS
    backend, _ = get_active_backend(**wish)
    if type(backend).__name__ == "DaskDistributedBackend":
        with results_of_dask(backend, tasks, ordered) as found:
            yield found
        return
    how = "list"  # the only way for some backends, such as "multiprocessing"
    if isinstance(backend, SequentialBackend) or backend.supports_return_generator:
        how = "generator" if ordered else "generator_unordered"
    work = _Work() if shares_memory(**wish) else None
    n_threads = effective_n_threads(n_jobs) if work is not None else 1
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
        # Ctrl-C while a pool is started or ended would leave its threads running for ever.
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
    """Close results if they are a generator."""
    if hasattr(results, "close"):
        with catch_warnings():  # joblib warns about results that were not taken
            simplefilter("ignore")
            results.close()
