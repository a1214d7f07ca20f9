"""Run work in threads that end with the call, also on Ctrl-C; fewer if the system allows fewer."""

from collections import deque
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import pairwise
from numbers import Integral
from threading import Thread

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from cart.jit.interrupts import HeldInterrupts

# Seconds until Ctrl-C is noticed if the system signals another thread.
_WAKE_UP = 0.1
# Bytes of address space that a thread takes: its stack and what it allocates at first.
_ROOM = 1 << 26
# If there is room for this many threads more than needed, all are started without asking again: the
# surplus is for what threads allocate meanwhile, and asking slows down those that run.
_SPARE = 16


def has_room_for(n_threads):
    """Whether there is address space for `n_threads` more threads.

    Ask before starting them: Python waits forever for a thread that finds no memory as it starts.
    """
    try:
        np.empty(n_threads * _ROOM, np.uint8)
    except MemoryError:
        return False
    return True


def require_n_jobs(n_jobs):
    """Raise a ValueError unless this is a number of threads, as in joblib, or None."""
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise ValueError(
            f"n_jobs={n_jobs!r} must be a whole number of threads (-1: one for each core) or None."
        )


def effective_n_threads(n_jobs):
    """As joblib's `effective_n_jobs`, for work that prefers threads: unless a backend was chosen,
    daemonic processes (workers of `multiprocessing.Pool`) start threads as well, without a warning.
    """
    if n_jobs is None:
        return effective_n_jobs(n_jobs)
    return get_active_backend(prefer="threads")[0].effective_n_jobs(n_jobs)


def in_threads(work, n_threads, stop):
    """Call `work()` in each of `n_threads` threads, and wait for them.

    joblib is not used, since it polls for results only a hundred times a second, and a small forest
    grows faster than that. If the system has no room for all threads, fewer do the work; if it
    starts none, the calling thread does. Threads that a daemon thread starts are daemons, too, for
    which a program does not wait when it ends; for the threads of Python's pools it would wait.

    Parameters
    ----------
    work : callable
        Takes parts of the work until nothing is left.
    n_threads : int
    stop : callable
        `stop()` discards what is left to do. It is called if some work fails and on Ctrl-C:
        threads finish their current part, and none of them outlives the call.
    """

    def try_to(task):
        try:
            task.set_result(work())
        except BaseException as error:
            stop()
            task.set_exception(error)

    tasks, threads = [], []
    try:
        # An interrupt could leave a thread that is not in the list.
        with HeldInterrupts(), suppress(RuntimeError):  # "can't start new thread"
            is_roomy = has_room_for(n_threads + _SPARE)
            while len(tasks) < n_threads and (is_roomy or has_room_for(1)):
                task: Future = Future()
                thread = Thread(target=try_to, args=(task,))
                thread.start()
                tasks.append(task)
                threads.append(thread)
        if not tasks:
            work()
        # Not by `join`: Python 3.11 takes a thread for ended if Ctrl-C ends the join.
        while wait(tasks, timeout=_WAKE_UP).not_done:
            pass
    except BaseException:
        stop()
        raise
    finally:
        for thread in threads:
            thread.join()
    for task in tasks:
        task.result()


def take_all(left, work):
    """Call `work(*arguments)` on the items of `left`, a deque that other threads take from, too."""
    while left:
        try:
            arguments = left.popleft()
        except IndexError:  # another thread has taken the last item
            return
        work(*arguments)


def in_parts(work, n, n_jobs=None, min_part=1, max_part=None):
    """Call `work(first, end)` in threads, for parts that together make up range(n).

    Parameters
    ----------
    work : callable
        The parts must not depend on each other.
    n : int
    n_jobs : int or None
        As in joblib.
    min_part : int, default=1
        Smallest length of a part, if there are several.
    max_part : int, optional
        Largest length of a part. Ctrl-C is noticed between two parts.
    """
    # joblib is asked only if there may be several parts: asking takes as long as a row.
    n_threads = min(effective_n_threads(n_jobs), n // min_part) if n >= 2 * min_part else 1
    n_parts = n_threads if max_part is None else max(n_threads, -(-n // max_part))
    if n_parts < 2:
        work(0, n)
        return
    left = deque(pairwise(np.linspace(0, n, n_parts + 1).astype(int).tolist()))

    if n_threads < 2:
        take_all(left, work)
    else:
        in_threads(lambda: take_all(left, work), n_threads, left.clear)
