"""Ctrl-C during a fit: what was finished is kept, and KeyboardInterrupt goes on to the caller."""

from collections.abc import Callable
from types import TracebackType

from cart.jit.interrupts import HeldInterrupts
from cart.primitives.user_warning import warn_user


class Interruption(HeldInterrupts):
    """Raises KeyboardInterrupt when the fit stands; a context manager around all of it.

    Attributes
    ----------
    is_cut : bool
        Has Ctrl-C ended some work?

    Notes
    -----
    Up to the first `run` Ctrl-C ends the fit at once, since there is nothing to keep. From then on
    it is heard within `run` only, so that what was finished becomes the estimator's whole.
    Whatever goes wrong after the interrupt (too few trees for a score, a warning that is an
    error), KeyboardInterrupt is what the caller gets: a search over parameters goes on after other
    errors.
    """

    def __init__(self) -> None:
        self.is_held = self.is_cut = False
        self._words: list[str] = []

    def run(self, work: Callable[[], object]) -> bool:
        """Call `work()`, which Ctrl-C ends, also one that has come since the work before.

        Returns
        -------
        bool
            Is it done?
        """
        try:
            self.is_held = False
            if self.came:
                raise KeyboardInterrupt
            work()
            self.is_held = True
        except KeyboardInterrupt:
            self.is_held = self.is_cut = True
            self.came = False
            return False
        return True

    def keep(self, words: str) -> None:
        """The fit goes on with what was finished: `words`, without an end, say what that is."""
        self._words.append(words)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        came, self.came = self.came or self.is_cut, False
        super().__exit__(kind, error, traceback)
        if not came:
            return
        try:
            if error is None:
                words = "; ".join(self._words) or "nothing is left out, since the fit was finished"
                warn_user(f"Interrupted: {words}.")
        finally:
            raise KeyboardInterrupt from error
