"""Missing values of a small node: a column that has any is searched with them last, then first.

The words of such a column are written a second time, "turned", as if it were another column. There
the missing values (m) come first, with the lowest known rank, so that no cut lies behind them:

    column   [ r0 r1 r2 m  m  ]
    turned   [ m  m  r0 r1 r2 ]       m: in the order that scikit-learn's exchange leaves them in
"""

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, NONE_MISSING
from cart.fast_paths.regression.small_nodes.cut import number_at, rank_at
from cart.fast_paths.regression.small_nodes.node import (
    BELOW_RANK,
    DEVIATIONS,
    MISSING_RANK,
    NO_DEVIATION,
    RANK_SHIFT,
    WEIGHT_SHIFT,
    WEIGHTS,
    is_bit,
    missing_word,
    place_of,
    show_order,
)
from cart.jit.decorators import inline_kernel, kernel


@kernel
def turn_drawn(small, samples, node, drawn, n_drawn):
    """Insert into the drawn columns, after each one with missing values, its turned copy.

    Returns how many columns are to be searched now, and the one in whose order samples are left.
    """
    n, last, n_searches = node.n, np.int64(-1), n_drawn
    for k in range(n_drawn):
        before, last = last, drawn.column[k]
        if _is_missing(small, n - 1, last):
            n_searches += turn_missing(small, samples, node, last, before) > 1
            last += small.turned
    at = n_searches
    for k in range(n_drawn - 1, -1, -1):
        feature, column = drawn.feature[k], drawn.column[k]
        missing = MISSING_RIGHT if _is_missing(small, n - 1, column) else NONE_MISSING
        if missing == MISSING_RIGHT and not _is_missing(small, 1, column):  # two are known
            at -= 1
            drawn.feature[at], drawn.column[at] = feature, column + small.turned
            drawn.missing[at] = MISSING_LEFT
        at -= 1
        drawn.feature[at], drawn.column[at], drawn.missing[at] = feature, column, missing
    return n_searches, last


@inline_kernel
def _is_missing(small, i, column):
    """Is the i-th value of a column missing, where missing values stand last?"""
    return not is_bit(small.bits, column) and rank_at(small, i, column) == MISSING_RANK


@inline_kernel
def turn_missing(small, samples, node, column, last):
    """Write a column's words turned, and the gains of its cuts; return how many values are known.

    Its missing values take scikit-learn's order, which follows from that of the column searched
    before, `last`, or from the order of the samples if `last` is -1.
    """
    n, ordered, turned = node.n, small.ordered, column + small.turned
    n_known = n - 1
    while _is_missing(small, n_known - 1, column):
        n_known -= 1
    n_missing = n - n_known
    if n_missing > 1:
        last = show_order(small.bits, small, last)
        _exchange_missing(small, samples, node, column, last, n_known)
    lowest = rank_at(small, 0, column) << RANK_SHIFT
    weight, excess = np.int64(0), np.int64(0)
    for i in range(n_missing):
        word = np.int64(ordered[place_of(n_known + i, column)])
        weight += word >> WEIGHT_SHIFT & WEIGHTS
        excess += (word & DEVIATIONS) - NO_DEVIATION
        ordered[place_of(i, turned)] = word & BELOW_RANK | lowest
        small.gain[place_of(i, turned)] = -1.0
    of_all = excess
    for i in range(n_known):
        word = np.int64(ordered[place_of(i, column)])
        of_all += (word & DEVIATIONS) - NO_DEVIATION
        ordered[place_of(n_missing + i, turned)] = word
    if n_known > 1:
        _write_gains(small, turned, n_missing, node, weight, excess, of_all)
    return n_known


@inline_kernel
def _write_gains(small, column, first, node, left, excess, of_all):
    """Write the gains of the cuts behind the `first` missing rows, which have weight `left` and sum
    of deviations `excess`, as `cart.fast_paths.regression.small_nodes.cut.sort_small_node` does."""
    weight, place = np.int64(node.weight), np.int64(0)
    share = np.float64(of_all) / np.float64(weight)
    top = second = np.float32(-1.0)
    for i in range(first, node.n - 1):
        word = np.int64(small.ordered[place_of(i, column)])
        left += word >> WEIGHT_SHIFT & WEIGHTS
        excess += (word & DEVIATIONS) - NO_DEVIATION
        above = np.float64(excess) - np.float64(left) * share
        gain = np.float32(above * above / np.float64(left * (weight - left)))
        if word >> RANK_SHIFT == rank_at(small, i + 1, column):
            gain = np.float32(-1.0)
        small.gain[place_of(i, column)] = gain
        is_best = gain > top
        second = top if is_best else max(gain, second)
        place = i if is_best else place
        top = gain if is_best else top
    small.top[column], small.second[column], small.place[column] = top, second, place


@inline_kernel
def _exchange_missing(small, samples, node, column, last, n_known):
    """Order the missing values of a column as
    `cart.fast_paths.regression.sorted_rows.order_missing` does."""
    n, coming, is_missing = node.n, small.coming, np.uint64(0)
    for i in range(n_known, n):
        is_missing |= np.uint64(1) << np.uint64(number_at(small, i, column))
    n_coming = 0
    for i in range(n_known):
        number = np.int64(samples[node.start + i]) if last < 0 else number_at(small, i, last)
        coming[n_coming] = number
        n_coming += np.int64(is_missing >> np.uint64(number) & np.uint64(1))
    n_coming = 0
    for i in range(n - 1, n_known - 1, -1):
        number = np.int64(samples[node.start + i]) if last < 0 else number_at(small, i, last)
        stays = np.int64(is_missing >> np.uint64(number) & np.uint64(1))
        number = number if stays else np.int64(coming[n_coming])
        n_coming += 1 - stays
        small.ordered[place_of(i, column)] = missing_word(small, number, column)
