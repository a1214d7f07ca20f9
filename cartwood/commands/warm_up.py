"""`cartwood warm-up`: compile every kind of kernel ahead: trees, forests, importances."""

import os
import warnings
from argparse import ArgumentParser, Namespace
from time import perf_counter

from cartwood.commands.kinds import all_work
from cartwood.terminal import Steps, say

HELP = "compile all kernels once, for a container image, for CI, or before a talk"
EXAMPLES = ("cartwood warm-up",)


def add_arguments(parser: ArgumentParser) -> None:
    """Add nothing: the command takes no arguments."""


def run(args: Namespace) -> None:
    """Fit, predict and judge small tables of every kind."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        say("nothing to compile: NUMBA_DISABLE_JIT is set, so kernels run as plain Python")
        return
    begin = perf_counter()
    work = all_work()
    with (
        Steps(f"compiling {len(work)} kinds of work", len(work), are_alike=False) as step,
        warnings.catch_warnings(action="ignore"),
    ):
        for each in work:
            each.call()
            step()
    say(f"all kernels are ready after {perf_counter() - begin:.1f} s; they are kept on disk")
