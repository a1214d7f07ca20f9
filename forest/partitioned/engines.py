"""Engines, which work on partitions in threads of this process or on the workers of Dask.

Growth needs little of an engine. The data of partitions stay where they are, behind a handle. A
function is called on every partition and makes another handle (`map`) or an answer, which is added
up over partitions (`reduce`); or a few rows of each partition are brought to one place (`collect`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import starmap
from typing import Any, Self

from cart.jit.interrupts import HeldInterrupts
from cart.primitives.threads import effective_n_threads


class Engine(ABC):
    """Works on partitions; a context manager, which leaves no work behind.

    Attributes
    ----------
    n_workers : int
        Number of threads that work at the same time, in all processes.
    n_processes : int
        Number of processes, each with memory of its own.
    """

    n_workers = 1
    n_processes = 1

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *exception: object) -> None:
        """Release all results, also of work that is still going on."""

    @abstractmethod
    def spread(self, parts: Sequence) -> Any:
        """A handle of one object per partition."""

    @abstractmethod
    def share(self, thing: Any) -> Any:
        """A stand-in for a large object in `common`, so that each process gets it only once."""

    @abstractmethod
    def map(
        self, function: Callable, *handles: Any, common: tuple = (), done: Callable | None = None
    ) -> Any:
        """A handle of the results of `function(*parts, *common)` for every partition.

        A handle may also be a sequence with one item per partition. If `done` is given, `map` waits
        for all results, and calls `done()` after each.
        """

    @abstractmethod
    def reduce(self, function: Callable, join: Callable, *handles: Any, common: tuple = ()) -> Any:
        """The answers `function(*parts, *common)` of all partitions, joined two by two.

        `join` must be associative and commutative. For handles see `map`.
        """

    @abstractmethod
    def hold(self, *handles: Any) -> Any:
        """All parts of some handles, brought once to each process, for `collect`."""

    @abstractmethod
    def collect(self, function: Callable, finish: Callable, handles: tuple,
                jobs: Iterable[tuple], held: Any = None) -> Iterable:  # fmt: skip
        """For every job (asked, common), call `finish(pieces, *common)` in one place.

        `pieces` has `function(*parts, asked)` of every partition. With `held`, from `hold`,
        `finish(pieces, held, *common)` is called, where `held` has a tuple of parts for every
        partition. Results are in the order of the jobs.
        """


class LocalEngine(Engine):
    """Works on partitions in threads of this process.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib: the number of partitions worked on at once, whose answers are in memory.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = effective_n_threads(n_jobs)

    def __exit__(self, *exception):
        """Do nothing: threads have ended when a method returns."""

    def spread(self, parts):
        return list(parts)

    def share(self, thing):
        return thing

    def map(self, function, *handles, common=(), done=None):
        parts = []
        for part in self._run(function, handles, common):
            parts.append(part)
            if done is not None:
                done()
        return parts

    def reduce(self, function, join, *handles, common=()):
        return reduce(join, self._run(function, handles, common))

    def hold(self, *handles):
        return list(zip(*handles, strict=True))

    def collect(self, function, finish, handles, jobs, held=None):
        parts = self.hold(*handles)
        here = () if held is None else (held,)

        def work(asked, common):
            return finish([function(*part, asked) for part in parts], *here, *common)

        return self._run(work, zip(*jobs, strict=True))

    def _run(self, work, handles, common=()):
        """Yield the results in order, of which at most one more than threads is in memory."""
        items = [(*item, *common) for item in zip(*handles, strict=True)]
        if self.n_workers == 1 or len(items) < 2:
            yield from starmap(work, items)
            return
        with ThreadPoolExecutor(min(self.n_workers, len(items))) as pool:
            waiting = []
            try:
                for item in items:
                    with HeldInterrupts():  # else Ctrl-C may leave a thread unknown to the pool
                        waiting.append(pool.submit(work, *item))
                    if len(waiting) > self.n_workers:
                        yield waiting.pop(0).result()
                while waiting:
                    yield waiting.pop(0).result()
            finally:
                for future in waiting:
                    future.cancel()


def itself(thing: Any) -> Any:
    """Return the argument; as a task, this makes a copy of its own of a result."""
    return thing
