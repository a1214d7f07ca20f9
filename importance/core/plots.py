"""Pictures of importances: bars, boxes over trees, rows, ranks, clusters of correlated features.

Every function draws on a matplotlib axes, and imports matplotlib when it is called. A new figure is
tall enough for its features to be legible. Long names of features are shortened. On dark axes,
lines are pale.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri
from sklearn.utils._missing import is_pandas_na

from importance.core.given import require_count
from importance.core.numbers import leading, ranks_of

COLOR, DARK, PALE = "#4878a8", "#333333", "#dddddd"
ROW_HEIGHT = 0.24  # inches per feature
HEADROOM = 1.3  # inches for title and axis
MOST_LETTERS = 32  # longer names of features are shortened
LETTER = 0.065  # inches per letter
_DIGIT = 0.1  # inches per digit of a tick
_BESIDE_NAMES = 4.0  # inches that long names leave to the numbers
T = TypeVar("T")


def as_written(draw: Callable[..., T]) -> Callable[..., T]:
    """Decorate a drawing function: a name such as "$a^$" is shown literally, not as a formula."""

    @functools.wraps(draw)
    def drawn(*args, **kwargs):
        import matplotlib

        with matplotlib.rc_context({"text.parse_math": False}):
            result = draw(*args, **kwargs)
            if hasattr(result, "xaxis"):  # existing axes may have created their texts before
                x, y = result.xaxis, result.yaxis
                texts = *x.get_ticklabels(), *y.get_ticklabels(), x.label, y.label, result.title
                for text in texts:
                    text.set_parse_math(False)
            return result

    return drawn


def plot_bars(
    result: Any, ax: Any = None, max_features: int = 30, level: float | None = None,
    over: str | None = None,
) -> Any:  # fmt: skip
    """Plot bars with one standard error, or an interval, to either side, most important on top.

    Parameters
    ----------
    result : Importances
    ax : matplotlib.axes.Axes, optional
    max_features : int, default=30
        Draw at most this many features, the most important ones; the title says so.
    level : float, default=None
        Draw intervals of this confidence level instead of one standard error.
    over : str, default=None
        What the error is taken over, see `Importances.interval`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    shown = leading(result.values, max_features)
    ax = axes_for(ax, len(shown))
    over = result.uncertainty if over is None else over
    if level is None:
        reach, what = result.error(over)[shown], "± 1 standard error"
    else:
        bounds = result.interval(level, over)[shown]
        reach, what = (bounds[:, 1] - bounds[:, 0]) / 2.0, f"{level:.0%} interval"
    draw_bars(ax, result, shown, reach)
    return _entitle(ax, result, shown, f"bar: {what} {over}")


def draw_bars(ax: Any, result: Any, shown: np.ndarray, reach: np.ndarray) -> None:
    """Draw bars of some features, from the bottom up, each with an error to either side."""
    places = np.arange(len(shown))
    ax.barh(places, result.values[shown], xerr=reach, color=COLOR, ecolor=ink_of(ax), capsize=2)
    name_bars(ax, short_names(result.feature_names[shown]))


def plot_trees(result: Any, ax: Any = None, max_features: int = 30) -> Any:
    """Plot a box for every feature: quartiles over the trees, whiskers from 5 to 95 %.

    Parameters
    ----------
    result, ax, max_features : see `plot_bars`

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the result has no values of single trees (`per_tree`).
    """
    if result.per_tree is None:
        raise ValueError(f"{result.measure} has no values per tree (per_tree).")
    shown = leading(result.values, max_features)
    ax = axes_for(ax, len(shown))
    per_tree = result.per_tree[~np.isnan(result.per_tree).any(axis=1)]
    line = {"color": ink_of(ax), "linewidth": 0.8}
    ax.boxplot(
        [per_tree[:, j] for j in shown], positions=np.arange(len(shown)), orientation="horizontal",
        whis=(5, 95), showfliers=False, widths=0.6, patch_artist=True,
        boxprops={"facecolor": COLOR, "edgecolor": ink_of(ax), "linewidth": 0.8},
        medianprops={"color": "white"}, whiskerprops=line, capprops=line,
    )  # fmt: skip
    ax.plot(result.values[shown], np.arange(len(shown)), "D", color=ink_of(ax), markersize=3)
    name_bars(ax, short_names(result.feature_names[shown]))
    box = f"box: quartiles of {len(per_tree)} trees, whiskers: 5 to 95 %, ◆ mean"
    return _entitle(ax, result, shown, box)


