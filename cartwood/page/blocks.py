"""The parts of a page, each a piece of HTML; texts are escaped here."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

_TEMPLATE = Path(__file__).with_name("page.html")


def write(path: Path, title: str, lead: str, blocks: Iterable[str]) -> None:
    """Write a page that needs no other file.

    Parameters
    ----------
    path : Path
    title, lead : str
        Its heading, and what stands below it.
    blocks : iterable of str
        From the functions of this module.
    """
    text = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title), lead=escape(lead), body="\n".join(blocks)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def heading(text: str) -> str:
    """What the following blocks are about."""
    return f"<h2>{escape(text)}</h2>"


def facts(found: Iterable[tuple[str, str]]) -> str:
    """Large numbers side by side: value, and what it is."""
    items = (
        f"<div><b>{escape(value)}</b><span>{escape(what)}</span></div>" for value, what in found
    )
    return f'<div class="facts">\n{_lines(items)}\n</div>'


def listing(items: Iterable[str]) -> str:
    """Sentences below each other."""
    return f"<ul>\n{_lines(f'<li>{escape(text)}</li>' for text in items)}\n</ul>"


def note(text: str) -> str:
    """A paragraph in small print."""
    return f'<p class="note">{escape(text)}</p>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], below: str = "") -> str:
    """Cells of text, the first column to the left; it scrolls where the screen is narrow."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = _lines(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>'
        f"</table></div>\n{note(below) if below else ''}"
    )


def bars(
    names: Sequence[str], values: Sequence[float], errors: Sequence[float], texts: Sequence[str]
) -> str:
    """Bars from 0 with one error to either side, drawn by the browser at any width.

    Parameters
    ----------
    names, texts : sequence of str
        What a bar is, and its value.
    values, errors : sequence of float
    """
    low = min(0.0, *(v - e for v, e in zip(values, errors, strict=True)))
    high = max(*(v + e for v, e in zip(values, errors, strict=True)), 1e-300)
    scale = 100.0 / (high - low)

    def place(begin, end):
        return f"left:{(begin - low) * scale:.2f}%;width:{max((end - begin) * scale, 0.15):.2f}%"

    rows = (
        f'<div class="name">{escape(name)}</div><div class="value">{escape(text)}</div>'
        f'<div class="track"><i class="bar" style="{place(min(v, 0.0), max(v, 0.0))}"></i>'
        f'<i class="error" style="{place(v - e, v + e)}"></i></div>'
        for name, v, e, text in zip(names, values, errors, texts, strict=True)
    )
    return f'<div class="bars">\n{_lines(rows)}\n</div>'


def figure(caption: str, svg: str) -> str:
    """A picture; it scrolls where the screen is narrow, so that its letters stay readable."""
    caption = escape(caption)
    return (
        f'<figure>\n<figcaption>{caption}</figcaption>\n<div class="wide" role="img" '
        f'aria-label="{caption}">{svg}</div>\n</figure>'
    )


def _lines(parts):
    return "\n".join(parts)
