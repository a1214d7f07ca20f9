"""Share the items of a job between threads inside kernels: a free thread takes the next item.

    left     0   4       3       2       1       0          0
    owner        opens   takes 3         takes 1            waits until 4 are done
    helper   looks               takes 2         takes 0    looks ...

A job belongs to its owner, a thread that does all items itself if no other thread helps. A crew has
one job at a time. Helpers may come and go at any time: the owner writes the data of a job before it
opens the job, and leaves them unchanged until all items are done.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.instructions import add_at_once, look_at, set_at_once

_LINE = 8  # int64s in a cache line: `left` and `done` get a line each, against false sharing


class Crew(NamedTuple):
    """The counters of a job: how many items are left and how many are done."""

    left: np.ndarray  # (8,) int64, of which left[0] counts items not yet taken; below 1: none
    done: np.ndarray  # (8,) int64, of which done[0] counts finished items

    @classmethod
    def create(cls):
        # The outer lines are padding: an array may be unaligned.
        room = np.zeros((4, _LINE), np.int64)
        return cls(room[1], room[2])


@inline_kernel
def open_job(crew, n_items):
    """Let all threads take the items 0, ..., n_items - 1."""
    crew.done[0] = 0
    set_at_once(crew.left, n_items)  # a late helper of the last job may have made it negative


@inline_kernel
def take_item(crew):
    """Take an item and return its number; -1 if none is left."""
    if look_at(crew.left) < 1:
        return np.int64(-1)
    return max(add_at_once(crew.left, np.int64(-1)) - 1, np.int64(-1))


@inline_kernel
def finish_item(crew):
    """Count an item as done."""
    add_at_once(crew.done, np.int64(1))


@inline_kernel
def wait_for_all(crew, n_items):
    """Spin until all items, also those taken by other threads, are done."""
    while look_at(crew.done) < n_items:
        pass
