"""One forest of a table in partitions, compared with the local forest and with peers.

Measures whether it is the same forest, its cost, how its time and memory grow, and what is left of
it when workers are killed.
"""

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

from benchmarks.harness import datasets, display, results
from benchmarks.identity.agreement import have_same_nodes
from benchmarks.studies import distributed_hosts, distributed_peers
from benchmarks.studies.distributed_tables import N_FEATURES, make_piece, on_dask, start_cluster
from forest import RandomForestClassifier, RandomForestRegressor
from forest.partitioned.dask import fit, fit_partitions, fixed_point
from forest.partitioned.growth import Size

KEYED = {"max_bins": 255, "feature_draw": "keyed", "random_state": 0}
PIECE = 1 << 18  # rows that are made, or read, at once
COST_ROWS, COST_TREES, COST_BAR = 1_000_000, 20, 2.5
SCALE_ROWS = (1_000_000, 5_000_000, 50_000_000)
SCALE_TREES, SCALE_DEPTH = 10, 12
N_KILLS = 20
PHASES = (
    *("examine", "look_of", "sorted_of", "count_up_to", "next_above", "_code", "_encode"),
    *("itself", "_all_of"),
    *("_begin", "count_roots", "count", "reduce", "divide", "list_rows", "grow_below_held"),
    "judge",
)
PARTS = ("identity", "scores", "cost", "scale", "parquet", "faults", "hosts", "peers")
ELSEWHERE = {"hosts": distributed_hosts.measure, "peers": distributed_peers.measure}


def run(args):
    """Measure the parts that are asked for."""
    content = {}
    for part in PARTS:
        if args.only in part:
            found = (ELSEWHERE.get(part) or globals()[f"_{part}"])(args.quick)
            if found:
                content[part] = found
                display.show(table({part: found}))
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
        f"The function of friedman1, {N_FEATURES} columns of float32. Identity: all node arrays "
        f"are equal bit for bit. Cost: {COST_TREES} trees, 2 workers of one thread against 2 "
        f"threads of one process; the bar is {COST_BAR} times the time. Scale: {SCALE_TREES} trees "
        f"of depth {SCALE_DEPTH}, from a memory-mapped or Parquet file that was made in pieces.",
    )  # fmt: skip


def _identity(quick):
    """Whether trees are the local ones, for several numbers of partitions and workers."""
    n_rows = 4_000 if quick else 20_000
    rows = []
    for n_workers in (1, 2) if quick else (1, 2, 4):
        with start_cluster(n_workers) as client:
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
                        forest, *on_dask(X, y, cuts), client=client, size=Size(small_rows=1000)
                    )
                    same.append(have_same_nodes(model, local))
                task = f"{n_classes} classes" if n_classes else "numbers"
                rows.append({
                    "case": f"{task}, {share_missing:.0%} missing, {n_workers} workers",
                    "what": f"{sum(same)} of {len(same)} partitionings the same",
                    "reached": "yes" if all(same) else "no",
                })  # fmt: skip
    return rows


def _scores(quick):
    """Scores with eight partitions: one forest, the local one, and trees of one partition each."""
    rows = []
    with start_cluster(2) as client:
        for name in ("100,000 x 20", "california"):
            if name == "california":
                data = datasets.load(name)
                X, y = np.asarray(data.X, np.float32), fixed_point(data.y)
            else:
                X, y = make_piece(0, 125_000, 2)
            order = np.random.RandomState(0).permutation(len(X))[: 20_000 if quick else None]
            X, y = X[order], y[order]
            n = len(X) * 4 // 5
            kind = RandomForestRegressor if name == "california" else RandomForestClassifier
            forest = kind(40, n_jobs=2, **KEYED)
            tables = on_dask(X[:n], y[:n], np.linspace(0, n, 9).astype(int)[1:-1])
            models = [
                fit(forest, *tables, client=client), forest.fit(X[:n], y[:n]),
                fit_partitions(kind(40, random_state=0), *tables),
            ]  # fmt: skip
            scores = [model.score(X[n:], y[n:]) for model in models]
            rows.append({
                "case": f"{name}, 8 partitions",
                "what": f"{scores[0]:.4f} of held-out rows, local {scores[1]:.4f}; trees of one "
                f"partition each {scores[2]:.4f}",
                "reached": "yes" if scores[0] == scores[1] else "no",
            })  # fmt: skip
    return rows


