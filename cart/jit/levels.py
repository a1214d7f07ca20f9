"""Levels of x86-64: the classes of CPUs that the kernels of a wheel are compiled for.

    x86-64-v3   about 2013 and later: AVX2, FMA, BMI2
    x86-64-v4   those with AVX-512 as well

A CPU runs the kernels of its level and of lower ones. In all other cases (another architecture, a
target that the user chose, AVX switched off) kernels are compiled for that target.
"""

import functools

import numba

# As the psABI defines them, under LLVM's names.
_V3 = "cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2 avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
NEEDS = {
    "x86-64-v4": {*_V3.split(), "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {*_V3.split()},
}
LEVELS = tuple(NEEDS)  # the highest first


@functools.cache
def targets_below(target):
    """Targets of the levels whose kernels a CPU can run as well as its own, the best first.

    Parameters
    ----------
    target : tuple of (str, str, str)
        Triple, name and features, such as "+avx2,-sse4a": numba's `magic_tuple`.

    Returns
    -------
    tuple of such tuples
        Each is the `magic_tuple` of a process that compiles for the level by name.
    """
    triple, _, features = target
    chosen = numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None
    if chosen or not triple.startswith("x86_64"):
        return ()
    has = {name[1:] for name in features.split(",") if name.startswith("+")}
    return tuple((triple, level, "") for level in LEVELS if NEEDS[level] <= has)


def environment_of(level):
    """Environment variables that make a process compile for a level."""
    return {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
