"""Pictures for a page: what matplotlib draws, as SVG text."""

from collections.abc import Callable
from importlib.util import find_spec
from io import StringIO
from typing import Any

_RASTER_DPI = 150  # of what an SVG holds as pixels: swarms of dots
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.axisbelow": True,  # lines of the grid behind what is drawn
    "axes.edgecolor": "#999999",
    "svg.hashsalt": "cartwood",
    "text.parse_math": False,  # a feature may be called "$a^$"
}


def has_pictures() -> bool:
    """Is matplotlib installed?"""
    return find_spec("matplotlib") is not None


def draw(plot: Callable[[], Any]) -> str:
    """What `plot` draws, an axes or a figure, as SVG to stand inside a page."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(STYLE):
        drawn = plot()
        picture = getattr(drawn, "figure", None) or drawn
        text = StringIO()
        picture.savefig(text, format="svg", dpi=_RASTER_DPI, metadata={"Date": None})
        plt.close(picture)
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]