def _cost(quick):
    """Time compared with the local fit, and bytes that workers send."""
    from forest.partitioned.dask_engine import DaskEngine
    from forest.partitioned.fit import fit_together

    n_rows = 50_000 if quick else COST_ROWS
    X, y = make_piece(0, n_rows, 2)
    rows = []
    with start_cluster(2) as client:
        addresses = list(client.nthreads())  # keep the partitions of X and y together
        handles = [
            [client.scatter(part, workers=[at]) for part, at in zip(parts, addresses, strict=True)]
            for parts in (np.array_split(X, 2), np.array_split(y, 2))
        ]
        for depth in (12, None):
            forest = RandomForestClassifier(COST_TREES, max_depth=depth, n_jobs=2, **KEYED)
            seconds, local_seconds = [], []
            for _ in range(1 if quick else 3):
                engine = DaskEngine(client)
                _moved(client)
                start = time.perf_counter()
                model = fit_together(forest, engine, *handles, 2)
                seconds.append(time.perf_counter() - start)
                moved = _moved(client)
                start = time.perf_counter()
                local = forest.fit(X, y)
                local_seconds.append(time.perf_counter() - start)
            ratio = np.median(seconds) / np.median(local_seconds)
            case = f"{n_rows:,} rows, depth {depth or 'full'}"
            rows.append({
                "case": case,
                "what": f"{np.median(seconds):.1f} s, local {np.median(local_seconds):.1f} s: "
                f"{ratio:.2f} times; "
                f"{'the same' if have_same_nodes(model, local) else 'another'} forest",
                "reached": "yes" if ratio <= COST_BAR else "no",
            })  # fmt: skip
            rows.append({"case": f"{case}: bytes", **_judge_bytes(moved, X.size / 2 + len(y))})
    return rows


# What workers send, by the functions that return it.
_KINDS = {
    "codes and classes": ("all_of", "code", "encode"),
    "rows of small nodes": ("list_rows", "gather"),
    "sums of histograms and quantiles": (
        *("count", "count_roots", "reduce", "few_values", "count_up_to", "next_above"),
    ),
    "looks and trees": ("look_of", "grow_below", "grow_below_held"),
}


def _moved(client):
    """Bytes by kind that workers sent since the last call: of each the most that one sent."""
    kind_of = {task: kind for kind, tasks in _KINDS.items() for task in tasks}
    most: dict = {}
    for of_worker in client.run(_sent_by_task).values():
        mine: dict = {}
        for task, n_bytes in of_worker.items():
            kind = kind_of.get(task, "else")
            mine[kind] = mine.get(kind, 0) + n_bytes
        most = {kind: max(most.get(kind, 0), mine.get(kind, 0)) for kind in {**most, **mine}}
    return most


def _judge_bytes(moved, own):
    """Whether a worker sent its codes and classes only once, besides sums and rows of small nodes.

    A quarter more is allowed, because Dask lets an idle worker make classes for another, from its
    y.
    """
    words = ", ".join(f"{kind} {moved.get(kind, 0) / 1e6:.1f}" for kind in (*_KINDS, "else"))
    is_once = moved.get("codes and classes", 0) + moved.get("else", 0) <= 1.25 * own
    return {
        "what": f"MB sent by a worker: {words}; its own codes and classes are {own / 1e6:.1f}",
        "reached": "yes" if is_once else "no",
    }


def _sent_by_task(dask_worker):
    """Bytes by the function whose result was sent, without its first underscore; clears the log."""
    from dask.utils import key_split

    sent: dict = {}
    for message in dask_worker.transfer_outgoing_log:
        for key, n_bytes in message["keys"].items():
            name = key_split(key)
            sent[name] = sent.get(name, 0) + n_bytes
    dask_worker.transfer_outgoing_log.clear()
    return sent


def _scale(quick):
    """Time and memory out of core, from a memory-mapped file."""
    return _rows_of_scale(quick, _write_arrays)


def _parquet(quick):
    """Time and memory out of core, from a Parquet file."""
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        display.say('Parquet is left out: pip install "cartwood[parquet]"')
        return []
    return _rows_of_scale(quick, _write_parquet)


def _rows_of_scale(quick, write_table):
    rows = []
    for n_rows in (100_000, 500_000) if quick else SCALE_ROWS:
        with tempfile.TemporaryDirectory() as folder:
            write_table(Path(folder), n_rows)
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                cost = pool.submit(_fit_files, folder).result()
        rows.append({"n_rows": n_rows, "case": f"{n_rows:,} rows", **cost})
        first = rows[0]
        growth = {key: cost[key] / first[key] * first["n_rows"] / n_rows for key in cost}
        rows[-1]["what"] = (
            f"{cost['seconds']:.0f} s ({cost['processor']:.0f} s of processor time), "
            f"{cost['peak'] / 2**30:.2f} GiB; {growth['seconds']:.2f} ({growth['processor']:.2f}) "
            f"and {growth['peak']:.2f} times linear from {first['n_rows']:,}"
        )
        is_reached = max(growth.values()) <= 1.2 and cost["peak"] <= 6 * 2**30
        rows[-1]["reached"] = "yes" if is_reached else "no"
    return rows


def _pieces(n_rows):
    """Yield a table piece by piece: the first row of each piece, and the piece."""
    for number, first in enumerate(range(0, n_rows, PIECE)):
        yield first, *make_piece(number, min(PIECE, n_rows - first), 2)


