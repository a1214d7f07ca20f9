"""Lines for the user on standard error, tables of results on standard output."""

import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version


def say(*lines: str) -> None:
    """Print lines on standard error, where they do not mix with results."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print cells of text, the first column to the left, the others to the right."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join((f"{first:<{widths[0]}}", *cells)).rstrip())


def named_version() -> str:
    """The program and its version."""
    try:
        return f"cartwood {version('cartwood')}"
    except PackageNotFoundError:
        return "cartwood, from a checkout that is not installed"
