"""The groups benchmark: fit times of every kind of tree on 20,000 rows, against scikit-learn's."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse
import sklearn.ensemble
import sklearn.tree

import cart
import forest
from benchmarks.harness import display, results
from benchmarks.harness.timing import race
from benchmarks.identity import cases
from benchmarks.identity.cases import Case

JOBS = (1, 2)
N_ROWS, QUICK_ROWS = 20_000, 2_000
KINDS = (("gini", "classification:{}x20"), ("squared_error", "regression:{}x10"))
GROWTH_BAR = 2.6  # largest factor of absolute_error's time when the rows double
SPARSE_SHAPE, SPARSE_DENSITY, SPARSE_DEPTH = (20_000, 50_000), 0.001, 12
SPARSE_BAR = 1.5  # times scikit-learn's time and memory
STATUS = "/proc/self/status"
# A separate process: kilobytes before a fit, and at most during it. (The peak that getrusage
# returns is inherited from the parent if that was higher.)
MEMORY_PROGRAM = """
from pathlib import Path
import numpy as np, scipy.sparse
from {package} import DecisionTreeClassifier
def memory(name):
    return Path("{status}").read_text().partition(name + ":")[2].split()[0]
X, y = scipy.sparse.load_npz("X.npz"), np.load("y.npy")
model = DecisionTreeClassifier(max_depth={depth}, random_state=0)
model.fit(X[:50, :50], np.arange(50) % 2)
Path("/proc/self/clear_refs").write_text("5")  # forgets the highest memory
before = memory("VmRSS")
model.fit(X, y)
print(before, memory("VmHWM"))
"""


def run(args):
    """Race all groups."""
    n_rows, repeats = (QUICK_ROWS, 1) if args.quick else (N_ROWS, 5)
    plan = [case for case in _cases(n_rows) if args.only in _name(case)]
    with_growth = args.only in "absolute_error"
    with_sparse = args.only in "sparse" and not args.quick
    rows = []
    with display.progress(len(plan) + 2 * with_growth + with_sparse) as step:
        for case in plan:
            step(_name(case))
            rows.append(_time_row(_name(case), *_sides(case), repeats))
            step()
        if with_growth:
            rows += _absolute_error(n_rows, repeats, step)
        if with_sparse:
            step("sparse")
            rows += _sparse()
            step()
    content = {"rows": rows}
    display.show(table(content))
    results.keep(args, "groups", content)


def table(content):
    """The results as a table."""
    show = {"s": display.seconds, "x": display.ratio, "MB": lambda value: f"{value:.0f} MB"}
    return display.Table(
        "Fits by group of trees",
        ["group", "Cartwood", "scikit-learn", "ratio", "bar", "reached"],
        [
            [
                row["what"],
                show[row["unit"]](row["ours"]),
                show[row["unit"]](row["peer"]),
                display.ratio(row["peer"] / row["ours"]) if row["ours"] else "-",
                row["bar"],
                {True: "yes", False: "no", None: "-"}[row["reached"]],
            ]
            for row in content["rows"]
        ],
        f"Fit times on {N_ROWS:,} rows unless stated otherwise; forests have 10 trees. Medians "
        "of alternating runs (one run for sparse tables), forests at the better of n_jobs=1 and "
        "2, kernels compiled and warm. Memory is the peak of a process, and how far the fit "
        "raised it.",
    )


def _cases(n_rows):
    """The cases to race, except absolute_error and sparse tables.

    Returns
    -------
    list of Case
    """
    tree, both = ("DecisionTree",), ("DecisionTree", "RandomForest")
    classes, _ = KINDS
    others = (("entropy", classes[1]), ("poisson", "counts:{}x10"))

    def of(group, models, kinds=KINDS, rest=None, **params):
        return [
            Case(group, data.format(n_rows), model, {"criterion": each, **params}, **rest or {})
            for each, data in kinds for model in models
        ]  # fmt: skip

    return [
        *of("plain", both, (*KINDS, *others)),
        *of("ten classes", both, (("gini", classes[1] + "x10"), ("entropy", classes[1] + "x10"))),
        *of("three outputs", both, rest={"n_outputs": 3}),
        *of("missing values", both, (*KINDS, *others), rest={"missing": 0.1}),
        *of("random splitter", ("ExtraTree", "ExtraTrees"), (*KINDS, *others)),
        *of("random splitter, all features", ("ExtraTree",), KINDS[:1], max_features=None),
        *of("random splitter, missing values", ("ExtraTree", "ExtraTrees"), rest={"missing": 0.1}),
        *of("whole weights", tree, rest={"weights": "whole"}),
        *of("fractional weights", tree, (*KINDS, *others), rest={"weights": "fractions"}),
        *of("min_samples_leaf=20", both, min_samples_leaf=20),
        *of("max_depth=3", tree, max_depth=3),
        *of("best first", both, max_leaf_nodes=500),
        *of("monotonic", tree, monotonic_cst=cases.CONSTRAINTS),
    ]


def _name(case):
    return f"{case.group}: {case.class_name}, {case.criterion}"


def _sides(case):
    """Fits of ours and of scikit-learn's, with every setting that either side may choose."""
    data, params = cases.training(case, 0), cases.parameters(case, 0)
    settings = [{}]
    if case.model in ("RandomForest", "ExtraTrees"):
        params["n_estimators"] = 10
        settings = [{"n_jobs": k} for k in JOBS]
    for packages in ((cart, forest), (sklearn.tree, sklearn.ensemble)):
        kind = next(filter(None, (getattr(p, case.class_name, None) for p in packages)))
        yield [partial(kind(**params, **setting).fit, *data) for setting in settings]


