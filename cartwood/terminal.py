"""Terminal output of commands: messages, tables, progress, and errors in words."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import get_terminal_size
from time import perf_counter
from typing import Any

_PATIENCE = 5.0  # seconds between two lines of progress
_ROWS_SEEN = 40  # most rows of a table that a terminal gets
_LEAST_OF_NAME = 24  # letters of a name that are shown even on a narrow terminal


def say(*lines: str) -> None:
    """Print lines on standard error, so that they do not mix with results."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print cells of text, the first column left-aligned, the others right-aligned.

    A file or another program gets everything. A terminal gets at most `_ROWS_SEEN` rows, with names
    shortened where that keeps lines from wrapping.
    """
    rows, is_seen = list(rows), sys.stdout.isatty()
    n_left_out = max(len(rows) - _ROWS_SEEN, 0) if is_seen else 0
    lines = [list(columns), *map(list, rows[: len(rows) - n_left_out])]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    room = get_terminal_size().columns - sum(width + 2 for width in widths[1:])
    if is_seen and widths[0] > room:
        widths[0] = max(room, _LEAST_OF_NAME)
    for name, *others in lines:
        first = _shortened(name, widths[0])
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join((f"{first:<{widths[0]}}", *cells)).rstrip())
    if n_left_out:
        say(f"{n_left_out:,} more rows are on the page")


def _shortened(name, width):
    """A name cut to a width, the middle of a longer one left out."""
    head = width * 2 // 3
    return name if len(name) <= width else f"{name[:head]}\u2026{name[head + 1 - width :]}"


def named_version() -> str:
    """The program and its version."""
    try:
        return f"cartwood {version('cartwood')}"
    except PackageNotFoundError:
        return "cartwood, from a checkout that is not installed"


class UserError(Exception):
    """An error that the user can fix; the message says how, in one line. The exit code is 2."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Context that writes a file: an OSError, as of a full disk, becomes a UserError naming it."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def require(module: str, extra: str) -> Any:
    """Import a module that is not a required dependency; `extra` is the extra that installs it.

    Raises
    ------
    UserError
        If it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        raise UserError(
            f'{package} is not installed; pip install "cartwood[{extra}]" brings it.'
        ) from error


def nearest(name: str, known: Iterable[Any]) -> str:
    """A hint for an unknown column: "did you mean a, b?", or else the known names."""
    names = [str(each) for each in known]
    folded = {each.casefold(): each for each in names}
    found = get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    if found:
        return f"did you mean {', '.join(folded[each] for each in found)}?"
    some = ", ".join(names[:20])
    return f"the columns are {some}" + (f" and {len(names) - 20} more." if len(names) > 20 else ".")


def counted(n: int, what: str) -> str:
    """A number with a noun: "1 tree", "2 trees"."""
    return f"{n} {what}" + ("s" if n != 1 else "")


class Steps:
    """Progress of one piece of work, on standard error; a context manager.

    Parameters
    ----------
    what : str
        A description of the work.
    total : int
        The number of steps.
    are_alike : bool, default=True
        Whether steps take about equally long; otherwise no remaining time is shown.
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
        """Count one step as done (also as the callback of a fit)."""
        self.n_done += 1
        now = perf_counter()
        if self.n_done == 1:
            self._first = now  # the time of the first step includes compilation
        if self._bar is not None:
            self._bar.update()
        elif now - self._said > _PATIENCE and 1 < self.n_done < self.total:
            self._said = now
            left = (now - self._first) / (self.n_done - 1) * (self.total - self.n_done)
            about = f", about {left:.0f} s left" if self._are_alike else ""
            say(f"{self.what}: {self.n_done} of {self.total}{about}")


class Phases:
    """Progress of work in several parts, each with its own `Steps`; a context manager.

    Pass it as the callback of the work: the `what` of each Progress it receives names the current
    part.

    Parameters
    ----------
    titles : dict of str to str
        Descriptions of the parts, by name.
    """

    def __init__(self, titles: dict[str, str]) -> None:
        self._titles = titles
        self._what, self._steps = "", ExitStack()

    def __enter__(self) -> "Phases":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._steps.__exit__(*exception)

    def __call__(self, progress: Any) -> None:
        """Count one step of the current part as done."""
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
