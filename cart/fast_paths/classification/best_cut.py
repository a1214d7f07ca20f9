"""The best cut on class counts, in two passes: float32 gains, then scikit-learn's float64 scores.

Only the cuts whose gain is within its error of the best gain are scored.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import is_cut
from cart.fast_paths.classification.cumulative_counts import BLOCK
from cart.fast_paths.classification.impurities import (
    NO_CUT,
    approximate_gains,
    gain_to_beat,
    score_cut,
    scores_at_once,
)
from cart.fast_paths.classification.packed_rows import code_of_key
from cart.jit.decorators import inline_kernel, kernel
from cart.splitting.splitter import Bounds, breaks


class Monotony(NamedTuple):
    """The monotonic constraint on the cuts of a feature, with two classes."""

    direction: int  # in which the first class's share may change along the feature; 0: any
    bounds: Bounds  # of this share on both sides


@inline_kernel
def choose_cut(searched, entries, first, last, score, table, column, monotony):
    """Find the best of the cuts from `first` to `last` (excluded) that score more than `score`.

    Returns its score and its place; the place is -1 if there is none.
    """
    criterion, prefix, layout, counts, weight = searched
    best = -1
    if last <= first:
        return score, best
    if scores_at_once(criterion, last) and monotony.direction == 0:
        top = score
        for i in range(first, last):  # without an unpredictable branch
            found = score_cut(criterion, prefix, entries, i, counts, weight, layout)
            is_best = (found > top) & (entries[i] ^ entries[i + 1] > layout.low_mask)
            top = found if is_best else top
            best = i if is_best else best
        if best < 0 or _is_cut_of(table, column, entries, best, layout):
            return top, best
    approximate_gains(criterion, prefix, entries, first, last, counts, weight, layout.low_mask)
    if monotony.direction != 0:
        _rule_out_illegal(monotony, searched, first, last)
    while True:
        top = _find_tops(prefix, first, last)
        if top < 0.0:
            return score, -1
        least = gain_to_beat(criterion, top, score, counts, weight)
        if least == np.inf:
            return score, -1
        prefix.gain[last] = least
        least_bits = prefix.gain_bits[last]
        best = -1
        best_score = score
        is_settled = True
        for block in range((last - first + BLOCK - 1) // BLOCK):
            if prefix.tops[block] < least_bits:
                continue
            begin = first + block * BLOCK
            for i in range(begin, min(begin + BLOCK, last)):
                if prefix.gain_bits[i] < least_bits:
                    continue
                if not _is_cut_of(table, column, entries, i, layout):
                    is_settled = False
                    break
                found = score_cut(criterion, prefix, entries, i, counts, weight, layout)
                if found > best_score:
                    best_score = found
                    best = i
        if is_settled:
            return best_score, best
        for i in range(first, last):  # a tie may have had the highest gain
            if prefix.gain_bits[i] >= 0 and not _is_cut_of(table, column, entries, i, layout):
                prefix.gain[i] = NO_CUT


@inline_kernel
def keeps_direction(monotony, prefix, i, counts, weight):
    """Do the shares of the first class on both sides of cut i respect a monotonic constraint?"""
    left_weight = np.int64(prefix.weight[i])
    first_left = left_weight - np.int64(prefix.second[i])
    left = np.float64(first_left) / np.float64(left_weight)
    right = np.float64(counts[0] - first_left) / np.float64(weight - left_weight)
    return not breaks(monotony.bounds, monotony.direction, left, right)


@kernel
def _rule_out_illegal(monotony, searched, first, last):
    for i in range(first, last):
        if not keeps_direction(monotony, searched.prefix, i, searched.counts, searched.weight):
            searched.prefix.gain[i] = NO_CUT


@kernel
def with_enough_weight(prefix, first, last, weight, least):
    """Narrow `first` and `last` (excluded) to the cuts that leave weight `least` on both sides."""
    while first < last and prefix.weight[first] < least:
        first += 1
    while first < last and np.float64(weight - prefix.weight[last - 1]) < least:
        last -= 1
    return first, last


@inline_kernel
def _is_cut_of(table, column, entries, i, layout):
    low = code_of_key(entries[i], layout)
    high = code_of_key(entries[i + 1], layout)
    return is_cut(table, column, low, high)


@inline_kernel
def _find_tops(prefix, first, last):
    """Return the highest gain; write that of each block, as bits, to `tops`."""
    bits = prefix.gain_bits[first:last]
    top = np.int32(-1)
    for block in range((last - first + BLOCK - 1) // BLOCK):
        mine = bits[block * BLOCK : block * BLOCK + BLOCK]
        highest = np.int32(-1)
        for i in range(mine.shape[0]):
            highest = np.int32(max(highest, mine[i]))
        prefix.tops[block] = highest
        top = max(top, highest)
    prefix.gain_bits[last] = top
    return np.float64(prefix.gain[last])
