"""The plots of the suite: ratios to scikit-learn, scores against speed, time as the work grows."""

from itertools import cycle

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.harness.plot import STYLE
from benchmarks.harness.results import ROOT
from benchmarks.suite.peers.registry import OURS, PEERS, REFERENCE

FOLDER = ROOT / "docs" / "figures"
COLORS = dict(
    zip(
        [peer.name for peer in PEERS],
        cycle(
            ["#2f6f5e", "#c46a2b", "#4a6fa5", "#8a5a9e", "#b0433f", "#7a7a3a", "#777777", "#3f8fa8",
             "#a8783f"]
        ),
        strict=False,
    )
)  # fmt: skip


def draw(rows):
    """Draw and save the plots.

    Parameters
    ----------
    rows : list of dict
        Results, each with its case under "what".

    Returns
    -------
    list of pathlib.Path
    """
    cases = [row for row in rows if not row["what"].is_scaling and _has_both(row)]
    scaling = [row for row in rows if row["what"].is_scaling]
    paths = []
    with matplotlib.rc_context(STYLE):
        for name, figure in (
            ("suite_ratios", _ratios(cases) if cases else None),
            ("suite_scores", _scores(cases) if cases else None),
            ("suite_scaling", _scaling(scaling) if scaling else None),
        ):
            if figure is not None:
                paths.append(FOLDER / f"{name}.png")
                figure.savefig(paths[-1], dpi=110)
    return paths


def _has_both(row):
    return all("fit" in row["sides"].get(name, {}) for name in (OURS, REFERENCE))


def _ratios(rows):
    """How many times faster than scikit-learn each side fits, on a logarithmic axis."""
    names = [
        peer.name for peer in PEERS
        if peer.name != REFERENCE and any("fit" in row["sides"].get(peer.name, {}) for row in rows)
    ]  # fmt: skip
    figure = Figure(figsize=(9, 1.2 + 0.42 * len(rows)), layout="constrained")
    ax = figure.subplots()
    y = np.arange(len(rows))
    for name in names:
        ratio = np.array(
            [
                row["sides"][REFERENCE]["fit"] / row["sides"].get(name, {}).get("fit", np.nan)
                for row in rows
            ]
        )
        is_ours = name == OURS
        ax.scatter(ratio, y, s=70 if is_ours else 26, color=COLORS[name], label=name,
                   marker="D" if is_ours else "o", zorder=3 if is_ours else 2)  # fmt: skip
    bars = [row["what"].fit_bar for row in rows]
    for i, bar in enumerate(bars):
        if bar is not None:
            ax.plot([bar, bar], [i - 0.35, i + 0.35], color="black", linewidth=1.2)
    ax.axvline(1.0, color="#999999", linewidth=0.8)
    ax.set_xscale("log")
    _plain_numbers(ax.xaxis)
    ax.set_yticks(y, [row["case"] for row in rows])
    ax.invert_yaxis()
    ax.grid(axis="x", color="#eeeeee")
    ax.set_xlabel("times as fast as scikit-learn in fit (line: the bar of ours)")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _scores(rows):
    """Score on held-out rows against the time of a fit, one panel per case."""
    n_columns = 4
    n_lines = -(-len(rows) // n_columns)
    figure = Figure(figsize=(12, 2.6 * n_lines), layout="constrained")
    axes = np.ravel(figure.subplots(n_lines, n_columns, squeeze=False))
    shown = {}
    for ax, row in zip(axes, rows, strict=False):
        for name, side in row["sides"].items():
            if "fit" in side:
                shown[name] = ax.scatter(
                    side["fit"], side["score"], color=COLORS[name], s=60 if name == OURS else 30,
                    marker="D" if name == OURS else "o",
                )  # fmt: skip
        ax.set_xscale("log")
        _plain_numbers(ax.xaxis)
        ax.locator_params(axis="y", nbins=4)
        ax.margins(y=0.25)
        ax.set_title(row["case"], fontsize=8, loc="left")
        ax.grid(color="#eeeeee")
    for ax in axes[len(rows) :]:
        ax.set_axis_off()
    names = [peer.name for peer in PEERS if peer.name in shown]
    figure.legend([shown[name] for name in names], names, loc="outside upper center", ncols=5,
                  frameon=False)  # fmt: skip
    figure.supxlabel("seconds of a fit (left is faster)", fontsize=9)
    figure.supylabel("accuracy or R2 on held-out rows", fontsize=9)
    return figure


def _scaling(rows):
    """Seconds of a fit against rows, trees and threads."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, unit in zip(axes[:2], ("rows", "trees"), strict=True):
        mine = [row for row in rows if row["case"].endswith(unit)]
        for name in COLORS:
            points = [
                (_number(row["case"]), row["sides"][name]["fit"])
                for row in mine
                if "fit" in row["sides"].get(name, {})
            ]
            if points:
                ax.plot(*zip(*points, strict=True), "o-", color=COLORS[name], markersize=4,
                        linewidth=2 if name == OURS else 1, label=name)  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel=unit, ylabel="seconds of a fit")
        for axis in (ax.xaxis, ax.yaxis):
            _plain_numbers(axis, subs=(1,))
        ax.grid(color="#eeeeee")
    both = [
        (row, [(name, side["fit_by_jobs"]) for name, side in row["sides"].items()
               if len(side.get("fit_by_jobs", {})) > 1])
        for row in rows if row["case"].endswith("rows")
    ]  # fmt: skip
    for row, sides in [(row, sides) for row, sides in both if sides][-1:]:
        names = [name for name, _ in sides]
        gain = [times["1"] / times["2"] for _, times in sides]
        axes[2].barh(names, gain, color=[COLORS[name] for name in names])
        axes[2].invert_yaxis()
        axes[2].axvline(2.0, color="#999999", linewidth=0.8)
        axes[2].set_xlabel(f"two threads against one,\n{row['case'].partition(': ')[2]}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5,
                  frameon=False)  # fmt: skip
    return figure


def _number(name):
    return int("".join(letter for letter in name if letter.isdigit()))


def _plain_numbers(axis, subs=(1, 2, 5)):
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axis.set_minor_formatter(lambda value, _: "")
