"""Large tables and small forests: memory of a fit, and the gain from a second thread.

Every measurement is a separate process, after a small fit that compiles. Memory is the peak in the
fit minus the memory before it, which includes the table.
"""

import ctypes
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import display, results
from benchmarks.harness.sides import FORESTS

N_FEATURES_WARM, N_ROWS_WARM = 3, 70_000  # more values than 16 bits can tell apart
REPEATS_OF_SMALL, LEAST = 15, 0.02  # least number of fits of a small table; least seconds of fits


class Fit(NamedTuple):
    """A row: a forest on a table of random numbers."""

    name: str
    task: str
    n_rows: int
    n_features: int
    n_trees: int
    memory_bar: int | None = None  # MB
    max_features: float | str = "sqrt"

    @property
    def is_small(self):
        return self.n_rows < 20_000


FITS = (
    Fit("3 trees, classes, 2,000,000 x 50", "classification", 2_000_000, 50, 3, 400),
    Fit("3 trees, regression, a third, 2,000,000 x 50", "regression", 2_000_000, 50, 3, 400, 1 / 3),
    Fit("1 tree, classes, 1,000,000 x 20", "classification", 1_000_000, 20, 1),
    Fit("1 tree, regression, a third, 1,000,000 x 20", "regression", 1_000_000, 20, 1, None, 1 / 3),
    Fit("1 tree, regression, all, 1,000,000 x 20", "regression", 1_000_000, 20, 1, None, 1.0),
    Fit("2 trees, classes, 1,000 x 10", "classification", 1_000, 10, 2),
    Fit("10 trees, classes, 150 x 4", "classification", 150, 4, 10),
    Fit("10 trees, classes, 3,000 x 10", "classification", 3_000, 10, 10),
    Fit("10 trees, regression, a third, 3,000 x 10", "regression", 3_000, 10, 10, None, 1 / 3),
    Fit("3 trees, classes, 15,000 x 20", "classification", 15_000, 20, 3),
)  # fmt: skip


def run(args):
    """Measure the rows, ours with one thread and with two."""
    rows = []
    chosen = [fit for fit in FITS if args.only in fit.name]
    with display.progress(len(chosen)) as step:
        for fit in chosen:
            step(fit.name)
            if args.quick:
                fit = fit._replace(n_rows=min(fit.n_rows, 100_000))
            one, two = (_in_a_process(fit, n_jobs) for n_jobs in (1, 2))
            rows.append({
                "fit": fit.name, "seconds": one["seconds"], "seconds_of_two": two["seconds"],
                "memory": one["memory"], "memory_of_two": two["memory"], "bar": fit.memory_bar,
                "load": one["load"],
            })  # fmt: skip
            step()
    content = {"rows": rows}
    display.show(table(content))
    results.keep(args, "large", content)


def table(content):
    """The results as a table."""
    return display.Table(
        "Large tables and small forests",
        ["fit", "one thread", "two", "ratio", "MB", "MB, two", "bar"],
        [
            [
                row["fit"],
                display.seconds(row["seconds"]),
                display.seconds(row["seconds_of_two"]),
                display.ratio(row["seconds"] / row["seconds_of_two"]),
                f"{row['memory'] / 1e6:,.0f}",
                f"{row['memory_of_two'] / 1e6:,.0f}",
                "-" if row["bar"] is None else f"{row['bar']}",
            ]
            for row in content["rows"]
        ],
        "Random numbers in single precision. Seconds per fit (small tables: the median); ratio: "
        "the speedup by two threads. MB: peak beyond the table, including the forest.",
    )


def _in_a_process(fit, n_jobs):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measure, fit, n_jobs).result()


def _measure(fit, n_jobs):
    """Seconds and bytes of a fit."""
    X, y = _make(fit.task, fit.n_rows, fit.n_features)
    params = {"n_jobs": n_jobs, "random_state": 0, "max_features": fit.max_features}
    model = FORESTS[fit.task][0](fit.n_trees, **params)
    X_warm, y_warm = _make(fit.task, N_ROWS_WARM, N_FEATURES_WARM)
    warm = FORESTS[fit.task][0](1, **{**params, "max_features": 1})
    warm.fit(X_warm, y_warm)
    warm.fit(X_warm[:2000], y_warm[:2000])
    del X_warm, y_warm, warm
    # Return freed memory to the system, and reset the peak, so that it is that of the fit.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    seconds = []
    while len(seconds) < (REPEATS_OF_SMALL if fit.is_small else 1) or sum(seconds) < LEAST:
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
    load = float(Path("/proc/loadavg").read_text().split()[0])
    memory = _memory("VmHWM") - before
    return {"seconds": float(np.median(seconds)), "memory": memory, "load": load}


def _make(task, n_rows, n_features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(n_rows, np.float32)
    return X, (signal > 0).astype(int) if task == "classification" else signal.astype(float)


def _memory(name):
    """Memory of the process in bytes: current (VmRSS) or peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return 1024 * int(kilobytes)
