"""The lessons benchmark: five traps of importances, with a figure each, for docs/importance.md."""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

from benchmarks.harness import display, plot, results
from benchmarks.studies.importance_designs import LEVELS_2007, noise_bias, strobl_2008
from forest import RandomForestClassifier, RandomForestRegressor
from importance import (
    conditional_permutation,
    drop_column,
    oob_permutation,
    permutation_test,
)

FOLDER = results.ROOT / "docs" / "figures"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
TREES = (50, 100, 200, 400, 800, 1600)


def run(args):
    """Study every lesson and draw its figure."""
    content = {}
    with display.progress(len(LESSONS)) as step:
        for name, (study, _) in LESSONS.items():
            step(name)
            content[name] = study(args.quick)
            step()
    if args.quick:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (_, draw) in LESSONS.items():
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        draw(figure, content[name])
        for ax in figure.axes:
            ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(FOLDER / f"{name}.png", dpi=110)
        display.say(f"drew {FOLDER / name}.png")
    display.say(f"wrote {results.save('lessons', _summary(content))}")


def _summary(content):
    """The content to save: for tables of many rows, five quantiles of every column."""
    if isinstance(content, dict):
        return {key: _summary(value) for key, value in content.items()}
    values = np.asarray(content)
    if values.ndim < 2 or len(values) <= len(QUANTILES):
        return content
    return {"n": len(values), "quantiles": np.quantile(values, QUANTILES, axis=0)}


def study_many_values(quick):
    """MDI and UFI of features that say nothing of y."""
    found = noise_bias(5 if quick else 200)
    return {"mdi": found.mdi, "ufi": found.ufi}


def draw_many_values(figure, found):
    names = ["a number", *(f"{k} categories" for k in LEVELS_2007)]
    axes = figure.subplots(1, 2)
    titles = ("MDI: decrease on the rows that were fitted", "UFI: judged by rows out of bag")
    for ax, name, title, color in zip(
        axes, ("mdi", "ufi"), titles, (plot.PEER, plot.OURS), strict=True
    ):
        values = np.array(found[name])
        box = ax.boxplot(values, showfliers=False, patch_artist=True, widths=0.6)
        for patch in box["boxes"]:
            patch.set_facecolor(color)
        for line in box["medians"]:
            line.set_color("white")
        ax.axhline(0, color="#333333", linewidth=0.8)
        ax.set_xticks(range(1, 6), names, rotation=20, ha="right", fontsize=8)
        ax.set_title(title, loc="left", fontsize=10)
    axes[0].set_ylabel(f"importance, {len(values)} tables of noise")


def study_correlated(quick):
    """Free and conditional permutation, four correlated features as a group, a copied column."""
    n, n_trees = (200, 30) if quick else (600, 300)
    X, y = strobl_2008(n, np.random.RandomState(0))
    # Leaves of 15 rows: in deeper trees hardly any row shares its cell with another.
    forest = RandomForestRegressor(
        n_trees, max_features=8, min_samples_leaf=15, random_state=0, n_jobs=2
    ).fit(X, y)
    free = oob_permutation(forest, X, y, n_jobs=2)
    alike = conditional_permutation(forest, X, y, n_jobs=2)
    group = oob_permutation(forest, X, y, groups={"x1 to x4": [0, 1, 2, 3]}, n_jobs=2)
    content = {
        "free": free.values, "free_error": free.standard_error, "alike": alike.values,
        "alike_error": alike.standard_error, "group": group.values[0], "copies": [],
    }  # fmt: skip
    Z = X[:, [0, 4, 5, 6, 7, 8]]  # x1 without the features correlated with it
    for max_features in (1.0, "sqrt"):
        alone, twice = (
            _group_and_parts(table, y, columns, max_features, n_trees)
            for table, columns in ((Z, [0]), (np.column_stack((Z, Z[:, 0])), [0, 6]))
        )
        content["copies"].append(
            {"max_features": str(max_features), "alone": alone[0], "group": twice[0],
             "each": twice[1]}
        )  # fmt: skip
    return content


