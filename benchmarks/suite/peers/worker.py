"""The process that measures one library on one table: python worker.py, a task as JSON on stdin.

This file runs in the environments of the peers: it needs numpy and what `models.py` imports.
"""

import ctypes
import json
import pickle
import sys
from pathlib import Path
from time import perf_counter

import models
import numpy as np

N_ROWS_TO_WARM = 2_000
N_VALUES_TO_WARM = 70_000  # more than 16 bits can tell apart
N_TREES_TO_WARM = 2
AT_LEAST = 0.5  # seconds of a measurement
MOST_RUNS = 30
MOST_SINGLE_ROWS = 300
THREADS_TO_PREDICT = (1, 2)  # the better one counts
NODE_ARRAYS = (
    "children_left", "children_right", "feature", "threshold", "n_node_samples",
    "missing_go_to_left", "impurity", "value",
)  # fmt: skip


def main():
    task = json.load(sys.stdin)
    json.dump(measure(**task), sys.stdout)


def measure(library, task, params, n_jobs, data, keep_trees=0, only_fits=False):
    """Fit a model, predict, and measure both.

    Parameters
    ----------
    library, task, params, n_jobs : see `models.create`
    data : str
        Folder of X.npy, y.npy, X_test.npy and y_test.npy.
    keep_trees : int
        Write this many trees to the folder as LIBRARY.npz, for comparison.
    only_fits : bool
        Whether to leave out predictions, score and sizes of the fitted model.

    Returns
    -------
    dict
        Seconds, peak memory, score and sizes; or `unsupported`, the reason.
    """
    X, y, X_test, y_test = (
        np.load(Path(data) / f"{name}.npy") for name in ("X", "y", "X_test", "y_test")
    )

    def create(**changed):
        return models.create(library, task, {**params, **changed}, X.shape, n_jobs)

    try:
        model = create()
    except models.Unsupported as reason:
        return {"unsupported": str(reason)}
    _warm(library, create(n_estimators=N_TREES_TO_WARM), task, X, y)
    # Return memory freed by the warm-up to the system; fits that reuse it would seem to need none.
    ctypes.CDLL(None).malloc_trim(0)
    # Reset the peak memory: it is inherited from the parent if that was higher.
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    start = perf_counter()
    model.fit(X, y)
    seconds = [perf_counter() - start]
    peak = _memory("VmHWM")
    while sum(seconds) < AT_LEAST and len(seconds) < MOST_RUNS:
        seconds.append(_time(model.fit, X, y))
    found = {
        "version": models.version_of(library),
        "fit": float(np.median(seconds)),
        "memory": max(0, peak - before),
    }
    if not only_fits:
        found |= _examine(model, task, X_test, y_test)
    if keep_trees:
        _keep(_trees_of(model)[:keep_trees], Path(data) / f"{library}.npz")
    return found


def _examine(model, task, X, y):
    """Predict held-out rows: time and score, and the size of the model."""
    found = {
        "predict": _at_best(model, lambda: _median_time(model.predict, X)),
        "score": _score(task, np.ravel(model.predict(X)), y),
        "nodes": _count_nodes(model),
        "pickle": _pickled_size(model),
        "node_bytes": _node_bytes(model),
    }
    if task == "classification" and hasattr(model, "predict_proba"):
        found["one_row"] = _at_best(model, lambda: _median_time_of_a_row(model, X))
    return found


def _warm(library, model, task, X, y):
    """Do everything that is compiled or started only once, so that no measurement includes it."""
    many = np.random.RandomState(0).permutation(len(X))[:N_VALUES_TO_WARM]
    rows = many[:N_ROWS_TO_WARM]
    if task == "classification":  # at least one row of every class
        rows = np.union1d(rows, np.unique(y, return_index=True)[1])
    if library == "cartwood":  # many distinct values may need other kernels
        model.fit(X[many, :1], y[many])
    model.fit(X[rows], y[rows]).predict(X[rows])
    if hasattr(model, "predict_proba"):
        model.predict_proba(X[:1])


def _time(work, *args):
    start = perf_counter()
    work(*args)
    return perf_counter() - start


def _median_time(work, *args):
    seconds = [_time(work, *args) for _ in range(3)]
    while sum(seconds) < AT_LEAST and len(seconds) < MOST_RUNS:
        seconds.append(_time(work, *args))
    return float(np.median(seconds))


def _median_time_of_a_row(model, X):
    seconds = []
    while sum(seconds) < AT_LEAST and len(seconds) < MOST_SINGLE_ROWS:
        seconds.append(_time(model.predict_proba, X[len(seconds) % len(X)][np.newaxis]))
    return float(np.median(seconds))


def _at_best(model, measure):
    """The smallest result of `measure` over numbers of threads, if the model has several."""
    if "n_jobs" not in getattr(model, "get_params", dict)():
        return measure()
    n_jobs, found = model.n_jobs, []
    for n in THREADS_TO_PREDICT:
        model.n_jobs = n
        found.append(measure())
    model.n_jobs = n_jobs
    return min(found)


def _memory(name):
    """Memory of the process in bytes: current (VmRSS) or peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return 1024 * int(kilobytes)


def _score(task, predicted, y):
    if task == "classification":
        return float(np.mean(predicted == y))
    return float(1.0 - np.mean((y - predicted) ** 2) / np.var(y))


def _trees_of(model):
    """Trees with scikit-learn's node arrays, if the model has them."""
    estimators = getattr(model, "estimators_", None)
    estimators = [model] if estimators is None else list(estimators)
    return [each.tree_ for each in estimators if hasattr(each, "tree_")]


def _count_nodes(model):
    try:
        return int(sum(tree.node_count for tree in _trees_of(model))) or None
    except Exception:  # a peer that only looks like scikit-learn
        return None


def _node_bytes(model):
    """Bytes that the trees of a fitted model hold."""
    try:
        return sum(
            tree.nbytes
            if hasattr(tree, "nbytes")
            else sum(array.nbytes for array in tree.__getstate__().values() if np.ndim(array))
            for tree in _trees_of(model)
        )
    except Exception:  # a peer that only looks like scikit-learn
        return None


def _pickled_size(model):
    try:
        return len(pickle.dumps(model))
    except Exception:  # not every peer can be pickled
        return None


def _keep(trees, path):
    arrays = {
        f"{name}_{t}": np.asarray(getattr(tree, name))
        for t, tree in enumerate(trees)
        for name in NODE_ARRAYS
    }
    np.savez(path, n_trees=len(trees), **arrays)


if __name__ == "__main__":
    main()
