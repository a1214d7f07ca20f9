"""Plots of SHAP values: beeswarm of all rows, bars, dependence on one feature, a single row.

As in `importance.core.plots`, every function draws on a matplotlib axes and imports matplotlib only
when called; a new figure is tall enough for its features to be readable.
"""

from datetime import date
from numbers import Integral
from typing import Any

import numpy as np

from importance.core import plots as base
from importance.core.numbers import leading, significant

UP, DOWN = "#c44e52", base.COLOR
_GAP = 12  # pixels between a number, its bar and the end of the axis
MOST_LABELS, MOST_LETTERS = 30, 50  # category labels; letters of their names side by side


def plot_bar(found: Any, ax: Any = None, max_features: int = 30) -> Any:
    """Bars of mean |value| with standard errors; see `importance.core.plots.plot_bars`."""
    return base.plot_bars(found.mean_abs(), ax=ax, max_features=max_features)


def plot_beeswarm(
    found: Any, ax: Any = None, max_features: int = 20, max_rows: int = 1000, label: Any = None
) -> Any:
    """A swarm for every feature: each dot is a row, coloured by the feature's value.

    Parameters
    ----------
    found : ShapValues
    ax : matplotlib.axes.Axes, optional
    max_features : int, default=20
        Show only this many features, those with the largest mean |value|.
    max_rows : int, default=1000
        Draw at most this many rows, evenly spaced.
    label : label of a class, default=None
        See `ShapValues.of_class`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    values = found.of_class(label)
    size = np.abs(values[~np.isnan(values).any(axis=1)]).mean(axis=0)
    shown = leading(size, max_features)
    ax = base.axes_for(ax, len(shown), height=0.42)
    table = found.table()
    base.draw_swarms(ax, found.feature_names, values, shown, max_rows, table.T)
    colors = "blue to red: low to high values"
    if any(base.numbers_in(table[:, j])[1] is not None for j in shown):
        colors += ", categories by name"
    ax.set_xlabel(f"{_unit(found, label)}\n(one dot per row, {colors})")
    if len(shown) < len(size):
        ax.set_title(f"the {len(shown)} most important of {len(size)} features", fontsize=10)
    return ax


def plot_dependence(
    found: Any, feature: Any, ax: Any = None, color_by: Any = None, label: Any = None
) -> Any:
    """SHAP values of one feature against the feature's values, one dot per row.

    Parameters
    ----------
    found : ShapValues
    feature : int or str
        Position or name.
    ax : matplotlib.axes.Axes, optional
    color_by : int or str, default=None
        Another feature, which colours the dots.
    label : label of a class, default=None
        See `ShapValues.of_class`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    j = _position(found, feature)
    table = found.table()
    ax = base.new_axes((6, 4)) if ax is None else ax
    shades: dict[str, Any] = {"color": base.COLOR}
    if color_by is not None:
        other = _position(found, color_by)
        shades = {"c": base.share_below(table[:, other]), "cmap": "coolwarm"}
        name = base.short_names(found.feature_names)[other]
        ax.set_title(f"blue to red: low to high {name}", fontsize=9)
    across, labels = base.numbers_in(table[:, j])
    dates = base.dates_in(table[:, j])
    across = across if dates is None else dates
    ax.scatter(
        across, found.of_class(label)[:, j], s=8, linewidths=0, alpha=0.7, rasterized=True, **shades
    )
    ax.axhline(0.0, color=base.ink_of(ax), linewidth=0.8, zorder=0)
    base.plain_numbers(ax.yaxis)
    n_missing = np.isnan(across).sum()
    missing = f"\n(without {n_missing:,} rows that have no value)" if n_missing else ""
    ax.set_xlabel(base.short_names(found.feature_names)[j] + missing)
    if labels is not None:
        shown = np.arange(0, len(labels), -(-len(labels) // MOST_LABELS))
        names = base.short_names(labels[shown])
        ax.set_xticks(shown, names, rotation=90 if sum(map(len, names)) > MOST_LETTERS else 0)
    ax.set_ylabel(_unit(found, label))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_waterfall(
    found: Any, row: int = 0, ax: Any = None, max_features: int = 15, label: Any = None
) -> Any:
    """From the base value to one row's prediction, feature by feature, the largest on top.

    Parameters
    ----------
    found : ShapValues
    row : int, default=0
    ax : matplotlib.axes.Axes, optional
    max_features : int, default=15
        Draw all further features as one bar.
    label : label of a class, default=None
        See `ShapValues.of_class`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If there is no such row, or if it was never out of bag.
    """
    values = found.of_class(label)
    if not isinstance(row, Integral) or not -len(values) <= row < len(values):
        raise ValueError(
            f"row={row!r} must be the number of one of the {len(values)} rows, from 0."
        )
    values = values[row]
    if np.isnan(values).any():
        raise ValueError(f"row={row} was never out of bag: no tree explains it.")
    at = found.class_position(label)
    base_value = np.asarray(found.base_value)
    if found.is_out_of_bag:
        base_value = base_value[row]
    start = float(base_value if at is None else base_value[at])
    shown = leading(np.abs(values), max_features)
    others = np.setdiff1d(np.arange(len(values)), shown)
    named, data = base.short_names(found.feature_names), found.table()[row]
    names = [f"{named[j]} = {_short(data[j])}" for j in shown]
    steps = values[shown]
    if len(others):
        names = [f"{len(others)} other features", *names]
        steps = np.concatenate(([values[others].sum()], steps))
    ax = base.axes_for(ax, len(steps), height=0.3)
    ends = start + np.cumsum(steps)
    places = np.arange(len(steps))
    ax.barh(places, steps, left=ends - steps, color=np.where(steps > 0.0, UP, DOWN))
    numbers = []
    for place, step, end in zip(places, steps, ends, strict=True):
        side, offset, sign = ("left", 3, "+") if step > 0 else ("right", -3, "")
        numbers.append(ax.annotate(
            f"{sign}{significant(step)}", (end, place), xytext=(offset, 0),
            textcoords="offset points", ha=side, va="center", fontsize=8,
        ))  # fmt: skip
    ax.use_sticky_edges = False  # bars begin anywhere
    base.name_bars(ax, names, start)
    ax.set_xlabel(f"base value {significant(start, 4)}, prediction {significant(ends[-1], 4)}")
    ax.set_title(f"row {row}: {_unit(found, label)}", fontsize=10)
    _make_room(ax, numbers)
    return ax


def _make_room(ax, numbers):
    """Widen the x axis until the numbers beside bars fit between its ends."""
    ax.figure.canvas.figure.draw_without_rendering()  # the names leave the axes its width
    width = ax.get_window_extent().width
    low, high = ax.get_xlim()
    for _ in range(8):  # each time, numbers take a smaller share of what the axis spans
        unit = (high - low) / width
        for text in numbers:
            size = (text.get_window_extent().width + _GAP) * unit
            if text.get_ha() == "right":
                low = min(low, text.xy[0] - size)
            else:
                high = max(high, text.xy[0] + size)
    ax.set_xlim(low, high)


def _unit(found, label):
    at = found.class_position(label)
    what = "prediction" if at is None else f"share of class {_short(found.classes[at])}"
    return f"SHAP value of the {'out-of-bag ' if found.is_out_of_bag else ''}{what}"


def _position(found, feature):
    if isinstance(feature, str):
        at = np.flatnonzero(found.feature_names == feature)
        if not len(at):
            raise ValueError(f"feature={feature!r} is not one of {list(found.feature_names)}.")
        return int(at[0])
    if not isinstance(feature, Integral) or not 0 <= feature < len(found.feature_names):
        raise ValueError(
            f"feature={feature!r} must be a name, or a number below {len(found.feature_names)}."
        )
    return feature


def _short(value):
    if isinstance(value, date | np.datetime64):
        return base.date_text(value)
    if isinstance(value, float | np.floating):
        return significant(float(value), 4)
    return base.short_names([value])[0]
