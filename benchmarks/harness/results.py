"""Results as JSON files, together with the environment they were measured in."""

import json
import os
import platform
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from itertools import repeat
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np

from benchmarks.harness import display

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"

_FOUND = "commit", "trees"  # texts of rows that are results
ONE_LINE = 600  # characters up to which JSON is written on one line


def environment():
    """The environment of a measurement: versions, cores, CPU model and target, commit, date.

    Returns
    -------
    dict of str
    """
    names = ("cartwood", "scikit-learn", "numpy", "numba")
    return {
        **{name: found for name in names if (found := _version(name))},
        "python": platform.python_version(),
        "cpu": f"{_cpu_model()} ({_target()})",
        "cores": str(_n_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "commit": _commit(),
        "date": date.today().isoformat(),
    }


def write_json(path, content):
    """Write content, including NumPy values, as JSON; NaN becomes null.

    Content that is short, or holds no list or dict, is written on one line, so that a row takes one
    line or a few.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_lines(_plain(content)) + "\n")


def save(name, content, only=""):
    """Save the results of a benchmark.

    Parameters
    ----------
    name : str
    content : dict
        Its lists of rows, each a dict, are marked with the current commit.
    only : str
        Not empty if only some rows were measured again; then the others keep their results. Rows
        are matched by those of their values that are text, except what was found about trees.

    Returns
    -------
    pathlib.Path
    """
    path, measured = RESULTS / f"{name}.json", environment()
    content = {key: _of_commit(rows, measured["commit"]) for key, rows in content.items()}
    if only:
        content = {**content, **_merged(load(name) or {}, content)}
    write_json(path, {**content, "environment": measured})
    return path


def keep(args, name, content):
    """Save the results of a command and say where, except with --quick."""
    if not args.quick:
        display.say(f"wrote {save(name, content, args.only)}")


def load(name):
    """The results that were saved last, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _of_commit(rows, commit):
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return rows
    return [{"commit": commit, **row} for row in rows]


def _merged(before, content):
    """The lists of rows in `content`, plus the rows of `before` that were not measured again."""
    merged = {}
    for key, rows in content.items():
        if isinstance(rows, list):
            again = {_name_of(row): row for row in rows}
            kept = before.get(key, [])
            known = {_name_of(row) for row in kept}
            merged[key] = [again.get(_name_of(row), row) for row in kept]
            merged[key] += [row for name, row in again.items() if name not in known]
    return merged


def _name_of(row):
    texts = {k: v for k, v in row.items() if k not in _FOUND and isinstance(v, str)}
    return tuple(sorted(texts.items())) or next(v for k, v in row.items() if k != "commit")


def _lines(content, indent=""):
    line = json.dumps(content, allow_nan=False)
    parts = content.values() if isinstance(content, dict) else content
    if len(line) <= ONE_LINE or not any(isinstance(part, dict | list) for part in parts):
        return line
    opening, closing = "{}" if isinstance(content, dict) else "[]"
    inner = indent + " "
    names = [f"{json.dumps(k)}: " for k in content] if isinstance(content, dict) else repeat("")
    lines = [f"{inner}{name}{_lines(p, inner)}" for name, p in zip(names, parts, strict=False)]
    return opening + "\n" + ",\n".join(lines) + f"\n{indent}{closing}"


def _plain(content):
    if isinstance(content, dict):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, np.ndarray | np.generic):
        return _plain(content.tolist())
    return None if isinstance(content, float) and not np.isfinite(content) else content


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _n_cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _cpu_model():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _target():
    """The CPU that kernels are compiled for; CPUs of one model name may differ in vectors."""
    return numba.config.CPU_NAME or llvm.get_host_cpu_name()


def _commit():
    try:
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=10"],
            cwd=ROOT, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return git.stdout.strip()
