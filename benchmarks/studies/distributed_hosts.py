"""The cluster of examples/two_hosts.py, started by the commands in its docstring.

All processes are on this machine, but know each other only by address.
"""

import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "two_hosts.py"
WORDS = "the forest of the whole table: True"
PATIENCE = 300  # seconds


def measure(quick):
    """Run the commands of the example's docstring, with this machine in place of the hosts."""
    lines = re.findall(r"^    .+ \$ (.+)$", EXAMPLE.read_text(), re.MULTILINE)
    *starts, example = (line.replace("HOST1", "127.0.0.1").split() for line in lines)
    with ExitStack() as running:
        for command in starts:
            running.enter_context(_started(command))
        done = subprocess.run(
            example, env=_environment(), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
        )
    return [{
        "case": f"examples/two_hosts.py as printed: {len(starts)} processes of one machine",
        "what": done.stdout.strip() or done.stderr.strip()[-200:],
        "reached": "yes" if WORDS in done.stdout else "no",
    }]  # fmt: skip


@contextmanager
def _started(command):
    """A process that is terminated on exit."""
    process = subprocess.Popen(
        command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _environment():
    """Environment whose PATH begins with the commands of this Python."""
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {**os.environ, "PATH": os.pathsep.join(path)}
