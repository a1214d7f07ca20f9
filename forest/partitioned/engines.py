"""Where partitions are worked on: in threads of this process, or by the workers of Dask.

What growth asks of an engine is little. A partition's data stay where they are, behind a handle; a
function is called on every partition, and makes another handle (`map`) or an answer that is added
up over partitions (`reduce`); a few rows of each are brought to one place (`collect`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, Self

from joblib import effective_n_jobs

from cart.jit.interrupts import HeldInterrupts


class Engine(ABC):
    """Works on partitions; a context manager, behind which nothing is left to be worked on.

    Attributes
    ----------
    n_workers : int
        That work at once; of `n_processes`, each with memory of its own.
    """

    n_workers = 1
    n_processes = 1

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *exception: object) -> None:
        """Let go of everything that was worked out, or still is."""

    @abstractmethod
    def spread(self, parts: Sequence) -> Any:
        """A handle of one object per partition."""

    @abstractmethod
    def share(self, thing: Any) -> Any:
        """What stands for something large in `common`, so that a place gets it once."""

    @abstractmethod
    def map(
        self, function: Callable, *handles: Any, common: tuple = (), done: Callable | None = None
    ) -> Any:
        """A handle of `function(*parts, *common)` of every partition.

        A sequence of what is said of each partition may stand among the handles.
        With `done`, a callable, it waits for all of them, and calls `done()` after each.
        """

    @abstractmethod
    def reduce(self, function: Callable, join: Callable, *handles_and_common: Any) -> Any:
        """The answers `function(part, *common)` of all partitions, joined two by two.

        `join` is associative and commutative. The first argument is a handle or a tuple of them,
        the others are passed on.
        """

    @abstractmethod
    def hold(self, *handles: Any) -> Any:
        """What `collect` brings to each place once: the parts of some handles, all of them."""

    @abstractmethod
    def collect(self, function: Callable, finish: Callable, handles: tuple,
                jobs: Iterable[tuple], held: Any = None) -> Iterable:  # fmt: skip
        """Of every job (asked, common) `finish([function(*parts, asked) of every partition],
        *common)`, made in one place, in the order of the jobs.

        With `held` of k handles `finish(the same, [(part of each) of every partition], *common)`.
        """


class LocalEngine(Engine):
    """Threads of this process.

    Parameters
    ----------
    n_jobs : int or None
        joblib's. So many partitions are at work at once, and their answers in memory.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = effective_n_jobs(n_jobs)

    def __exit__(self, *exception):
        """Threads are done when a method returns, and what they found is nobody else's."""

    def spread(self, parts):
        return list(parts)

    def share(self, thing):
        return thing

    def map(self, function, *handles, common=(), done=None):
        items = list(zip(*handles, strict=True))
        parts = []
        for part in self._run(lambda item: function(*item, *common), items):
            parts.append(part)
            if done is not None:
                done()
        return parts

    def reduce(self, function, join, handles, *common):
        handles = handles if isinstance(handles, tuple) else (handles,)
        items = list(zip(*handles, strict=True))
        return reduce(join, self._run(lambda item: function(*item, *common), items))

    def hold(self, *handles):
        return list(zip(*handles, strict=True))

    def collect(self, function, finish, handles, jobs, held=None):
        parts = list(zip(*handles, strict=True))
        here = () if held is None else (held,)

        def work(job):
            asked, common = job
            return finish([function(*part, asked) for part in parts], *here, *common)

        return self._run(work, list(jobs))

    def _run(self, work, items):
        """The results in order; no more are in memory than there are threads, and one."""
        if self.n_workers == 1 or len(items) < 2:
            yield from map(work, items)
            return
        with ThreadPoolExecutor(min(self.n_workers, len(items))) as pool:
            waiting = []
            try:
                for item in items:
                    with HeldInterrupts():  # or a thread may start that the pool has not noted
                        waiting.append(pool.submit(work, item))
                    if len(waiting) > self.n_workers:
                        yield waiting.pop(0).result()
                while waiting:
                    yield waiting.pop(0).result()
            finally:
                for future in waiting:
                    future.cancel()


def itself(thing: Any) -> Any:
    """The thing that is passed: a task that finds nothing new."""
    return thing
