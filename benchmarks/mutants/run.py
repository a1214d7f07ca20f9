"""Draw mutants by a given seed, and report which of them the nearest tests kill.

A mutant is a copy of the code with one small change. The tests that ran the changed line are run
first with the JIT off, where they take seconds; for a survivor then with the JIT on, compiled anew.
Results are saved as lines of JSON, from which an interrupted run continues.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import numpy as np

from benchmarks.harness import display
from benchmarks.harness.errors import DataError
from benchmarks.mutants.mutation import Mutation, mutations
from benchmarks.mutants.named import named_mutations
from benchmarks.mutants.nearest import ROOT, Map, plain_environment
from benchmarks.mutants.patience import ENDLESS

LIMIT = 120  # seconds of processor time per mutant
BYTES = 8 * 2**30  # of address space
COPIED = ("benchmarks", "cart", "cartwood", "forest", "importance", "tests", "pyproject.toml")
GOAL = 0.9
# Parts to draw from equally often: files, or folders with everything in them.
PARTS = {
    "criteria": (
        "cart/splitting/class_criteria.py",
        "cart/splitting/mean_criteria.py",
        "cart/splitting/median_criterion.py",
        "cart/splitting/twoing.py",
        "cart/splitting/criterion.py",
    ),
    "splitting": (
        "cart/splitting/splitter.py",
        "cart/splitting/feature_draw.py",
        "cart/splitting/all_subsets.py",
        "cart/splitting/category_subsets.py",
        "cart/splitting/known_rows.py",
        "cart/splitting/agreement.py",
    ),
    "fast paths": ("cart/fast_paths",),
    "bootstrap": ("forest/sampling",),
    "out of bag": ("forest/voting/out_of_bag.py", "forest/voting/rules.py"),
    "importances": (
        "importance/impurity",
        "importance/permutation",
        "importance/conditional",
        "importance/drop_column",
        "importance/shap",
    ),
}
PLAIN = "survives, JIT off"  # not yet tried with the JIT on
KILLED = ("killed, JIT off", "endless, JIT off", "killed, JIT on")


class Mutant(NamedTuple):
    """A mutation of a file."""

    part: str
    path: str
    mutation: Mutation

    @property
    def key(self):
        """A text that identifies the mutant."""
        change = self.mutation
        return f"{self.path}:{change.line}:{change.start} {change.kind}: {change.words}"


def run(args):
    """Try mutants until all are tried or the time is up; 1 if too few of them are killed."""
    stop = monotonic() + args.seconds
    folder = args.folder.resolve()
    the_map = Map.kept(folder)
    if args.named:
        mutants = [Mutant("by name", file, change) for _, file, change in named_mutations(ROOT)]
    else:
        mutants = draw(args.seed, args.n)
    path = folder / ("named.jsonl" if args.named else f"seed-{args.seed}.jsonl")
    known = _read(path)
    with display.progress(len(mutants)) as step, path.open("a") as results:
        for mutant in mutants:
            before = known.get(mutant.key, {})
            is_open = not before or (before["end"] == PLAIN and not args.quick)
            if is_open and monotonic() < stop:
                step(mutant.key[:60])
                known[mutant.key] = judge(mutant, the_map, folder, before, args.quick)
                line = {"mutant": mutant.key, "part": mutant.part, **known[mutant.key]}
                results.write(json.dumps(line) + "\n")
                results.flush()
            step()
    tried = [(m, known[m.key]) for m in mutants if m.key in known]
    _show(tried, len(mutants))
    n_killed = sum(found["end"] in KILLED for _, found in tried)
    return int(n_killed < GOAL * len(tried))


def draw(seed: int, n: int) -> list[Mutant]:
    """Draw mutants, equally many from each part; a larger n extends the draw of a smaller one.

    Parameters
    ----------
    seed, n : int

    Returns
    -------
    list of Mutant
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for part in PARTS:
        all_of_it = _mutants_of(part)
        drawn.append([all_of_it[i] for i in rng.permutation(len(all_of_it))[: -(-n // len(PARTS))]])
    return [mutant for row in zip(*drawn, strict=True) for mutant in row][:n]


@cache
def _mutants_of(part):
    return [
        Mutant(part, path.relative_to(ROOT).as_posix(), mutation)
        for place in PARTS[part]
        for path in _sources(ROOT / place)
        for mutation in mutations(path.read_text())
    ]


def _sources(place):
    found = [place] if place.suffix else sorted(place.rglob("*.py"))
    return [path for path in found if path.stem != "plots"]  # plots: tests do not see their looks


def judge(mutant: Mutant, the_map: Map, folder: Path, before: dict, is_quick: bool) -> dict:
    """Run the nearest tests on a mutant.

    Parameters
    ----------
    mutant : Mutant
    the_map : Map
    folder : Path
        Where the kernels of mutants are cached, so that unchanged ones are compiled once.
    before : dict
        The earlier result if it survived with the JIT off; otherwise empty.
    is_quick : bool
        Whether to try it only with the JIT off.

    Returns
    -------
    dict
        "end": one of KILLED; "survives"; "survives, out of time"; PLAIN, if only tried with the JIT
        off; or "no test runs it". "by": the test that failed. "tests": how many were chosen.
        "seconds": of processor time.
    """
    tests = the_map.tests_of(mutant.path, mutant.mutation.line)
    if not tests:
        return {"end": "no test runs it", "by": "", "tests": 0, "seconds": 0.0}
    spent = before.get("seconds", 0.0) - _children_time()
    with tempfile.TemporaryDirectory() as place:
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(place) / name)
        changed = Path(place) / mutant.path
        changed.write_text(mutant.mutation.apply(changed.read_text()))
        end, by = PLAIN, ""
        if not before:
            plain = plain_environment() | {"CARTWOOD_TIMES": str(folder / "times.json")}
            status, by = _ask(place, tests, plain, LIMIT)
            if status:
                end = "endless, JIT off" if status == ENDLESS else "killed, JIT off"
        if end == PLAIN and not is_quick:
            compiled = {"NUMBA_CACHE_DIR": str(folder / "kernels")}
            modules = _modules(tests, mutant.path)  # including tests too slow for plain Python
            status, by = _ask(place, modules, compiled, LIMIT - spent - _children_time())
            end = "killed, JIT on" if status else "survives"
            end = "survives, out of time" if status is None else end
    seconds = round(spent + _children_time(), 1)
    return {"end": end, "by": by, "tests": len(tests), "seconds": seconds}


def _modules(tests, path):
    """The modules of the nearest tests: those in the mirror of the file's wing, or else all."""
    modules = dict.fromkeys(test.partition("::")[0] for test in tests)
    wing = "tests/" + path.rpartition("/")[0]
    return [name for name in modules if name.startswith(wing)] or list(modules)


def _children_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ask(place, tests, variables, seconds):
    """Run tests on a copy; return pytest's status (None: out of time) and the test that failed."""
    names = Path(place) / "nearest.txt"
    names.write_text("\n".join(tests))
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no"]
    command += ["-p", "no:cacheprovider", "-p", "benchmarks.mutants.patience", f"@{names}"]

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    environment = os.environ | {"PYTHONPATH": place} | variables
    said = Path(place) / "said.txt"
    with said.open("w") as file:  # not a pipe, which child processes would keep open
        process = subprocess.Popen(
            command, cwd=place, env=environment, preexec_fn=limit, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=file, stderr=file,
        )  # fmt: skip
        status = process.wait()
    with suppress(ProcessLookupError):  # child processes that it has left behind
        os.killpg(process.pid, signal.SIGKILL)
    lines = said.read_text(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR tests"))]
    if status in (3, 4, 5) and not failed:  # errors of pytest itself, and missing tests
        raise RuntimeError("\n".join(lines[-20:]))
    if status in (-signal.SIGXCPU, -signal.SIGKILL) and not failed:
        return None, ""
    return status, failed[0].split(" - ")[0] if failed else f"status {status}" if status else ""


def _read(path):
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        line["mutant"]: {k: line[k] for k in ("end", "by", "tests", "seconds")} for line in lines
    }


def _show(tried, n):
    if not tried:
        raise DataError("No mutant was tried within the time limit; raise it with --seconds.")
    parts = {mutant.part: [] for mutant, _ in tried}
    for mutant, found in tried:
        parts[mutant.part].append(found["end"])
    heads = ["part", "tried", *KILLED, "survive"]
    rows = []
    for part, ends in [*parts.items(), ("all", [found["end"] for _, found in tried])]:
        counts = [ends.count(end) for end in KILLED]
        rows.append([part, *map(str, (len(ends), *counts, len(ends) - sum(counts)))])
    display.show(display.Table(f"{len(tried)} of {n} mutants", heads, rows))
    for mutant, found in tried:
        if found["end"] not in KILLED:
            display.say(f"{found['end']} ({found['tests']} tests): {mutant.key}")
