"""Print one line to standard error when a user waits for kernels to be compiled."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from time import perf_counter

PATIENCE = 2.0  # seconds of compiling in a process before the line is printed
TEXT = (
    "Cartwood is compiling {name} and other kernels. This happens once: later fits and processes "
    "load them from disk. Run `cartwood warm-up` to compile everything ahead."
)


class _Waited:
    """How long this process has spent compiling."""

    seconds = 0.0
    is_compiling = is_said = False


@contextmanager
def announced(name: str) -> Iterator[None]:
    """Tell the user, once per process, when compiling has taken PATIENCE seconds in total.

    Parameters
    ----------
    name : str
        Of the kernel.
    """
    if _Waited.is_compiling or _Waited.is_said:
        yield
        return
    timer = Timer(max(0.0, PATIENCE - _Waited.seconds), _say, [name])
    timer.daemon = True
    begin = perf_counter()
    _Waited.is_compiling = True
    with suppress(RuntimeError):  # "can't start new thread": then nothing is said
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _Waited.is_compiling = False
        _Waited.seconds += perf_counter() - begin


def _say(name):
    if not _Waited.is_said:
        _Waited.is_said = True
        print(TEXT.format(name=name), file=sys.stderr, flush=True)
