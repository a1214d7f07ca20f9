"""Hold back Ctrl-C during work that must not be interrupted halfway."""

import functools
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self


class HeldInterrupts:
    """A context manager that holds back Ctrl-C until its block ends.

    Python handles signals in the main thread only, so in other threads nothing has to be held. At
    the end of the block a signal that came is passed to the former handler; Python's own raises
    KeyboardInterrupt.

    Attributes
    ----------
    is_held : bool
        If False, the signal is passed on at once.
    came : bool
        Whether the signal came while it was held back.
    """

    is_held = True
    came = False
    _before: Callable | None = None

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        if callable(before):
            with suppress(ValueError):  # another thread
                signal.signal(signal.SIGINT, self._hear)
                self._before = before
        return self

    def _hear(self, number: int, frame: FrameType | None) -> Any:
        if not self.is_held and self._before is not None:
            return self._before(number, frame)
        self.came = True
        return None

    def pass_on(self) -> None:
        """Call the former handler if the signal came while it was held back."""
        if self.came and self._before is not None:
            self.came = False
            self._before(signal.SIGINT, None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self.pass_on()


def uninterrupted(function: Callable) -> Callable:
    """Wrap a function so that Ctrl-C is held back until it returns."""

    @functools.wraps(function)
    def call(*args, **named):
        with HeldInterrupts():
            return function(*args, **named)

    return call