def _group_and_parts(X, y, columns, max_features, n_trees):
    forest = RandomForestRegressor(n_trees, max_features=max_features, random_state=0, n_jobs=2)
    forest.fit(X, y)
    group = oob_permutation(forest, X, y, groups={"all": columns}, n_jobs=2).values[0]
    return group, oob_permutation(forest, X, y, n_jobs=2).values[columns]


def draw_correlated(figure, found):
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
    place = np.arange(12)
    for shift, name, color, label in (
        (-0.2, "free", plot.PEER, "permuted among all rows"),
        (0.2, "alike", plot.OURS, "permuted among rows alike in the others"),
    ):
        left.bar(
            place + shift, found[name], 0.38, yerr=found[f"{name}_error"], color=color, label=label,
            capsize=2,
        )  # fmt: skip
    slopes = (5, 5, 2, 0, -5, -5, -2, 0, 0, 0, 0, 0)
    left.set_xticks(place, [f"x{j + 1}\n{slope}" for j, slope in enumerate(slopes)], fontsize=8)
    left.set_xlabel("feature, and its coefficient; x1 to x4 are correlated")
    left.set_ylabel("increase in squared error")
    left.legend(frameon=False, fontsize=8)
    left.set_title("What a feature says beyond those that go with it", loc="left", fontsize=10)
    place = np.arange(len(found["copies"]))
    right.bar(
        place - 0.25, [row["alone"] for row in found["copies"]], 0.24, color="#999999",
        label="x1 alone",
    )  # fmt: skip
    right.bar(
        place, [np.mean(row["each"]) for row in found["copies"]], 0.24, color=plot.PEER,
        label="each of two copies",
    )  # fmt: skip
    right.bar(
        place + 0.25, [row["group"] for row in found["copies"]], 0.24, color=plot.OURS,
        label="both, permuted together",
    )  # fmt: skip
    right.set_xticks(place, [f"max_features\n{row['max_features']}" for row in found["copies"]])
    right.set_ylim(0, 1.45 * right.get_ylim()[1])
    right.legend(frameon=False, fontsize=8, loc="upper left")
    right.set_title("A copy of a column", loc="left", fontsize=10)


def study_one_shuffle(quick):
    """Single shuffles compared with the expectation over all of them."""
    data = load_breast_cancer()
    forest = RandomForestClassifier(100, random_state=0, n_jobs=2).fit(data.data, data.target)
    exact = oob_permutation(forest, data.data, data.target, n_jobs=2)
    once = [
        oob_permutation(
            forest, data.data, data.target, level="forest", n_repeats=1, random_state=seed
        ).values
        for seed in range(3 if quick else 50)
    ]
    often = oob_permutation(
        forest, data.data, data.target, level="forest", n_repeats=3 if quick else 200,
        random_state=999,
    )  # fmt: skip
    per_tree = [
        oob_permutation(forest, data.data, data.target, n_repeats=1, random_state=seed).values
        for seed in range(3 if quick else 50)
    ]
    return {
        "names": data.feature_names, "exact": exact.values, "per_tree": per_tree, "once": once,
        "often": often.values,
    }  # fmt: skip


def draw_one_shuffle(figure, found):
    names = np.array(found["names"])
    shown = np.argsort(-np.array(found["exact"]))[:8][::-1]
    axes = figure.subplots(1, 2, sharey=True)
    for ax, single, truth, title, label in (
        (axes[0], "once", "often", 'All trees together (level="forest")', "mean of 200 shuffles"),
        (axes[1], "per_tree", "exact", "Tree by tree", "expectation over all, exactly"),
    ):
        for place, j in enumerate(shown):
            values = np.array(found[single])[:, j]
            ax.plot(
                values, place + np.linspace(-0.25, 0.25, len(values)), ".", color=plot.PEER,
                markersize=3, label="one shuffle" if place == 0 else None,
            )  # fmt: skip
        ax.plot(
            np.array(found[truth])[shown], range(len(shown)), "D", color=plot.OURS, markersize=5,
            label=label,
        )  # fmt: skip
        ax.axvline(0, color="#333333", linewidth=0.8)
        ax.set_yticks(range(len(shown)), names[shown], fontsize=8)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xlabel("increase in 0-1 loss")
        ax.legend(frameon=False, fontsize=8, loc="lower right")


