"""Prefix counts: the class counts left of every cut of a node's ordered entries.

Entries are keys, or the codes of a histogram that occur. Cut i lies behind entry i:

    entries   [ 3 | 3 | 7 | 9 ]      codes
    weight      1   3   4   6        of entries 0 .. i, so the node's is 6
    second      0   2   2   3        of these, the weight of the second of two classes
    cut         -   1   2   -        none between equal codes, none behind the last entry
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.classification.packed_rows import (
    Layout,
    class_of,
    code_of_key,
    count_classes,
    count_word,
    n_outputs_of,
    weight_of,
)
from cart.jit.decorators import dispatch, inline_kernel, kernel

BLOCK = 64  # cuts
KEPT, ZEROS = -2, -3  # origins of `screening` and `sparse_cut`; see PrefixCounts


class PrefixCounts(NamedTuple):
    """Prefix counts of the current entries: item i is for cut i, which has entry i on its left.

    With two classes, `second` is used; with more, `power_left` and `power_right`.
    """

    weight: np.ndarray  # (n + 1,) int32
    second: np.ndarray  # (n + 1,) int32: weight of the second class
    power_left: np.ndarray  # (n + 1,) float64: sum of powers over the class counts
    power_right: np.ndarray  # (n + 1,) float64: the same right of the cut
    gain: np.ndarray  # (n + 1,) float32; NO_CUT between entries of the same code
    gain_bits: np.ndarray  # (n + 1,) int32: the same memory; in the same order as gains >= 0
    samples: np.ndarray  # (n + 1,) int32: the same memory; before gains, the samples of each code
    tops: np.ndarray  # (n // BLOCK + 1,) int32: the highest bits of each block
    left: np.ndarray  # (n_classes,) int64: counts left of the current cut
    histogram: np.ndarray  # (at least n + 1 and n_classes,) int64: see `_count`
    # (3,) int64: the first code of the histogram; -1 if the entries are keys, of all rows. KEPT if
    # keys were dropped, then the first key and the shift of the histogram's buckets. ZEROS if it
    # has the counts of the zeros, then the place of these.
    origin: np.ndarray
    levels: np.ndarray  # (n + 1,) uint32: the entries of a histogram, in the form of keys

    @classmethod
    def create(cls, n, n_classes):
        n_powers = n + 1 if n_classes > 2 else 1
        gain = np.empty(n + 1, np.float32)
        return cls(
            np.empty(n + 1, np.int32), np.empty(n + 1, np.int32), np.empty(n_powers),
            np.empty(n_powers), gain, gain.view(np.int32), gain.view(np.int32),
            np.empty(n // BLOCK + 1, np.int32), np.empty(n_classes, np.int64),
            np.empty(max(n + 1, n_classes), np.int64), np.zeros(3, np.int64),
            np.empty(n + 1, np.uint32),
        )  # fmt: skip


class ClassNode(NamedTuple):
    """A node while its cuts are searched."""

    criterion: tuple  # of cart.fast_paths.classification.impurities
    prefix: PrefixCounts
    layout: Layout
    counts: np.ndarray  # (n_classes,) int64
    weight: int  # their sum


@dispatch
def begin_left(criterion, left, counts):
    """Begin with nothing left of the cut; return the sums of powers left and right.

    A power, int64, is what the criterion sums up over the class counts.
    """


@dispatch
def move_left(criterion, left, counts, c, w):
    """Move weight w of class c to the left; return the changes of both sums of powers."""


@dispatch
def move_key(criterion, left, counts, key, layout):
    """Move the row of a key to the left; return its weight, and these changes."""


@inline_kernel
def add_up(criterion, prefix, keys, n, counts, layout):
    """Write the prefix counts of the ordered keys."""
    prefix.origin[0] = -1
    weight = np.int64(0)
    if counts.shape[0] == 2:
        second = np.int64(0)
        for i in range(n):
            w = weight_of(keys[i], layout)
            weight += w
            second += w * class_of(keys[i], layout)
            prefix.weight[i] = weight
            prefix.second[i] = second
        return
    left = prefix.left
    power_left, power_right = begin_left(criterion, left, counts)
    for i in range(n):
        w, more, less = move_key(criterion, left, counts, keys[i], layout)
        power_left += more
        power_right += less
        weight += w
        prefix.weight[i] = weight
        prefix.power_left[i] = power_left
        prefix.power_right[i] = power_right


@kernel
def count_left(prefix, entries, i, counts, layout):
    """Count the classes left of cut i once more, for more than two classes."""
    left, first, n_classes = prefix.left, 0, counts.shape[0]
    for c in range(n_classes):
        left[c] = 0
    if prefix.origin[0] < 0:
        if prefix.origin[0] == KEPT:  # the histogram has all that is left of the bucket
            bucket, first = _bucket_of(prefix, entries[i]), i
            while first > 0 and _bucket_of(prefix, entries[first - 1]) == bucket:
                first -= 1
            for c in range(n_classes):
                left[c] = prefix.histogram[bucket * n_classes + c]
        for entry in range(first, i + 1):
            count_word(left, 0, entries[entry], layout)
        if prefix.origin[0] == ZEROS and i >= prefix.origin[1]:
            for c in range(n_classes):
                left[c] += prefix.histogram[c]
        return
    last = np.int64(code_of_key(entries[i], layout)) - prefix.origin[0]
    for code in range(last + 1):
        for c in range(n_classes):
            left[c] += prefix.histogram[code * n_classes + c]


@inline_kernel
def _bucket_of(prefix, key):
    return (np.int64(key) - prefix.origin[1]) >> prefix.origin[2]


@kernel
def count_few_codes(prefix, keys, lowest, highest, counts, layout, kept):
    """Count the classes and samples of every code in vectors: a pass for each code but the lowest.

    In a pass, keys of other codes are cleared, in a copy: a cleared key weighs nothing.
    """
    samples, own, n = prefix.samples, prefix.left, keys.shape[0]
    n_codes, n_classes = np.int64(highest - lowest) + 1, counts.shape[0]
    _begin_counting(prefix, np.int64(lowest), n_codes, n_classes)
    _count_classes_as(prefix, 0, counts, 1)
    samples[0] = n
    for code in range(1, n_codes):
        key = lowest + np.uint32(code)
        n_own = np.int64(0)
        for i in range(n):
            is_own = np.int64(code_of_key(keys[i], layout) == key)
            n_own += is_own
            kept[i] = np.int64(keys[i]) & -is_own
        count_classes(kept, 0, n, layout, own)
        _count_classes_as(prefix, code, own, 1)
        _count_classes_as(prefix, 0, own, -1)
        samples[code] = n_own
        samples[0] -= n_own


@inline_kernel
def _count_classes_as(prefix, code, counts, sign):
    """Add class counts to those of a code, or take them away."""
    histogram, width = prefix.histogram, _width(counts.shape[0])
    if width == 1:
        histogram[code] += sign * ((counts[0] + counts[1]) << 32 | counts[1])
        return
    for c in range(width):
        histogram[code * width + c] += sign * counts[c]


@inline_kernel
def count_keys(prefix, keys, lowest, shift, n_buckets, n_classes, layout):
    """Count the classes of every bucket of keys, whose lowest code is given; `shift` turns a key,
    less the key of that code, into its bucket."""
    _begin_counting(prefix, np.int64(lowest), n_buckets, n_classes)
    base = lowest << layout.low_bits
    for i in range(keys.shape[0]):
        bucket = np.uint64((keys[i] - base) >> shift)
        _count(prefix.histogram, bucket, keys[i], n_classes, layout)


@inline_kernel
def count_samples(prefix, keys, n, lowest, highest, layout):
    """Count the samples of every code of keys."""
    for code in range(np.int64(highest - lowest) + 1):
        prefix.samples[code] = 0
    for i in range(n):
        prefix.samples[code_of_key(keys[i], layout) - lowest] += 1


@kernel
def with_enough_samples(prefix, n_entries, least, layout):
    """The cuts between codes, from the first to the last (excluded), with `least` samples on both
    sides."""
    samples, levels, origin = prefix.samples, prefix.levels, prefix.origin[0]
    first, last = np.int64(0), n_entries - 1
    n_left = n_right = np.int64(0)
    while first < last:
        n_left += samples[np.int64(code_of_key(levels[first], layout)) - origin]
        if n_left >= least:
            break
        first += 1
    while first < last:
        n_right += samples[np.int64(code_of_key(levels[last], layout)) - origin]
        if n_right >= least:
            break
        last -= 1
    return first, last


@inline_kernel
def _begin_counting(prefix, origin, n_codes, n_classes):
    prefix.origin[0] = origin
    for cell in range(n_codes * _width(n_classes)):
        prefix.histogram[cell] = 0


@inline_kernel
def _count(histogram, bucket, word, n_classes, layout):
    """Count a word. Two classes share a cell: the weight above that of the second class."""
    if n_classes == 2:
        w = weight_of(word, layout)
        histogram[bucket] += w << 32 | w * class_of(word, layout)
    else:
        count_word(histogram, np.int64(bucket) * n_classes, word, layout)


@inline_kernel
def _width(n_classes):
    """How many cells a code has."""
    return 1 if n_classes == 2 else n_classes


@inline_kernel
def add_up_counts(criterion, prefix, lowest, highest, counts, layout):
    """Write the prefix counts of the codes in the histogram; those that occur are the entries.

    Returns how many entries there are.
    """
    histogram = prefix.histogram
    n_classes = counts.shape[0]
    width = _width(n_classes)
    entry = 0
    weight = np.int64(0)
    left = prefix.left
    power_left, power_right = begin_left(criterion, left, counts)
    for code in range(np.int64(lowest), np.int64(highest) + 1):
        cell = (code - prefix.origin[0]) * width
        before = weight
        if width == 1:
            weight += histogram[cell]
            prefix.weight[entry] = weight >> 32
            prefix.second[entry] = weight & 0xFFFFFFFF
        else:
            for c in range(n_classes):
                w = histogram[cell + c]
                if w > 0:
                    more, less = move_left(criterion, left, counts, c, w)
                    power_left += more
                    power_right += less
                    weight += w
            prefix.weight[entry] = weight // n_outputs_of(layout)
            prefix.power_left[entry] = power_left
            prefix.power_right[entry] = power_right
        prefix.levels[entry] = np.uint32(code) << layout.low_bits
        entry += weight > before
    return entry
