"""The plot of a comparison: both sides' importances, feature by feature."""

from io import StringIO

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from importance.core.plots import short_names

OURS, PEER = "#2f6f5e", "#c46a2b"
RASTER_DPI = 150  # of what an SVG holds as pixels, such as swarms of dots
# Panels: title, our measure, scikit-learn's.
PANELS = (
    ("Mean decrease in impurity", "mdi", "feature_importances_"),
    ("Permutation", "oob_permutation", "permutation_importance"),
    ("Drop column", "drop_column", "drop-column loop"),
)
STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.axisbelow": True,  # grid lines behind the data
    "axes.edgecolor": "#999999",
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "ytick.major.size": 0,
    "svg.hashsalt": "cartwood",
    "text.parse_math": False,  # a feature may be named "$a^$"
}


def draw(importances, order, names, unit):
    """One panel per kind of measure: ours as filled dots, scikit-learn's as rings.

    Parameters
    ----------
    importances : list of dict
        Measures of a comparison.
    order : ndarray of int
        Features to draw, top to bottom.
    names : list of str
        Their names.
    unit : str
        Unit of the losses in the second and third panel.

    Returns
    -------
    matplotlib.figure.Figure
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 1.5 + 0.24 * len(names)), layout="constrained")
        axes = figure.subplots(1, len(PANELS), sharey=True)
        for ax, (title, ours, peer) in zip(axes, PANELS, strict=True):
            _dots(ax, find(importances, ours), order, -0.14, OURS, OURS)
            _dots(ax, find(importances, peer), order, 0.14, PEER, "white")
            ax.set_title(title, fontweight="bold", fontsize=9, loc="left")
            ax.set_xlabel("share, sums to 1" if ours == "mdi" else unit)
            ax.locator_params(axis="x", nbins=4)  # few ticks, so that long numbers do not collide
            ax.axvline(0.0, color="#999999", linewidth=0.8, zorder=0)
            ax.grid(axis="y", color="#eeeeee")
        axes[0].set_yticks(np.arange(len(names)), short_names(names))
        axes[0].set_ylim(len(names) - 0.4, -0.6)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
    return figure


def find(importances, name):
    """The measure of that name."""
    return next(measure for measure in importances if measure["name"] == name)


def svg(figure):
    """The figure as SVG text, to be embedded in an HTML page."""
    text = StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(text, format="svg", dpi=RASTER_DPI, metadata={"Date": None})
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]


def _dots(ax, measure, order, shift, edge, face):
    ax.errorbar(
        measure["values"][order],
        np.arange(len(order)) + shift,
        xerr=None if measure["spread"] is None else measure["spread"][order],
        fmt="o", markersize=4.5, markerfacecolor=face, markeredgecolor=edge, ecolor=edge,
        elinewidth=1, label=measure["side"],
    )  # fmt: skip
