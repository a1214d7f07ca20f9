"""The engine for partitions on workers of Dask, whose scheduler places tasks and moves data.

Every state of a partition is the result of a task, computed from the previous state and from the
decisions since. If a worker is lost, the scheduler recomputes its results on another one.
"""

from functools import reduce
from itertools import repeat
from typing import Any
from weakref import WeakSet

import dask
from distributed import as_completed

from forest.partitioned.engines import Engine, itself

_FAN_IN = 4  # number of answers that one task joins


class DaskEngine(Engine):
    """Works on partitions through a client of Dask's distributed scheduler.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        threads = client.nthreads()
        self._addresses = list(threads) or [None]
        self._places: list | None = None  # address of the worker that each partition began on
        self._made: WeakSet = WeakSet()  # futures that are still referenced
        self.n_processes = max(1, len(threads))
        self.n_workers = max(1, sum(threads.values()))

    def __exit__(self, *exception):
        """Release our tasks, even those that wait or run: tracebacks may keep their futures alive.

        What the user has persisted stays, under the same keys.
        """
        for future in list(self._made):
            future.release()

    def spread(self, parts):
        """Handle of one delayed object or future per partition."""
        futures = self._client.compute(list(parts))
        self._made.update(futures)
        return futures

    def share(self, thing):
        """Future of the thing, computed by a task, so that it is not lost with a worker."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self._submit(itself, thing)

    def map(self, function, *handles, common=(), done=None):
        places = self._places or repeat(None)
        futures = [
            self._submit(function, *row, *common, at=place)
            for row, place in zip(zip(*handles, strict=True), places, strict=False)
        ]
        if done is not None:
            for _ in as_completed(futures):
                done()
        return futures

    def reduce(self, function, join, *handles, common=()):
        answers = self.map(function, *handles, common=common)
        while len(answers) > 1:
            answers = [
                self._submit(reduce, join, answers[i : i + _FAN_IN])
                for i in range(0, len(answers), _FAN_IN)
            ]
        total = answers[0].result()
        if self._places is None:
            who_has = self._client.who_has(handles[0])
            self._places = [next(iter(who_has.get(part.key, ())), None) for part in handles[0]]
        return total

    def hold(self, *handles):
        """Bring the parts to each process by a task, which may run elsewhere if that one is lost.

        The parts are copied by tasks of their own first. Dask drops what it takes for spare copies
        of a result, possibly where the partition is, and would have to send them again.
        """
        parts = self.map(_all_of, *handles)
        return [self._submit(itself, parts, at=address) for address in self._addresses]

    def collect(self, function, finish, handles, jobs, held=None):
        finished = []
        for number, (asked, common) in enumerate(jobs):
            pieces = self.map(function, *handles, common=(asked,))
            here, place = (), None
            if held is not None:
                here, place = (held[number % len(held)],), self._addresses[number % len(held)]
            finished.append(self._submit(finish, pieces, *here, *common, at=place))
        return self._client.gather(finished)

    def _submit(self, function, *arguments, at=None):
        """Submit a task, preferably to the worker at an address.

        Without a preference, the scheduler would move states of partitions between workers.
        """
        where = {} if at is None else {"workers": [at], "allow_other_workers": True}
        future = self._client.submit(function, *arguments, pure=False, **where)
        self._made.add(future)
        return future


def _all_of(*parts):
    return parts
