"""Load a node's samples from the tree's, order them along a feature, and divide them left | right.

The tree's samples are one array, in which every node owns a run; a split divides the run:

    samples = [ ... | a b c d e f g | ... ]      the node: samples[start:start + n]
    samples = [ ... | a c f | b d e g | ... ]    its children: n_left, and the rest

In the node a sample is a key, `code | record` (see `cart.primitives.sort_keys`). When keys are
ordered along a feature, missing values come last; a cut after p keys sends keys[:p] left. To send
missing values left, the keys are rotated:

    keys = [ 1 1 2 4 | ? ? ]     cut p = 1, 2, ..., n_known
    keys = [ ? ? | 1 1 2 4 ]     cut p = n_missing + 1, ...

If a feature of a sparse table is 0 in most samples, only the other samples are listed, by their
positions in the node. The keys of the zeros are not read, as no cut lies between them and sums are
taken from the shorter side:

    keys = [ lower than 0 | 0 . . . . . . . 0 | higher than 0 ]
                            unlisted[0]         unlisted[1]
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel, kernel
from cart.primitives.partition import partition
from cart.primitives.radix_sort import n_bits_of
from cart.primitives.sort_keys import N_COUNTS, record_of, row_of, sort_keys
from cart.table.ranking import MISSING


class NodeSamples(NamedTuple):
    """The samples of the current node, copied together, and room to order them."""

    records: np.ndarray  # (n_records, 1 + n_outputs) float64: weight and targets
    numbers: np.ndarray  # (n,) uint32: the number of each sample's record
    codes: np.ndarray  # (n + 1,) uint32: of the current feature, for all samples or those listed
    keys: np.ndarray  # (n,) uint64: samples in the order of the last feature searched
    spare_keys: np.ndarray  # (n,) uint64
    counts: np.ndarray  # (N_COUNTS,) int32
    spare_samples: np.ndarray  # (n,) uint64

    @classmethod
    def create(cls, n, n_outputs):
        return cls(
            np.empty((n, 1 + n_outputs)), np.empty(n, np.uint32), np.empty(n + 1, np.uint32),
            np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(N_COUNTS, np.int32),
            np.empty(n, np.uint64),
        )  # fmt: skip


class Listed(NamedTuple):
    """The samples of a node that are not 0 in the current column of a sparse table."""

    at: np.ndarray  # (n + 1,) uint32: positions in the node; `NodeSamples.codes` has their codes
    unlisted: np.ndarray  # (2,) int64: first and end of the keys of the others
    positions: np.ndarray  # (n_rows,) int64: of each row in the tree's samples; -1: not in-bag
    spare_codes: np.ndarray  # (n,) uint32

    @classmethod
    def create(cls, n, n_rows):
        return cls(
            np.empty(n + 1, np.uint32), np.zeros(2, np.int64), np.empty(n_rows, np.int64),
            np.empty(n, np.uint32),
        )  # fmt: skip


class FeatureCodes(NamedTuple):
    """A summary of the codes of one feature that were gathered in a node."""

    feature: int
    column: int
    n: int  # samples of the node
    n_listed: int  # samples whose codes were gathered: all, or those not 0 in a sparse table
    n_missing: int
    lowest: np.uint32  # of the codes that are not MISSING
    highest: np.uint32  # of the codes that are not MISSING


@inline_kernel
def with_range(codes, lowest, highest):
    """Replace the lowest and the highest code of a FeatureCodes."""
    return FeatureCodes(
        codes.feature, codes.column, codes.n, codes.n_listed, codes.n_missing, np.uint32(lowest),
        np.uint32(highest),
    )  # fmt: skip


@inline_kernel
def without_missing(codes):
    """Restrict a FeatureCodes to the samples whose code is known."""
    n = codes.n - codes.n_missing
    return FeatureCodes(codes.feature, codes.column, n, n, np.int64(0), codes.lowest, codes.highest)


@kernel
def load_node(node, records, samples, start, n, keep_order):
    """Load samples[start:start + n] into the node.

    With `keep_order`, when sums depend on the order of the samples, their records are copied, and
    number i is the record of the node's i-th sample. Else `node.records` has one row per distinct
    record (see `cart.growth.general.number_distinct_records`): so few that they stay in the cache
    during a scan, which meets the samples in any order.
    """
    if keep_order:
        for i in range(n):
            row = row_of(samples[start + i])
            for k in range(records.shape[1]):
                node.records[i, k] = records[row, k]
            node.numbers[i] = i
            node.keys[i] = i
    else:
        for i in range(n):
            node.numbers[i] = samples[start + i] >> np.uint64(32)
            node.keys[i] = samples[start + i] >> np.uint64(32)


@kernel
def known_range(codes, n):
    """Return the lowest and the highest code other than MISSING, and how many are MISSING."""
    lowest = MISSING
    highest = np.uint32(0)
    n_missing = 0
    for i in range(n):
        code = codes[i]
        if code == MISSING:
            n_missing += 1
        else:
            lowest = min(lowest, code)
            highest = max(highest, code)
    return lowest, highest, n_missing


@kernel
def order_node(node, codes, gap, keep_order):
    """Sort the node's keys by the codes just gathered, missing values last.

    The code in a key is relative to the lowest; that of missing values is `gap` above the highest.
    """
    n, lowest, highest = codes.n, codes.lowest, codes.highest
    if codes.n_missing > 0 and keep_order:
        _move_missing_last(node, n)
    for i in range(n):
        number = np.uint32(record_of(node.keys[i])) if keep_order else node.numbers[i]
        code = node.codes[number] if keep_order else node.codes[i]
        code = highest - lowest + gap if code == MISSING else code - lowest
        node.keys[i] = (np.uint64(code) << np.uint64(32)) | np.uint64(number)
    top = np.uint64(highest - lowest)
    if codes.n_missing > 0:
        top += np.uint64(gap)
    sort_keys(node.keys, n, n_bits_of(top), node.counts, node.spare_keys)


@kernel
def order_listed(node, listed, codes, zero):
    """Order the keys of the listed samples: those below zero at the front, above it at the end."""
    n, n_listed, lowest = codes.n, codes.n_listed, codes.lowest
    n_lower, in_order = 0, True
    for j in range(n_listed):
        n_lower += node.codes[j] < zero
        in_order &= j == 0 or node.codes[j - 1] <= node.codes[j]
    first = n - (n_listed - n_lower)
    lower = 0
    higher = first
    for j in range(n_listed):
        code = node.codes[j]
        key = np.uint64(code - lowest) << np.uint64(32) | np.uint64(node.numbers[listed.at[j]])
        if code < zero:
            node.keys[lower] = key
            lower += 1
        else:
            node.keys[higher] = key
            higher += 1
    if not in_order:
        n_bits = n_bits_of(np.uint64(codes.highest - lowest))
        sort_keys(node.keys, n_lower, n_bits, node.counts, node.spare_keys)
        sort_keys(node.keys[first:], n - first, n_bits, node.counts, node.spare_keys)
    node.keys[n_lower] = np.uint64(zero - lowest) << np.uint64(32)
    node.keys[first - 1] = node.keys[n_lower]
    listed.unlisted[0] = n_lower
    listed.unlisted[1] = first


@kernel
def _move_missing_last(node, n):
    """Exchange missing values with known ones from the end, as scikit-learn does."""
    keys = node.keys
    i = 0
    last = n - 1
    while i <= last:
        if node.codes[record_of(keys[last])] == MISSING:
            last -= 1
            continue
        if node.codes[record_of(keys[i])] == MISSING:
            keys[i], keys[last] = keys[last], keys[i]
            last -= 1
        i += 1


@kernel
def rotate(node, n, n_known):
    """Move the missing values from the end of the order to its beginning."""
    n_missing = n - n_known
    for i in range(n_missing):
        node.spare_keys[i] = node.keys[n_known + i]
    for i in range(n_known - 1, -1, -1):
        node.keys[n_missing + i] = node.keys[i]
    for i in range(n_missing):
        node.keys[i] = node.spare_keys[i]


# -------------------------------------------------------------------------------- dividing


@inline_kernel
def _goes_left(code, left_code, missing_left):
    return missing_left if code == MISSING else code <= left_code


class _Sides(NamedTuple):
    """Which way each sample goes by its gathered code (see `cart.primitives.partition`)."""

    codes: np.ndarray
    left_code: int
    missing_left: bool

    def goes_left(self, i, item):
        return _goes_left(self.codes[i], self.left_code, self.missing_left)


@kernel
def divide_keys(node, n, left_code, missing_left, keep_order):
    """Divide the keys left | right by the codes gathered; return how many go left.

    With `keep_order`, they are exchanged from both ends as in scikit-learn.
    """
    keys = node.keys
    if not keep_order:
        sides = _Sides(node.codes, left_code, missing_left)
        return partition(sides, node.numbers, n, keys, node.spare_keys)
    first = 0
    end = n
    while first < end:
        if _goes_left(node.codes[record_of(keys[first])], left_code, missing_left):
            first += 1
        else:
            end -= 1
            keys[first], keys[end] = keys[end], keys[first]
    return first


@kernel
def divide_listed(node, listed, n, n_listed, left_code, zero):
    """As `divide_keys`; only listed samples that go the other way than the zeros are written."""
    is_zero_left = zero <= left_code
    n_others = 0
    for j in range(n_listed):
        if (node.codes[j] <= left_code) != is_zero_left:
            at = n - 1 - n_others if is_zero_left else n_others
            node.keys[at] = np.uint64(node.numbers[listed.at[j]])
            n_others += 1
    return n - n_others if is_zero_left else n_others


@kernel
def divide_stably(split, node, samples, start, n):
    """Divide the samples left | right, each side in its present order; return how many go left."""
    sides = _Sides(node.codes, split.left_code, split.missing_left)
    mine = samples[start : start + n]
    partition(sides, mine, n, mine, node.spare_samples)
    return partition(sides, node.numbers, n, node.keys, node.spare_keys)


@kernel
def divide_by_exchange(split, divided, node, samples, start, n):
    """Divide the samples in the order that scikit-learn leaves them in; return how many go left.

    They take the order of the last feature searched, then are exchanged from both ends; `divided`
    says that the keys are left | right already.
    """
    for i in range(n):
        node.spare_samples[i] = samples[start + i]
    n_left = 0
    if divided:
        for i in range(n):
            n_left += _goes_left(node.codes[i], split.left_code, split.missing_left)
    else:
        n_left = divide_keys(node, n, split.left_code, split.missing_left, True)
    for i in range(n):
        samples[start + i] = node.spare_samples[record_of(node.keys[i])]
    return n_left
