"""Rows of the paths on class counts: packed words, the codes they point to, and cache copies."""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.primitives.gather import gather
from cart.primitives.radix_sort import N_DIGITS, ROOM


class ClassRows(NamedTuple):
    """The rows of a tier: their words, each node's side by side, and the codes they point to."""

    words: np.ndarray  # (n,) uint32
    codes: np.ndarray  # (n_columns, at least n), of the table's type

    @classmethod
    def create(cls, n, codes):
        return cls(np.empty(n, np.uint32), codes)

    def room_of(self):
        return self.words.shape[0]

    def copy_rows(self, start, n, nearer, layout):
        words = self.words[start : start + n]
        copy_columns(self.codes, words, layout, nearer.codes)
        renumber_words(words, layout, nearer.words)


class ClassScratch(NamedTuple):
    """What a thread writes to while it searches a node."""

    keys: np.ndarray  # (n + ROOM,) uint32
    spare: np.ndarray  # (n + ROOM,) uint32
    digits: np.ndarray  # (N_DIGITS,) int32
    pending: np.ndarray  # (capacity, n_classes) int64: class counts, a row per pending node
    total: np.ndarray  # (1,) float64: weight of the tree
    lower: np.ndarray  # (capacity,) float64: bound of the first class's share (if monotonic)
    upper: np.ndarray  # (capacity,) float64

    @classmethod
    def create(cls, n, n_classes, capacity):
        return cls(
            np.empty(n + ROOM, np.uint32),
            np.empty(n + ROOM, np.uint32),
            np.empty(N_DIGITS, np.int32),
            np.empty((capacity, n_classes), np.int64),
            np.empty(1),
            np.empty(capacity),  # not filled, so only rows in use take memory
            np.empty(capacity),
        )


@inline_kernel
def copy_columns(codes, words, layout, copied):
    """Copy the codes that words point to, column by column."""
    for column in range(codes.shape[0]):
        gather(codes[column], words, layout.low_bits, np.uint32(1), copied[column])


@inline_kernel
def renumber_words(words, layout, copied):
    """Copy words, and number their rows 0, 1, ..."""
    for i in range(words.shape[0]):
        copied[i] = np.uint32(i) << layout.low_bits | words[i] & layout.low_mask
