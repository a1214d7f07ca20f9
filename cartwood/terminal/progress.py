"""How far a command is: a bar where there is a terminal and tqdm, else lines."""

import sys
from contextlib import ExitStack
from time import perf_counter
from typing import Any

from cartwood.terminal.text import say

_PATIENCE = 5.0  # seconds between two lines


class Steps:
    """Progress of one piece of work, on standard error; a context manager.

    Parameters
    ----------
    what : str
        What is being done.
    total : int
        How many steps there are.
    are_alike : bool, default=True
        Do steps take about as long as each other? Else no time left is told.
    """

    def __init__(self, what: str, total: int, are_alike: bool = True) -> None:
        self.what, self.total, self.n_done, self._are_alike = what, total, 0, are_alike

    def __enter__(self) -> "Steps":
        self._start = self._said = perf_counter()
        self._bar = _open_bar(self.what, self.total, self._are_alike)
        if self._bar is None:
            say(f"{self.what} ...")
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if self._bar is not None:
            self._bar.close()
        if kind is None:
            say(f"{self.what}: {perf_counter() - self._start:.1f} s")

    def __call__(self, *_: Any) -> None:
        """One more step is done (also as the callback of a fit)."""
        self.n_done += 1
        now = perf_counter()
        if self.n_done == 1:
            self._first = now  # what came before is also compilation
        if self._bar is not None:
            self._bar.update()
        elif now - self._said > _PATIENCE and 1 < self.n_done < self.total:
            self._said = now
            left = (now - self._first) / (self.n_done - 1) * (self.total - self.n_done)
            about = f", about {left:.0f} s left" if self._are_alike else ""
            say(f"{self.what}: {self.n_done} of {self.total}{about}")


class Phases:
    """Progress of work in several parts, each with its own `Steps`; a context manager.

    It is the callback of the work: every Progress that it is given says by `what` which part is
    under way.

    Parameters
    ----------
    titles : dict of str to str
        What is being done, by the names of the parts.
    """

    def __init__(self, titles: dict[str, str]) -> None:
        self._titles = titles
        self._what, self._steps = "", ExitStack()

    def __enter__(self) -> "Phases":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._steps.__exit__(*exception)

    def __call__(self, progress: Any) -> None:
        """A step of a part is done."""
        if progress.what != self._what:
            self._steps.close()
            self._what = progress.what
            title = self._titles.get(progress.what, progress.what)
            self._step = self._steps.enter_context(Steps(title, progress.n_total))
        self._step()


def _open_bar(what, total, are_alike):
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        return None
    form = None if are_alike else "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
    return tqdm(total=total, desc=what, leave=False, file=sys.stderr, bar_format=form)
