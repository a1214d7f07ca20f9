"""The protocol of packed trees: the functions that walks call on a form of nodes."""

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel

# Added to the `number` of a node if missing values go left.
MISSING_LEFT = np.uint32(1 << 31)


@dispatch
def step(packed, place, X, row, may_miss):
    """The place to which a row goes from `place`; from a leaf, the leaf itself.

    The values of the row begin at X[row].
    """


@dispatch
def value_at(packed, place):
    """The row of `value` of a leaf: a shared row, or one numbered within its tree after these."""


@dispatch
def write_split(packed, place, offset, feature, threshold):
    """Write a split whose left child is `offset` places further on."""


@dispatch
def write_leaf(packed, place, row):
    """Write a leaf with its row of `value`, numbered as in `value_at`."""


@dispatch
def fetch(packed, tree, part, n_parts):
    """Prefetch a part, of n_parts, of a tree."""


@dispatch
def left_of(packed, place):
    """The place of the left child of a node; of a leaf, its own place."""


@dispatch
def value_met(packed, place, X, row):
    """The value that a node looks at in the row whose values begin at X[row]."""


@dispatch
def is_missing(packed, x):
    """Whether a value of a row is missing."""


@dispatch
def as_compared(packed, threshold):
    """Convert a threshold to what values of rows are compared with."""


@dispatch
def write_rows(packed, X, values):
    """Convert rows of a table to what trees take; return FINITE, SOME_MISSING or INFINITE."""


@inline_kernel
def missing_goes_right(packed, place):
    """1 if missing values go right at a split, else 0."""
    return np.uint64(packed.number[place] < MISSING_LEFT)
