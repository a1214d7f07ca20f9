"""Screen a node's keys: only those among which the best cut may lie are worth sorting.

The keys are counted in buckets of neighbouring codes. The counts left of a cut inside a bucket are
at least those left of the bucket, and at most those and its own: a box. The weighted impurity
decrease is convex in them, as impurity is concave, and so is highest at a corner of the box. A
bucket whose corners all stay below the best border between two buckets does not hold the best cut.
"""

import numpy as np

from cart.class_cuts import find_merits, is_cut, merit_to_beat
from cart.jit import inline_kernel
from cart.radix import n_bits_of
from cart.words import class_of_word, code_of_key, weight_of_word

SCREEN_MIN = 128  # rows
_ROWS_PER_BUCKET = 8
_BITS_MAX = 12  # of the number of buckets


@inline_kernel
def screen(
    criterion, running, keys, n, lowest, highest, counts, weight, score, table, column, layout, kept
):
    """Write the keys of two classes that may lie beside the best cut to `kept`, in any order.

    A cut must score more than `score`. What lies left of every bucket is left in
    `running.histogram`.

    Returns
    -------
    n_kept : int
    shift : uint32
        Of a key above the lowest code: its bucket.
    """
    n_bits = min(n_bits_of(np.uint32(n // _ROWS_PER_BUCKET)) - 1, _BITS_MAX)
    shift = layout.low_bits + np.uint32(max(n_bits_of(highest - lowest) - n_bits, 0))
    base = lowest << layout.low_bits
    n_buckets = np.int64(((highest << layout.low_bits) - base) >> shift) + 1
    _count(running.histogram, keys, n, base, shift, n_buckets, layout)
    n_cuts = _list_corners(running, n_buckets, counts, weight, layout)
    find_merits(criterion, running, running.levels, 0, n_cuts, counts, weight, layout.low_mask)
    bits = running.merit_bits
    border = np.int64(0)
    top_bits = np.int32(0)
    for b in range(n_buckets):
        if bits[b] > bits[border]:
            border = b
    for i in range(n_cuts):
        top_bits = max(top_bits, bits[i])
    best = np.float64(running.merit[border])
    bits[n_cuts] = top_bits
    top = np.float64(running.merit[n_cuts])
    if merit_to_beat(criterion, top, score, counts, weight) == np.inf:
        return 0, shift
    running.merit[n_cuts] = merit_to_beat(criterion, best, -np.inf, counts, weight)
    _mark(bits, n_buckets, bits[n_cuts])
    n_kept = 0
    for i in range(n):
        kept[n_kept] = keys[i]
        n_kept += bits[(keys[i] - base) >> shift]
    behind = base + ((np.uint32(border) + np.uint32(1)) << shift)
    if not _is_border(kept, n_kept, behind, table, column, layout):
        n_kept = n
        for i in range(n):
            kept[i] = keys[i]
    return n_kept, shift


@inline_kernel
def _count(buckets, keys, n, base, shift, n_buckets, layout):
    """Count every bucket: its weight above that of the second class."""
    for b in range(n_buckets):
        buckets[b] = 0
    for i in range(n):
        w = weight_of_word(keys[i], layout)
        buckets[(keys[i] - base) >> shift] += w << 32 | w * class_of_word(keys[i], layout)


@inline_kernel
def _list_corners(running, n_buckets, counts, weight, layout):
    """List what may lie left of a cut, as if each were one; turn `histogram` into sums.

    Cut b is the border behind bucket b. Behind these come the corners of the buckets where one
    class is left of the cut and the other right of it, and then the other way round.
    """
    buckets = running.histogram
    left = np.int64(0)
    for b in range(n_buckets):
        second = buckets[b] & 0xFFFFFFFF
        first = (buckets[b] >> 32) - second
        _list(running, b, left + buckets[b], weight, counts)
        _list(running, n_buckets + b, left + (first << 32), weight, counts)
        _list(running, 2 * n_buckets + b, left + (second << 32 | second), weight, counts)
        buckets[b], left = left, left + buckets[b]
    for i in range(3 * n_buckets + 1):
        running.levels[i] = np.uint32(i) << layout.low_bits
    return 3 * n_buckets


@inline_kernel
def _list(running, i, left, weight, counts):
    """Cut i has so much on its left; where that is nothing or all, one of no merit instead."""
    w = left >> 32
    is_empty = w == 0 or w == weight
    running.weight[i] = weight >> 1 if is_empty else w
    running.second[i] = counts[1] >> 1 if is_empty else left & 0xFFFFFFFF


@inline_kernel
def _is_border(keys, n, behind, table, column, layout):
    """Do the values to both sides of the key `behind` differ?"""
    low = np.uint32(0)
    high = np.uint32(0xFFFFFFFF)
    for i in range(n):
        if keys[i] < behind:
            low = max(low, keys[i])
        else:
            high = min(high, keys[i])
    return is_cut(table, column, code_of_key(low, layout), code_of_key(high, layout))


@inline_kernel
def _mark(bits, n_buckets, least):
    """Write 1 for the buckets with a corner of at least this merit, else 0."""
    before = np.int32(-1)
    for b in range(n_buckets):
        behind = bits[b]
        top = max(max(before, behind), max(bits[n_buckets + b], bits[2 * n_buckets + b]))
        bits[b] = top >= least
        before = behind


@inline_kernel
def add_up_kept(running, keys, n, lowest, shift, layout):
    """Sum up the ordered keys that were kept, and those before them that were not."""
    running.n_codes[0] = 0
    base = lowest << layout.low_bits
    bucket = np.int64(-1)
    left = np.int64(0)
    for i in range(n):
        own = np.int64((keys[i] - base) >> shift)
        if own != bucket:
            bucket = own
            left = running.histogram[bucket]
        w = weight_of_word(keys[i], layout)
        left += w << 32 | w * class_of_word(keys[i], layout)
        running.weight[i] = left >> 32
        running.second[i] = left & 0xFFFFFFFF
