"""Progress of long work: a bar in terminal and notebook, or a callback."""

import sys
from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from time import perf_counter
from typing import NamedTuple, Self, TypeVar

import numpy as np

T = TypeVar("T")


class Progress(NamedTuple):
    """How far the work is, as a callback sees it."""

    n_done: int
    n_total: int | None  # None: as many as it takes
    seconds: float  # since it began
    what: str = ""  # the part of the work that is under way, where it has several

    @property
    def rate(self) -> float:
        """Steps per second."""
        return self.n_done / self.seconds

    @property
    def seconds_left(self) -> float | None:
        """At the present rate; None where nobody knows."""
        return None if self.n_total is None else (self.n_total - self.n_done) / self.rate


class ProgressReporter:
    """Counts finished steps, from any thread, and shows them; a context manager.

    Parameters
    ----------
    n_total : int or None
        None: as many as it takes.
    unit : str
        What a step is.
    verbose : int
        Above 0 there is a bar, by tqdm where it is installed; else a line for every tenth, with the
        time left (for every hundred where the total is not known), on standard error both.
    callback : callable or None
        Called with a Progress after every step; by returning False it asks for an end.

    Raises
    ------
    TypeError
        If the callback cannot be called.

    Attributes
    ----------
    is_stopped : bool
        Has the callback asked for an end?
    """

    def __init__(
        self,
        n_total: int | None,
        unit: str,
        verbose: int = 0,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback={callback!r} must be a function, such as print.")
        self._n_total = n_total
        self._unit = unit
        self._verbose = verbose
        self._callback = callback
        self._n_done = 0
        self.is_stopped = False
        self._lock = Lock()
        self._bar = None

    def __enter__(self) -> Self:
        self._start = perf_counter()
        if self._verbose:
            self._bar = _open_bar(self._n_total, self._unit)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def step(self) -> None:
        """One more step is done."""
        if not self._verbose and self._callback is None:
            return  # nobody looks
        with self._lock:
            self._n_done += 1
            if self._bar is not None:
                self._bar.update()
            progress = Progress(self._n_done, self._n_total, perf_counter() - self._start)
            if self._verbose and self._bar is None:
                self._print(progress)
            if self._callback is not None:
                answer = self._callback(progress)
                is_end = answer is False or answer is np.False_  # None is no answer
                self.is_stopped = self.is_stopped or is_end

    def _print(self, progress):
        n, n_total = progress.n_done, progress.n_total
        if n_total is None:
            if n % 100 == 0:
                print(f"{n} {self._unit}s", file=sys.stderr)
        elif n * 10 % n_total < 10:
            left = f", about {progress.seconds_left:.0f} s left" if n < n_total else ""
            print(f"{n} of {n_total} {self._unit}s{left}", file=sys.stderr)


def watched(
    items: Iterable[T], n_total: int, unit: str, verbose: int = 0,
    callback: Callable[[Progress], object] | None = None,
) -> Iterator[T]:  # fmt: skip
    """Items as they come, each reported as a step once it has been dealt with."""
    with ProgressReporter(n_total, unit, verbose, callback) as watch:
        for item in items:
            yield item
            watch.step()


def _open_bar(n_total, unit):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=n_total, unit=f" {unit}s")
