"""A loop over a range in parts, each in a thread of its own."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs


def in_parts(work, n, n_jobs=None, min_part=1):
    """Call `work(first, end)` for parts that make up range(n), each in a thread of its own.

    Parameters
    ----------
    work : callable
        Its parts must not depend on each other.
    n : int
    n_jobs : int or None
        joblib's.
    min_part : int, default=1
        Least length of a part, where there are several.
    """
    # Where there is one part anyway, joblib is not asked: it takes as long as a row.
    n_parts = min(effective_n_jobs(n_jobs), n // min_part) if n >= 2 * min_part else 1
    if n_parts < 2:
        work(0, n)
        return
    bounds = np.linspace(0, n, n_parts + 1).astype(int).tolist()
    # Not joblib: its pool takes about as long to start and stop as predicting 25,000 rows does.
    with ThreadPoolExecutor(n_parts) as pool:
        tasks = [pool.submit(work, first, end) for first, end in pairwise(bounds)]
    for task in tasks:
        task.result()
