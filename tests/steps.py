"""Commands that are run one after another in an environment that has nothing, and what failed."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_KEPT = ("PATH", "LANG", "PIP_", "SCIKIT_LEARN_DATA", "CARTWOOD_")


def empty_environment(home: Path) -> dict[str, str]:
    """Variables of a user who has just come to this machine: an empty home, no caches."""
    home.mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if key.startswith(_KEPT)}
    return kept | {"HOME": str(home), "MPLBACKEND": "Agg"}


def run_steps(steps: Mapping[str, Sequence], folder: Path, env: Mapping[str, str]) -> list[str]:
    """Run commands, say how long each took and, where one failed, what it printed.

    Parameters
    ----------
    steps : dict of str to command
        What each is in words, in order.
    folder : path
        Where they are run.
    env : dict
        Variables of the environment.

    Returns
    -------
    list of str
        Those that failed.
    """
    failed = []
    for what, command in steps.items():
        start = time.perf_counter()
        done = subprocess.run(
            [*map(str, command)], cwd=folder, env=env, capture_output=True, text=True
        )
        is_good = done.returncode == 0
        seconds = time.perf_counter() - start
        print(f"{'ok' if is_good else 'FAILED':7}{seconds:7.1f} s  {what}", flush=True)
        if not is_good:
            print(done.stdout[-3000:], done.stderr[-3000:], sep="\n", flush=True)
            failed.append(what)
    return failed
