"""The protocol of packed trees: what the walk asks of a form of nodes, one sentence each."""

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel

# Added to the `number` of a node where missing values go left.
MISSING_LEFT = np.uint32(1 << 31)


@dispatch
def step(packed, place, X, row, may_miss):
    """The place to which a row goes on from `place`; a leaf is never left.

    The values of the row begin at X[row].
    """


@dispatch
def has_arrived(packed, place):
    """Is there a leaf?"""


@dispatch
def value_at(packed, place):
    """The row of `value` that belongs to a leaf: a shared one, or one counted within its tree."""


@dispatch
def write_split(packed, place, way, feature, threshold):
    """Write a node whose left child stands `way` places further on."""


@dispatch
def write_leaf(packed, place, row):
    """Write a leaf with a row of `value`; those behind the shared ones count within the tree."""


@dispatch
def fetch(packed, tree, part, n_parts):
    """Have a part of a tree, one of `n_parts`, brought into the cache."""


@dispatch
def left_of(packed, place):
    """The place of the left child; of a leaf its own."""


@dispatch
def value_met(packed, place, X, row):
    """What a node looks at in the row whose values begin at X[row]."""


@dispatch
def is_missing(packed, x):
    """Is a value of a row missing?"""


@dispatch
def as_compared(packed, threshold):
    """A threshold as values of rows are compared with it."""


@dispatch
def write_rows(packed, X, values):
    """Write some rows of a table as trees take them; return FINITE, SOME_MISSING or INFINITE."""


@inline_kernel
def missing_goes_right(packed, place):
    """1 where a missing value goes right at a node that is no leaf."""
    return np.uint64(packed.number[place] < MISSING_LEFT)
