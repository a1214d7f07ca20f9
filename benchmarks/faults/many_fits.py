"""Hundreds of fits in one process: memory, objects, threads and open files must not grow."""

import gc
import os
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import psutil

import cart
import forest
from benchmarks.harness import display
from importance import oob_permutation, shap_values, unbiased_mdi

ROUNDS, QUICK = 300, 60
WARM = 50  # rounds until caches and memory pools are full; with --quick a fifth
ROOM = 2**20  # bytes that memory may grow between halves; a leaked fit would take more
FEW = 10  # rounds in which one object may be added, by Python's own caches
N_ROWS = 1_000


def run(args):
    """Fit, explain, save and load repeatedly; 1 if anything grows."""
    n_rounds, n_warm = (QUICK, WARM // 5) if args.quick else (ROUNDS, WARM)
    process, found = psutil.Process(), []
    with display.progress(n_rounds) as step, tempfile.TemporaryDirectory() as folder:
        for i in range(n_rounds):
            step("fits")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _work(np.random.default_rng(i), Path(folder))
            gc.collect()
            n_files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
            memory = process.memory_full_info().uss
            found.append((memory, _count_objects(), threading.active_count(), n_files))
            step()
    table = np.array(found[n_warm:], float)
    half = len(table) // 2
    before, after = np.median(table[:half], axis=0), np.median(table[half:], axis=0)
    names = ("memory, MB", "objects", "threads", "files")
    scale = np.array([1e-6, 1.0, 1.0, 1.0])
    rows = [
        [name, *(f"{number:,.1f}" for number in numbers)]
        for name, *numbers in zip(names, before * scale, after * scale, strict=True)
    ]
    title = (
        f"{n_rounds} rounds of {len(MODELS)} fits in one process, the first {n_warm} not counted"
    )
    heads = ["median of", "first half", "second half"]
    display.show(display.Table(title, heads, rows))
    return int(np.any(after - before > [ROOM, half // FEW, 0, 0]))


def _count_objects():
    """Objects tracked by Python, except the progress bar's, which remembers 30 seconds of steps."""
    return sum(not str(type(it).__module__).startswith("rich.") for it in gc.get_objects())


MODELS = (
    lambda: cart.DecisionTreeClassifier(random_state=0),
    lambda: cart.DecisionTreeRegressor(random_state=0, ccp_alpha=0.001),
    lambda: forest.RandomForestClassifier(10, n_jobs=2, oob_score=True, random_state=0),
    lambda: forest.RandomForestRegressor(10, n_jobs=2, oob_score=True, random_state=0),
    lambda: forest.ExtraTreesClassifier(10, n_jobs=2, random_state=0),
    lambda: forest.BaggingRegressor(n_estimators=5, random_state=0),
)


def _work(rng, folder):
    """Fit every model and use it."""
    X = rng.normal(size=(N_ROWS, 6)).astype(np.float32)
    numbers = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=N_ROWS)
    for make in MODELS:
        model = make()
        model.fit(X, numbers > 0.0 if hasattr(model, "predict_proba") else numbers)
        model.save(folder / "model")
        loaded = forest.load(folder / "model")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        if isinstance(model, forest.RandomForestClassifier):
            oob_permutation(model, X, numbers > 0.0, n_jobs=2)
            unbiased_mdi(model, X, numbers > 0.0)
            shap_values(model, X[:10])