def _write_arrays(folder, n_rows):
    """Write a table to files of `numpy.save`."""
    open_memmap = np.lib.format.open_memmap
    X = open_memmap(folder / "X.npy", "w+", np.float32, (n_rows, N_FEATURES))
    y = open_memmap(folder / "y.npy", "w+", np.uint8, (n_rows,))
    for first, X_piece, y_piece in _pieces(n_rows):
        rows = slice(first, first + len(y_piece))
        X[rows], y[rows] = X_piece, y_piece
    X.flush()
    y.flush()


def _write_parquet(folder, n_rows):
    """Write a table to a Parquet file, with one row group per piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{j}" for j in range(N_FEATURES)), "label"]
    schema = pa.schema([*((name, pa.float32()) for name in names[:-1]), ("label", pa.uint8())])
    with pq.ParquetWriter(folder / "table.parquet", schema) as writer:
        for _, X, y in _pieces(n_rows):
            columns = [np.ascontiguousarray(column) for column in (*X.T, y)]
            writer.write_table(pa.table(columns, schema=schema))


def _fit_files(folder):
    """Wall-clock and processor seconds of a fit, and the peak memory of the process in bytes."""
    forest = RandomForestClassifier(SCALE_TREES, max_depth=SCALE_DEPTH, n_jobs=2, **KEYED)
    size = Size(rows_at_once=PIECE)
    small = make_piece(0, 3000, 2)
    fit(forest, *small, size=Size(rows_at_once=1000, small_rows=100))  # compiles the kernels
    folder = Path(folder)
    is_parquet = (folder / "table.parquet").exists()
    start = time.perf_counter(), time.process_time()
    if is_parquet:
        model = fit(forest, folder / "table.parquet", "label", size=size)
    else:
        model = fit(forest, folder / "X.npy", folder / "y.npy", size=size)
    assert is_classifier(model)
    return {
        "seconds": time.perf_counter() - start[0],
        "processor": time.process_time() - start[1],  # of all threads
        "peak": getrusage(RUSAGE_SELF).ru_maxrss * 1024,
    }


def _faults(quick):
    """Kill workers during fits, at random moments and in each phase; compare the forests."""
    n_kills = 3 if quick else N_KILLS
    X, y = make_piece(0, 20_000, 2)
    forest = RandomForestClassifier(10, oob_score=True, **KEYED)
    local = forest.fit(X, y)
    random = np.random.RandomState(0)
    size = Size(small_rows=500)
    seconds, same, n_killed, n_late = 0.0, 0, 0, 0
    while n_killed < n_kills:
        with start_cluster(2) as client:  # a new one: a nanny may give up on a killed worker
            tables = on_dask(X, y, [5_000, 10_000])
            if seconds == 0.0:
                fit(forest, *tables, client=client, size=size)
                start = time.perf_counter()
                fit(forest, *tables, client=client, size=size)
                seconds = time.perf_counter() - start
            victim = list(client.run(os.getpid).values())[n_killed % 2]
            killer = threading.Timer(
                random.uniform(0.0, seconds), os.kill, (victim, signal.SIGKILL)
            )
            killer.start()
            model = fit(forest, *tables, client=client, size=size)
            if killer.is_alive():  # the fit ended first
                n_late += 1
            else:
                n_killed += 1
                same += have_same_nodes(model, local)
            killer.join()
    late = f" ({n_late} more came after the end)" if n_late else ""
    rows = [_kills(f"{n_kills} workers killed at random moments{late}", n_kills, same)]
    phases = PHASES[:3] if quick else PHASES
    same = 0
    for phase in phases:
        with start_cluster(2) as client:
            tables = on_dask(X, y, [5_000, 10_000])
            with _killing_at(phase, client) as killed:
                model = fit(forest, *tables, client=client, size=size)
            assert killed, phase
            is_score = abs(model.oob_score_ - local.oob_score_) < 1e-12  # sums differ in order
            same += have_same_nodes(model, local) and is_score
    rows.append(_kills(f"a worker killed in each phase ({', '.join(phases)})", len(phases), same))
    return rows


def _kills(case, n_kills, same):
    return {
        "case": case,
        "what": f"{same} of {n_kills} forests the same",
        "reached": "yes" if same == n_kills else "no",
    }


@contextmanager
def _killing_at(phase, client):
    """Kill a worker at the first task of a phase; yields a list that then holds the phase."""
    from forest.partitioned.dask_engine import DaskEngine

    submit, killed = DaskEngine._submit, []

    def submit_and_kill(self, function, *arguments, **where):
        task = submit(self, function, *arguments, **where)
        if function.__name__ == phase and not killed:
            killed.append(phase)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return task

    DaskEngine._submit = submit_and_kill
    try:
        yield killed
    finally:
        DaskEngine._submit = submit