def study_replaceable(quick):
    """Near-identical features: the trees use them, but the forest misses neither."""
    rng = np.random.RandomState(0)
    n, n_trees = (200, 30) if quick else (1000, 300)
    X = rng.normal(size=(n, 5))
    X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=n)
    y = 2 * X[:, 0] + X[:, 2] + rng.normal(size=n)
    forest = RandomForestRegressor(n_trees, max_features=2, random_state=0, n_jobs=2).fit(X, y)
    measures = (oob_permutation(forest, X, y, n_jobs=2), drop_column(forest, X, y, n_jobs=2))
    return {
        name: {"values": measure.values, "error": measure.standard_error}
        for name, measure in zip(("permutation", "drop_column"), measures, strict=True)
    }


def draw_replaceable(figure, found):
    names = ["a (2 a)", "a twin of a", "b (1 b)", "noise", "noise"]
    axes = figure.subplots(1, 2, sharey=True)
    titles = ("Permutation: how much trees rely on it", "Drop column: what is lost without it")
    for ax, (name, color), title in zip(
        axes, (("permutation", plot.PEER), ("drop_column", plot.OURS)), titles, strict=True
    ):
        ax.barh(range(5), found[name]["values"], xerr=found[name]["error"], color=color, capsize=2)
        ax.set_yticks(range(5), names)
        ax.axvline(0, color="#333333", linewidth=0.8)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xlabel("increase in squared error")
    axes[0].invert_yaxis()


def study_z(quick):
    """z of uninformative features by the number of trees, and their p-values."""
    rng = np.random.RandomState(1)
    X = rng.normal(size=(150, 6))
    y = rng.randint(2, size=150)
    trees = TREES[:2] if quick else TREES
    z = []
    for n in trees:
        forest = RandomForestClassifier(n, random_state=0, n_jobs=2).fit(X, y)
        found = oob_permutation(forest, X, y, loss="brier", n_jobs=2)
        z.append(found.values / found.errors["over trees"])
    forest = RandomForestClassifier(50, random_state=0, n_jobs=2).fit(X, y)
    test = permutation_test(forest, X, y, n_repeats=19 if quick else 199, random_state=0, n_jobs=2)
    return {"trees": trees, "z": z, "p": test.p_values, "family_wise": test.family_wise}


def draw_z(figure, found):
    ax, other = figure.subplots(1, 2, width_ratios=(1.5, 1))
    z = np.array(found["z"])
    for j in range(z.shape[1]):
        ax.plot(found["trees"], z[:, j], "o-", markersize=3, label=f"noise {j + 1}")
    ax.axhspan(-1.96, 1.96, color="#dddddd", zorder=0)
    ax.set_xscale("log")
    ax.set_xticks(found["trees"], map(str, found["trees"]), minor=False)
    ax.minorticks_off()
    ax.set_xlabel("trees")
    ax.set_ylabel("z = importance / standard error over trees")
    ax.set_title("z grows with the number of trees", loc="left", fontsize=10)
    place = np.arange(z.shape[1])
    other.bar(place, found["p"], color=plot.OURS)
    other.axhline(0.05, color="#333333", linewidth=0.8, linestyle="--")
    other.set_xticks(place, [f"noise {j + 1}" for j in place], rotation=20, fontsize=8)
    other.set_ylim(0, 1)
    other.set_title("p-values by permuting y", loc="left", fontsize=10)


LESSONS = {
    "many_values": (study_many_values, draw_many_values),
    "correlated": (study_correlated, draw_correlated),
    "one_shuffle": (study_one_shuffle, draw_one_shuffle),
    "replaceable": (study_replaceable, draw_replaceable),
    "z_is_not_significance": (study_z, draw_z),
}
