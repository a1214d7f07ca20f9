"""Screen a node's keys: only those that may lie beside the best cut are worth sorting.

The keys are counted in buckets of neighbouring codes. The class counts left of a cut inside a
bucket are at least those left of the bucket, and at most those plus the bucket's own; this bounds
the gain of the cut. If the bound is below the best gain at a border between two buckets, the bucket
does not hold the best cut.

    keys       [ . . . . | . . . | . . . . . | . . ]      buckets, each in any order
    gains              2       7           4     0        of the borders behind them
    bounds         3       9         8         5          of the cuts inside
    is_kept        0       1         1         0          9 and 8 may be more than 7
"""

import math

import numpy as np

from cart.fast_paths.base import is_cut
from cart.fast_paths.classification.cumulative_counts import (
    KEPT,
    begin_left,
    count_keys,
    move_key,
    move_left,
)
from cart.fast_paths.classification.impurities import (
    approximate_gains,
    bounds_more_classes,
    gain_to_beat,
)
from cart.fast_paths.classification.packed_rows import (
    class_of,
    code_of_key,
    n_outputs_of,
    weight_of,
)
from cart.jit.decorators import inline_kernel
from cart.primitives.radix_sort import n_bits_of

_ROWS_MIN, _ROWS_MIN_MORE = 128, 2048  # for two classes, and for more, whose bounds are wider
_ROWS_PER_BUCKET = 8  # on average, at least; or two per class, if these are more
_BITS_MAX = 12  # log2 of the most buckets


@inline_kernel
def is_worth_screening(criterion, n, n_classes):
    """Whether a node of n rows has enough of them for screening to pay."""
    if n_classes == 2:
        return n >= _ROWS_MIN
    return n >= _ROWS_MIN_MORE and bounds_more_classes(criterion)


