"""The protocol of split criteria: the functions that the search calls on a criterion.

A criterion is a NamedTuple of small arrays with the methods of the protocol below. A node's samples
are given by `keys`, in some order (see `cart.primitives.sort_keys`), and `records`, float64 of
shape (n_records, 1 + n_outputs): `record_of(key)` is the row that holds the sample's weight and
targets. Sums are taken in the order of the keys, and the right side of a cut is the node minus its
left side, as in scikit-learn, so that floating-point sums agree with it.

    keys   = [ k0 k1 k2 | k3 k4 k5 k6 ]      cut after p = 3 samples
               `- Side -'                    weight and sums of the left; right = node - left
               advance: samples are added to the sums at the last cut, or subtracted from those of
                        the whole node, whichever way is shorter

The left side of a cut is a `Side`, which kernels keep in registers; what does not fit (class
counts, further outputs) is in the criterion's arrays.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel
from cart.primitives.sort_keys import record_of

_LN2 = math.log(2.0)
EPSILON = np.finfo(np.float64).eps


class Side(NamedTuple):
    """The left side of a cut; the meaning of `first` and `second` depends on the criterion."""

    weight: float
    first: float
    second: float


@dispatch
def load(criterion, records, keys, n, keep_order):
    """Sum up the node: the first `n` keys. `keep_order` says that sums depend on their order."""


@dispatch
def needs_all(criterion):
    """Whether `arrange` needs all keys, even those that no cut advances over."""


@dispatch
def arrange(criterion, records, keys, n):
    """Take the node's samples in the order of `keys`; return the Side before the first sample."""


@dispatch
def advance(criterion, side, records, keys, cut, p, n):
    """Move the cut to the right, from after `cut` samples to after `p`; return its Side."""


@dispatch
def score(criterion, side):
    """Quality of the cut: higher is better, comparable within one node only."""


@dispatch
def may_score(criterion, side, least):
    """Whether the quality of the cut may be more than `least`; quicker than to calculate it."""


@dispatch
def impurity(criterion, records, keys, n):
    """Impurity of the node."""


@dispatch
def children_impurity(criterion, side, records, keys, n_left, n):
    """Impurities left and right of the cut, which is after the first `n_left` samples."""


@dispatch
def side_values(criterion, side):
    """What the left and the right side would predict: the share of the first class, or the mean."""


@dispatch
def write_value(criterion, value):
    """Write the node's prediction to `value`, (n_outputs, n_values)."""


# Used by `AnyCriterion.advance`, which takes the shorter way to a cut.


@dispatch
def all_right(criterion):
    """The Side of the cut before the first sample."""


@dispatch
def all_left(criterion):
    """The Side of the cut after the last sample."""


@dispatch
def move(criterion, side, records, i, sign):
    """Move sample i from the right of the cut to its left (sign 1.0), or back (-1.0)."""


@dispatch
def side_impurities(criterion, side):
    """Impurities left and right of the cut, if they follow from the Side."""


class AnyCriterion:
    """Default implementations of the protocol."""

    def needs_all(self):
        return False

    def arrange(self, records, keys, n):
        return all_right(self)

    def advance(self, side, records, keys, cut, p, n):
        if p - cut <= n - p:
            for i in range(cut, p):
                side = move(self, side, records, record_of(keys[i]), 1.0)
        else:
            side = all_left(self)
            for i in range(n - 1, p - 1, -1):
                side = move(self, side, records, record_of(keys[i]), -1.0)
        return side

    def may_score(self, side, least):
        return True

    def children_impurity(self, side, records, keys, n_left, n):
        return side_impurities(self, side)

    def score(self, side):
        left, right = side_impurities(self, side)
        return -(self.weight[0] - side.weight) * right - side.weight * left


@inline_kernel
def log2(x):
    return math.log(x) / _LN2  # agrees with scikit-learn's `log` to the last bit
