"""The figures of docs/shap.md: what SHAP values say and do not say."""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

import forest
from benchmarks.harness import results
from benchmarks.studies.importance_designs import strobl_2007
from importance import shap_values
from importance.shap.values import explain, forest_or_tree, trees_out_of_bag

FOLDER = results.ROOT / "docs" / "figures"
BLUE, RED = "#4878a8", "#c44e52"


def draw_all():
    """Draw every figure; returns a line on each."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (draw, size) in FIGURES.items():
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(FOLDER / f"{name}.png", dpi=110)
    return [f"drew {FOLDER / name}.png" for name in FIGURES]


def draw_explained(figure):
    """All rows of breast_cancer, and one of them."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = forest.RandomForestClassifier(100, random_state=0).fit(X, y)
    found = shap_values(model, X, n_jobs=2)
    left, right = figure.subplots(1, 2)
    found.plot("beeswarm", ax=left, max_features=8)
    found.plot("waterfall", ax=right, row=9, max_features=8)
    left.set_title("569 rows", fontsize=10)
    right.set_title("row 9", fontsize=10)


def draw_absent(figure):
    """A feature that the target does not depend on, with the feature it copies, for both games."""
    rng = np.random.RandomState(0)
    a, b = rng.normal(size=(2, 1000))
    X = np.column_stack((a, 0.9 * a + 0.44 * b, rng.normal(size=1000)))
    y = 2.0 * X[:, 0] + X[:, 2]
    model = forest.RandomForestRegressor(
        100, random_state=0, max_features=1, min_samples_leaf=10
    ).fit(X, y)
    kinds = {
        "path-dependent": shap_values(model, X[:300], n_jobs=2),
        "interventional": shap_values(model, X[:300], background=X[300:400], n_jobs=2),
    }
    names = ["x0: y = 2 x0 + x2", "x1: goes with x0", "x2"]
    for ax, j in zip(figure.subplots(1, 2, sharey=True), (0, 1), strict=True):
        for (name, found), color in zip(kinds.items(), (BLUE, RED), strict=True):
            ax.plot(X[:300, j], found.values[:, j], ".", color=color, markersize=4, label=name)
        ax.axhline(0.0, color="#333333", linewidth=0.8)
        ax.set_xlabel(names[j])
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("SHAP value")
    figure.axes[0].legend(fontsize=8, frameon=False)


def draw_seen(figure):
    """Noise: values of one feature over y, by in-bag trees and by out-of-bag trees of each row."""
    X, y = strobl_2007(120, np.random.RandomState(0), n_classes=1)
    model = forest_or_tree(forest.RandomForestRegressor(200, random_state=0).fit(X, y))
    out = trees_out_of_bag(model, X)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, takes, words in zip(axes, (~out, out), ("have seen", "have not seen"), strict=True):
        values = explain(model, X, takes).values[:, 0]
        known = ~np.isnan(values)
        slope, level = np.polyfit(y[known], values[known], 1)
        ends = np.array([y.min(), y.max()])
        ax.plot(y, values, ".", color=BLUE, markersize=5)
        ax.plot(ends, level + slope * ends, color=RED)
        ax.set_title(f"by the trees that {words} the row", fontsize=10)
        ax.set_xlabel("y, which is noise")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("SHAP value of x1, noise too")


FIGURES = {
    "explained": (draw_explained, (11, 4)),
    "absent_features": (draw_absent, (9, 3.6)),
    "seen_rows": (draw_seen, (9, 3.6)),
}