@inline_kernel
def screen(searched, keys, n, span, score, table, column, kept):
    """Write the keys that may lie beside the best cut to `kept`, in any order.

    `span` has the lowest and the highest code. A cut must score more than `score`. On return, the
    histogram holds the counts left of every bucket.

    Returns
    -------
    n_kept : int
    shift : uint32
        Right shift that turns a key, less the key of the lowest code, into its bucket.
    """
    criterion, prefix, layout, counts, weight = searched
    lowest, highest = span
    n_classes = counts.shape[0]
    n_rows = _ROWS_PER_BUCKET if n_classes == 2 else max(_ROWS_PER_BUCKET, 2 * n_classes)
    n_bits = max(min(n_bits_of(np.uint32(n // n_rows)) - 1, _BITS_MAX), 0)
    shift = layout.low_bits + np.uint32(max(n_bits_of(highest - lowest) - n_bits, 0))
    base = lowest << layout.low_bits
    n_buckets = np.int64(((highest << layout.low_bits) - base) >> shift) + 1
    for i in range(3 * n_buckets + 1):  # distinct codes, as `approximate_gains` expects of cuts
        prefix.levels[i] = np.uint32(i) << layout.low_bits
    if n_classes == 2:  # as a constant: the loop over the keys asks nothing
        count_keys(prefix, keys[:n], lowest, shift, n_buckets, np.int64(2), layout)
        _bound_two(criterion, prefix, n_buckets, counts, weight, layout)
    else:
        count_keys(prefix, keys[:n], lowest, shift, n_buckets, n_classes, layout)
        _bound_more(criterion, prefix, n_buckets, counts, weight, layout)
    spare = 2 * n_buckets
    gains = prefix.gain_bits[:n_buckets]  # of the borders behind the buckets
    bounds = prefix.gain_bits[n_buckets:spare]  # of the gains inside buckets
    is_kept = prefix.gain_bits[spare + 1 : spare + 1 + n_buckets]
    border = np.int64(0)
    top = np.int32(0)
    for b in range(n_buckets):
        if gains[b] > gains[border]:
            border = b
        top = max(top, max(gains[b], bounds[b]))
    highest_gain = _gain_of(prefix, spare, top)
    if gain_to_beat(criterion, highest_gain, score, counts, weight) == np.inf:
        return 0, shift
    best = np.float64(prefix.gain[border])
    prefix.gain[spare] = gain_to_beat(criterion, best, -np.inf, counts, weight)
    _mark(gains, bounds, prefix.gain_bits[spare], is_kept)
    n_kept = 0
    for i in range(n):
        kept[n_kept] = keys[i]
        n_kept += np.int64(is_kept[(keys[i] - base) >> shift])
    behind = base + ((np.uint32(border) + np.uint32(1)) << shift)
    if not _is_border(kept, n_kept, behind, table, column, layout):
        n_kept = n
        for i in range(n):
            kept[i] = keys[i]
    return n_kept, shift


# ------------------------------------------------------------------------------- two classes


@inline_kernel
def _bound_two(criterion, prefix, n_buckets, counts, weight, layout):
    """Write the gains of the borders behind the buckets, then bounds of the gains inside buckets.

    The weighted impurity decrease is convex in the counts left of the cut, as impurity is concave.
    Inside a bucket these counts lie in a box, so the decrease is highest at a corner: at a border,
    or where one class of the bucket is left of the cut and the other right of it.
    """
    buckets = prefix.histogram
    left = np.int64(0)
    for b in range(n_buckets):
        second = buckets[b] & 0xFFFFFFFF
        first = (buckets[b] >> 32) - second
        _write_left(prefix, b, left + buckets[b], weight, counts)
        _write_left(prefix, n_buckets + b, left + (first << 32), weight, counts)
        _write_left(prefix, 2 * n_buckets + b, left + (second << 32 | second), weight, counts)
        buckets[b], left = left, left + buckets[b]
    n_cuts = 3 * n_buckets
    approximate_gains(criterion, prefix, prefix.levels, 0, n_cuts, counts, weight, layout.low_mask)
    prefix.gain[n_buckets - 1] = 0.0  # no cut lies behind the last bucket
    corners = prefix.gain_bits[n_buckets:n_cuts]
    for b in range(n_buckets):
        corners[b] = max(corners[b], corners[n_buckets + b])


@inline_kernel
def _write_left(prefix, i, left, weight, counts):
    """Write what lies left of cut i. If that is nothing or all, the gain is 0; half of all is
    written instead, whose gain can be calculated and is not lower."""
    w = left >> 32
    is_empty = w == 0 or w == weight
    prefix.weight[i] = weight >> 1 if is_empty else w
    prefix.second[i] = counts[1] >> 1 if is_empty else left & 0xFFFFFFFF


# ------------------------------------------------------------------------------ more classes


@inline_kernel
def _bound_more(criterion, prefix, n_buckets, counts, weight, layout):
    """Write the gains of the borders behind the buckets, then bounds of those inside, for Gini.

    With counts L of weight w on the left and T of weight W in the node, the gain is
    sum T**2 / W + |d|**2 W / (w (W - w)), where d = L - (w / W) T. Inside a bucket with counts b,
    d lies on the line between its values at the two borders, plus some e = a - s b with
    0 <= a <= b and sum e = 0. So |e| is at most (|b| + |b - mean b|) / 2. The factor of |d|**2 is
    convex in w, so it is highest at a border. Before the first border and behind the last, where
    the factor is unbounded, |d| is at most sqrt(2) times the weight of the smaller side.

    With several outputs, squares are summed up over the classes of all: each output adds a gain.
    """
    n_classes, n_outputs = counts.shape[0], n_outputs_of(layout)
    W = np.float64(weight)
    squares = 0.0
    for c in range(n_classes):
        squares += np.float64(counts[c]) * np.float64(counts[c])
        prefix.left[c] = 0
    node = squares / W
    before = np.int64(0)
    length_before = 0.0
    for b in range(n_buckets):
        here, squares_here, squares_left, squares_right = _pass_bucket(prefix, b, counts)
        after = before + here // n_outputs
        is_last = after == weight
        prefix.weight[b] = weight >> 1 if is_last else after
        prefix.power_left[b] = 0.0 if is_last else np.float64(squares_left)
        prefix.power_right[b] = 0.0 if is_last else np.float64(squares_right)
        w = np.float64(after)
        if is_last:
            length = 0.0
        else:
            gain = np.float64(squares_left) / w + np.float64(squares_right) / (W - w)
            length = math.sqrt(max(gain - node, 0.0) * w * (W - w) / W)
        if before == 0 or is_last:
            bound = 2.0 * np.float64(here) * W / max(W - np.float64(here // n_outputs), 1.0)
        else:
            size = np.float64(squares_here)
            spread = size - np.float64(here * here) / np.float64(n_classes)
            stray = 0.5 * (math.sqrt(size) + math.sqrt(max(spread, 0.0)))
            w_before = np.float64(before)
            product = min(w * (W - w), w_before * (W - w_before))
            farthest = max(length_before, length) + stray
            bound = farthest * farthest * W / product
        # At most, both sides are pure.
        prefix.gain[n_buckets + b] = np.float32(min(node + bound, W * np.float64(n_outputs)))
        before = after
        length_before = length
    approximate_gains(
        criterion, prefix, prefix.levels, 0, n_buckets, counts, weight, layout.low_mask
    )


@inline_kernel
def _pass_bucket(prefix, b, counts):
    """Add the counts of bucket b to `left`; the histogram keeps the counts left of the bucket.

    Returns the sum of its counts, and three sums of squared counts: in the bucket, left of the
    border behind it, and right of that border.
    """
    buckets = prefix.histogram
    left = prefix.left
    n_classes = counts.shape[0]
    squares_left = np.int64(0)
    squares_right = np.int64(0)
    squares_here = np.int64(0)
    here = np.int64(0)
    for c in range(n_classes):
        cell = b * n_classes + c
        count = buckets[cell]
        buckets[cell] = left[c]
        left[c] += count
        right = counts[c] - left[c]
        here += count
        squares_here += count * count
        squares_left += left[c] * left[c]
        squares_right += right * right
    return here, squares_here, squares_left, squares_right


# ---------------------------------------------------------------------------------- keeping


@inline_kernel
def _is_border(keys, n, behind, table, column, layout):
    """Do the values on both sides of the border before key `behind` differ?"""
    low = np.uint32(0)
    high = np.uint32(0xFFFFFFFF)
    for i in range(n):
        if keys[i] < behind:
            low = max(low, keys[i])
        else:
            high = min(high, keys[i])
    return is_cut(table, column, code_of_key(low, layout), code_of_key(high, layout))


@inline_kernel
def _mark(gains, bounds, least, is_kept):
    """Write 1 for the buckets that may reach the gain `least` at a border or inside, else 0."""
    before = np.int32(-1)
    for b in range(gains.shape[0]):
        is_kept[b] = max(max(before, gains[b]), bounds[b]) >= least
        before = gains[b]


@inline_kernel
def _gain_of(prefix, spare, bits):
    """The gain that has these bits, as float64."""
    prefix.gain_bits[spare] = bits
    return np.float64(prefix.gain[spare])


@inline_kernel
def add_up_kept(criterion, prefix, keys, n, lowest, shift, counts, layout):
    """Write the prefix counts of the ordered keys that were kept, including all dropped keys."""
    prefix.origin[0], prefix.origin[1] = KEPT, np.int64(lowest) << np.int64(layout.low_bits)
    prefix.origin[2] = np.int64(shift)
    base = lowest << layout.low_bits
    bucket = np.int64(-1)
    if counts.shape[0] == 2:
        left = np.int64(0)
        for i in range(n):
            own = np.int64((keys[i] - base) >> shift)
            if own != bucket:
                bucket = own
                left = prefix.histogram[bucket]
            w = weight_of(keys[i], layout)
            left += w << 32 | w * class_of(keys[i], layout)
            prefix.weight[i] = left >> 32
            prefix.second[i] = left & 0xFFFFFFFF
        return
    weight = np.int64(0)
    power_left = np.int64(0)
    power_right = np.int64(0)
    for i in range(n):
        own = np.int64((keys[i] - base) >> shift)
        if own != bucket:
            bucket = own
            weight, power_left, power_right = _sums_before(
                criterion, prefix, bucket, counts, layout
            )
        w, more, less = move_key(criterion, prefix.left, counts, keys[i], layout)
        power_left += more
        power_right += less
        weight += w
        prefix.weight[i] = weight
        prefix.power_left[i] = power_left
        prefix.power_right[i] = power_right


@inline_kernel
def _sums_before(criterion, prefix, bucket, counts, layout):
    """Weight and sums of powers left of a bucket; writes the class counts there to `left`."""
    n_classes = counts.shape[0]
    weight = np.int64(0)
    power_left, power_right = begin_left(criterion, prefix.left, counts)
    for c in range(n_classes):
        count = prefix.histogram[bucket * n_classes + c]
        more, less = move_left(criterion, prefix.left, counts, c, count)
        power_left += more
        power_right += less
        weight += count
    return weight // n_outputs_of(layout), power_left, power_right
