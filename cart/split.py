"""Split search in one node: draw features, search each, choose, divide the samples.

A feature is searched either at every cut (`BestSplitter`) or at one threshold drawn at random
(`RandomSplitter`, extra trees). Both see the node's samples as `keys` (see `cart.order`).
"""

from typing import NamedTuple

import numpy as np

from cart import criteria
from cart.draw import (
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
    random_below,
    random_between,
)
from cart.jit import dispatch, inline_kernel, kernel
from cart.order import N_COUNTS, code_of, record_of, sort_keys
from cart.table import FEATURE_THRESHOLD, MISSING, gather, remember, row_of


class Node(NamedTuple):
    """The samples of the node at hand, copied together, and room to order them."""

    records: np.ndarray  # (n_records, 1 + n_outputs) float64: weight and targets
    numbers: np.ndarray  # (n,) uint32: of each sample's record
    codes: np.ndarray  # (n,) uint32: of the feature at hand
    keys: np.ndarray  # (n,) uint64: samples in the order of the last feature looked at
    spare_keys: np.ndarray  # (n,) uint64
    counts: np.ndarray  # (N_COUNTS,) int64
    spare_samples: np.ndarray  # (n,) uint64
    positions: np.ndarray  # (n_rows,) int64: of each row in its node, for sparse tables

    @classmethod
    def create(cls, n, n_outputs, n_rows):
        return cls(
            np.empty((n, 1 + n_outputs)),
            np.empty(n, np.uint32),
            np.empty(n, np.uint32),
            np.empty(n, np.uint64),
            np.empty(n, np.uint64),
            np.empty(N_COUNTS, np.int64),
            np.empty(n, np.uint64),
            np.zeros(n_rows, np.int64),
        )


class Split(NamedTuple):
    """A cut of a node; `column` is -1 where there is none."""

    feature: int
    column: int
    left_code: int  # samples with a code up to this one go left
    threshold: float  # values up to this one go left; +inf: all but the missing
    has_missing: bool  # does the feature have missing values in the node?
    missing_left: bool  # do they go left?
    score: float


NO_SPLIT = Split(-1, -1, 0, 0.0, False, False, -np.inf)


class Bounds(NamedTuple):
    """Between which values a node's prediction must lie (monotonic constraints)."""

    lower: float
    upper: float


@kernel
def load_node(criterion, node, table, records, samples, start, n, follow):
    """Take up samples[start:start + n] and sum them up.

    Where sums depend on their order, the samples' records are copied together, and a sample's
    record has its position in the node. Else `node.records` has one row per kind of sample (see
    `cart.grow.number_kinds`): so few that a scan, which meets the samples in any order, finds
    them in the cache.
    """
    remember(table, samples, start, n, node.positions)
    if follow:
        for i in range(n):
            row = row_of(samples[start + i])
            for k in range(records.shape[1]):
                node.records[i, k] = records[row, k]
            node.numbers[i] = i
    else:
        for i in range(n):
            node.numbers[i] = samples[start + i] >> np.uint64(32)
    for i in range(n):
        node.keys[i] = np.uint64(node.numbers[i])
    criteria.load(criterion, node.records, node.keys, n, follow)


@kernel
def known_range(codes, n):
    """The lowest and the highest code that is not MISSING, and how many are MISSING."""
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


@inline_kernel
def same_value(table, column, low, high):
    """Do two codes of a column, low <= high, count as one value?"""
    if low == high:
        return True
    if high - low > table.reach[column]:
        return False
    first = table.level_start[column]
    return table.levels[first + high] <= np.float32(table.levels[first + low] + FEATURE_THRESHOLD)


