"""Missing values of a small node: a column that has any is searched with them last, then first.

In the words of a column missing values (m) come last. Its cuts with the missing on the left are
those of another column, the "turned" one, which has gains, but no words of its own:

    words    [ r0 | r1 | r2 | m  m ]      gain of "r0, r1 go left" at 1
    turned   [ r0 | r1 | r2 ]             gain of "m, m, r0, r1 go left" at 1

scikit-learn leaves the samples in the turned order, [ m m r0 r1 r2 ]. Which of the missing comes
first follows from the order that the column before has left. It is found out only where sums in
that order are needed, for few columns: one with at most one missing value needs none before it.
"""

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, NONE_MISSING
from cart.fast_paths.regression.small_nodes.node import (
    BELOW_RANK,
    BLOCK,
    DEVIATIONS,
    MISSING_RANK,
    N_LANES,
    NO_DEVIATION,
    RANK_SHIFT,
    WEIGHT_SHIFT,
    WEIGHTS,
    is_bit,
    missing_word,
    number_at,
    place_of,
    show_order,
)
from cart.jit.decorators import inline_kernel, kernel
from cart.jit.simd import on_lanes

_LAST_KNOWN = (MISSING_RANK << RANK_SHIFT) - 1  # no word of a known value is higher


# ----------------------------------------------------------------------------------- gains


