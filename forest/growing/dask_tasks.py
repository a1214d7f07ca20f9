"""Run tasks on the workers of joblib's Dask backend, such that the death of workers ends them.

joblib's own implementation waits for ever if the only worker with the table dies, or if a worker
dies while the table is sent. Here:

    table  ->  every worker      so none dies with the last copy of it
    task   ->  a worker          Dask gives it to another one if the first dies
    result ->  here              as it comes; an error if the table or all workers are lost
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from joblib import parallel_config
from sklearn import config_context, get_config

_LARGE = 100_000  # bytes: larger arguments are sent once, not with every task
_TRIES = 3  # attempts to send one
_PATIENCE = 10.0  # seconds without a result after which we check that there are workers


class LostWorkersError(RuntimeError):
    """Dask has lost the workers or the data that tasks need."""


@contextmanager
def results_of_dask(backend: Any, tasks: Iterable[tuple], ordered: bool) -> Iterator[Iterator]:
    """Context with an iterator of the results of tasks, as they come.

    If its block ends before all results were taken, tasks that have not begun are cancelled.

    Parameters
    ----------
    backend : joblib's backend of Dask
    tasks : iterable of tuple
        A function and its arguments. Large arguments are sent once to every worker.
    ordered : bool
        Yield results in the order of the tasks; False yields each when it is done.

    Yields
    ------
    iterator
        The results.

    Raises
    ------
    LostWorkersError
        While results are taken, if all workers are gone, or all that had data which was sent.
    distributed.KilledWorker
        If several workers died of a task.
    """
    client = backend.client
    backend.effective_n_jobs(-1)  # waits for workers, and raises an error if none comes
    sent = _Sent(client, backend.data_futures)
    config = get_config()
    futures = [
        client.submit(_call, config, *map(sent.place_of, task), pure=False, **backend.submit_kwargs)
        for task in tasks
    ]
    try:
        with backend.retrieval_context():
            yield _taken(client, futures, ordered)
    finally:
        client.cancel(futures)


class _Sent:
    """Values that were sent to every worker, and their futures."""

    def __init__(self, client, known):
        self._client = client
        self._known = known  # by id: futures of what the user told joblib to scatter
        self._futures = {}

    def place_of(self, value: Any) -> Any:
        """The future of a large value, which is sent on first use; any other value as it is."""
        from dask.sizeof import sizeof

        if id(value) in self._known:
            return self._known[id(value)]
        if id(value) not in self._futures:
            if callable(value) or sizeof(value) < _LARGE:
                return value
            # Keep the value, too, so that its id is not reused.
            self._futures[id(value)] = value, self._send(value)
        return self._futures[id(value)][1]

    def _send(self, value):
        for _ in range(_TRIES):
            try:
                return self._client.scatter([value], broadcast=True, hash=False)[0]
            except (OSError, KeyError) as error:  # a worker died
                last = error
        raise LostWorkersError("Workers of Dask died while data was sent to them.") from last


def _call(config: dict, function: Callable, *args: Any) -> Any:
    with config_context(**config), parallel_config("sequential"):
        return function(*args)


def _taken(client, futures, ordered):
    """Yield the results of futures, each of which is released then."""
    from distributed import CancelledError, wait

    while futures:
        asked = futures[:1] if ordered else futures
        try:
            done = wait(asked, timeout=_PATIENCE, return_when="FIRST_COMPLETED").done
            done = [future for future in asked if future in done]
            results = client.gather(done)
        except TimeoutError:
            _refuse_to_wait_for_nobody(client)
        except CancelledError as error:
            raise LostWorkersError(
                "The workers of Dask that held the table were lost, or the client was closed, so "
                "nothing more can be grown. Try again when there are workers."
            ) from error
        else:
            for future in done:
                futures.remove(future)
            yield from results


def _refuse_to_wait_for_nobody(client):
    if client.ncores():
        return
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        raise LostWorkersError(
            "All workers of Dask were lost, and none has replaced them."
        ) from error
