"""Ctrl-C during a fit: what was finished is kept, and KeyboardInterrupt goes on to the caller."""

from types import TracebackType
from typing import Self
from warnings import warn

from cart.tree.tree import Tree


class GrowthInterrupted(KeyboardInterrupt):
    """The user interrupted the growth.

    Attributes
    ----------
    trees : list of cart.tree.tree.Tree or None
        None in place of those that were not finished.
    """

    def __init__(self, trees: list[Tree | None]) -> None:
        super().__init__()
        self.trees = trees


class Interruption:
    """Raises KeyboardInterrupt when the fit stands; a context manager around all of it.

    Whatever goes wrong after the interrupt (too few trees for a score, a warning that is an
    error), KeyboardInterrupt is what the caller gets: a search over parameters goes on after other
    errors.
    """

    def __init__(self) -> None:
        self._words: str | None = None

    def keep(self, words: str) -> None:
        """The user interrupted the fit, which goes on with what was finished: `words` say so."""
        self._words = words

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._words is None:
            return
        try:
            if error is None:
                warn(self._words, stacklevel=4)
        finally:
            raise KeyboardInterrupt from error