@inline_kernel
def find_turned_gains(small, block, n):
    """Count the missing values of a block's columns, and find the gains of all turned cuts."""
    begin, turned = block * BLOCK, block * BLOCK + small.turned * (BLOCK // N_LANES)
    words, gain = small.ordered[begin : begin + BLOCK], small.gain[turned : turned + BLOCK]
    begin, turned = block * N_LANES, block * N_LANES + small.turned
    n_missing, end = small.n_missing[begin : begin + N_LANES], turned + N_LANES
    if not _count_missing(words, n, n_missing):
        return
    top, second, place = small.top[turned:end], small.second[turned:end], small.place[turned:end]
    _turn(words, n, gain, top, second, place)


@on_lanes(N_LANES)
def _count_missing(lanes, words, n, counts):
    """Count the missing values of each lane; return whether there are any."""

    def count(k, found):
        return (found + lanes.where(lanes.load(words, k) > _LAST_KNOWN, 1, found ^ found),)

    zero = lanes.load(words) ^ lanes.load(words)
    (found,) = lanes.repeat(lanes.number(n), count, zero)
    lanes.store(counts, found)
    return lanes.any(found > 0)


@on_lanes(N_LANES)
def _turn(lanes, words, n, gains, tops, seconds, best):
    """Write the gains of turned cuts as `cart.fast_paths.regression.small_nodes.cut.write_gains`
    writes those of others."""
    zero = lanes.load(words) ^ lanes.load(words)

    def sums_of(word):
        return (word >> WEIGHT_SHIFT) & WEIGHTS, (word & DEVIATIONS) - NO_DEVIATION

    def add(k, weight, total, left, excess):
        word = lanes.load(words, k)
        here, deviation = sums_of(word)
        goes_left = word > _LAST_KNOWN
        left = left + lanes.where(goes_left, here, zero)
        excess = excess + lanes.where(goes_left, deviation, zero)
        return weight + here, total + deviation, left, excess

    weight, total, left, excess = lanes.repeat(lanes.number(n), add, zero, zero, zero, zero)
    node = lanes.real(weight)
    share, none = lanes.real(total) / node, lanes.real(zero) - 1.0

    def judge(k, at, left, excess, top, second, place):
        word, following = lanes.load(words, k), lanes.load(words, k + 1)
        here, deviation = sums_of(word)
        left, excess = left + here, excess + deviation
        on_left = lanes.real(left)
        above = lanes.real(excess) - on_left * share
        gain = above * above / (on_left * (node - on_left))
        is_cut = ((word ^ following) > BELOW_RANK) & (following <= _LAST_KNOWN)
        gain = lanes.where(is_cut, gain, none)
        lanes.store(gains, gain, k)
        is_best = gain > top
        second = lanes.where(is_best, top, lanes.where(gain > second, gain, second))
        top, place = lanes.where(is_best, gain, top), lanes.where(is_best, at, place)
        return at + 1, left, excess, top, second, place

    begin = zero, left, excess, none, none, zero
    *_, top, second, place = lanes.repeat(lanes.number(n - 1), judge, *begin)
    lanes.store(tops, top)
    lanes.store(seconds, second)
    lanes.store(best, place)


@kernel
def add_turned(small, n, drawn, n_drawn):
    """Insert into the drawn columns, after each one with missing values, its turned one; return how
    many columns are to be searched now."""
    n_searches = n_drawn
    for k in range(n_drawn):
        n_searches += 0 < _n_missing(small, drawn.column[k]) < n - 1  # two are known
    at = n_searches
    for k in range(n_drawn - 1, -1, -1):
        feature, column = drawn.feature[k], drawn.column[k]
        n_missing = _n_missing(small, column)
        if 0 < n_missing < n - 1:
            at -= 1
            drawn.feature[at], drawn.column[at] = feature, column + small.turned
            drawn.missing[at] = MISSING_LEFT
        at -= 1
        drawn.feature[at], drawn.column[at] = feature, column
        drawn.missing[at] = MISSING_RIGHT if n_missing > 0 else NONE_MISSING
    return n_searches


# ----------------------------------------------------------------------------------- order


@inline_kernel
def column_of_words(small, column):
    """The column that has the words of a column: itself, or the one that it is turned from."""
    is_turned = 0 < small.turned <= column and not is_bit(small.bits, column)
    return column - small.turned if is_turned else column


@inline_kernel
def _n_missing(small, column):
    """How many values are missing along a column that may be turned."""
    if is_bit(small.bits, column):
        return np.int64(0)
    return np.int64(small.n_missing[column_of_words(small, column)])


@inline_kernel
def n_in_front(small, column):
    """How many rows go left with every cut of a column: those with missing values, if turned."""
    is_turned = column_of_words(small, column) != column
    return _n_missing(small, column) if is_turned else np.int64(0)


@inline_kernel
def number_in_turn(small, i, column, n_before, n):
    """Number of the i-th of n rows along a column, if the last `n_before` come before others."""
    place = i - n_before
    return number_at(small, place if place >= 0 else place + n, column)


@inline_kernel
def leave_in_order(small, samples, node, drawn, n_drawn):
    """Bring the node's samples into the order in which scikit-learn leaves them."""
    order_missing(small, samples, node, drawn, n_drawn - 1)
    last = drawn.column[n_drawn - 1]
    n_missing, column = _n_missing(small, last), column_of_words(small, last)
    column = show_order(small.bits, small, column)
    for i in range(node.n):
        samples[node.start + i] = number_in_turn(small, i, column, n_missing, node.n)


@kernel
def order_missing(small, samples, node, drawn, k):
    """Bring the missing values of the k-th of the drawn columns into scikit-learn's order, and
    those of columns before it from which this order follows."""
    first = k
    while first >= 0 and _n_missing(small, drawn.column[first]) > 1:
        first -= 1
    for at in range(first + 1, k + 1):
        column = drawn.column[at]
        if column_of_words(small, column) == column:  # else it was the one before
            before = drawn.column[at - 1] if at > 0 else np.int64(-1)
            _exchange_missing(small, samples, node, column, before)


@inline_kernel
def _exchange_missing(small, samples, node, column, before):
    """Order the missing values of a column as
    `cart.fast_paths.regression.sorted_rows.order_missing` does, given the column searched before,
    or -1."""
    n, n_before, coming, is_missing = node.n, np.int64(0), small.coming, np.uint64(0)
    if before >= 0:
        n_before = _n_missing(small, before)
        before = show_order(small.bits, small, column_of_words(small, before))
    n_known = n - _n_missing(small, column)
    for i in range(n_known, n):
        is_missing |= np.uint64(1) << np.uint64(number_at(small, i, column))
    n_coming = 0
    for i in range(n_known):
        number = _number_before(small, samples, node, i, before, n_before)
        coming[n_coming] = number
        n_coming += np.int64(is_missing >> np.uint64(number) & np.uint64(1))
    n_coming = 0
    for i in range(n - 1, n_known - 1, -1):
        number = _number_before(small, samples, node, i, before, n_before)
        stays = np.int64(is_missing >> np.uint64(number) & np.uint64(1))
        number = number if stays else np.int64(coming[n_coming])
        n_coming += 1 - stays
        small.ordered[place_of(i, column)] = missing_word(small, number, column)


@inline_kernel
def _number_before(small, samples, node, i, column, n_before):
    """Number of the i-th row in the order of a column, or of the samples if that is -1."""
    if column < 0:
        return np.int64(samples[node.start + i])
    return number_in_turn(small, i, column, n_before, node.n)
