"""One forest of a table in partitions: is it the local one, what does it cost, how do its time and
memory grow, and what do killed workers leave of it?"""

import os
import signal
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import numpy as np
from sklearn.base import is_classifier

from benchmarks.harness import display, results
from forest import RandomForestClassifier, RandomForestRegressor
from forest.partitioned.dask import fit, fixed_point
from forest.partitioned.growth import Size

KEYED = {"max_bins": 255, "feature_draw": "keyed", "random_state": 0}
N_FEATURES = 20
PIECE = 1 << 18  # rows that are made, or read, at once
COST_ROWS, COST_TREES, COST_BAR = 1_000_000, 20, 2.5
SCALE_ROWS = (1_000_000, 5_000_000, 50_000_000)
SCALE_TREES, SCALE_DEPTH = 10, 12
N_KILLS = 20
PARTS = ("identity", "cost", "scale", "faults")


def run(args):
    """Measure the parts that are asked for."""
    content = {}
    for part in PARTS:
        if args.only in part:
            content[part] = globals()[f"_{part}"](args.quick)
            display.show(table({part: content[part]}))
    if not args.quick:
        kept = results.load("distributed") or {}
        kept.pop("environment", None)
        display.say(f"wrote {results.save('distributed', {**kept, **content})}")


def table(content):
    """The results as one table."""
    rows = []
    for part, cases in content.items():
        if part in PARTS:
            rows += [[part, case["case"], case["what"], case["reached"]] for case in cases]
    return display.Table(
        "One forest of a table in partitions", ["part", "case", "measured", "reached"], rows,
        f"friedman1's function, {N_FEATURES} columns of float32. Identity: every bit of every node "
        f"array. Cost: {COST_TREES} trees, 2 workers of one thread against 2 threads of one "
        f"process; the bar is {COST_BAR} times. Scale: {SCALE_TREES} trees of depth {SCALE_DEPTH}, "
        "from a memory-mapped file made in pieces.",
    )  # fmt: skip


def make_piece(number, n_rows, n_classes):
    """Rows of one piece of a table; numbers of the target where there are no classes."""
    random = np.random.RandomState(number)
    X = random.rand(n_rows, N_FEATURES).astype(np.float32)
    signal_ = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    signal_ += 10 * X[:, 3] + 5 * X[:, 4] + random.randn(n_rows)
    if n_classes == 0:
        return X, signal_.astype(np.float64)
    return X, np.clip((signal_ - 5) * n_classes / 20, 0, n_classes - 1).astype(np.uint8)


@contextmanager
def _cluster(n_workers):
    import dask
    from distributed import Client, LocalCluster

    # Dask tries so long to reach a worker that is gone; 30 s unless it is told.
    seconds = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            env=seconds,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _on_dask(X, y, cuts):
    import dask.array as da

    sizes = tuple(np.diff([0, *cuts, len(X)]).tolist())
    return da.from_array(X, chunks=(sizes, -1)), da.from_array(y, chunks=(sizes,))


def _is_same(one, other):
    return all(
        np.array_equal(mine, theirs)
        for a, b in zip(one.estimators_, other.estimators_, strict=True)
        for mine, theirs in zip(a.tree_.nodes, b.tree_.nodes, strict=True)
    )


def _identity(quick):
    """Trees for every number of partitions and workers."""
    n_rows = 4_000 if quick else 20_000
    rows = []
    for n_workers in (1, 2) if quick else (1, 2, 4):
        with _cluster(n_workers) as client:
            for n_classes, share_missing in ((2, 0.0), (10, 0.05), (0, 0.05)):
                X, y = make_piece(0, n_rows, n_classes)
                random = np.random.RandomState(1)
                X[random.rand(*X.shape) < share_missing] = np.nan
                kind = RandomForestClassifier if n_classes else RandomForestRegressor
                forest = kind(4, **KEYED)
                local = forest.fit(X, y if n_classes else fixed_point(y))
                same = []
                for n_parts in (1, 2, 3, 7):
                    cuts = np.sort(random.randint(n_rows + 1, size=n_parts - 1))
                    model = fit(
                        forest, *_on_dask(X, y, cuts), client=client, size=Size(small_rows=1000)
                    )
                    same.append(_is_same(model, local))
                task = f"{n_classes} classes" if n_classes else "numbers"
                rows.append({
                    "case": f"{task}, {share_missing:.0%} missing, {n_workers} workers",
                    "what": f"{sum(same)} of {len(same)} partitionings the same",
                    "reached": "yes" if all(same) else "no",
                })  # fmt: skip
    return rows


