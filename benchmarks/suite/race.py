"""The race benchmark: this checkout against another one, on the suite's cases and at startup.

Every measurement is a separate process. In each round the other checkout, the other checkout again,
and this one take turns: the difference of the other checkout from itself is noise.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness import display
from benchmarks.harness.errors import DataError
from benchmarks.harness.results import ROOT
from benchmarks.micro import startup
from benchmarks.suite.cases import CASES, QUICK
from benchmarks.suite.peers import environment
from benchmarks.suite.run import OURS, write_table

ROUNDS = 3
ALLOWED = 0.03  # relative increase beyond the noise
WHAT = ("fit", "predict", "memory")


def run(args):
    """Race all cases whose name contains the text of --only, then startup."""
    other = Path(args.against).resolve()
    if not (other / "cart").is_dir():
        raise DataError(f"{other} is not a checkout of Cartwood.")
    sides = {"old": other, "old again": other, "new": ROOT}
    chosen = [case for case in (QUICK if args.quick else CASES) if args.only in case.name]
    rounds = 1 if args.quick else ROUNDS
    rows = []
    with display.progress(len(chosen)) as step:
        for case in chosen:
            step(case.name)
            try:
                rows += _race(case, sides, rounds)
            except DataError as error:
                display.say(f"{case.name} is left out: {error}")
            step()
    if args.only in "start":
        rows += _race_start(sides, 1 if args.quick else ROUNDS)
    display.show(table(rows))
    return 1 if any(_is_slower(row) for row in rows) else 0


def table(rows):
    """Medians of every side, and the ratios that decide."""
    return display.Table(
        "New against old",
        ["case", "old", "old again", "new", "noise", "new / old", "slower"],
        [
            [
                row["what"],
                *(display.significant(row[side]) for side in ("old", "old again", "new")),
                f"{_noise(row):.1%}",
                f"{row['new'] / _old(row):.3f}",
                "YES" if _is_slower(row) else "no",
            ]
            for row in rows
        ],
        "Medians over separate processes, with alternating sides; seconds, and bytes of memory. "
        f"Noise: the old commit against itself. Slower: by more than {ALLOWED:.0%} beyond the "
        "noise.",
    )


def _old(row):
    return min(row["old"], row["old again"])


def _noise(row):
    return max(row["old"], row["old again"]) / _old(row) - 1.0


def _is_slower(row):
    return row["new"] / max(row["old"], row["old again"]) - 1.0 > ALLOWED


def _race(case, sides, rounds):
    found = {side: [] for side in sides}
    with TemporaryDirectory() as folder:
        write_table(case, Path(folder))
        task = {
            "library": OURS, "task": case.task, "params": case.params, "n_jobs": case.jobs[-1],
            "data": folder,
        }  # fmt: skip
        for _ in range(rounds):
            for side, checkout in sides.items():
                found[side].append(_measure(task, checkout))
    return [
        {
            "what": f"{case.name}: {what}",
            **{side: float(np.median([each[what] for each in found[side]])) for side in sides},
        }
        for what in WHAT
    ]


def _measure(task, checkout):
    worker = Path(environment.HERE) / "worker.py"
    done = subprocess.run(
        [sys.executable, str(worker)], input=json.dumps(task), capture_output=True, text=True,
        cwd=checkout, env=environment.variables(checkout), check=False,
    )  # fmt: skip
    if done.returncode:
        raise DataError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


def _race_start(sides, rounds):
    """Seconds of the first fit with nothing compiled, and of a process with everything compiled."""
    rows = []
    for kind in startup.KINDS:
        cold, warm = ({side: [] for side in sides} for _ in range(2))
        for _ in range(rounds):
            for side, checkout in sides.items():
                cold[side].append(startup.compilation(kind, checkout))
                startup.launch_fit(kind, checkout)  # fills the caches
                warm[side].append(startup.launch_fit(kind, checkout))
        for what, times in (("nothing compiled, first fit", cold), ("process start to fit", warm)):
            medians = {side: float(np.median(times[side])) for side in sides}
            rows.append({"what": f"RandomForest{kind}: {what}", **medians})
    return rows
