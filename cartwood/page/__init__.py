"""Reports as one HTML file: text, tables, bars, and pictures where matplotlib is installed."""

from cartwood.page.blocks import bars, facts, figure, heading, listing, table, write
from cartwood.page.numbers import estimates, seconds, significant
from cartwood.page.pictures import draw, has_pictures

__all__ = [
    "bars",
    "draw",
    "estimates",
    "facts",
    "figure",
    "has_pictures",
    "heading",
    "listing",
    "seconds",
    "significant",
    "table",
    "write",
]
