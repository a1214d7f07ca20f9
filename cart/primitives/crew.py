"""Items of a job that threads share inside kernels: who is free takes the next.

    left     0   4       3       2       1       0          0
    owner        opens   takes 3         takes 1            waits until 4 are done
    helper   looks               takes 2         takes 0    looks ...

A job belongs to its owner, who does all of it where nobody helps; there is one at a time. Helpers
may come and go whenever they like: what an item is of is written before there are items to take,
and stays until all of them are done.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.jit.instructions import add_at_once, look_at, set_at_once

_LINE = 8  # numbers of a line of the cache, in which no other number changes


class Crew(NamedTuple):
    """A job: how many of its items are left and done."""

    left: np.ndarray  # (8,) int64: items that nobody has taken, in the first place; none below 1
    done: np.ndarray  # (8,) int64: items that are done, in the first place

    @classmethod
    def create(cls):
        room = np.zeros((4, _LINE), np.int64)
        return cls(room[1], room[2])


@inline_kernel
def open_job(crew, n_items):
    """Let others take the items 0, ..., n_items - 1."""
    crew.done[0] = 0
    set_at_once(crew.left, n_items)  # also where one who was late has made it less than 0


@inline_kernel
def take_item(crew):
    """The number of an item that is to be done; -1 where none is left."""
    if look_at(crew.left) < 1:
        return np.int64(-1)
    return max(add_at_once(crew.left, np.int64(-1)) - 1, np.int64(-1))


@inline_kernel
def finish_item(crew):
    """Say that an item is done."""
    add_at_once(crew.done, np.int64(1))


@inline_kernel
def wait_for_all(crew, n_items):
    """Wait for those who have taken the others."""
    while look_at(crew.done) < n_items:
        pass
