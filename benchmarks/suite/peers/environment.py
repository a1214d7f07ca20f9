"""The environment of a peer: a separate one, made once, or the reason why there is none."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.harness.results import ROOT

HERE = Path(__file__).parent
ENVIRONMENTS = ROOT / ".environments"
PATIENCE = 600  # seconds of an installation


class NotInstalled(Exception):
    """The peer cannot be measured here."""


def command(peer, may_install=True):
    """The command that starts the process that measures a peer.

    Parameters
    ----------
    peer : Peer
    may_install : bool, default=True

    Returns
    -------
    list of str

    Raises
    ------
    NotInstalled
        With the reason as its message.
    """
    if peer.language == "R":
        return [*_r(peer.name), str(HERE / "forest.R")]
    python = sys.executable if not peer.installs else str(_installed(peer.name, may_install))
    return [python, str(HERE / "worker.py")]


def variables(checkout=ROOT):
    """Environment variables of that process."""
    # Allow bytecode to be cached, as for installed packages, whatever the shell says.
    return {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": ""}


def _installed(name, may_install):
    """The interpreter of the environment that environments/NAME.txt specifies."""
    wanted = HERE / "environments" / f"{name}.txt"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()[:8]
    folder = ENVIRONMENTS / f"{name}-{digest}"
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists():
        return python
    if not may_install:
        raise NotInstalled("not installed; a run without --quick installs it")
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(python), "-m", "pip", "install", "-q", "-r", str(wanted)])
    done.touch()
    return python


def _r(name):
    rscript = shutil.which("Rscript")
    if rscript is None:
        raise NotInstalled("R is not installed")
    for package in (name, "jsonlite"):
        _run([rscript, "-e", f"library({package})"], f"R has no package {package}")
    return [rscript]


def _run(arguments, reason=None):
    try:
        subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"took longer than {PATIENCE} s to install") from error
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        last = [line for line in said.splitlines() if line.strip()]
        raise NotInstalled(reason or (last[-1][:200] if last else "pip failed")) from error
