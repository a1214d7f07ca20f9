"""Levels of CPUs, and what kernels of wheels may assume."""

import numba
import pytest

from cart.jit.decorators import entry_kernel, kernel
from cart.jit.levels import LEVELS, environment_of, targets_below

TRIPLE = "x86_64-unknown-linux-gnu"
V3 = (
    "+cx16,+popcnt,+sahf,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,"
    "+movbe,+xsave"
)
V4 = V3 + ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"


@pytest.mark.parametrize(
    ("triple", "features", "levels"),
    [
        (TRIPLE, V4 + ",-sse4a,+sha", ["x86-64-v4", "x86-64-v3"]),
        (TRIPLE, V4.replace("+avx512vl", "-avx512vl"), ["x86-64-v3"]),  # Xeon Phi
        (TRIPLE, V3, ["x86-64-v3"]),
        (TRIPLE, V3.replace("+fma", "-fma"), []),
        (TRIPLE, "", []),
        ("aarch64-apple-darwin", V4, []),
    ],
)
def test_a_cpu_runs_its_level_and_those_below(triple, features, levels):
    assert targets_below((triple, "cpu", features)) == tuple((triple, each, "") for each in levels)


def test_who_chooses_a_target_gets_kernels_of_it(monkeypatch):
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64-v3")
    assert targets_below((TRIPLE, "x86-64-v3", V4 + ",+other")) == ()


def test_a_process_compiles_for_a_level_by_name():
    for level in LEVELS:
        assert environment_of(level) == {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are plain Python")
def test_kernels_call_no_entry_kernel():
    """What is kept of one could not be linked with them."""

    @entry_kernel
    def inner(x):
        return x + 1

    @kernel
    def outer(x):
        return inner(x)

    @entry_kernel
    def outermost(x):
        return outer(x)

    assert inner(1) == 2
    with pytest.raises(
        numba.TypingError, match="inner is an entry kernel: only Python can call it"
    ):
        outermost(1)
