"""Ctrl-C, held back while what has to be whole is made."""

import functools
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self


class HeldInterrupts:
    """Holds Ctrl-C back until its block ends; a context manager.

    The signal comes to the main thread alone: in others nothing is held, or need be. Whoever
    handled it before handles it then: Python raises KeyboardInterrupt.

    Attributes
    ----------
    is_held : bool
        False hands the signal on at once.
    came : bool
        Has it come while it was held?
    """

    is_held = True
    came = False
    _before: Callable | None = None

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        if callable(before):
            try:
                signal.signal(signal.SIGINT, self._hear)
            except ValueError:  # another thread
                return self
            self._before = before
        return self

    def _hear(self, number: int, frame: FrameType | None) -> Any:
        if not self.is_held and self._before is not None:
            return self._before(number, frame)
        self.came = True
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self.came:
                self._before(signal.SIGINT, None)


def uninterrupted(function: Callable) -> Callable:
    """The function, with Ctrl-C held back until it returns."""

    @functools.wraps(function)
    def call(*args, **named):
        with HeldInterrupts():
            return function(*args, **named)

    return call
