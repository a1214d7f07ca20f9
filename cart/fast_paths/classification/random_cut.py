"""Extra trees on whole class counts: one cut a feature, at a threshold drawn at random.

Nothing is ordered. A pass over the node's rows finds the lowest and the highest code, another one
counts the classes up to the threshold:

    codes    [ 4 1 7 2 5 ]        bits of the values, in the order of floats
    class    [ a b a a b ]        threshold between 2 and 4:  left  a 1  b 1
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, NONE_MISSING, Cut
from cart.fast_paths.classification.best_cut import keeps_direction
from cart.fast_paths.classification.impurities import child_impurities
from cart.fast_paths.classification.packed_rows import (
    class_of,
    fit_quarters,
    quarter_of,
    row_number,
    weight_of,
    write_quarters,
)
from cart.fast_paths.classification.path import ClassCountsPath, monotony_of
from cart.jit.decorators import inline_kernel
from cart.splitting.feature_draw import random_between, random_side
from cart.splitting.splitter import RandomSplitter
from cart.table.float_table import FloatTable
from cart.table.node_samples import known_range
from cart.table.ranking import MISSING
from cart.table.table import code_up_to, same_value, value_of

_CLASSES_MAX = 6
_VECTORS_PAY = 32  # rows


class DrawnCuts(NamedTuple):
    """One cut of a feature, at a random threshold."""

    name: int = 1  # numba wants a field

    def search_feature(self, way, node, searched, feature, best):
        return _search_feature(way, node, searched, feature, best)

    def write_cut(self, way, tree, this, node, cut, children):
        tree.nodes.feature[this] = cut.feature
        tree.nodes.threshold[this] = cut.threshold


@inline_kernel
def _search_feature(way, node, searched, feature, best):
    table, rows, keys, limits = way.table, way.tiers[node.tier], way.scratch.keys, way.limits
    column, n = table.columns[feature], node.end - node.start
    words = rows.words[node.start : node.end]
    lowest, highest, n_missing = _gather(rows.codes[column], words, searched.layout, keys)
    if n_missing == n or (n_missing == 0 and same_value(table, column, lowest, highest)):
        return True, best
    low, high = value_of(table, column, lowest), value_of(table, column, highest)
    threshold = random_between(way.draw, feature, low, high)
    goes = NONE_MISSING
    if n_missing > 0:
        goes = MISSING_LEFT if random_side(way.draw, feature, 0) else MISSING_RIGHT
    if not threshold < high:  # rounded up to it, or high - low is infinite
        threshold = low
    if not best.score < 0.0:  # no cut is better: both sides are pure
        return False, best
    left_code = np.uint32(code_up_to(table, column, lowest, highest, threshold))
    n_left = _count_left(searched, keys, words, left_code, goes == MISSING_LEFT)
    if min(n_left, n - n_left) >= limits.min_samples_leaf:
        score = _score_if_legal(searched, monotony_of(way, node, feature), limits.min_weight_leaf)
        if score > best.score:
            best = Cut(feature, np.int64(left_code), 0, score, goes, threshold)
    return False, best


@inline_kernel
def _gather(codes, words, layout, gathered):
    """Gather the codes of a node; the lowest and the highest known, and how many are missing."""
    lowest, highest = MISSING, np.uint32(0)
    for i in range(words.shape[0]):
        code = codes[row_number(words[i], layout)]
        lowest = min(lowest, code)
        highest = max(highest, code)
        gathered[i] = code
    if highest != MISSING:
        return lowest, highest, np.int64(0)
    return known_range(gathered, words.shape[0])


@inline_kernel
def _count_left(node, codes, words, left_code, missing_left):
    """Count the rows, and in `left` the classes, that go left.

    Missing values have the highest code: where they go left, 1 is added to all, which makes it 0.
    A pass for each of few classes takes less time than one for all: it needs no memory but the
    words, so that vector instructions do it. Few rows are done with before these pay.
    """
    left, n_classes, n = node.prefix.left, node.counts.shape[0], words.shape[0]
    layout = node.layout
    class_mask, low_mask, shift = layout.class_mask, layout.low_mask, layout.class_bits
    step = np.uint32(missing_left)
    last = np.uint32(left_code + step)
    n_left = np.uint32(0)
    if n < _VECTORS_PAY and fit_quarters(n, n_classes, layout):
        total = np.uint64(0)
        for i in range(n):
            goes_left = np.uint32(codes[i] + step) <= last
            total += quarter_of(words[i], layout) & -np.uint64(goes_left)
            n_left += np.uint32(goes_left)
        write_quarters(total, left)
        return np.int64(n_left)
    for i in range(n):
        n_left += np.uint32(np.uint32(codes[i] + step) <= last)
    if n_classes > _CLASSES_MAX:
        for c in range(n_classes):
            left[c] = 0
        for i in range(n):
            goes_left = np.uint32(codes[i] + step) <= last
            left[class_of(words[i], layout)] += weight_of(words[i], layout) * goes_left
        return np.int64(n_left)
    for c in range(n_classes):
        its_weight = np.uint32(0)
        for i in range(n):
            goes_left = np.uint32(codes[i] + step) <= last
            is_its = goes_left & ((words[i] & class_mask) == np.uint32(c))
            its_weight += (words[i] & low_mask) >> shift if is_its else np.uint32(0)
        left[c] = its_weight
    return np.int64(n_left)


@inline_kernel
def _score_if_legal(node, monotony, min_weight):
    """Score of the cut whose classes are counted in `left`; -inf where limits forbid it."""
    criterion, running, _, counts, weight = node
    left_weight = np.int64(0)
    for c in range(counts.shape[0]):
        left_weight += running.left[c]
    right_weight = weight - left_weight
    if min(left_weight, right_weight) < min_weight:
        return -np.inf
    if monotony.direction != 0:
        running.weight[0], running.second[0] = left_weight, running.left[1]
        if not keeps_direction(monotony, running, 0, counts, weight):
            return -np.inf
    left, right = child_impurities(criterion, running.left, counts, left_weight, weight)
    return -np.float64(right_weight) * right - np.float64(left_weight) * left


class RandomClassCountsPath(ClassCountsPath):
    """Grows extra trees of classification whose weights are whole numbers."""

    splitter, table_kind = RandomSplitter, FloatTable
    cuts_searched = DrawnCuts()
    copy_bytes = 2**15, 2**12
    most_outputs = 1
