"""Gini impurity and entropy of several outputs: the mean over the outputs.

The classes of a row, one for each output, are written to its word as one joint class. A row counts
once for each output, so that a node's counts are those of one output after another:

    outputs    a: 0 1    b: 0 1 2          joint class   0  1  2  3
    counts     a0 a1  .  b0 b1 b2          is counted    a0 a0 a1 a1
                                           and           b0 b2 b0 b1

All outputs have as many places as the one with the most classes; the point is one that stays 0.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.classification.cumulative_counts import count_left, move_left
from cart.fast_paths.classification.impurities import (
    EntropyCuts,
    GiniCuts,
    child_impurities,
    impurity_of,
)
from cart.fast_paths.classification.packed_rows import class_of, weight_of
from cart.jit.decorators import like
from cart.jit.simd import on_lanes

_WIDTH = 16  # of vectors
CODES_MAX = 2.0**53  # of joint classes that are told apart


class JointLayout(NamedTuple):
    """A Layout whose class is a joint class."""

    class_bits: np.uint32
    low_bits: np.uint32
    low_mask: np.uint32
    class_mask: np.uint32
    places: np.ndarray  # (n_joint_classes, n_outputs) int64: where a row is counted
    # (n_blocks, n_joint_classes, _WIDTH) int32: 1 at these places, a block for every _WIDTH places
    ones: np.ndarray
    counted: np.ndarray  # (n_blocks * _WIDTH,) int32: scratch

    def n_outputs_of(self):
        return np.int64(self.places.shape[1])

    def place_of_class(self, c, output):
        return self.places[c, output]

    def count_words(self, words, counts):
        if words.shape[0] == 0:
            counts[:] = 0
            return
        for block in range(self.ones.shape[0]):
            _count_words(words, words.shape[0], self, self.ones[block], block)
        for c in range(counts.shape[0]):
            counts[c] = self.counted[c]


@on_lanes(_WIDTH)
def _count_words(lanes, words, n, layout, ones, block):
    """Add up the rows of `ones` of all words, each times its weight."""
    class_bits, low_mask = lanes.number(layout.class_bits), lanes.number(layout.low_mask)
    class_mask = lanes.number(layout.class_mask)

    def add(k, total):
        word = lanes.number(lanes.same(words, k))
        weight = lanes.everywhere((word & low_mask) >> class_bits)
        return (total + lanes.load(ones, word & class_mask) * weight,)

    nothing = lanes.load(ones) & 0
    (total,) = lanes.repeat(lanes.number(n), add, nothing)
    lanes.store(layout.counted, total, lanes.number(block))


def join_classes(codes, n_values):
    """Join the classes of all outputs.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_outputs), float64
    n_values : int
        Every code is less than this; to the power of n_outputs, it is at most CODES_MAX.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        The joint class of each row.
    ndarray of shape (n_joint_classes, n_outputs), int64
        Where rows of each are counted.
    """
    outputs = np.arange(codes.shape[1])
    place_values = n_values ** outputs[::-1]
    found, joint = np.unique(codes @ place_values.astype(np.float64), return_inverse=True)
    classes = found.astype(np.int64)[:, np.newaxis] // place_values % n_values
    return joint.astype(np.float64), n_values * outputs + classes


def one_hot(places, n_classes):
    """The `ones` and the scratch of a JointLayout, for these places among n_classes."""
    n_blocks = -(-n_classes // _WIDTH)
    ones = np.zeros((n_blocks, len(places), _WIDTH), np.int32)
    blocks, columns = np.divmod(places, _WIDTH)
    ones[blocks, np.arange(len(places))[:, np.newaxis], columns] = 1
    return ones, np.empty(n_blocks * _WIDTH, np.int32)


class _Mean:
    """What both criteria have in common."""

    def scores_at_once(self, n):
        return False

    def score_cut(self, prefix, entries, i, counts, weight, layout):
        count_left(prefix, entries, i, counts, layout)
        left_weight = np.int64(prefix.weight[i])
        left, right = child_impurities(self, prefix.left, counts, left_weight, weight)
        left_weight = np.float64(left_weight)
        return -(np.float64(weight) - left_weight) * right - left_weight * left

    def write_shares(self, value, counts, weight):
        n_values = value.shape[1]
        for c in range(counts.shape[0]):
            value[c // n_values, c % n_values] = np.float64(counts[c]) / np.float64(weight)


@like(GiniCuts)
@like(_Mean)
class GiniOfSeveralCuts(NamedTuple):
    """The mean of the Gini impurities of several outputs."""

    each: GiniCuts
    n_outputs: int

    def impurity_of(self, counts, weight):
        n_values, impurity = counts.shape[0] // self.n_outputs, 0.0
        for first in range(0, counts.shape[0], n_values):
            impurity += impurity_of(self.each, counts[first : first + n_values], weight)
        return impurity / np.float64(self.n_outputs)

    def child_impurities(self, left, counts, left_weight, weight):
        n_values, on_left, on_right = counts.shape[0] // self.n_outputs, 0.0, 0.0
        for first in range(0, counts.shape[0], n_values):
            own = slice(first, first + n_values)
            of_left, of_right = child_impurities(
                self.each, left[own], counts[own], left_weight, weight
            )
            on_left, on_right = on_left + of_left, on_right + of_right
        n_outputs = np.float64(self.n_outputs)
        return on_left / n_outputs, on_right / n_outputs

    def move_key(self, left, counts, key, layout):
        w, c = weight_of(key, layout), class_of(key, layout)
        on_left = whole = np.int64(0)
        for output in range(self.n_outputs):
            place = layout.places[c, output]
            on_left, whole = on_left + left[place], whole + counts[place]
            left[place] += w
        added = w * self.n_outputs
        return w, w * (2 * on_left + added), w * (added - 2 * (whole - on_left))


@like(EntropyCuts)
@like(_Mean)
class EntropyOfSeveralCuts(NamedTuple):
    """The mean of the entropies of several outputs."""

    each: EntropyCuts
    n_outputs: int
    table: np.ndarray  # that of `each`

    def impurity_of(self, counts, weight):
        return impurity_of(self.each, counts, weight) / np.float64(self.n_outputs)

    def child_impurities(self, left, counts, left_weight, weight):
        n_outputs = np.float64(self.n_outputs)
        on_left, on_right = child_impurities(self.each, left, counts, left_weight, weight)
        return on_left / n_outputs, on_right / n_outputs

    def move_key(self, left, counts, key, layout):
        w, c = weight_of(key, layout), class_of(key, layout)
        more = less = np.int64(0)
        for output in range(self.n_outputs):
            own_more, own_less = move_left(self, left, counts, layout.places[c, output], w)
            more, less = more + own_more, less + own_less
        return w, more, less


def mean_over_outputs(each):
    """The criterion of several outputs, given that of one."""
    if isinstance(each, EntropyCuts):
        return EntropyOfSeveralCuts(each, each.n_outputs, each.table)
    return GiniOfSeveralCuts(each, each.n_outputs)
