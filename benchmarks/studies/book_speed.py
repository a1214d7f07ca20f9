"""The cost of surrogates: fits with five of them against plain ones, and one tree against rpart."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.harness import display, results
from cart import DecisionTreeClassifier
from forest import RandomForestClassifier

REPEATS, N_TREES, AT_ONCE = 3, 50, 5
WITH = {"surrogates": 5, "missing": "surrogate"}
CASES = {  # by name: the estimator, plain parameters, those added for surrogates, the bar
    "tree": (DecisionTreeClassifier, {}, WITH, 3.0),
    "forest, all features": (RandomForestClassifier, {"max_features": None}, WITH, 3.0),
    "forest, sqrt": (RandomForestClassifier, {"max_features": "sqrt"}, WITH, 10.0),
    "forest, sqrt, drawn": (
        RandomForestClassifier, {"max_features": "sqrt"},
        {**WITH, "surrogate_features": "drawn"}, 3.0,
    ),
}  # fmt: skip
RPART = "tree, rpart"
RPART_BAR = 10.0
# Limits of both trees: rpart's, without pruning, cross-validation and competitors.
LIMITS = {"min_samples_split": 20, "min_samples_leaf": 7, "max_depth": 30}
# With cp=-1 rpart keeps splits that do not lower the risk, as we do; the node counts agree.
SCRIPT = """
library(rpart)
data <- read.csv("{}"); data$y <- factor(data$y)
control <- rpart.control(minsplit = 20, minbucket = 7, cp = -1, xval = 0, maxcompete = 0,
                         maxsurrogate = 5, usesurrogate = 2, maxdepth = 30)
for (i in 1:{}) {{
  took <- system.time(fit <- rpart(y ~ ., data, control = control))
  cat(took[["elapsed"]], took[["user.self"]] + took[["sys.self"]], nrow(fit$frame), "\\n")
}}
"""


def run(args):
    """Time every case in turn with its plain fit; `args.only` selects by name."""
    n_rows, repeats = (2_000, 1) if args.quick else (20_000, REPEATS)
    X, y = make_classification(n_rows, 20, n_informative=8, flip_y=0.1, random_state=0)
    rows = [_row(name, X, y, repeats) for name in CASES if args.only in name]
    if args.only in RPART and shutil.which("Rscript"):
        rows.append(_against_rpart(X, y, repeats))
    content = {"speed": rows}
    display.show(table(content))
    results.keep(args, "book_speed", content)


def table(content):
    """Table of times with and without surrogates, and their ratios by wall clock and processor."""
    return display.Table(
        "The book: what surrogates cost",
        ["fit of 20,000 x 20", "with 5 surrogates", "against", "ratio", "processor", "bar", "load"],
        [
            [
                row["name"],
                display.seconds(row["ours"]),
                f"{row['against']} {display.seconds(row['peer'])}",
                f"{row['ratio']:.1f}",
                f"{row['processor']:.1f}",
                row["bar"],
                f"{row['load']:.1f}",
            ]
            for row in content["speed"]
        ],
        f"Medians of alternating runs on one thread; forests of {N_TREES} trees, run once after a "
        "warm-up. rpart's own tree with 5 surrogates, with the same limits and number of nodes, is "
        "timed inside R; the ratio there is rpart's time over Cartwood's. Processor: the ratio of "
        "processor times, which other work on the machine affects less.",
    )


def _row(name, X, y, repeats):
    kind, plain, more, bar = CASES[name]
    rounds = 1 if kind is RandomForestClassifier else repeats
    params = {"random_state": 0, "n_jobs": 1, "n_estimators": N_TREES}
    params = params if kind is RandomForestClassifier else {"random_state": 0}
    models = [kind(**params, **plain, **more), kind(**params, **plain)]
    times = [[_time(model, X, y) for model in models] for _ in range(rounds + 1)][1:]
    (ours, own), (peer, theirs) = np.median(times, axis=0)
    return {
        "name": name, "ours": ours, "against": "plain", "peer": peer, "ratio": ours / peer,
        "processor": own / theirs, "bar": f"at most {bar:.0f}", "load": os.getloadavg()[0],
    }  # fmt: skip


def _time(model, X, y):
    """Wall-clock and processor seconds of a fit."""
    start = perf_counter(), process_time()
    model.fit(X, y)
    return perf_counter() - start[0], process_time() - start[1]


def _against_rpart(X, y, repeats):
    """Time one tree against rpart's: fits in turn, a few at a time."""
    model = DecisionTreeClassifier(random_state=0, **LIMITS, **WITH).fit(X, y)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        names = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
        np.savetxt(path, np.column_stack((X, y)), delimiter=",", header=names, comments="")
        command = ["Rscript", "-e", SCRIPT.format(path, AT_ONCE)]
        for _ in range(repeats):
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            theirs += [[float(word) for word in line.split()] for line in said.splitlines()]
            ours += [_time(model, X, y) for _ in range(AT_ONCE)]
    (seconds, own), (peer, its_own, n_nodes) = np.median(ours, axis=0), np.median(theirs, axis=0)
    if n_nodes != model.tree_.node_count:
        raise AssertionError(f"rpart has {n_nodes} nodes, not {model.tree_.node_count}.")
    return {
        "name": RPART, "ours": seconds, "against": "rpart", "peer": peer, "ratio": peer / seconds,
        "processor": its_own / own, "bar": f"at least {RPART_BAR:.0f}",
        "load": os.getloadavg()[0],
    }  # fmt: skip