def plot_rows(
    result: Any, X: Any = None, ax: Any = None, max_features: int = 15,
    max_rows: int = 1000,
) -> Any:  # fmt: skip
    """Plot a swarm for every feature: its values in single rows, coloured by the feature's value.

    Parameters
    ----------
    result : Importances
        With `per_row`.
    X : array-like of shape (n_samples, n_features), default=None
        The training table, for the colours; groups of columns have no colours.
    ax, max_features : see `plot_bars`
    max_rows : int, default=1000
        Draw at most this many rows, evenly spaced.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the result has no values of single rows (`per_row`), or X is another table.
    """
    if result.per_row is None:
        raise ValueError(
            f"{result.measure} has no values per row; oob_permutation and ShapValues.mean_abs "
            "have them with per_row=True."
        )
    shown = leading(result.values, max_features)
    ax = axes_for(ax, len(shown), height=0.42)
    columns = None if X is None else _columns_of(result, X)
    draw_swarms(ax, result.feature_names, result.per_row, shown, max_rows, columns)
    note = "" if X is None else "; blue to red: low to high values of the feature"
    return _entitle(ax, result, shown, f"one dot per row{note}")


def _columns_of(result, X):
    """The column of X for each feature, None for a group of several columns."""
    table, names = np.asarray(X), result.feature_names
    n_rows = len(result.per_row)
    if table.ndim != 2 or len(table) != n_rows:
        raise ValueError(
            f"X has shape {table.shape}, but there are values for {n_rows} rows; give it the "
            "training table."
        )
    called = [str(name) for name in getattr(X, "columns", ())]
    called = called or [f"x{j}" for j in range(table.shape[1])]
    if len(called) == len(names) and (called == list(names) or not set(called) & set(names)):
        return list(table.T)
    column_of = dict(zip(called, table.T, strict=True))
    return [column_of.get(name) for name in names]


