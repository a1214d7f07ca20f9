"""The forest benchmark: voting and intervals, then the other promises of forests."""

from contextlib import contextmanager
from importlib.util import find_spec
from time import perf_counter
from warnings import catch_warnings

import numpy as np
from joblib import parallel_config
from matplotlib.figure import Figure
from sklearn.model_selection import train_test_split

from benchmarks.harness import datasets, display, plot, results
from benchmarks.harness.sides import FORESTS
from benchmarks.identity.agreement import have_same_nodes
from benchmarks.studies import heteroscedastic, intervals, voting
from forest import RandomForestClassifier, RandomForestRegressor

CURVE_TREES = 500
CURVE_DATA = ("breast_cancer", "california")
MARKS = (10, 50, 100, 200, 500)  # numbers of trees that the table shows
PARTITIONS = (1, 2, 4, 8)
PARTITIONED = ("classification:100000x20", "california")
JACKKNIFE_SETS, JACKKNIFE_ROWS, TREES_PER_ROW = 200, 100, 5
JACKKNIFE_BAR = 0.25  # largest relative error of the mean variance
FIGURE = results.ROOT / "docs" / "figures" / "forest_curve.png"


def run(args):
    """Study voting rules, intervals and quantiles, and then the rest; or only the rest."""
    if not args.rest:
        voting.run(args)
        intervals.run(args)
    quick = args.quick
    names = [name for name in CURVE_DATA if not quick or name != "california"]
    content = {"curves": [], "warm": [], "dask": [], "partitions": []}
    with display.progress(len(names) + 4) as step:
        found, left_out = datasets.load_found(names)
        for data in found:
            step(f"out-of-bag curve, {data.name}")
            content["curves"].append(_trace(data, 50 if quick else CURVE_TREES))
            step()
        step("warm start")
        content["warm"].append(_warm_start(100 if quick else 400))
        step()
        step("standard errors")
        content["jackknife"] = study_jackknife(20 if quick else JACKKNIFE_SETS)
        step()
        if find_spec("distributed") is None:
            left_out.append('Dask is left out: it is not installed; pip install "cartwood[dask]".')
        else:
            with _cluster():
                step("Dask against local")
                content["dask"].append(_against_local(20 if quick else 100))
                step()
                step("partitions")
                content["partitions"] = _study_partitions(quick)
                step()
    for show in (table, curve_table, partition_table):
        display.show(show(content))
    display.say(*left_out)
    if not quick:
        drawn = draw(content)
        for curve in content["curves"]:  # only the marks are saved
            del curve["out_of_bag"], curve["held_out"]
        display.say(f"wrote {results.save('forest', content)}", f"drew {drawn}")


def table(content):
    """Table of promises and whether they are kept."""
    rows = [
        [f"warm start, {row['first']} and then {row['all']} trees", "the same model",
         _yes(row["identical"]), f"{display.seconds(row['seconds'])}, one fit "
         f"{display.seconds(row['one_fit'])}"]
        for row in content["warm"]
    ]  # fmt: skip
    rows += [
        [f"{row['trees']} trees over Dask, two processes", "the same model",
         _yes(row["identical"]), f"{display.seconds(row['seconds'])}, two threads "
         f"{display.seconds(row['local'])}"]
        for row in content["dask"]
    ]  # fmt: skip
    found = content["jackknife"]
    rows.append(
        [
            f"variance of predictions, {found['sets']} fresh tables of {found['rows']} rows",
            f"within {JACKKNIFE_BAR:.0%} of the jackknife's mean",
            _yes(abs(found["ratio"] - 1) <= JACKKNIFE_BAR),
            f"jackknife over truth {found['ratio']:.3f} ± {found['error']:.3f}",
        ]
    )
    return display.Table(
        "Forests", ["what", "promise", "kept", "measured"], rows,
        f"The jackknife has {TREES_PER_ROW} trees per row; ± is the standard error by a bootstrap "
        "over the tables.",
    )  # fmt: skip


def curve_table(content):
    """Table of losses by the number of trees, out of bag and on held-out rows."""
    return display.Table(
        "Out-of-bag curve",
        ["data", "trees", "out of bag", "held out", "all sizes in one pass", "one fit of each"],
        [
            [
                curve["data"],
                str(n),
                display.significant(out_of_bag),
                display.significant(held_out),
                display.seconds(curve["seconds"]),
                display.seconds(curve["refits"]),
            ]
            for curve in content["curves"]
            for n, out_of_bag, held_out in curve["marks"]
        ],
        "0-1 loss or squared error of the first trees of one forest. The last column is the time "
        "for fitting and judging a separate forest for each number of trees in the table.",
    )


def partition_table(content):
    """Table of the loss in score when trees see one partition each."""
    return display.Table(
        "Forests of partitions (forest.dask)",
        ["data", "partitions", "score", "lost", "rows per partition"],
        [
            [
                row["data"],
                str(row["partitions"]),
                f"{row['score']:.4f}",
                f"{row['whole'] - row['score']:+.4f}",
                f"{row['rows']:,}",
            ]
            for row in content["partitions"]
        ],
        "Accuracy or R2 on a held-out quarter, 100 trees; lost: against the forest of all rows.",
    )


