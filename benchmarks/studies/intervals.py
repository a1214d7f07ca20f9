"""The intervals benchmark: coverage on generated tables, and a race of quantile forests."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split

from benchmarks.harness import datasets, display, results
from benchmarks.harness.errors import DataError
from benchmarks.studies import heteroscedastic
from forest import RandomForestRegressor

COVERAGE = 0.9
COVERAGE_BAR, FIFTH_BAR = 0.02, 0.05  # largest error of the coverage, over all rows and in a fifth
SETS, QUICK_SETS = 50, 3
N_TRAIN, N_TEST, N_ESTIMATORS = 1000, 2000, 100
PEER = "quantile-forest"
LEVELS = (0.05, 0.5, 0.95)
PINBALL = ("pinball", "pinball, constant band")
SPEED_BAR, MEMORY_BAR = 3.0, 0.5  # times as fast as the peer; share of its memory
# A separate process: seconds of fit and predict, the best of some runs; and kilobytes by which the
# first fit and predict raise the peak memory. (The peak that getrusage returns is inherited from
# the parent if that was higher.)
RACE_PROGRAM = """
import json, sys
from pathlib import Path
from time import perf_counter
import numpy as np
def memory(name):
    return int(Path("/proc/self/status").read_text().partition(name + ":")[2].split()[0])
side, n_estimators, n_jobs, repeats = sys.argv[1], *map(int, sys.argv[2:])
X, X_test, y = (np.load(f"{{name}}.npy") for name in ("X", "X_test", "y"))
levels = {levels}
if side == "ours":
    from forest import RandomForestRegressor as Forest
    params, predict = {{}}, lambda model, rows: model.predict_quantiles(rows, levels)
else:
    from quantile_forest import RandomForestQuantileRegressor as Forest
    params, predict = {{"max_samples_leaf": None}}, lambda model, rows: model.predict(rows, levels)
def create(n):
    return Forest(n, random_state=0, n_jobs=n_jobs, **params)
predict(create(2).fit(X[:200], y[:200]), X_test[:50])  # compiles kernels
Path("/proc/self/clear_refs").write_text("5")  # forgets the highest memory
before, seconds = memory("VmRSS"), []
for repeat in range(repeats):
    start = perf_counter()
    model = create(n_estimators).fit(X, y)
    fitted = perf_counter()
    predict(model, X_test)
    seconds.append((fitted - start, perf_counter() - fitted))
    if repeat == 0:
        raised = memory("VmHWM") - before
    del model
