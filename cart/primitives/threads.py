"""Threads that are done when the call is, also by Ctrl-C; fewer where the system has no more."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs

from cart.jit.interrupts import HeldInterrupts

# Seconds until Ctrl-C is heard where the system tells another thread of it.
_WAKE_UP = 0.1
# Bytes of address space of a thread, its stack included, and of what it begins with.
_ROOM = 1 << 26
# Threads for which there is room besides, where all are begun without asking again: what those that
# have begun take meanwhile. To ask while threads run costs them time.
_SPARE = 16


def has_room_for(n_threads):
    """Is there address space for so many threads more?

    To be asked before they are begun: Python waits for ever for one that finds no memory then.
    """
    try:
        np.empty(n_threads * _ROOM, np.uint8)
    except MemoryError:
        return False
    return True


def in_threads(work, n_threads, stop):
    """Have threads call `work()`, and wait for them.

    Not joblib, which looks a hundred times a second whether work is done: a small forest is grown
    in less. Where there is no room for all threads, or the system starts fewer, those do the work;
    where there are none, this one does.

    Parameters
    ----------
    work : callable
        Takes parts of what is to be done until nothing is left.
    n_threads : int
    stop : callable
        `stop()` leaves nothing to be done. It is called when some work fails, and by Ctrl-C:
        threads finish what they are at, and none of them outlives the call.
    """

    def try_to():
        try:
            work()
        except BaseException:
            stop()
            raise

    tasks = []
    pool = ThreadPoolExecutor(n_threads)
    try:
        # Held, or one may be started that the pool has not noted.
        with HeldInterrupts(), suppress(RuntimeError):  # "can't start new thread"
            is_roomy = has_room_for(n_threads + _SPARE)
            while len(tasks) < n_threads and (is_roomy or has_room_for(1)):
                tasks.append(pool.submit(try_to))
        if not tasks:
            try_to()
        while wait(tasks, timeout=_WAKE_UP).not_done:
            pass
    except BaseException:
        stop()
        raise
    finally:
        pool.shutdown()
    for task in tasks:
        task.result()


def take_all(left, work):
    """Call `work(*arguments)` of what is left, a deque that other threads take from, too."""
    while left:
        try:
            arguments = left.popleft()
        except IndexError:  # another thread has taken the last
            return
        work(*arguments)


def in_parts(work, n, n_jobs=None, min_part=1, max_part=None):
    """Call `work(first, end)` for parts that make up range(n), in threads.

    Parameters
    ----------
    work : callable
        Its parts must not depend on each other.
    n : int
    n_jobs : int or None
        joblib's.
    min_part : int, default=1
        Least length of a part, where there are several.
    max_part : int, optional
        The largest. Between two parts Ctrl-C is heard.
    """
    # Where there is one part anyway, joblib is not asked: it takes as long as a row.
    n_threads = min(effective_n_jobs(n_jobs), n // min_part) if n >= 2 * min_part else 1
    n_parts = n_threads if max_part is None else max(n_threads, -(-n // max_part))
    if n_parts < 2:
        work(0, n)
        return
    left = deque(pairwise(np.linspace(0, n, n_parts + 1).astype(int).tolist()))

    if n_threads < 2:
        take_all(left, work)
    else:
        in_threads(lambda: take_all(left, work), n_threads, left.clear)
