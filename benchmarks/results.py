"""Results as JSON files, with the environment that they were measured in."""

import json
import os
import platform
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).resolve().parent / "results"


def environment():
    """Where results were measured: versions, cores, CPU model, commit, date.

    Returns
    -------
    dict of str
    """
    names = ("cartwood", "scikit-learn", "numpy", "numba")
    return {
        **{name: found for name in names if (found := _version(name))},
        "python": platform.python_version(),
        "cpu": _cpu_model(),
        "cores": str(_n_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "commit": _commit(),
        "date": date.today().isoformat(),
    }


def write_json(path, content):
    """Write content, NumPy values included, as JSON; NaN becomes null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_plain(content), indent=1, allow_nan=False) + "\n")


def save(name, content):
    """Keep the results of a benchmark.

    Returns
    -------
    pathlib.Path
    """
    path = RESULTS / f"{name}.json"
    write_json(path, {**content, "environment": environment()})
    return path


def load(name):
    """The results that were kept last, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


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


def _commit():
    try:
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=10"],
            cwd=ROOT, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return git.stdout.strip()