@kernel
def best_split(
    splitter, criterion, node, draw, table, samples, start, n, limits, bounds, n_constant,
    follow,
):  # fmt: skip
    """Draw features and search each.

    With `follow`, samples keep the order of the feature looked at before wherever they tie, as in
    scikit-learn, whose samples stay in the order of the last sort. It matters only where sums
    depend on their order.

    Returns
    -------
    best : Split
    last_feature : int
        The last one looked at.
    n_constant : int
        How many features are known to be constant now.
    """
    best = NO_SPLIT
    last_feature = -1
    begin_draw(draw, n_constant)
    j = next_feature(draw, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        last_feature = feature
        column = table.columns[feature]
        lowest, highest = gather(table, column, samples, start, n, node.positions, node.codes)
        n_missing = 0
        if highest == MISSING:
            lowest, highest, n_missing = known_range(node.codes, n)
        if n_missing < n and (lowest < highest or n_missing > 0):
            gap = table.reach[column] + np.uint32(1)
            order(splitter, node, n, lowest, highest, n_missing, gap, follow)
        if n_missing == n or (n_missing == 0 and same_value(table, column, lowest, highest)):
            mark_constant(draw, j)
        else:
            mark_searched(draw, j)
            best = search(
                splitter, criterion, node, n, draw, table, feature, lowest, highest, n_missing,
                limits, bounds, best, follow,
            )  # fmt: skip
        j = next_feature(draw, limits.max_features)
    return best, last_feature, end_draw(draw)


# -------------------------------------------------------------------------------- splitters


@dispatch
def search(
    splitter, criterion, node, n, draw, table, feature, lowest, highest, n_missing,
    limits, bounds, best, follow,
):  # fmt: skip
    """Search one feature; return the best Split so far."""
    return splitter.search(
        criterion, node, n, draw, table, feature, lowest, highest, n_missing, limits,
        bounds, best, follow,
    )  # fmt: skip


@dispatch
def order(splitter, node, n, lowest, highest, n_missing, gap, follow):
    """Bring the node's keys into the order in which the feature is searched."""
    splitter.order(node, n, lowest, highest, n_missing, gap, follow)


@dispatch
def is_divided(splitter, best, last_feature):
    """Are the node's keys in the order left | right of the best split already?"""
    return splitter.is_divided(best, last_feature)


class BestSplitter(NamedTuple):
    """Every cut between two values that differ, missing values on either side."""

    name: int = 0  # numba wants a field

    def order(self, node, n, lowest, highest, n_missing, gap, follow):
        order_node(node, n, lowest, highest, n_missing, gap, follow)

    def search(
        self, criterion, node, n, draw, table, feature, lowest, highest, n_missing, limits, bounds,
        best, follow,
    ):  # fmt: skip
        n_known = n - n_missing
        for missing_left in range(2 if n_missing > 0 else 1):
            first = 1
            last = min(n_known, n - 1)
            if missing_left:
                _rotate(node, n, n_known)
                first = n_missing + 1
                last = n - 1
            score, p = scan_cuts(
                criterion, node, n, first, last, table, feature, lowest, limits, bounds,
                best.score,
            )  # fmt: skip
            if p > 0:
                best = _cut_at(
                    node, p, n_known, table, feature, lowest, n_missing, missing_left == 1, score
                )
        return best

    def is_divided(self, best, last_feature):
        return False


class RandomSplitter(NamedTuple):
    """One threshold between the lowest and the highest value, drawn at random (Geurts 2006)."""

    name: int = 1  # numba wants a field

    def search(
        self, criterion, node, n, draw, table, feature, lowest, highest, n_missing,
        limits, bounds, best, follow,
    ):  # fmt: skip
        column = table.columns[feature]
        first = table.level_start[column]
        low = np.float64(table.levels[first + lowest])
        high = np.float64(table.levels[first + highest])
        threshold = random_between(draw.state, low, high)
        missing_left = False
        if n_missing > 0:
            missing_left = random_below(draw.state, 2) == 1
        if threshold == high:
            threshold = low
        left_code = _code_at(table, first, lowest, highest, threshold)
        p = divide_keys(node, n, left_code, missing_left, follow)
        if p < limits.min_samples_leaf or n - p < limits.min_samples_leaf:
            return best
        side = cut_at(criterion, node, p, n)
        if not _is_legal(criterion, side, limits, bounds, feature):
            return best
        score = criteria.score(criterion, side)
        if score > best.score:
            best = Split(feature, column, left_code, threshold, n_missing > 0, missing_left, score)
        return best

    def order(self, node, n, lowest, highest, n_missing, gap, follow):
        pass

    def is_divided(self, best, last_feature):
        return best.feature == last_feature


@kernel
def order_node(node, n, lowest, highest, n_missing, gap, follow):
    """Sort the node's keys along the codes just gathered, missing values last.

    A key's code is relative to `lowest`; the missing ones stand `gap` behind the highest.
    """
    if n_missing > 0 and follow:
        _move_missing_last(node, n)
    for i in range(n):
        number = np.uint32(record_of(node.keys[i])) if follow else node.numbers[i]
        code = node.codes[number] if follow else node.codes[i]
        code = highest - lowest + gap if code == MISSING else code - lowest
        node.keys[i] = (np.uint64(code) << np.uint64(32)) | np.uint64(number)
    top = np.uint64(highest - lowest)
    if n_missing > 0:
        top += np.uint64(gap)
    n_bits = 1
    while (top >> np.uint64(n_bits)) > 0:
        n_bits += 1
    sort_keys(node.keys, n, n_bits, node.counts, node.spare_keys)


@kernel
def _move_missing_last(node, n):
    """scikit-learn's exchange of missing values with known ones from the end."""
    keys = node.keys
    i = 0
    last = n - 1
    while i <= last:
        if node.codes[record_of(keys[last])] == MISSING:
            last -= 1
            continue
        if node.codes[record_of(keys[i])] == MISSING:
            key = keys[i]
            keys[i] = keys[last]
            keys[last] = key
            last -= 1
        i += 1


@kernel
def _rotate(node, n, n_known):
    """Bring the missing values from the end of the order to its beginning."""
    n_missing = n - n_known
    for i in range(n_missing):
        node.spare_keys[i] = node.keys[n_known + i]
    for i in range(n_known - 1, -1, -1):
        node.keys[n_missing + i] = node.keys[i]
    for i in range(n_missing):
        node.keys[i] = node.spare_keys[i]


@inline_kernel
def _is_legal(criterion, side, limits, bounds, feature):
    """Does the cut leave enough weight on either side, and keep a monotonic constraint?"""
    direction = limits.monotonic[feature]
    if direction != 0:
        left, right = criteria.side_values(criterion, side)
        if (
            min(left, right) < bounds.lower
            or max(left, right) > bounds.upper
            or (left - right) * direction > 0
        ):
            return False
    return min(side.weight, criterion.weight[0] - side.weight) >= limits.min_weight_leaf


@kernel
def cut_at(criterion, node, p, n):
    """The Side of the cut behind the first p samples in order."""
    side = criteria.arrange(criterion, node.records, node.keys, n)
    return criteria.advance(criterion, side, node.records, node.keys, 0, p, n)


@kernel
def scan_cuts(criterion, node, n, first, last, table, feature, lowest, limits, bounds, best_score):
    """The best cut of the ordered node that beats `best_score`: its score and position.

    Position p, from `first` to `last`, means that p samples go left; 0 that no cut is better.
    """
    best = 0
    cut = 0  # how many samples the criterion has on the left
    keys = node.keys
    records = node.records
    column = table.columns[feature]
    reach = table.reach[column]
    is_bound = limits.monotonic[feature] != 0 or limits.min_weight_leaf > 0.0
    side = criteria.arrange(criterion, records, keys, n)
    for p in range(max(first, limits.min_samples_leaf), min(last, n - limits.min_samples_leaf) + 1):
        low = code_of(keys[p - 1])
        high = code_of(keys[p])
        if high - low <= reach and same_value(table, column, lowest + low, lowest + high):
            continue
        side = criteria.advance(criterion, side, records, keys, cut, p, n)
        cut = p
        if is_bound and not _is_legal(criterion, side, limits, bounds, feature):
            continue
        score = criteria.score(criterion, side)
        if score > best_score:
            best_score = score
            best = p
    return best_score, best


@kernel
def _cut_at(node, p, n_known, table, feature, lowest, n_missing, missing_left, score):
    """The Split behind the first p samples in order."""
    column = table.columns[feature]
    first = table.level_start[column]
    left_code = np.int64(lowest + code_of(node.keys[p - 1]))
    threshold = np.inf
    if missing_left or p < n_known:
        low = np.float64(table.levels[first + left_code])
        high = np.float64(table.levels[first + lowest + code_of(node.keys[p])])
        threshold = low / 2.0 + high / 2.0
    return Split(feature, column, left_code, threshold, n_missing > 0, missing_left, score)


@kernel
def _code_at(table, first, lowest, highest, threshold):
    """The highest code in [lowest, highest) whose value does not exceed the threshold."""
    low = np.int64(lowest)
    high = np.int64(highest)
    while high - low > 1:
        middle = (low + high) // 2
        if np.float64(table.levels[first + middle]) <= threshold:
            low = middle
        else:
            high = middle
    return low


# -------------------------------------------------------------------------------- dividing


@inline_kernel
def goes_left(code, left_code, missing_left):
    return missing_left if code == MISSING else code <= left_code


@kernel
def divide_keys(node, n, left_code, missing_left, follow):
    """Bring the keys into the order left | right of the codes at hand; return how many go left.

    With `follow` by scikit-learn's exchange from both ends.
    """
    keys = node.keys
    if not follow:
        n_left = 0
        n_right = 0
        for i in range(n):
            left = goes_left(node.codes[i], left_code, missing_left)
            keys[n_left] = np.uint64(node.numbers[i])
            node.spare_keys[n_right] = np.uint64(node.numbers[i])
            n_left += left
            n_right += 1 - left
        for i in range(n_right):
            keys[n_left + i] = node.spare_keys[i]
        return n_left
    first = 0
    end = n
    while first < end:
        if goes_left(node.codes[record_of(keys[first])], left_code, missing_left):
            first += 1
        else:
            end -= 1
            key = keys[first]
            keys[first] = keys[end]
            keys[end] = key
    return first


@kernel
def divide_stably(split, node, samples, start, n):
    """Samples that go left, then samples that go right, each in their present order."""
    n_left = 0
    n_right = 0
    for i in range(n):
        sample = samples[start + i]
        left = goes_left(node.codes[i], split.left_code, split.missing_left)
        samples[start + n_left] = sample
        node.spare_samples[n_right] = sample
        n_left += left
        n_right += 1 - left
    for i in range(n_right):
        samples[start + n_left + i] = node.spare_samples[i]
    for i in range(n):
        node.keys[i] = samples[start + i] >> np.uint64(32)
    return n_left


@kernel
def divide_in_order(split, divided, node, samples, start, n):
    """scikit-learn's: the order of the last feature looked at, then exchange from both ends."""
    for i in range(n):
        node.spare_samples[i] = samples[start + i]
    n_left = 0
    if divided:
        for i in range(n):
            n_left += goes_left(node.codes[i], split.left_code, split.missing_left)
    else:
        n_left = divide_keys(node, n, split.left_code, split.missing_left, True)
    for i in range(n):
        samples[start + i] = node.spare_samples[record_of(node.keys[i])]
    return n_left


@kernel
def divide(splitter, table, split, last_feature, node, samples, start, n, follow):
    """Bring samples[start:start + n] and the keys into the order left | right.

    Returns how many go left.
    """
    gather(table, split.column, samples, start, n, node.positions, node.codes)
    if follow:
        divided = is_divided(splitter, split, last_feature)
        return divide_in_order(split, divided, node, samples, start, n)
    return divide_stably(split, node, samples, start, n)
