"""Report the progress of long work by a bar, in a terminal or notebook, or a callback."""

import sys
from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from time import perf_counter
from typing import NamedTuple, Self, TypeVar

import numpy as np

T = TypeVar("T")


class Progress(NamedTuple):
    """How far the work has got, as a callback sees it."""

    n_done: int
    n_total: int | None  # None: not known in advance
    seconds: float  # since the work began
    what: str = ""  # the current part of the work, if it has several

    @property
    def rate(self) -> float:
        """Steps per second."""
        return self.n_done / self.seconds

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at the present rate; None if the total is not known."""
        return None if self.n_total is None else (self.n_total - self.n_done) / self.rate


class ProgressReporter:
    """A context manager that counts finished steps, from any thread, and shows them.

    Parameters
    ----------
    n_total : int or None
        None if not known in advance.
    unit : str
        What a step is.
    verbose : int
        Above 0, progress is shown on standard error: by a bar of tqdm if that is installed, else by
        a line for every tenth of the work with the time left (for every hundred steps if the total
        is not known).
    callback : callable or None
        Called with a Progress after every step. It may return False to ask for a stop.

    Raises
    ------
    TypeError
        If the callback is not callable.

    Attributes
    ----------
    is_stopped : bool
        Whether the callback has asked for a stop.
    """

    def __init__(
        self,
        n_total: int | None,
        unit: str,
        verbose: int,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback={callback!r} must be callable, such as print.")
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
        """Count one more step as done, and report it."""
        if not self._verbose and self._callback is None:
            return
        with self._lock:
            self._n_done += 1
            if self._bar is not None:
                self._bar.update()
            progress = Progress(self._n_done, self._n_total, perf_counter() - self._start)
            if self._verbose and self._bar is None:
                self._print(progress)
            if self._callback is not None:
                answer = self._callback(progress)
                is_end = answer is False or answer is np.False_  # not falsy: None means go on
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
    items: Iterable[T], n_total: int, unit: str, verbose: int,
    callback: Callable[[Progress], object] | None,
) -> Iterator[T]:  # fmt: skip
    """Yield items, and report each as a step once the caller asks for the next."""
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
