"""Work with little address space: it must finish, or raise MemoryError and leave models intact."""

import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import psutil

import cart
import forest
from benchmarks.harness import display
from importance import oob_permutation, unbiased_mdi

ROOMS = tuple(int(2.0**power) for power in np.arange(12, 28, 0.5))  # bytes beyond those in use
TIMEOUT = 900.0
# Memory that was freed goes back at once: what a heap keeps would be room that no limit counts.
RETURNING = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}


def run(args):
    """Count how works ended; 1 if there was another error, a wrong result, or a process died."""
    step = 4 if args.quick else 1
    rows, is_wrong = [], False
    for name in WORKS:
        program = [sys.executable, "-m", "benchmarks.faults.little_memory", name, str(step)]
        try:
            done = subprocess.run(
                program, env=os.environ | RETURNING, capture_output=True, text=True, timeout=TIMEOUT
            )
            ends = Counter(done.stdout.splitlines())
            if done.returncode != 0:
                ends[f"process ended by {done.returncode}"] += 1
        except subprocess.TimeoutExpired:
            ends = Counter(["hang"])
        others = sum(ends.values()) - ends["done"] - ends["MemoryError"]
        is_wrong |= others > 0
        what = "; ".join(end for end in ends if end not in ("done", "MemoryError"))
        rows.append([name, str(ends["done"]), str(ends["MemoryError"]), str(others), what])
    heads = ["work", "done", "MemoryError", "other", "which"]
    display.show(display.Table("Work in little address space", heads, rows))
    return int(is_wrong)


# -------------------------------------------------------- works, each a function of `_Session`


class _Session:
    """A table, models fitted on it, and their predictions; all kernels are compiled."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(20_000, 10)).astype(np.float32)
        numbers = self.X[:, 0] + rng.normal(size=len(self.X))
        self.y = {"Classifier": numbers > 0.0, "Regressor": numbers}
        self.path = Path(folder) / "model"
        self.forests = {
            kind: getattr(forest, f"RandomForest{kind}")(
                10, n_jobs=2, random_state=0, oob_score=True
            )
            for kind in self.y
        }
        self.tree = cart.DecisionTreeRegressor(random_state=0)
        for kind, model in self.forests.items():
            model.fit(self.X, self.y[kind])
        self.tree.fit(self.X, numbers)
        self.forests["Classifier"].save(self.path)

    def says(self):
        """Predictions of the models for some rows."""
        models = *self.forests.values(), self.tree
        return np.concatenate([np.ravel(model.predict(self.X[:500])) for model in models])


WORKS = {
    "fit of a tree": lambda s: s.tree.fit(s.X, s.y["Regressor"]),
    "fit of a RandomForestClassifier": lambda s: s.forests["Classifier"].fit(
        s.X, s.y["Classifier"]
    ),
    "fit of a RandomForestRegressor": lambda s: s.forests["Regressor"].fit(s.X, s.y["Regressor"]),
    "predict_proba": lambda s: s.forests["Classifier"].predict_proba(s.X),
    "apply": lambda s: s.forests["Classifier"].apply(s.X),
    "predict_quantiles": lambda s: s.forests["Regressor"].predict_quantiles(s.X[:200], [0.1, 0.9]),
    "out_of_bag": lambda s: s.forests["Classifier"].out_of_bag(s.X, s.y["Classifier"]),
    "oob_permutation": lambda s: oob_permutation(
        s.forests["Classifier"], s.X, s.y["Classifier"], n_jobs=2
    ),
    "unbiased_mdi": lambda s: unbiased_mdi(
        s.forests["Classifier"], s.X, s.y["Classifier"], n_jobs=2
    ),
    "save": lambda s: s.forests["Classifier"].save(s.path),
    "load": lambda s: forest.load(s.path),
    "load without a map": lambda s: forest.load(s.path, mmap=False),
}


def try_work(session, work, expected, room):
    """How work ends with `room` more bytes of address space than are in use.

    Returns "done", "MemoryError", another error, or "broken" if the models have changed.
    """
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (psutil.Process().memory_info().vms + room, unlimited[1])
    )
    try:
        work(session)
        end = "done"
    except MemoryError:
        end = "MemoryError"
    except Exception as error:
        end = f"{type(error).__name__}: {error}"[:100].replace("\n", " ")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    return end if np.array_equal(session.says(), expected) else "broken"


def main():
    """Print how a work ends, one line for every room."""
    warnings.simplefilter("ignore")
    name, step = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        session = _Session(folder)
        expected = session.says()
        WORKS[name](session)  # compiles its kernels
        for room in ROOMS[::step]:
            print(try_work(session, WORKS[name], expected, room), flush=True)


if __name__ == "__main__":
    main()
