"""Kill processes that compile into an empty folder at random moments; later ones must be right."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from benchmarks.harness import display
from cart.jit.notice import TEXT

SEED = 38
N_KILLED, N_PAIRS = 50, 10
N_KERNELS = 12
TIMEOUT = 120.0  # seconds per process
KERNEL = """
@entry_kernel
def run_{i}(values):
    total = 0.0
    for j in range(values.shape[0]):
        total += values[j] * {i}
    return total
"""
PROGRAM = """
import numpy as np
from many import kernels
print("ready", flush=True)
found = [getattr(kernels, f"run_{i}")(np.arange(4.0)) for i in range(%d)]
compiled = sum(
    sum(getattr(kernels, f"run_{i}").stats.cache_misses.values()) for i in range(%d)
)
print(found == [6.0 * i for i in range(%d)], compiled)
""".replace("%d", str(N_KERNELS))


def run(args):
    """Kill writers, and start two at once; 1 if a later process is wrong, fails or hangs."""
    rng = np.random.default_rng(SEED)
    n_killed, n_pairs = (5, 2) if args.quick else (N_KILLED, N_PAIRS)
    with tempfile.TemporaryDirectory() as folder:
        _write_package(Path(folder))
        seconds = _time(folder, "timed")
        killed = [
            _kill_one(folder, f"killed_{i}", rng.uniform(0.0, seconds)) for i in range(n_killed)
        ]
        pairs = [_two_at_once(folder, f"pair_{i}") for i in range(n_pairs)]
    wrong = [sum(not right for right, _ in found) for found in (killed, pairs)]
    left = [n for _, n in killed]
    rows = [
        [f"writers killed in the {seconds:.1f} s of {N_KERNELS} kernels", str(n_killed),
         str(wrong[0]), f"{min(left)} to {max(left)}"],
        ["two processes that begin with nothing", str(n_pairs), str(wrong[1]),
         f"{min(n for _, n in pairs)} to {max(n for _, n in pairs)}"],
    ]  # fmt: skip
    heads = ["", "times", "next is wrong", "kernels it compiled"]
    display.show(display.Table("Kernels on disk", heads, rows))
    return int(any(wrong))


def _write_package(folder):
    package = folder / "many"
    package.mkdir()
    package.joinpath("__init__.py").touch()
    kernels = "".join(KERNEL.format(i=i) for i in range(N_KERNELS))
    head = "from cart.jit.decorators import entry_kernel\n"
    package.joinpath("kernels.py").write_text(head + kernels)


def _start(folder, name):
    """A process that is about to call the kernels, which are cached in a folder of that name."""
    path = os.pathsep.join([folder, os.getcwd()])
    own = {"NUMBA_CACHE_DIR": os.path.join(folder, name), "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", PROGRAM], env=os.environ | own, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _end(process):
    """Whether a process ends with right results and no complaint; how many kernels it compiled."""
    try:
        said, errors = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False, 0
    words = said.split()
    notice = TEXT.partition("{")[0]  # says that compiling takes a while
    complaints = [line for line in errors.splitlines() if not line.startswith(notice)]
    is_right = process.returncode == 0 and not complaints and words[-2:-1] == ["True"]
    return is_right, int(words[-1]) if is_right else 0


def _time(folder, name):
    """Seconds that the kernels take if none is cached."""
    with _start(folder, name) as process:
        process.stdout.readline()
        start = perf_counter()
        process.stdout.read()
        return perf_counter() - start


def _kill_one(folder, name, after):
    with _start(folder, name) as process:
        process.stdout.readline()
        sleep(after)
        process.kill()
    return _end(_start(folder, name))


def _two_at_once(folder, name):
    found = [_end(process) for process in [_start(folder, name) for _ in range(2)]]
    is_right, n_compiled = _end(_start(folder, name))
    return is_right and all(right for right, _ in found), n_compiled
