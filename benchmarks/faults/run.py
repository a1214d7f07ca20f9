"""Damage saved models thousands of times; count crashes, hangs and silently wrong models."""

import selectors
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.faults.saved_models import MODELS, save_models

SEED = 38
TIMEOUT = 30.0  # seconds for a load and all questions to the model
# By kind of damage: how often, and which ends are failures besides crashes and hangs.
KINDS = {
    "files": (10_000, {"other"}),  # the checksum is always wrong
    "forged files": (2_500, set()),  # the checksum is right: another model may be valid
    "pickles": (2_500, {"other"}),
    "old pickles": (1_000, set()),  # without a checksum
}


def run(args):
    """Print how damaged models ended; 1 if any crashed, hung, or was silently wrong."""
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        save_models(Path(folder))
        for kind, (n, wrong) in KINDS.items():
            if args.only not in kind:
                continue
            ends = fuzz(Path(folder), kind, n // 50 if args.quick else n)
            n_failed = sum(ends[end] for end in ("crash", "hang", *wrong))
            n_failed += sum(n for end, n in ends.items() if end.startswith("error "))
            failures += n_failed
            counts = ", ".join(f"{n} {end}" for end, n in sorted(ends.items()))
            print(f"{kind}: {sum(ends.values())} damaged; {counts}; {n_failed} failed", flush=True)
    return int(failures > 0)


def fuzz(folder: Path, kind: str, n: int, seed: int = SEED) -> Counter:
    """Count how n damaged models ended.

    Parameters
    ----------
    folder : Path
        Where `save_models` saved the models.
    kind : str
        A key of KINDS.
    n, seed : int

    Returns
    -------
    Counter
        Of the ends of `benchmarks.faults.worker`, "crash" and "hang".
    """
    ends: Counter = Counter()
    worker = None
    names = list(MODELS)
    for i in range(n):
        if worker is None:
            worker = _start(folder)
        case = f"{kind}\t{names[i % len(names)]}\t{seed * 1_000_003 + i}"
        worker.stdin.write(case + "\n")
        worker.stdin.flush()
        end = _answer(worker, TIMEOUT)
        ends[end] += 1
        if end in ("crash", "hang"):
            print(f"{end}: {case!r}", flush=True)
            worker.kill()
            worker.wait()
            worker = None
    if worker is not None:
        worker.stdin.close()
        worker.wait()
    return ends


def _start(folder):
    worker = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.faults.worker", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        bufsize=1,
    )  # fmt: skip
    if _answer(worker, 600.0) != "ready":
        raise RuntimeError("The worker did not start.")
    return worker


def _answer(worker, timeout):
    """The next line of a worker, or "crash" or "hang" if there is none."""
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        if not selector.select(timeout):
            return "hang"
    return worker.stdout.readline().strip() or "crash"