def draw(content):
    """Draw the out-of-bag curves; returns the path of the figure."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots(1, len(content["curves"]), squeeze=False)[0]
    for ax, curve in zip(axes, content["curves"], strict=True):
        n_trees = np.arange(1, len(curve["out_of_bag"]) + 1)
        for name, color in (("out_of_bag", plot.OURS), ("held_out", plot.PEER)):
            ax.plot(n_trees, curve[name], color=color, label=name.replace("_", " "), linewidth=1.4)
        ax.set_title(curve["data"], loc="left", fontweight="bold", fontsize=10)
        ax.set_xlabel("trees")
        ax.set_ylabel(curve["loss"])
        ax.set_xscale("log")
        ax.set_ylim(0, None)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=110)
    return FIGURE


def study_jackknife(n_sets, n_rows=JACKKNIFE_ROWS, n_points=100):
    """Ratio of the mean jackknife variance to the variance of predictions over fresh tables.

    Parameters
    ----------
    n_sets, n_rows, n_points : int
        Numbers of tables, of their rows, and of the points to predict.

    Returns
    -------
    dict
        `ratio`, and `error`, its standard error by a bootstrap over the tables.
    """
    new = heteroscedastic.make("friedman1", n_points, np.random.default_rng(0))[0]
    means, variances = np.empty((2, n_sets, n_points))
    for seed in range(n_sets):
        X, y, _ = heteroscedastic.make("friedman1", n_rows, np.random.default_rng(1 + seed))
        forest = RandomForestRegressor(TREES_PER_ROW * n_rows, random_state=seed).fit(X, y)
        with catch_warnings(action="ignore"):  # negative variances count as 0
            means[seed], error = forest.predict(new, return_std=True)
        variances[seed] = error**2

    def ratio(tables):
        return variances[tables].mean() / means[tables].var(axis=0, ddof=1).mean()

    rng = np.random.default_rng(0)
    again = [ratio(rng.integers(n_sets, size=n_sets)) for _ in range(200)]
    return {
        "sets": n_sets, "rows": n_rows, "ratio": ratio(np.arange(n_sets)), "error": np.std(again),
    }  # fmt: skip


def _trace(data, n_trees):
    """Losses of the first 1, 2, ... trees, and the time that they take."""
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=0)
    Forest = FORESTS[data.task][0]
    forest = Forest(n_trees, random_state=0, n_jobs=2).fit(X, y)
    start = perf_counter()
    curve = forest.out_of_bag(X, y).curve
    taken = perf_counter() - start
    if data.task == "classification":
        said = np.cumsum([tree.predict_proba(X_test) for tree in forest.estimators_], axis=0)
        codes = np.searchsorted(forest.classes_, y_test)
        held_out = (said.argmax(axis=2) != codes).mean(axis=1)
    else:
        said = np.cumsum([tree.predict(X_test) for tree in forest.estimators_], axis=0)
        said /= np.arange(1, n_trees + 1)[:, np.newaxis]
        held_out = ((said - y_test) ** 2).mean(axis=1)
    marks = [n for n in MARKS if n <= n_trees]
    start = perf_counter()
    for n in marks:
        Forest(n, random_state=0, n_jobs=2, oob_score=n > 20).fit(X, y)
    return {
        "data": data.name, "out_of_bag": curve, "held_out": held_out, "seconds": taken,
        "marks": [[n, curve[n - 1], held_out[n - 1]] for n in marks],
        "refits": perf_counter() - start,
        "loss": "0-1 loss" if data.task == "classification" else "squared error",
    }  # fmt: skip


def _warm_start(n_trees):
    data = datasets.load("classification:20000x20")
    params = {"random_state": 0, "n_jobs": 2}
    start = perf_counter()
    once = RandomForestClassifier(n_trees, **params).fit(data.X, data.y)
    one_fit = perf_counter() - start
    start = perf_counter()
    warm = RandomForestClassifier(n_trees // 4, warm_start=True, **params).fit(data.X, data.y)
    warm.set_params(n_estimators=n_trees).fit(data.X, data.y)
    return {
        "first": n_trees // 4, "all": n_trees, "identical": _is_same(once, warm, data.X),
        "seconds": perf_counter() - start, "one_fit": one_fit,
    }  # fmt: skip


@contextmanager
def _cluster():
    from distributed import Client, LocalCluster

    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with local as cluster, Client(cluster):
        yield


def _against_local(n_trees):
    data = datasets.load("classification:20000x20")
    params = {"n_estimators": n_trees, "random_state": 0}
    with parallel_config(backend="dask"):
        RandomForestClassifier(4).fit(data.X, data.y)  # loads the kernels
        start = perf_counter()
        spread = RandomForestClassifier(**params).fit(data.X, data.y)
        taken = perf_counter() - start
    start = perf_counter()
    local = RandomForestClassifier(**params, n_jobs=2).fit(data.X, data.y)
    return {
        "trees": n_trees, "identical": _is_same(local, spread, data.X), "seconds": taken,
        "local": perf_counter() - start,
    }  # fmt: skip


def _study_partitions(quick):
    import dask.array as da

    from forest.growing.dask import fit_partitions

    rows = []
    found, _ = datasets.load_found(PARTITIONED[:1] if quick else PARTITIONED)
    for data in found:
        split = train_test_split(data.X, data.y, test_size=0.25, random_state=0)
        X, X_test, y, y_test = (part[:4000] if quick else part for part in split)
        whole = None
        for n in PARTITIONS:
            size = -(-len(X) // n)
            model = fit_partitions(
                FORESTS[data.task][0](100, random_state=0),
                da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size),
            )  # fmt: skip
            score = model.score(X_test, y_test)
            whole = score if whole is None else whole
            rows.append(
                {"data": data.name, "partitions": n, "score": score, "whole": whole, "rows": size}
            )
    return rows


def _is_same(a, b, X):
    return have_same_nodes(a, b) and np.array_equal(a.predict_proba(X), b.predict_proba(X))


def _yes(kept):
    return "yes" if kept else "no"