def _cost(quick):
    """Time against the local fit."""
    from forest.partitioned.dask_engine import DaskEngine
    from forest.partitioned.fit import fit_together

    n_rows = 50_000 if quick else COST_ROWS
    X, y = make_piece(0, n_rows, 2)
    rows = []
    with _cluster(2) as client:
        handles = [client.scatter(np.array_split(array, 2)) for array in (X, y)]
        for depth in (12, None):
            forest = RandomForestClassifier(COST_TREES, max_depth=depth, n_jobs=2, **KEYED)
            seconds, local_seconds = [], []
            for _ in range(1 if quick else 3):
                engine = DaskEngine(client)
                start = time.perf_counter()
                model = fit_together(forest, engine, *handles, 2)
                seconds.append(time.perf_counter() - start)
                moved = (engine.bytes_moved or 0) / 1e6
                start = time.perf_counter()
                local = forest.fit(X, y)
                local_seconds.append(time.perf_counter() - start)
            ratio = np.median(seconds) / np.median(local_seconds)
            rows.append({
                "case": f"{n_rows:,} rows, depth {depth or 'full'}",
                "what": f"{np.median(seconds):.1f} s, local {np.median(local_seconds):.1f} s: "
                f"{ratio:.2f} times; {moved:.0f} MB moved, codes are {X.size / 1e6:.0f} MB; "
                f"{'the same' if _is_same(model, local) else 'another'} forest",
                "reached": "yes" if ratio <= COST_BAR else "no",
            })  # fmt: skip
    return rows


def _scale(quick):
    """Time and memory out of core."""
    rows = []
    for n_rows in (100_000, 500_000) if quick else SCALE_ROWS:
        with tempfile.TemporaryDirectory() as folder:
            _write_table(Path(folder), n_rows)
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                seconds, peak = pool.submit(_fit_files, folder).result()
        rows.append({
            "n_rows": n_rows, "seconds": seconds, "peak": peak, "case": f"{n_rows:,} rows",
        })  # fmt: skip
        first = rows[0]
        growth = [row / first[key] * first["n_rows"] / n_rows
                  for key, row in (("seconds", seconds), ("peak", peak))]  # fmt: skip
        rows[-1]["what"] = (
            f"{seconds:.0f} s, {peak / 2**30:.2f} GiB; {growth[0]:.2f} and {growth[1]:.2f} times "
            f"linear from {first['n_rows']:,}"
        )
        rows[-1]["reached"] = "yes" if max(growth) <= 1.2 and peak <= 6 * 2**30 else "no"
    return rows


def _write_table(folder, n_rows):
    """Write a table to files, piece by piece."""
    open_memmap = np.lib.format.open_memmap
    X = open_memmap(folder / "X.npy", "w+", np.float32, (n_rows, N_FEATURES))
    y = open_memmap(folder / "y.npy", "w+", np.uint8, (n_rows,))
    for number, first in enumerate(range(0, n_rows, PIECE)):
        n = min(PIECE, n_rows - first)
        X[first : first + n], y[first : first + n] = make_piece(number, n, 2)
    X.flush()
    y.flush()


def _fit_files(folder):
    """Seconds of a fit, and the peak of the process's memory in bytes."""
    forest = RandomForestClassifier(SCALE_TREES, max_depth=SCALE_DEPTH, n_jobs=2, **KEYED)
    size = Size(rows_at_once=PIECE)
    small = make_piece(0, 3000, 2)
    fit(forest, *small, size=Size(rows_at_once=1000, small_rows=100))  # kernels
    start = time.perf_counter()
    model = fit(forest, Path(folder) / "X.npy", Path(folder) / "y.npy", size=size)
    assert is_classifier(model)
    return time.perf_counter() - start, getrusage(RUSAGE_SELF).ru_maxrss * 1024


def _faults(quick):
    """Forests of fits during which a worker was killed, at a random moment."""
    n_kills = 3 if quick else N_KILLS
    X, y = make_piece(0, 20_000, 2)
    forest = RandomForestClassifier(10, **KEYED)
    local = forest.fit(X, y)
    random = np.random.RandomState(0)
    same = 0
    for i in range(n_kills):
        with _cluster(2) as client:  # anew: a nanny may give up a worker that was killed
            tables = _on_dask(X, y, [5_000, 10_000])
            size = Size(small_rows=500)
            if i == 0:
                fit(forest, *tables, client=client, size=size)
            start = time.perf_counter()
            fit(forest, *tables, client=client, size=size)
            seconds = time.perf_counter() - start
            victim = list(client.run(os.getpid).values())[i % 2]
            delay = random.uniform(0.0, seconds)
            killer = threading.Timer(delay, os.kill, (victim, signal.SIGKILL))
            killer.start()
            same += _is_same(fit(forest, *tables, client=client, size=size), local)
            killer.join()
    return [{
        "case": f"{n_kills} workers killed at random moments",
        "what": f"{same} of {n_kills} forests the same",
        "reached": "yes" if same == n_kills else "no",
    }]  # fmt: skip