fit, predicted = min(seconds, key=sum)
print(json.dumps({{"fit": fit, "predict": predicted, "memory": raised / 1024}}))
"""


def run(args):
    """Study the coverage, and race the quantiles."""
    n_sets = QUICK_SETS if args.quick else SETS
    n_estimators, repeats = (10, 1) if args.quick else (N_ESTIMATORS, 3)
    content = {"race": []}
    with display.progress(n_sets * len(heteroscedastic.DESIGNS) + 1) as step:
        content["coverage"] = study_coverage(n_sets, step)
        step("race")
        try:
            content["race"] = race_quantiles(n_estimators, repeats)
        except DataError as error:
            display.say(f"the race is left out: {error}")
        step()
    display.show(table(content))
    display.show(pinball_table(content))
    if content["race"]:
        display.show(race_table(content))
    results.keep(args, "intervals", content)


def study_coverage(n_sets=SETS, step=lambda name="": None, **options):
    """Coverage of `predict_interval` on new rows of generated tables.

    Parameters
    ----------
    n_sets : int
        Number of tables per design.
    step : callable
        See `display.progress`.
    **options
        Parameters of `coverage_of`.

    Returns
    -------
    dict
        `n_sets`; and under `designs`, for each design and every figure of `coverage_of`, its mean,
        standard deviation over tables, lowest and highest value.
    """
    designs = {}
    for design in heteroscedastic.DESIGNS:
        seen = []
        for seed in range(n_sets):
            step(design)
            seen.append(coverage_of(design, seed, **options))
            step()
        designs[design] = {
            figure: {
                "mean": np.mean(values), "deviation": np.std(values, ddof=1),
                "lowest": min(values), "highest": max(values),
            }
            for figure in seen[0] for values in [[each[figure] for each in seen]]
        }  # fmt: skip
    return {"n_sets": n_sets, "designs": designs}


def coverage_of(
    design, seed, n_train=N_TRAIN, n_test=N_TEST, coverage=COVERAGE, n_estimators=N_ESTIMATORS
):
    """Share of new rows inside the intervals of a default forest, on one generated table.

    Parameters
    ----------
    design : str
        See `heteroscedastic.make`.
    seed, n_train, n_test : int
    coverage : float
    n_estimators : int

    Returns
    -------
    dict of float
        Coverage of `all` new rows, and of the `lowest fifth` and `highest fifth` by the spread of
        their noise; the mean `width`; `pinball`, the mean pinball loss of both bounds; and
        `pinball, constant band`, that of the prediction plus quantiles of all out-of-bag residuals.
    """
    rng = np.random.default_rng(seed)
    X, y, _ = heteroscedastic.make(design, n_train, rng)
    X_test, y_test, spread = heteroscedastic.make(design, n_test, rng)
    forest = RandomForestRegressor(n_estimators, random_state=seed, oob_score=True).fit(X, y)
    low, high = forest.predict_interval(X_test, coverage).T
    inside = (low <= y_test) & (y_test <= high)
    order, fifth = np.argsort(spread, kind="stable"), n_test // 5
    return {
        "all": inside.mean(),
        "lowest fifth": inside[order[:fifth]].mean(),
        "highest fifth": inside[order[-fifth:]].mean(),
        "width": np.mean(high - low),
        "pinball": _pinball(y_test, np.column_stack((low, high)), coverage),
        "pinball, constant band": _pinball(
            y_test, _constant_band(forest, X_test, y, coverage), coverage
        ),
    }


def _constant_band(forest, X, y, coverage):
    residuals = y - forest.oob_prediction_
    return forest.predict(X)[:, np.newaxis] + np.nanquantile(residuals, _levels(coverage))


def _levels(coverage):
    return [(1 - coverage) / 2, (1 + coverage) / 2]


def _pinball(y, band, coverage):
    """Mean pinball loss of both bounds (Koenker and Bassett 1978)."""
    levels = zip(band.T, _levels(coverage), strict=True)
    return np.mean([mean_pinball_loss(y, bound, alpha=level) for bound, level in levels])


def race_quantiles(n_estimators=N_ESTIMATORS, repeats=3):
    """Fit and predict quantiles on california housing, with our forest and quantile-forest's.

    Returns
    -------
    list of dict
        One per number of jobs: seconds and megabytes of both sides.

    Raises
    ------
    DataError
        If the table or the peer is not available.
    """
    if find_spec("quantile_forest") is None:
        raise DataError(f"{PEER} is not installed; pip install {PEER} brings it.")
    data = datasets.load("california")
    X, X_test, y, _ = train_test_split(data.X, data.y, test_size=0.25, random_state=0)
    rows = []
    with TemporaryDirectory() as folder:
        for name, values in (("X", X), ("X_test", X_test), ("y", y)):
            np.save(f"{folder}/{name}.npy", values)
        for n_jobs in (1, 2):
            sides = {
                side: _run_side(side, n_estimators, n_jobs, repeats, folder)
                for side in ("ours", "peer")
            }
            rows.append({"n_jobs": n_jobs, **sides})
    return rows


def _run_side(side, n_estimators, n_jobs, repeats, folder):
    program = RACE_PROGRAM.format(levels=list(LEVELS))
    arguments = [side, str(n_estimators), str(n_jobs), str(repeats)]
    paths = os.pathsep.join(filter(None, [str(results.ROOT), os.environ.get("PYTHONPATH")]))
    found = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=folder, check=True, text=True,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    return json.loads(found.stdout)


def table(content):
    """Table of the coverage of the intervals."""
    study = content["coverage"]
    return display.Table(
        f"Intervals of {COVERAGE:.0%}",
        ["noise", "rows", "coverage", "deviation", "lowest", "highest", "reached"],
        [
            [
                design.replace("_", " "),
                figure,
                f"{found['mean']:.1%}",
                f"{found['deviation']:.1%}",
                f"{found['lowest']:.1%}",
                f"{found['highest']:.1%}",
                "yes" if abs(found["mean"] - COVERAGE) <= _bar(figure) else "no",
            ]
            for design, figures in study["designs"].items()
            for figure, found in figures.items()
            if figure not in ("width", *PINBALL)
        ],
        f"Share of {N_TEST:,} new rows inside their intervals: mean, standard deviation and range "
        f"over {study['n_sets']} tables of {N_TRAIN:,} rows, default forests. The fifths have the "
        f"lowest and the highest noise. The bar: the mean is within {COVERAGE_BAR:.0%} of the "
        f"nominal coverage, in a fifth within {FIFTH_BAR:.0%}.",
    )


def _bar(figure):
    return COVERAGE_BAR if figure == "all" else FIFTH_BAR


def pinball_table(content):
    """Table of the pinball losses of the bounds."""
    designs = content["coverage"]["designs"]
    return display.Table(
        "Pinball loss of the bounds of the intervals",
        ["noise", "Cartwood", "a constant band", "less by"],
        [
            [
                design.replace("_", " "),
                *(f"{found[name]['mean']:.4f}" for name in PINBALL),
                f"{1 - found[PINBALL[0]]['mean'] / found[PINBALL[1]]['mean']:.1%}",
            ]
            for design, found in designs.items()
        ],
        "The constant band is the prediction plus the same quantiles of all out-of-bag residuals.",
    )


def race_table(content):
    """Table of seconds and memory of the quantile race."""
    rows = []
    for row in content["race"]:
        ours, peer = row["ours"], row["peer"]
        total, peer_total = (side["fit"] + side["predict"] for side in (ours, peer))
        rows += [
            [f"fit and predict, n_jobs={row['n_jobs']}", display.seconds(total),
             display.seconds(peer_total), display.ratio(peer_total / total),
             f"{SPEED_BAR}x", "yes" if peer_total >= SPEED_BAR * total else "no"],
            [f"predict, n_jobs={row['n_jobs']}", display.seconds(ours["predict"]),
             display.seconds(peer["predict"]), display.ratio(peer["predict"] / ours["predict"]),
             "-", "-"],
            [f"peak memory, n_jobs={row['n_jobs']}", f"{ours['memory']:.0f} MB",
             f"{peer['memory']:.0f} MB", display.ratio(peer["memory"] / ours["memory"]),
             f"{1 / MEMORY_BAR}x",
             "yes" if ours["memory"] <= MEMORY_BAR * peer["memory"] else "no"],
        ]  # fmt: skip
    return display.Table(
        "Quantiles on california",
        ["what", "Cartwood", PEER, "ratio", "bar", "reached"],
        rows,
        f"{N_ESTIMATORS} trees, three quantiles of a quarter of the rows; {PEER} with "
        "max_samples_leaf=None. Each side runs in its own process: the best of three runs, kernels "
        "compiled; memory is how far the first run raised the peak of the process.",
    )
