"""Timing: runs of both sides in turn, medians, and their ratio."""

from time import perf_counter
from typing import NamedTuple

import numpy as np


class Race(NamedTuple):
    """Median seconds of both sides."""

    ours: float
    peer: float


def race(ours, peer, repeats, tick=lambda: None):
    """Time both sides in turn, each with its fastest setting.

    Every setting of both sides is run once to warm up (kernels compiled, pools started), then
    `repeats` times in turn, so that a slow minute of the machine affects all of them.

    Parameters
    ----------
    ours, peer : list of callables
        The same work under different settings, such as numbers of jobs.
    repeats : int
    tick : callable, default does nothing
        Called after every run, to show progress.

    Returns
    -------
    Race
        Medians of the fastest setting of each side.
    """
    runs = [*ours, *peer]
    seconds = np.empty((repeats + 1, len(runs)))
    for repeat in seconds:
        for i, run in enumerate(runs):
            start = perf_counter()
            run()
            repeat[i] = perf_counter() - start
            tick()
    median = np.median(seconds[1:], axis=0)
    return Race(median[: len(ours)].min(), median[len(ours) :].min())


def n_runs(repeats):
    """How often `race` with one setting per side calls `tick`."""
    return 2 * (repeats + 1)
