"""Compile kernels for the levels of CPUs that a wheel is for: `compile_kernels.py compile plain`.

    this process --starts--> one that runs the cases, for the lowest level
                                |  kernels and types, as they are compiled
                                v
                             one for each other level, which compiles them, and runs none

All write to NUMBA_CACHE_DIR, as every process does.
"""

import os
import pickle
import subprocess
import sys
import time
import warnings
from importlib import import_module


def main(cases: str) -> int:
    """Start the processes, and wait for them."""
    from numba.core.registry import cpu_target

    from cart.jit.levels import LEVELS, environment_of, targets_below
    from cart.jit.wheel_kernels import write_fits

    *others, lowest = LEVELS
    if not targets_below(cpu_target.target_context.codegen().magic_tuple()):
        print(f"this machine is below {lowest}, for which kernels are compiled", file=sys.stderr)
        return 1
    start, readers = time.perf_counter(), []
    for level in others:
        env = os.environ | environment_of(level)
        command = [sys.executable, __file__, "told"]
        readers.append(subprocess.Popen(command, env=env, stdin=subprocess.PIPE))
    first = subprocess.Popen(
        [sys.executable, __file__, "run", cases], env=os.environ | environment_of(lowest),
        stdout=subprocess.PIPE,
    )  # fmt: skip
    while told := first.stdout.read1():
        for reader in readers:
            reader.stdin.write(told)
            reader.stdin.flush()
    for reader in readers:
        reader.stdin.close()
    failed = [process.args for process in (first, *readers) if process.wait()]
    if failed:
        print(f"failed: {failed}", file=sys.stderr)
        return 1
    folder = os.path.join(os.environ["NUMBA_CACHE_DIR"], "cartwood")
    n_each, rest = divmod(len(os.listdir(folder)), len(LEVELS))
    if rest:
        print("some kernels were not compiled for every level", file=sys.stderr)
        return 1
    write_fits(folder, list(LEVELS))
    words = f"{n_each} kernels for each of {', '.join(LEVELS)}"
    print(f"{words}: {time.perf_counter() - start:.0f} s", flush=True)
    return 0


def run(cases: str) -> None:
    """Run cases of `CARTWOOD_KERNELS`, and tell which kernels they compiled."""
    from numba.core.serialize import dumps

    from cart.jit.disk_cache import KernelCache

    out = os.dup(1)
    os.dup2(2, 1)  # what the cases print is no news of kernels
    save = KernelCache.save_overload

    def save_and_tell(self, sig, data):
        save(self, sig, data)
        told = dumps((self._function.__module__, self._function.__qualname__, sig))
        while told:
            told = told[os.write(out, told) :]

    KernelCache.save_overload = save_and_tell
    plain = import_module("cart.__main__")
    plain.main(plain.CASES[:1] if cases == "first" else plain.CASES)
    for work in import_module("cartwood.commands.kinds").usual_work() if cases == "plain" else ():
        start = time.perf_counter()
        work.call()
        print(f"{work.name}: {time.perf_counter() - start:.1f} s", flush=True)


def told() -> None:
    """Compile what is told on standard input."""
    while sys.stdin.buffer.peek(1):
        module, name, sig = pickle.load(sys.stdin.buffer)
        getattr(import_module(module), name).compile(sig)


if __name__ == "__main__":
    time.sleep(0.5)  # sources that were written just now are not kernels' yet
    warnings.simplefilter("ignore")
    part, *arguments = sys.argv[1:]
    sys.exit({"compile": main, "run": run, "told": told}[part](*arguments))