def draw_swarms(
    ax: Any, names: np.ndarray, values: np.ndarray, shown: np.ndarray, max_rows: int,
    columns: Sequence[np.ndarray | None] | None,
) -> None:  # fmt: skip
    """Draw a swarm of values (n_rows, n_features) for each feature shown, from the bottom up.

    Rows with nan are left out; of the others, at most `max_rows` are drawn, evenly spaced. They are
    coloured by the values in `columns`.
    """
    require_count("max_rows", max_rows)
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    rows = known[:: -(-len(known) // max_rows)]
    for place, j in enumerate(shown):
        look: dict[str, Any] = {"color": COLOR}
        column = None if columns is None else columns[j]
        if column is not None:
            look = {"c": share_below(column[rows]), "cmap": "coolwarm", "vmin": 0, "vmax": 1}
        x = values[rows, j]
        ax.scatter(x, place + _swarm(x), s=5, linewidths=0, alpha=0.8, rasterized=True, **look)
    name_bars(ax, short_names(names[shown]))


def plot_ranks(
    results: dict[str, Any], ax: Any = None, max_features: int = 25, also: Iterable[int] = ()
) -> Any:
    """Plot the ranks by several measures, joined by lines; crossings are disagreements.

    Features with ranks beyond `max_features` are drawn in order below a dotted line, with their
    rank after the name.

    Parameters
    ----------
    results : dict of str to Importances
        Of the same features.
    ax : matplotlib.axes.Axes, optional
    max_features : int, default=25
        Draw the features with ranks up to this number by the first measure.
    also : iterable of int, default=()
        Positions of further features to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    import matplotlib

    names = short_names(next(iter(results.values())).feature_names)
    ranks = np.array([ranks_of(result.values) for result in results.values()])
    shown = np.flatnonzero((ranks[0] <= max_features) | np.isin(np.arange(len(names)), list(also)))
    places = _places(ranks[:, shown], max_features)
    last = places.max(initial=1)
    if ax is None:
        width = 1.0 + 2 * room_of(names) + 1.5 * len(results)
        ax = new_axes((width, HEADROOM + ROW_HEIGHT * last))
    begin = 0.25 if ink_of(ax) == PALE else 0.0  # viridis begins dark, and ends pale
    colors = matplotlib.colormaps["viridis"](np.linspace(begin, begin + 0.75, len(shown)))
    for color, k in zip(colors, np.argsort(ranks[0, shown]), strict=True):
        ax.plot(places[:, k], "o-", color=color, markersize=4, linewidth=1.2)
        for end, offset, side in ((0, -8, "right"), (len(ranks) - 1, 8, "left")):
            rank, name = ranks[end, shown[k]], names[shown[k]]
            ax.annotate(
                name if rank <= max_features else f"{name} ({rank})", (end, places[end, k]),
                xytext=(offset, 0), textcoords="offset points", ha=side, va="center", fontsize=8,
            )  # fmt: skip
    if last > max_features:
        ends = -0.2, len(ranks) - 0.8
        ax.hlines(max_features + 0.5, *ends, color=ink_of(ax), linewidth=0.6, linestyle=":")
    ax.set_xticks(range(len(ranks)), [name.replace("_", "\n", 1) for name in results])
    ax.set_xlim(-0.2, len(ranks) - 0.8)
    ax.set_ylim(last + 0.6, 0.4)
    ax.set_yticks([])
    ax.xaxis.tick_top()
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if len(shown) < len(names):
        some = f"the first {max_features} of {len(names)} features by {next(iter(results))}"
        n_more = len(shown) - max_features
        ax.set_xlabel(some + (f", and {n_more} that are named" if n_more else ""))
    return ax


def plot_clusters(
    correlation: np.ndarray, names: Iterable, ax: Any = None, max_features: int = 60
) -> Any:
    """Plot the rank correlations of features, with correlated features side by side.

    Parameters
    ----------
    correlation : ndarray of shape (n_features, n_features), float64
        See `importance.report.find_groups.rank_correlation`.
    names : sequence of str
    ax : matplotlib.axes.Axes, optional
    max_features : int, default=60
        Draw at most this many features: those with the largest correlation to another.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from scipy.cluster.hierarchy import average, leaves_list
    from scipy.spatial.distance import squareform

    names = short_names(names)
    strength = np.abs(np.nan_to_num(correlation))
    np.fill_diagonal(strength, 0.0)
    kept = np.sort(leading(strength.max(axis=0), max_features))
    strength = strength[np.ix_(kept, kept)]
    np.fill_diagonal(strength, 1.0)
    order = [0]
    if len(kept) > 1:
        order = leaves_list(average(squareform(1.0 - strength, checks=False)))
    side = max(0.8 + room_of(names) + 0.2 * len(kept), 1.6)  # room for the label of the scale
    drawn = np.asarray(correlation)[np.ix_(kept, kept)][np.ix_(order, order)]
    ax, scale = draw_matrix(ax, drawn, names[kept][order], side, cmap="RdBu_r", vmin=-1, vmax=1)
    scale.set_label("rank correlation\n(Spearman)", fontsize=8)
    if len(kept) < len(names):
        ax.set_title(f"the {len(kept)} most correlated of {len(names)} features", fontsize=9)
    return ax


def draw_matrix(
    ax: Any, values: np.ndarray, names: np.ndarray, side: float, **look: Any
) -> tuple[Any, Any]:
    """Draw a matrix of features by features; return the axes and its colour bar.

    `side` is the size of a new figure in inches, if there is no `ax`.
    """
    ax = new_axes((side + 1.0, side), "compressed") if ax is None else ax
    image = ax.imshow(values, **look)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.tick_params(length=0)
    return ax, ax.figure.colorbar(image, ax=ax, shrink=0.6)


def _places(ranks, most):
    """Where to draw ranks, (n_measures, n_shown): those beyond `most` are moved together."""
    is_near = ranks <= most
    order = ranks.argsort(axis=1).argsort(axis=1) - is_near.sum(axis=1, keepdims=True)
    return np.where(is_near, ranks, most + 1 + order)


def ink_of(ax: Any) -> str:
    """The colour of lines that are visible on an axes: dark, or pale if the axes is dark."""
    from matplotlib.colors import to_rgba

    color = to_rgba(ax.get_facecolor())
    if color[3] == 0.0:
        color = to_rgba(ax.figure.get_facecolor())
    return DARK if np.mean(color[:3]) > 0.5 else PALE


def plain_numbers(axis: Any, most: int = 6) -> None:
    """Label ticks in full, with commas between thousands, without a power of ten at the axis.

    There are at most so many ticks; fewer on an x axis whose numbers are long.
    """
    from matplotlib.ticker import MaxNLocator

    if axis.axis_name == "x":
        longest = max(len(_in_full(float(f"{end:.1g}"))) for end in axis.get_view_interval())
        inches = axis.axes.get_window_extent().width / axis.axes.figure.dpi
        most = max(1, min(most, int(min(inches, _BESIDE_NAMES) / (longest * _DIGIT))))
    axis.set_major_locator(MaxNLocator(most))
    axis.set_major_formatter(_in_full)


def _in_full(value, place=None):
    return f"{value:,.10g}"


def short_names(names: Iterable) -> np.ndarray:
    """Names as pictures show them: long ones are cut in the middle, as many differ at the end."""
    whole = map(str, names)
    cut = [n if len(n) <= MOST_LETTERS else f"{n[: MOST_LETTERS - 12]}…{n[-11:]}" for n in whole]
    return np.array(cut, dtype=object)


def room_of(names):
    """Width of the longest name, in inches."""
    return LETTER * max(map(len, names))


def new_axes(size: tuple[float, float], layout: str = "constrained") -> Any:
    """An axes of a new figure; use the layout "compressed" for matrices with square cells."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout=layout)[1]


def axes_for(ax: Any, n_features: int, height: float = ROW_HEIGHT) -> Any:
    """The given axes, or a new one that is tall enough for so many features."""
    return new_axes((7, HEADROOM + height * n_features)) if ax is None else ax


def name_bars(ax: Any, names: Sequence[str] | np.ndarray, origin: float = 0.0) -> None:
    """Name bars (or the like) from the bottom up; plain numbers below, and a line at the origin."""
    ax.set_yticks(np.arange(len(names)), names, fontsize=9)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.axvline(origin, color=ink_of(ax), linewidth=0.8, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    plain_numbers(ax.xaxis)


def _entitle(ax, result, shown, note):
    ax.set_xlabel(f"{result.unit}\n({note})")
    n_all = len(result.values)
    some = f": the {len(shown)} most important of {n_all}" if len(shown) < n_all else ""
    ax.set_title(result.measure + some)
    return ax


def dates_in(column: np.ndarray) -> np.ndarray | None:
    """A column of dates as datetime64, or None if it holds anything else."""
    if column.dtype != object:
        return column if column.dtype.kind == "M" else None
    is_missing = _missing_in(column)
    if {isinstance(value, date | np.datetime64) for value in column[~is_missing]} != {True}:
        return None
    dates = np.full(len(column), "NaT", "M8[us]")
    for i in np.flatnonzero(~is_missing):
        has_zone = getattr(column[i], "tzinfo", None) is not None
        dates[i] = column[i].replace(tzinfo=None) if has_zone else column[i]
    return dates


def date_text(value: date | np.datetime64) -> str:
    """A date as pictures show it: in its own time zone, without a time of midnight."""
    text = str(value if isinstance(value, date) else value.astype("M8[us]").item())
    return text[:19].removesuffix(" 00:00:00")


def _missing_in(column):
    return np.array([v is None or is_pandas_na(v) or v != v for v in column], bool)


def numbers_in(column: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """A column as (numbers, None) or, if it is not numeric, as (positions, names of positions)."""
    if (dates := dates_in(column)) is not None:
        return np.where(np.isnat(dates), np.nan, dates.astype(np.float64)), None
    is_missing = _missing_in(column)
    if column.dtype == object:
        column = np.where(is_missing, np.nan, column)
    try:
        return column.astype(np.float64), None
    except (TypeError, ValueError):
        known, places = np.unique(column[~is_missing].astype(str), return_inverse=True)
        numbers = np.full(len(column), float(len(known)))
        numbers[~is_missing] = places
        return numbers, np.append(known, ["missing"] if is_missing.any() else [])


def share_below(column: Any) -> np.ndarray:
    """Ranks of the values of a column, scaled to 0 to 1; 0.5 for missing values."""
    values, _ = numbers_in(np.asarray(column))
    known = values[~np.isnan(values)]
    share = np.searchsorted(np.sort(known), values) / max(1, len(known) - 1)
    return np.where(np.isnan(values), 0.5, share)


def _swarm(values):
    """Offsets that spread dots with similar values, the more widely the more of them there are."""
    width = np.ptp(values) or 1.0
    bins = np.floor((values - values.min()) / width * 120).astype(np.int64)
    offset = np.empty(len(values))
    most = np.bincount(bins).max()
    for b in np.unique(bins):
        inside = np.flatnonzero(bins == b)
        # Normal quantiles look less regular than equal steps.
        spread = ndtri((np.arange(len(inside)) + 0.5) / len(inside)) / 2.5
        offset[inside] = spread * (len(inside) / most) ** 0.5
    return 0.36 * np.clip(offset, -1, 1)
