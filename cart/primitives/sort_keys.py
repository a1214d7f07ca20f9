"""Sort a node's samples along a feature: by insertion if few, by radix if many, else by buckets.

A sample is one uint64 key. All sorts are stable and compare codes only.

    bit 63              32 31               0
    |  code, the rank   |  number of record  |
    |  of the value     |  (weight, targets) |

The bucket sort distributes the keys over about as many buckets, by the leading bits of their codes;
insertion then sorts what is out of order within a bucket:

    keys       5.2 0.7 5.1 3.9 0.3
    buckets    0.7 0.3 | 3.9 | 5.2 5.1
    inserted   0.3 0.7 | 3.9 | 5.1 5.2
"""

import numpy as np

from cart.jit.decorators import inline_kernel, kernel
from cart.primitives.radix_sort import N_DIGITS, sort_by_digits

RECORD = np.uint64(0xFFFFFFFF)
CODE_SHIFT = np.uint64(32)

_INSERTION_MAX = 20
_BUCKETS_MAX = 1024
_RUN = 16  # length of the runs that are sorted by insertion, then merged
_BUCKET_SIZE_MAX = 32
N_COUNTS = N_DIGITS  # length of `counts`: more than buckets need, at most 2 * _BUCKETS_MAX


@inline_kernel
def record_of(key):
    """The number of the record of a sample, from its key."""
    return np.int64(key & RECORD)


@inline_kernel
def code_of(key):
    """The code of a sample, from its key."""
    return np.uint32(key >> CODE_SHIFT)


@inline_kernel
def row_of(sample):
    """The table row of a sample: its low 32 bits; the high 32 bits number its record."""
    return np.int64(sample & np.uint64(0xFFFFFFFF))


@inline_kernel
def first_not_below(items, n, item):
    """The position of the first of n ascending items that is not below `item`; n if all are."""
    low, high = np.int64(0), np.int64(n)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def sort_by_insertion(source, n, keys):
    """Write source[:n], few or nearly sorted keys, to `keys`, perhaps the same array, in order."""
    for i in range(n):
        key = source[i]
        code = key >> CODE_SHIFT
        j = i
        while j > 0 and (keys[j - 1] >> CODE_SHIFT) > code:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel
def sort_by_digit(keys, n, shift, bits, counts, out):
    """Sort by `bits` bits of the code from bit `shift` on, in one stable counting pass."""
    mask = np.uint64((1 << bits) - 1)
    right = CODE_SHIFT + np.uint64(shift)
    for d in range((1 << bits) + 1):
        counts[d] = 0
    for i in range(n):
        counts[np.int64((keys[i] >> right) & mask) + 1] += 1
    for d in range(1 << bits):
        counts[d + 1] += counts[d]
    for i in range(n):
        d = np.int64((keys[i] >> right) & mask)
        out[counts[d]] = keys[i]
        counts[d] += 1


@kernel
def sort_by_radix(keys, n, n_bits, counts, spare):
    """Sort keys[:n] by code, all codes below 2**n_bits."""
    if sort_by_digits(keys, n, np.uint64(0), CODE_SHIFT, n_bits, spare, counts):
        for i in range(n):
            keys[i] = spare[i]


@kernel
def sort_by_buckets(keys, n, n_bits, counts, spare):
    """Distribute keys over about n buckets by their leading bits, then sort by insertion.

    Returns False, and leaves the keys as they are, if a bucket is too large for insertion.
    """
    bits = 1
    while (1 << bits) < n and bits < n_bits:
        bits += 1
    sort_by_digit(keys, n, n_bits - bits, bits, counts, spare)
    if bits < n_bits and _largest_bucket(counts, 1 << bits) > _BUCKET_SIZE_MAX:
        return False
    sort_by_insertion(spare, n, keys)
    return True


@kernel
def _largest_bucket(ends, n_buckets):
    largest = ends[0]
    for d in range(1, n_buckets):
        largest = max(largest, ends[d] - ends[d - 1])
    return largest


@kernel
def sort_keys(keys, n, n_bits, counts, spare):
    """Sort keys[:n] by code, all codes below 2**n_bits, in the way that suits n."""
    if n <= _INSERTION_MAX:
        sort_by_insertion(keys, n, keys)
    elif n > _BUCKETS_MAX or not sort_by_buckets(keys, n, n_bits, counts, spare):
        sort_by_radix(keys, n, n_bits, counts, spare)


@kernel
def sort_positions_by_value(values, column, n, spare):
    """Stable merge sort of the positions 0, ..., n - 1 by values[:, column], into spare[0]; short
    runs are sorted by insertion first."""
    for i in range(n):
        value, j = values[i, column], i
        while j % _RUN > 0 and value < values[spare[0, j - 1], column]:
            spare[0, j] = spare[0, j - 1]
            j -= 1
        spare[0, j] = i
    source = 0
    width = _RUN
    while width < n:
        target = 1 - source
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            i = start
            j = middle
            for t in range(start, end):
                take_left = i < middle and (
                    j >= end or values[spare[source, i], column] <= values[spare[source, j], column]
                )
                if take_left:
                    spare[target, t] = spare[source, i]
                    i += 1
                else:
                    spare[target, t] = spare[source, j]
                    j += 1
        source = target
        width *= 2
    if source == 1:
        for i in range(n):
            spare[0, i] = spare[1, i]
