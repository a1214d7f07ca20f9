"""Exact split search in one node: order its samples along a feature, scan every cut, choose."""

from typing import NamedTuple

import numpy as np

from cart import criteria
from cart.draw import begin_draw, end_draw, mark_constant, mark_searched, next_feature
from cart.jit import inline_kernel, kernel
from cart.order import N_COUNTS, code_of, position_of, sort_keys
from cart.table import FEATURE_THRESHOLD


class Node(NamedTuple):
    """The samples of the node at hand, copied together, and room to order them."""

    records: np.ndarray  # (n, 1 + n_outputs) float64: weight and targets of each sample
    codes: np.ndarray  # (n,) uint32: of the feature at hand
    keys: np.ndarray  # (n,) uint64: samples in the order of the last feature looked at
    spare_keys: np.ndarray  # (n,) uint64
    counts: np.ndarray  # (N_COUNTS,) int64
    spare_samples: np.ndarray  # (n,) int64

    @classmethod
    def create(cls, n, n_outputs):
        return cls(
            np.empty((n, 1 + n_outputs)),
            np.empty(n, np.uint32),
            np.empty(n, np.uint64),
            np.empty(n, np.uint64),
            np.empty(N_COUNTS, np.int64),
            np.empty(n, np.int64),
        )


class Split(NamedTuple):
    """The best cut of a node; `column` is -1 where there is none."""

    feature: int
    column: int
    left_code: int  # samples with a code up to this one go left
    right_code: int  # the lowest code on the right
    score: float


NO_SPLIT = Split(-1, -1, 0, 0, -np.inf)


@kernel
def copy_records(node, records, samples, start, n):
    """Copy the records of samples[start:start + n] together."""
    for i in range(n):
        row = samples[start + i]
        for k in range(records.shape[1]):
            node.records[i, k] = records[row, k]


@kernel
def load_node(criterion, node, records, samples, start, n):
    """Copy the records of samples[start:start + n] together and sum them up."""
    copy_records(node, records, samples, start, n)
    criteria.clear(criterion)
    for i in range(n):
        criteria.add(criterion, node.records, i)


@kernel
def gather_codes(codes, samples, start, n, out):
    """Copy the node's codes of one column; return the lowest and the highest."""
    lowest = codes[samples[start]]
    highest = lowest
    for i in range(n):
        code = codes[samples[start + i]]
        out[i] = code
        lowest = min(lowest, code)
        highest = max(highest, code)
    return lowest, highest


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
def order_node(node, n, lowest, highest, follow):
    """Sort the node's keys along the codes just gathered.

    With `follow`, ties keep the order of the feature before, as in scikit-learn, whose samples
    stay in the order of the last sort. It matters only where sums depend on their order.
    """
    for i in range(n):
        position = position_of(node.keys[i]) if follow else i
        code = node.codes[position] - lowest
        node.keys[i] = (np.uint64(code) << np.uint64(32)) | np.uint64(position)
    n_bits = 1
    while (np.uint64(highest - lowest) >> np.uint64(n_bits)) > 0:
        n_bits += 1
    sort_keys(node.keys, n, n_bits, node.counts, node.spare_keys)


@kernel
def scan_cuts(criterion, node, n, table, column, lowest, limits, best_score):
    """The best cut of the ordered node that beats `best_score`: its score and position.

    Position p means that p samples go left; 0 means that no cut is better.
    """
    best = 0
    cut = 0  # how many samples the criterion has on the left
    keys = node.keys
    records = node.records
    min_leaf = limits.min_samples_leaf
    reach = table.reach[column]
    criteria.all_right(criterion)
    for p in range(max(1, min_leaf), n - max(1, min_leaf) + 1):
        low = code_of(keys[p - 1])
        high = code_of(keys[p])
        if low == high:
            continue
        if high - low <= reach and same_value(table, column, lowest + low, lowest + high):
            continue
        if p - cut <= n - p:
            for i in range(cut, p):
                criteria.move_left(criterion, records, position_of(keys[i]))
        else:
            criteria.all_left(criterion)
            for i in range(n - 1, p - 1, -1):
                criteria.move_right(criterion, records, position_of(keys[i]))
        cut = p
        weight_left = criterion.weight[1]
        if min(weight_left, criterion.weight[0] - weight_left) < limits.min_weight_leaf:
            continue
        score = criteria.score(criterion)
        if score > best_score:
            best_score = score
            best = p
    return best_score, best


@kernel
def best_split(criterion, node, draw, table, samples, start, n, limits, n_constant, follow):
    """Draw features and search each; return the best Split and how many features are constant."""
    best = NO_SPLIT
    if follow:
        for i in range(n):
            node.keys[i] = np.uint64(i)
    begin_draw(draw, n_constant)
    j = next_feature(draw, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        column = table.columns[feature]
        lowest, highest = gather_codes(table.codes[column], samples, start, n, node.codes)
        if lowest != highest:
            order_node(node, n, lowest, highest, follow)
        if same_value(table, column, lowest, highest):
            mark_constant(draw, j)
        else:
            mark_searched(draw, j)
            score, p = scan_cuts(criterion, node, n, table, column, lowest, limits, best.score)
            if p > 0:
                left_code = lowest + code_of(node.keys[p - 1])
                right_code = lowest + code_of(node.keys[p])
                best = Split(feature, column, np.int64(left_code), np.int64(right_code), score)
        j = next_feature(draw, limits.max_features)
    return best, end_draw(draw)


@kernel
def partition_stable(codes, left_code, node, samples, start, n):
    """Rows that go left, then rows that go right, each in their present order."""
    n_left = 0
    n_right = 0
    for i in range(n):
        row = samples[start + i]
        goes_left = codes[row] <= left_code
        samples[start + n_left] = row
        node.spare_samples[n_right] = row
        n_left += goes_left
        n_right += 1 - goes_left
    for i in range(n_right):
        samples[start + n_left + i] = node.spare_samples[i]
    return n_left


@kernel
def partition_in_sorted_order(codes, left_code, node, samples, start, n):
    """scikit-learn's: the order of the last feature looked at, then exchange from both ends."""
    for i in range(n):
        node.spare_samples[i] = samples[start + i]
    for i in range(n):
        samples[start + i] = node.spare_samples[position_of(node.keys[i])]
    first = start
    end = start + n
    while first < end:
        row = samples[first]
        if codes[row] <= left_code:
            first += 1
        else:
            end -= 1
            samples[first] = samples[end]
            samples[end] = row
    return first - start


@kernel
def partition(table, split, node, samples, start, n, follow):
    """Bring samples[start:start + n] into the order left | right; return how many go left."""
    codes = table.codes[split.column]
    if follow:
        return partition_in_sorted_order(codes, split.left_code, node, samples, start, n)
    return partition_stable(codes, split.left_code, node, samples, start, n)


@kernel
def cut_at(criterion, node, n, n_left):
    """Put the cut behind the first `n_left` records."""
    if n_left <= n - n_left:
        criteria.all_right(criterion)
        for i in range(n_left):
            criteria.move_left(criterion, node.records, i)
    else:
        criteria.all_left(criterion)
        for i in range(n - 1, n_left - 1, -1):
            criteria.move_right(criterion, node.records, i)
