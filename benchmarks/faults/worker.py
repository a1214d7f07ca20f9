"""A process that loads damaged models, one per line of its input, and prints how each ended.

`python -m benchmarks.faults.worker FOLDER`; lines are `KIND MODEL SEED`.
"""

import pickle
import resource
import sys
import warnings
from pathlib import Path

import numpy as np
import psutil

from benchmarks.faults.damage import damage, forge
from benchmarks.faults.saved_models import MODELS, ask_everything, predictions_of
from cart.files import DamagedModelError
from forest import load

# Bytes beyond those of the process at its start: loads that ask for more get a MemoryError.
# (Python's unpickler allocates what a damaged pickle says before it looks at what it is for.)
MEMORY = 1 << 30
GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "pickles"


def main():
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    expected = {}
    for name, (_, X, _) in MODELS.items():
        model = load(folder / f"{name}.file", mmap=False)
        expected[name] = predictions_of(model, X)
        ask_everything(model, *MODELS[name][1:])  # compiles the kernels
    most = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print("ready", flush=True)
    for line in sys.stdin:
        kind, name, seed = line.rstrip("\n").split("\t")
        print(_try_one(folder, kind, name, int(seed), expected), flush=True)


def _try_one(folder, kind, name, seed, expected):
    """How a damaged model ended: "same", "other", "refused", or the name of another error."""
    rng = np.random.default_rng(seed)
    if kind == "old pickles":
        name = sorted(path.stem for path in GOLDEN.glob("*.pkl"))[seed % 18]
        content = damage((GOLDEN / f"{name}.pkl").read_bytes(), rng)
    else:
        suffix = "pickle" if kind == "pickles" else "file"
        content = (folder / f"{name}.{suffix}").read_bytes()
        content = forge(content, rng) if kind == "forged files" else damage(content, rng)
    try:
        if "pickles" in kind:
            model = pickle.loads(content)
        else:
            path = folder / f"damaged_{kind.replace(' ', '_')}"
            path.write_bytes(content)
            model = load(path, mmap=seed % 2 == 0)
    except (DamagedModelError, MemoryError):
        return "refused"
    except Exception as error:
        return f"error {type(error).__name__}" if "pickles" not in kind else "error"
    X, y = MODELS[name][1:] if name in MODELS else (MODELS["tree"][1], MODELS["tree"][2])
    ask_everything(model, X, y)
    if name not in MODELS:
        return "loaded"
    try:
        said = predictions_of(model, X)
    except Exception:
        return "no prediction"
    is_same = said.shape == expected[name].shape and np.array_equal(said, expected[name])
    return "same" if is_same else "other"


if __name__ == "__main__":
    main()
