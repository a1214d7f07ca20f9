"""The tests nearest to a line: those that ran it, in a run with the JIT off."""

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parents[2]
PLAIN = "@tests/plain.txt"  # pytest's arguments: the tests that run with the JIT off
AT_MOST = 20.0  # seconds of processor time for the tests of a mutant, according to the map
FRESH = 0.01  # seconds that the shortest test takes, including its set-up


class Map(NamedTuple):
    """Lines that the tests ran, and the processor time in seconds of each test by name."""

    data: CoverageData
    times: dict[str, float]

    @classmethod
    def kept(cls, folder: Path) -> "Map":
        """The map in a folder; if there is none, it is made, which takes some minutes.

        Raises
        ------
        RuntimeError
            If a test fails on the unchanged code.
        """
        data, times = (folder / name for name in ("coverage", "times.json"))
        if not times.exists():
            _make(data, times)
        found = CoverageData(str(data))
        found.read()
        return cls(found, json.loads(times.read_text()))

    def tests_of(self, path: str, line: int) -> list[str]:
        """The tests that ran a line, nearest first, up to AT_MOST seconds.

        Parameters
        ----------
        path : str
            Of a module, relative to the checkout.
        line : int
            First line of a statement. For a statement that runs at import, the tests are those of
            the lines that use the names it binds.

        Returns
        -------
        list of str
            Names of tests: one case of every test function before the second of any, those in the
            mirror of the module's wing before other folders, quick ones before slow.
        """
        by_line = self.data.contexts_by_lineno(str(ROOT / path))
        names = _tests(by_line.get(line, ()), self.times)
        if not names:
            users = _users(ROOT / path, line) or by_line
            names = _tests([c for user in users for c in by_line.get(user, ())], self.times)
        wing = "tests/" + path.rpartition("/")[0]
        ranks: dict[str, int] = defaultdict(int)
        ranked = []
        for name in sorted(names, key=lambda name: (self.times[name], name)):
            function = name.partition("[")[0]
            is_far = not name.startswith(wing)
            ranked.append((ranks[function], is_far, self.times[name], name))
            ranks[function] += 1
        chosen, total = [], 0.0
        for _, _, seconds, name in sorted(ranked):
            if total + seconds <= AT_MOST or not chosen:
                chosen.append(name)
                total += seconds + FRESH
        return chosen


def _make(data, times):
    """Run all tests of PLAIN once, each as a coverage context."""
    environment = plain_environment() | {"COVERAGE_FILE": str(data), "CARTWOOD_TIMES": str(times)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "benchmarks.mutants.patience"]
    command += ["--cov", "--cov-context=test", "--cov-report=", PLAIN]
    data.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode:
        times.unlink(missing_ok=True)
        raise RuntimeError("A test fails on the unchanged code.")


def plain_environment():
    """Environment variables of a process with the JIT off."""
    return {"NUMBA_DISABLE_JIT": "1"}


def _tests(contexts, times):
    """Names of tests; what ran in a set-up counts for all tests of its module."""
    names = set()
    for context in contexts:
        name, _, phase = context.rpartition("|")
        if phase == "setup":
            module = name.partition("::")[0] + "::"
            names |= {other for other in times if other.startswith(module)}
        elif name in times:
            names.add(name)
    return names


def _users(path, line):
    """Lines of a module that use the names bound by the statement at `line`."""
    tree = ast.parse(path.read_text())
    made = {
        name.id
        for statement in ast.walk(tree)
        if isinstance(statement, ast.stmt) and statement.lineno == line
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in made]
