"""The startup benchmark: seconds of compilation, and from process start to a fitted forest."""

import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.harness import display, results

KINDS = ("Classifier", "Regressor")
# Kinds of tree with kernels of their own.
OTHER_KINDS = tuple(
    f"{kind}({parameter})"
    for parameter in ("max_leaf_nodes=50", "categorical_features=[0, 1]")
    for kind in KINDS
)
COMPILE_BAR, START_BAR = 15.0, 0.6  # seconds; the second in excess of PEER_IMPORT
PEER_IMPORT = "import sklearn.ensemble"
# A separate process: a forest on 500 x 10, with two columns rounded to tenths.
PROGRAM = """
from time import perf_counter
import numpy as np
from forest import RandomForestClassifier, RandomForestRegressor
X = np.random.RandomState(0).uniform(size=(500, 10))
X[:, :2] = X[:, :2].round(1)
y = X[:, 0] + X[:, 2] {cut}
times = []
for _ in range({fits}):
    start = perf_counter()
    {model}.set_params(random_state=0).fit(X, y)
    times.append(perf_counter() - start)
print(*times, flush=True)
"""


def run(args):
    """Time first fits, with nothing compiled and with everything compiled."""
    repeats = 1 if args.quick else 5
    rows = []
    with display.progress(len(KINDS) * (2 + 2 * repeats) + len(OTHER_KINDS)) as step:
        for kind in [kind for kind in KINDS + OTHER_KINDS if args.only in kind]:
            step(f"RandomForest{kind}, nothing compiled")
            rows.append(_compilation(kind))
            step()
            if kind in OTHER_KINDS:
                continue
            step(f"RandomForest{kind}, from process start")
            rows.append(_start(kind, repeats, step))
    content = {"rows": rows}
    display.show(table(content))
    results.keep(args, "startup", content)


def table(content):
    """The results as a table."""
    return display.Table(
        "First use",
        ["", "Cartwood", PEER_IMPORT, "bar", "reached"],
        [
            [
                row["what"],
                display.seconds(row["ours"]),
                display.seconds(row["peer"]) if row["peer"] else "-",
                *_bar(row),
            ]
            for row in content["rows"]
        ],
        "Forests of 100 trees on 500 x 10. Compilation happens once per machine: its time is that "
        "of the very first fit minus that of the same fit repeated.",
    )


def _bar(row):
    """The bar as text, and whether it is reached."""
    if row["bar"] is None:
        return "-", "-"
    return display.seconds(row["bar"]), "yes" if row["ours"] <= row["bar"] else "no"


def _compilation(kind):
    what = f"compilation at the very first RandomForest{kind}.fit"
    bar = COMPILE_BAR if kind in KINDS else None
    return {"what": what, "ours": compilation(kind), "peer": None, "bar": bar}


def compilation(kind, root=results.ROOT):
    """Seconds that the very first fit in a checkout takes longer than the second."""
    with TemporaryDirectory() as empty:
        _, (first, second) = _launch(_fits(kind, 2), {"NUMBA_CACHE_DIR": empty}, root)
    return first - second


def launch_fit(kind, root):
    """Seconds from process start to a fitted forest, in a checkout."""
    return _launch(_fits(kind, 1), root=root)[0]


def _start(kind, repeats, step):
    """Launch both sides in turn; the first launch of each fills caches and is not counted."""
    seconds = {_fits(kind, 1): [], f"{PEER_IMPORT}; print(0)": []}
    for _ in range(repeats + 1):
        for program, times in seconds.items():
            times.append(_launch(program)[0])
            step()
    ours, peer = (median(times[1:]) for times in seconds.values())
    what = f"process start to fitted RandomForest{kind}, warm cache, beyond {PEER_IMPORT}"
    return {"what": what, "ours": ours - peer, "peer": peer, "bar": START_BAR}


def _fits(kind, fits):
    model = f"RandomForest{kind}" if "(" in kind else f"RandomForest{kind}()"
    cut = "> 1" if kind.startswith("Classifier") else ""
    return PROGRAM.format(model=model, cut=cut, fits=fits)


def _launch(program, environment=None, root=results.ROOT):
    """Seconds from process start to the first line of output, and the numbers in it."""
    start = perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=root,
        # Allow bytecode to be cached, as for installed packages, whatever the shell says.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        line = process.stdout.readline()
        elapsed = perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"the process failed with exit code {process.returncode}.")
    return elapsed, [float(word) for word in line.split()]
