"""The pictures benchmark: every plot and page at several sizes, for people to look at.

    reports/pictures/300-dark-beeswarm.png     a plot of 300 features with long names
    reports/pictures/300-page-400-dark.png     a page on a phone, in dark mode

Screenshots of pages need Chromium; without it only the pages are written. What can be checked
automatically, text that is cut off or overlaps, is counted here and in
`tests/importance/core/test_pictures.py`.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.harness import display
from cart import PrunedTreeRegressor, plot_cp
from cartwood.__main__ import main
from cartwood.commands import show
from forest import RandomForestRegressor
from importance import compare, masking, shadow, shap_values
from importance.report.comparison import Comparison

FOLDER = Path("reports") / "pictures"
SIZES = (8, 30, 100, 300)  # features
LETTERS = 60  # of a feature name
WIDTHS = (1200, 400)  # pixels of a page
HEIGHT = 5000
STYLES = {"light": "default", "dark": "dark_background"}
SLACK = 1.0  # pixels
_N_ROWS = 300


class Found(NamedTuple):
    """The results on a table that plots are drawn from."""

    forest: Any
    comparison: Comparison
    rows: Any  # ShapValues
    shadows: Any
    stand_ins: Any
    pruned: Any


# Every function that draws, each on its own figure.
PICTURES: dict[str, Callable[[Found], Any]] = {
    "bars": lambda found: _permutation(found).plot(),
    "trees": lambda found: _permutation(found).plot("trees"),
    "rows": lambda found: found.rows.mean_abs(per_row=True).plot("rows"),
    "measures": lambda found: found.comparison.plot(),
    "ranks": lambda found: found.comparison.plot_ranks(),
    "clusters": lambda found: found.comparison.plot_clusters(),
    "shadows": lambda found: found.shadows.plot(),
    "masking": lambda found: found.stand_ins.plot(),
    "beeswarm": lambda found: found.rows.plot(),
    "bar": lambda found: found.rows.plot("bar"),
    "dependence": lambda found: found.rows.plot("dependence", feature=0, color_by=1),
    "waterfall": lambda found: found.rows.plot("waterfall"),
    "tree": lambda found: show.draw(
        found.forest.estimators_[0], list(found.rows.feature_names), None, depth=3
    ),
    "cp": lambda found: plot_cp(found.pruned),
}


def run(args):
    """Draw all plots and pages, and report text that cannot be read."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    FOLDER.mkdir(parents=True, exist_ok=True)
    n_wrong = 0
    for n_features in SIZES[:1] if args.quick else SIZES:
        X, y = table(n_features)
        found = judge(X, y)
        for (style, sheet), name in product(STYLES.items(), PICTURES):
            with plt.style.context(sheet):
                figure = draw(name, found)
                wrong = [*cut_off(figure), *overlapping(figure)]
                figure.savefig(FOLDER / f"{n_features}-{style}-{name}.png", dpi=80)
                plt.close(figure)
            for text in wrong:
                display.say(f"{n_features} features, {style}, {name}: {text}")
            n_wrong += len(wrong)
        _write_pages(X, y, n_features)
    display.say(f"{n_wrong} texts cannot be read; look at {FOLDER}")


