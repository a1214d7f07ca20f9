"""Ctrl-C during a fit: finished work is kept, and then KeyboardInterrupt is raised."""

from collections.abc import Callable
from types import TracebackType

from cart.jit.interrupts import HeldInterrupts
from cart.primitives.user_warning import warn_user


class Interruption(HeldInterrupts):
    """Context manager around a fit that delays KeyboardInterrupt until finished work is kept.

    Attributes
    ----------
    is_cut : bool
        Whether Ctrl-C has ended some work early.

    Notes
    -----
    Before the first `run`, Ctrl-C ends the fit at once, since there is nothing to keep. From then
    on it only takes effect within `run`, so that the finished work becomes a consistent fit. A
    handler of the user's own that returns ends nothing.
    Whatever goes wrong after the interrupt (too few trees for a score, a warning turned into an
    error), the caller gets KeyboardInterrupt: a search over parameters would go on after others.
    """

    def __init__(self) -> None:
        self.is_held = self.is_cut = False
        self._words: list[str] = []

    def run(self, work: Callable[[], object]) -> bool:
        """Call `work()`, which Ctrl-C ends; also one that came since the previous call.

        Returns
        -------
        bool
            Whether the work was completed.
        """
        try:
            self.is_held = False
            self.pass_on()
            work()
            self.is_held = True
        except KeyboardInterrupt:
            self.is_held = self.is_cut = True
            return False
        return True

    def keep(self, words: str) -> None:
        """Note in `words` (without a full stop), for the warning, what was kept."""
        self._words.append(words)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
            if not self.is_cut:
                return
        except KeyboardInterrupt:
            pass
        try:
            if error is None:
                words = "; ".join(self._words) or "the fit was finished, so nothing is missing"
                warn_user(f"Interrupted: {words}.")
        finally:
            raise KeyboardInterrupt from error
