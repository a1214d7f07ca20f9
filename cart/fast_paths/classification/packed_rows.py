"""The in-bag rows of a tree, packed into words of 32 bits, and kernels on a node's words.

    word    | row  | weight | class |     class counts of a node need no other memory
    key     | code | weight | class |     comparisons sort the rows along a feature

Words are kept in the order of the rows: the partition is stable, so that codes are gathered in the
order in which they lie in memory.

    words   [ 0 2 3 5 6 ]       of a node; shown are the rows
    codes   [ 4 1 7 2 5 ]       gathered from the feature's codes of all rows
    words   [ 2 5 | 0 3 6 ]     after a cut above code 2
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT
from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.primitives.gather import gather
from cart.primitives.partition import partition_words


@dispatch
def n_outputs_of(layout):
    """How many outputs there are. A row counts once for each of them."""


@dispatch
def place_of_class(layout, c, output):
    """Where a row of class c is counted for an output, among a node's class counts."""


@dispatch
def count_words(layout, words, counts):
    """Write the weighted class counts of words."""


class Layout(NamedTuple):
    """Which bits of a word hold the row, the weight and the class."""

    class_bits: np.uint32
    low_bits: np.uint32  # of weight and class together
    low_mask: np.uint32
    class_mask: np.uint32

    @classmethod
    def of(cls, n_rows, n_classes, top_weight):
        """The layout for the rows of a table; None if 32 bits are too few."""
        class_bits = max(1, int(n_classes - 1).bit_length())
        low_bits = class_bits + int(top_weight).bit_length()
        if low_bits + int(n_rows).bit_length() > 32:
            return None
        masks = (1 << low_bits) - 1, (1 << class_bits) - 1
        return cls(*(np.uint32(part) for part in (class_bits, low_bits, *masks)))

    def n_outputs_of(self):
        return np.int64(1)

    def place_of_class(self, c, output):
        return c

    def count_words(self, words, counts):
        for c in range(counts.shape[0]):
            counts[c] = 0
        for i in range(words.shape[0]):
            counts[class_of(words[i], self)] += weight_of(words[i], self)


@inline_kernel
def row_number(word, layout):
    return np.uint64(word) >> np.uint64(layout.low_bits)


@inline_kernel
def code_of_key(key, layout):
    return np.uint32(key >> layout.low_bits)


@inline_kernel
def weight_of(word, layout):
    return np.int64((word & layout.low_mask) >> layout.class_bits)


@inline_kernel
def class_of(word, layout):
    return np.int64(word & layout.class_mask)


@inline_kernel
def count_word(counts, first, word, layout):
    """Add the weight of a word to the class counts that begin at `first`."""
    w, c = weight_of(word, layout), class_of(word, layout)
    for output in range(n_outputs_of(layout)):
        counts[first + place_of_class(layout, c, output)] += w


@inline_kernel
def total_weight(counts, layout):
    """The weight of all classes together."""
    total = np.int64(0)
    for c in range(counts.shape[0] // n_outputs_of(layout)):  # of the first output
        total += counts[c]
    return total


@kernel
def pack_rows(weight, classes, layout, words, counts):
    """Write the words of the rows with a positive weight, and the weighted class counts.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,), whole numbers
    classes : ndarray of shape (n_rows,), float64
    layout : Layout
    words : ndarray of shape (n_rows,), uint32
    counts : ndarray of shape (n_classes,), int64

    Returns
    -------
    int
        The number of words.
    """
    n = 0
    for c in range(counts.shape[0]):
        counts[c] = 0
    for row in range(weight.shape[0]):
        w = np.uint32(weight[row])
        c = np.uint32(classes[row])
        words[n] = np.uint32(row) << layout.low_bits | w << layout.class_bits | c
        count_word(counts, 0, words[n], layout)
        n += w > 0
    return n


@inline_kernel
def gather_keys(codes, words, start, n, layout, missing, keys):
    """Write the keys of words[start:start + n]; return the lowest and the highest code.

    `missing` is the code that missing values have in keys: the one after the highest.
    """
    mine = words[start : start + n]
    gather(codes, mine, layout.low_bits, np.uint32(1), keys)
    lowest = np.uint32(0xFFFFFFFF)
    highest = np.uint32(0)
    for i in range(n):
        code = min(keys[i], missing)
        lowest = min(lowest, code)
        highest = max(highest, code)
        keys[i] = code << layout.low_bits | mine[i] & layout.low_mask
    return lowest, highest


@dispatch
def gather_codes(codes, words, layout, gathered):
    """Write the codes of the rows of words, as uint32, to `gathered`."""


class ColumnCodes(NamedTuple):
    """The codes of a column, side by side."""

    codes: np.ndarray  # (n_rows,), of the table's type

    def gather_codes(self, words, layout, gathered):
        gather(self.codes, words, layout.low_bits, np.uint32(1), gathered)


@inline_kernel
def partition_packed_rows(codes, cut, words, layout, gathered, spare, counts):
    """Bring words into the order left | right of a cut, keeping the order on each side.

    Returns how many go left, and writes their weighted class counts to `counts`.
    """
    gather_codes(codes, words, layout, gathered)
    step = np.uint32(cut.missing == MISSING_LEFT)  # makes the code of missing values the lowest
    last = np.uint32((np.int64(cut.left_code) + np.int64(step)) & 0xFFFFFFFF)
    n_left = partition_words(words, gathered[: words.shape[0]], step, last, spare)
    count_classes(words, 0, n_left, layout, counts)
    return n_left


@inline_kernel
def quarter_of(word, layout):
    """The weight of a word, moved to the 16 bits that its class, one of four, has in a uint64."""
    w = np.uint64((word & layout.low_mask) >> layout.class_bits)
    return w << (np.uint64(word & layout.class_mask) << np.uint64(4))


@inline_kernel
def fit_quarters(n, n_classes, layout):
    """Can the weights of n words be summed up in quarters of a number without overflow?"""
    weight = np.int64(layout.low_mask >> layout.class_bits)  # no row weighs more
    return n_outputs_of(layout) == 1 and n_classes <= 4 and n * weight < 1 << 16


@inline_kernel
def write_quarters(total, counts):
    """Write the class counts that a number holds in its quarters."""
    for c in range(counts.shape[0]):
        counts[c] = np.int64((total >> np.uint64(16 * c)) & np.uint64(0xFFFF))


@inline_kernel
def count_classes(words, start, n, layout, counts):
    """Write the weighted class counts of words[start:start + n]."""
    if counts.shape[0] == 2:
        both = np.int64(0)  # the weight in the high 32 bits, that of the second class below
        for i in range(start, start + n):
            w = weight_of(words[i], layout)
            both += w << 32 | w & -class_of(words[i], layout)
        counts[1] = both & 0xFFFFFFFF
        counts[0] = (both >> 32) - counts[1]
        return
    if fit_quarters(n, counts.shape[0], layout):
        total = np.uint64(0)
        for i in range(start, start + n):
            total += quarter_of(words[i], layout)
        write_quarters(total, counts)
        return
    count_words(layout, words[start : start + n], counts)