def table(n_features: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of columns with long names, two of them correlated, and a target from three."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(_N_ROWS, n_features))
    values[:, 1] = values[:, 0] + 0.1 * rng.normal(size=_N_ROWS)
    y = 1000.0 * (values[:, 0] + values[:, 2] ** 2 + 0.3 * values[:, 3] + rng.normal(size=_N_ROWS))
    words = "the mean of what was measured at the station in the year"
    names = [f"{j:03} {words}"[:LETTERS].ljust(LETTERS, "x") for j in range(n_features)]
    return pd.DataFrame(values, columns=names), y


def judge(X: pd.DataFrame, y: np.ndarray) -> Found:
    """Everything that plots show, computed from a small forest."""
    model = RandomForestRegressor(20, max_features=1 / 3, random_state=0, n_jobs=2).fit(X, y)
    named = RandomForestRegressor(5, max_depth=4, surrogates="auto", random_state=0).fit(X, y)
    return Found(
        model,
        compare(model, X, y, without=["drop_column"], n_jobs=2),
        shap_values(model, X, n_jobs=2),
        shadow(model, X, y, n_rounds=2, random_state=0, n_jobs=2),
        masking(named),
        PrunedTreeRegressor(random_state=0).fit(X, y),
    )


def _permutation(found):
    return found.comparison.results["oob_permutation"]


def draw(name: str, found: Found) -> Any:
    """The figure of a plot."""
    drawn = PICTURES[name](found)
    figure = getattr(drawn, "figure", None) or drawn
    for _ in range(3):  # until the layout has settled
        figure.draw_without_rendering()
    return figure


def cut_off(figure: Any) -> Iterator[str]:
    """Texts that are not fully inside the figure."""
    whole = figure.bbox
    for text, box in _texts(figure):
        if not (
            box.x0 >= whole.x0 - SLACK and box.x1 <= whole.x1 + SLACK
            and box.y0 >= whole.y0 - SLACK and box.y1 <= whole.y1 + SLACK
        ):  # fmt: skip
            yield f"{text!r} is cut off"


def overlapping(figure: Any) -> Iterator[str]:
    """Texts of the figure that overlap."""
    for (one, box), (other, beside) in combinations(_texts(figure), 2):
        shared_width = min(box.x1, beside.x1) - max(box.x0, beside.x0)
        shared_height = min(box.y1, beside.y1) - max(box.y0, beside.y0)
        if shared_width > SLACK and shared_height > SLACK:
            yield f"{one!r} lies on {other!r}"


def _texts(figure):
    """Visible texts with their bounding boxes (without the arrows of annotations)."""
    from matplotlib.text import Text

    return [
        (text.get_text(), Text.get_window_extent(text))
        for text in _all_texts(figure)
        if text.get_text().strip() and text.get_visible()
    ]


def _all_texts(figure):
    yield from figure.texts
    for ax in figure.axes:
        yield from (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts)
        if ax.get_legend() is not None:
            yield from ax.get_legend().get_texts()
        for each in (ax, *ax.child_axes):
            for axis in (each.xaxis, each.yaxis):
                low, high = sorted(axis.get_view_interval())
                for tick in axis.get_major_ticks():
                    if low <= tick.get_loc() <= high:  # the others are not drawn
                        yield from (tick.label1, tick.label2)


def _write_pages(X, y, n_features):
    """The pages of the commands, and screenshots of them."""
    source = FOLDER / f"{n_features}.csv"
    X.assign(target=y).to_csv(source, index=False)
    quiet = ("--target", "target", "--trees", "20")
    for command in ("importance", "compare"):
        options = ("--shap",) if command == "importance" else ()
        page = FOLDER / f"{n_features}-{command}.html"
        main([command, str(source), *quiet, *options, "--output", str(page)])
        for width, style in product(WIDTHS, STYLES):
            _photograph(page, page.with_name(f"{page.stem}-{width}-{style}.png"), width, style)


def _photograph(page, picture, width, style):
    """Take a screenshot of a page in Chromium, if it is installed.

    The page is put in a frame, since no browser window is as narrow as a phone.
    """
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        return
    frame = page.with_suffix(".frame.html")
    style_of_frame = f"border: 0; width: {width}px; height: {HEIGHT}px"
    frame.write_text(
        f'<body style="margin: 0"><iframe src="{page.name}" style="{style_of_frame}"></iframe>'
    )
    dark = ["--blink-settings=preferredColorScheme=0"] if style == "dark" else []
    subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *dark,
         f"--window-size={max(width, 500)},{HEIGHT}", f"--screenshot={picture}",
         frame.resolve().as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    frame.unlink()
