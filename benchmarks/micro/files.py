"""Saving and loading a forest: seconds by model file and by pickle, and memory of a load."""

import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
from sklearn.base import clone

import forest
from benchmarks.harness import results

LOAD_BAR, SAVE_BAR = 0.05, 0.5  # seconds
# A separate process: it loads the model and prints by how much its unshared memory, and its whole
# memory, grew. Loading a small model first brings in the libraries that read files.
PROGRAM = """
import sys
import psutil
import forest
forest.load(sys.argv[2])
process = psutil.Process()
before = process.memory_full_info()
model = forest.load(sys.argv[1])
after = process.memory_full_info()
print(after.uss - before.uss, after.rss - before.rss)
"""


def run(args):
    """Print the times for both kinds of forest."""
    n_rows, n_trees, repeats = (10_000, 10, 3) if args.quick else (100_000, 100, 7)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 10)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n_rows)
    print(", ".join(f"{name} {value}" for name, value in results.environment().items()))
    for kind, y in (("Classifier", signal > 1.0), ("Regressor", signal)):
        model = getattr(forest, f"RandomForest{kind}")(n_trees, n_jobs=-1, random_state=0)
        _report(f"{kind}, {n_trees} trees of {n_rows} rows", model.fit(X, y), X[:5], repeats)


def _report(name, model, X, repeats):
    with tempfile.TemporaryDirectory() as folder:
        path, pickled, small = (Path(folder, name) for name in ("model", "pickle", "small"))
        noise = np.random.default_rng(1).normal(size=(20_000, X.shape[1]))
        clone(model).set_params(n_estimators=2).fit(noise, noise[:, 0] > 0.0).save(small)
        save = _seconds(lambda: model.save(path), repeats)
        load = _seconds(lambda: forest.load(path), repeats)
        work = _seconds(lambda: forest.load(path), repeats, process_time)
        read = _seconds(lambda: forest.load(path, mmap=False), repeats)
        dump = _seconds(lambda: pickled.write_bytes(pickle.dumps(model, protocol=5)), repeats)
        unpickle = _seconds(lambda: pickle.loads(pickled.read_bytes()), repeats)
        size = path.stat().st_size
        program = [sys.executable, "-c", PROGRAM, str(path), str(small)]
        said = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        own, whole = map(int, said.split())
        np.testing.assert_array_equal(forest.load(path).predict(X), model.predict(X))
    print(
        f"{name}: file of {size / 1e6:.1f} MB; saved in {save:.3f} s (bar {SAVE_BAR}), loaded in "
        f"{load:.4f} s (bar {LOAD_BAR}; {work:.4f} s of processors), "
        f"without a map {read:.4f} s; pickled in {dump:.3f} s, unpickled in {unpickle:.3f} s; "
        f"memory of a load: {own / 1e6:.1f} MB of its own, "
        f"{whole / 1e6:.1f} MB with the pages of the file",
        flush=True,
    )


def _seconds(work, repeats, clock=perf_counter):
    seconds = []
    for _ in range(repeats + 1):
        start = clock()
        work()
        seconds.append(clock() - start)
    return median(seconds[1:])