def _time_row(what, ours, peer, repeats, slack=1.0):
    """Result of a race in which ours may take `slack` times as long as the peer."""
    times = race(ours, peer, repeats)
    return _row(what, "s", *times, f"{1 / slack:.2f}x", times.ours <= slack * times.peer)


def _row(what, unit, ours, peer, bar, reached):
    return {
        "what": what, "unit": unit, "ours": ours, "peer": peer, "bar": bar, "reached": reached,
    }  # fmt: skip


def _absolute_error(n_rows, repeats, step):
    """Race absolute_error on some rows and on twice as many."""
    rows = []
    for n in (n_rows * 8 // 5, n_rows * 16 // 5):
        case = Case(
            f"{n:,} rows", f"regression:{n}x10", "DecisionTree", {"criterion": "absolute_error"}
        )
        step(_name(case))
        rows.append(_time_row(_name(case), *_sides(case), min(repeats, 3)))
        step()
    ours, peer = (rows[1][side] / rows[0][side] for side in ("ours", "peer"))
    what = "absolute_error: twice the rows take"
    return [*rows, _row(what, "x", ours, peer, f"at most {GROWTH_BAR}x", ours <= GROWTH_BAR)]


def _sparse():
    """Time and memory on a wide sparse table; memory on Linux only."""
    X = scipy.sparse.random(*SPARSE_SHAPE, SPARSE_DENSITY, "csc", np.float32, random_state=0)
    y = np.ravel(X[:, :2000].sum(axis=1) > X[:, 2000:4000].sum(axis=1)).astype(np.int64)
    what = f"sparse {X.shape[0]:,} x {X.shape[1]:,}, depth {SPARSE_DEPTH}"
    params = {"max_depth": SPARSE_DEPTH, "random_state": 0}
    fits = (
        [partial(package.DecisionTreeClassifier(**params).fit, X, y)]
        for package in (cart, sklearn.tree)
    )
    rows = [_time_row(what, *fits, repeats=1, slack=SPARSE_BAR)]
    if not Path(STATUS).exists():
        return rows
    ours, peer = (_peak_memory(package, X, y) for package in ("cart", "sklearn.tree"))
    highest, added = "highest memory", "memory taken by the fit"
    reached = ours[highest] <= SPARSE_BAR * peer[highest]
    bar = f"{1 / SPARSE_BAR:.2f}x"
    return [
        *rows,
        _row(f"{what}: {highest}", "MB", ours[highest], peer[highest], bar, reached),
        _row(f"{what}: {added}", "MB", ours[added], peer[added], "-", None),
    ]


def _peak_memory(package, X, y):
    """Peak megabytes of a process that fits a tree, and the part that the fit added."""
    program = MEMORY_PROGRAM.format(package=package, depth=SPARSE_DEPTH, status=STATUS)
    with TemporaryDirectory() as folder:
        scipy.sparse.save_npz(f"{folder}/X.npz", X, compressed=False)
        np.save(f"{folder}/y.npy", y)
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(results.ROOT)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    before, after = (int(word) * 1024 / 1e6 for word in done.stdout.split())
    return {"highest memory": after, "memory taken by the fit": after - before}
