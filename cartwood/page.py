"""Reports as a single HTML file: text, tables, bars, and plots if matplotlib is installed.

All text is escaped here. Numbers are formatted by `importance.core.numbers`, which is imported only
when a number is shown, so that `--help` and misspelt columns need not wait for it.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cartwood.terminal import writing

_TEMPLATE = Path(__file__).with_name("page.html")
_MISSING_LETTER = "missing from font"  # in a warning of matplotlib
_RASTER_DPI = 150  # of what an SVG holds as pixels, such as swarms of dots
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.axisbelow": True,  # grid lines behind the data
    "axes.edgecolor": "#999999",
    "svg.hashsalt": "cartwood",
    "text.parse_math": False,  # a feature may be named "$a^$"
}


def write(path: Path, title: str, lead: str, blocks: Iterable[str]) -> None:
    """Write a self-contained page.

    Parameters
    ----------
    path : Path
    title, lead : str
        Its heading, and the text below it.
    blocks : iterable of str
        From the functions of this module.
    """
    text = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title), lead=escape(lead), body="\n".join(blocks)
    )
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def heading(text: str) -> str:
    """A heading for the blocks that follow."""
    return f"<h2>{escape(text)}</h2>"


def facts(found: Iterable[tuple[str, str]]) -> str:
    """Large values side by side, each with a description below."""
    items = (
        f"<div><b>{escape(value)}</b><span>{escape(what)}</span></div>" for value, what in found
    )
    return f'<div class="facts">\n{_lines(items)}\n</div>'


def listing(items: Iterable[str]) -> str:
    """A list of sentences."""
    return f"<ul>\n{_lines(f'<li>{escape(text)}</li>' for text in items)}\n</ul>"


def note(text: str) -> str:
    """A paragraph in small print."""
    return f'<p class="note">{escape(text)}</p>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], below: str = "") -> str:
    """A table of text, the first column left-aligned; it scrolls on a narrow screen."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = _lines(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>'
        f"</table></div>\n{note(below) if below else ''}"
    )


def bars(
    names: Sequence[str], values: Sequence[float], errors: Sequence[float], texts: Sequence[str]
) -> str:
    """Bars from 0 with error bars of one error each way, drawn by the browser at any width.

    Parameters
    ----------
    names, texts : sequence of str
        The name of each bar, and its value as text.
    values, errors : sequence of float
    """
    errors = [0.0 if np.isnan(error) else error for error in errors]
    low = min(0.0, *(v - e for v, e in zip(values, errors, strict=True)))
    high = max(*(v + e for v, e in zip(values, errors, strict=True)), 1e-300)
    scale = 100.0 / (high - low)

    def place(begin, end):
        return f"left:{(begin - low) * scale:.2f}%;width:{max((end - begin) * scale, 0.15):.2f}%"

    def line_of(v, e):  # no error bar if the error is unknown
        return f'<i class="error" style="{place(v - e, v + e)}"></i>' if e > 0.0 else ""

    rows = (
        f'<div class="name">{escape(name)}</div><div class="value">{escape(text)}</div>'
        f'<div class="track"><i class="bar" style="{place(min(v, 0.0), max(v, 0.0))}"></i>'
        f"{line_of(v, e)}</div>"
        for name, v, e, text in zip(names, values, errors, texts, strict=True)
    )
    return f'<div class="bars">\n{_lines(rows)}\n</div>'


def figure(caption: str, svg: str) -> str:
    """A picture; on a narrow screen it scrolls, so that its text stays readable."""
    caption = escape(caption)
    return (
        f'<figure>\n<figcaption>{caption}</figcaption>\n<div class="wide" role="img" '
        f'aria-label="{caption}">{svg}</div>\n</figure>'
    )


def _lines(parts):
    return "\n".join(parts)


# --------------------------------------------------------------------------------------- numbers


def significant(value: float, digits: int = 3) -> str:
    """A number rounded to so many significant digits: "12,300", "0.00123"."""
    from importance.core import numbers

    return numbers.significant(value, digits)


def seconds(value: float) -> str:
    """A time in a suitable unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 0.9995:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value * 1e6)} µs"


def estimates(values: ArrayLike, errors: ArrayLike | None = None) -> list[str]:
    """Format values with three digits each, or with two digits of their uncertainty.

    Parameters
    ----------
    values, errors : array-like of shape (n,)

    Returns
    -------
    list of str
    """
    from importance.core import numbers

    values = np.asarray(values, dtype=np.float64)
    if errors is None:
        return [significant(value) for value in numbers.past_rounding(values, values)]
    return numbers.estimates(values, np.asarray(errors))


# -------------------------------------------------------------------------------------- pictures


def has_pictures() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(plot: Callable[[], Any]) -> str:
    """The axes or figure that `plot` returns, as SVG to be embedded in a page.

    Text is drawn as paths, unless a letter is in no font of matplotlib: then the text is embedded
    as such, for the browser to draw in its fonts.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with warnings.catch_warnings(record=True, action="always") as said:
        with matplotlib.rc_context(STYLE):
            drawn = plot()
            picture = getattr(drawn, "figure", None) or drawn
            drawing = _svg_of(picture)
        others = [each for each in said if _MISSING_LETTER not in str(each.message)]
        if len(others) < len(said):
            with matplotlib.rc_context({**STYLE, "svg.fonttype": "none"}):
                drawing = _svg_of(picture)
        plt.close(picture)
    for each in others:
        warnings.warn(each.message, each.category, stacklevel=2)
    return drawing


def _svg_of(picture):
    text = StringIO()
    picture.savefig(text, format="svg", dpi=_RASTER_DPI, metadata={"Date": None})
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]
