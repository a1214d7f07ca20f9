"""Tables of results for the terminal and Markdown, and the progress bar."""

from contextlib import contextmanager
from math import floor, log10
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 140


GAP = 2  # blanks after each column


class Table(NamedTuple):
    """Cells of text; the first column is left-aligned, the others right."""

    title: str
    columns: list
    rows: list
    note: str = ""


def show(table):
    """Print a table on the terminal."""
    view = RichTable(
        title=Text(table.title),
        title_justify="left",
        title_style="bold",
        caption=Text(table.note) if table.note else None,
        caption_justify="left",
        box=None,
        header_style="dim",
        pad_edge=False,
        padding=(0, GAP, 0, 0),
    )
    for i, (column, width) in enumerate(zip(table.columns, _widths(table), strict=True)):
        view.add_column(Text(column), justify="right" if i else "left", width=width)
    for row in table.rows:
        view.add_row(*map(Text, row))
    console.print(view)
    console.print()


def _widths(table):
    """Widths of the columns; None leaves them to the table if it fits the terminal.

    Otherwise the columns of numbers are as narrow as their longest word, and the first column gets
    the rest.
    """
    columns = list(zip(table.columns, *table.rows, strict=True))
    needed = [max(map(len, "\n".join(column).split("\n"))) + GAP for column in columns]
    if sum(needed) <= console.width:
        return [None] * len(columns)
    words = [max(map(len, " ".join(column).split())) for column in columns[1:]]
    return [max(8, console.width - sum(words) - GAP * len(columns)), *words]


def heading(text):
    """Print a line that starts a new section."""
    console.rule(Text(text, style="bold"), align="left")


def say(*lines):
    """Print lines without markup or wrapping."""
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def markdown(table):
    """A table as Markdown.

    Returns
    -------
    str
    """
    rule = ["---"] + ["---:"] * (len(table.columns) - 1)
    header = [column.replace("\n", " ") for column in table.columns]
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *table.rows)]
    return "\n".join([f"## {table.title}", "", *lines, "", table.note]).rstrip() + "\n"


@contextmanager
def progress(total):
    """A progress bar that shows only on a terminal.

    Yields
    ------
    step : callable
        `step(description)` says what is done next, `step()` counts one more step as done.
    """
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=total)

        def step(description=None):
            if description is None:
                bar.advance(task)
            else:
                bar.update(task, description=description)

        yield step


def share(part, whole):
    """A share in per cent; "100 %" and "0 %" are exact."""
    if part in (0, whole):
        return "100 %" if part else "0 %"
    return f"{min(100.0 * part / whole, 99.99):.2f} %"


def seconds(value):
    """A time in a suitable unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 0.9995:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value * 1e6)} µs"


def significant(value, digits=3):
    """A number rounded to so many significant digits, without an exponent."""
    if value == 0.0:
        return "0"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:.{decimals}f}"


def estimates(values, spread=None):
    """Values with three digits of the largest, or two digits of the largest uncertainty.

    Parameters
    ----------
    values, spread : array-like of shape (n,)

    Returns
    -------
    list of str
    """
    decimals = _decimals(values, 3)
    if spread is None:
        return [f"{value:z.{decimals}f}" for value in values]
    decimals = max(decimals, _decimals(spread, 2))
    return [f"{v:z.{decimals}f} ±{s:.{decimals}f}" for v, s in zip(values, spread, strict=True)]


def _decimals(values, digits):
    largest = np.abs(values).max()
    return max(0, digits - 1 - floor(log10(largest))) if largest > 0.0 else 0


def ratio(value):
    """A speedup, as "2.5x"."""
    return f"{significant(value)}x"
