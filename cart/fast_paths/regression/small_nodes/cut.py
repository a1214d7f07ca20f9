"""The best cut of a small node: rows are sorted along many columns at once, then cuts are scored.

A sorting network of compare-exchanges between vectors sorts 8 columns at once, a column in each
lane: the words of the node's rows, padded to the next power of two:

    words   row 2 [ . . . . ]        row 5 [ . . . . ]         in each lane: rank ascending,
            row 5 [ . . . . ]   ->   ordered   down   |        the padding (of no weight) last
            padding                            each   v

A first pass finds the gains of all cuts in single precision, and the two highest of each column. A
second pass calculates scikit-learn's score of every cut whose gain may be the best despite
rounding. In most nodes that is a single cut, which need not be scored.
"""

import functools
import math
import operator

import numpy as np

from cart.fast_paths.base import also_left
from cart.fast_paths.regression.cut_score import mean_score, weight_at, y_at
from cart.fast_paths.regression.small_nodes.missing import (
    column_of_words,
    find_turned_gains,
    n_in_front,
    number_in_turn,
    order_missing,
)
from cart.fast_paths.regression.small_nodes.node import (
    BELOW_RANK,
    BLOCK,
    DEVIATIONS,
    N_LANES,
    NO_DEVIATION,
    PADDING,
    SMALL_NODE_MAX,
    WEIGHT_SHIFT,
    WEIGHTS,
    code_of,
    is_bit,
    number_at,
    place_of,
    rank_at,
    show_order,
)
from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes
from cart.primitives.sorting_networks import merge_exchanges

# -------------------------------------------------------------------------------- ordering


def compare_exchange(lanes, low, high):
    """Bring two vectors of words, or of keys with words beside them, into order in each lane."""
    is_less = low[0] <= high[0]
    return zip(
        *(
            (lanes.where(is_less, one, other), lanes.where(is_less, other, one))
            for one, other in zip(low, high, strict=True)
        ),
        strict=True,
    )


def write_gains(lanes, rows, ordered, gains, tops, seconds, best):
    """Write sorted words, the gains of all cuts and, for each lane, the two highest.

    The gain of a cut is s**2 / (w (W - w)), where s is the sum of the deviations from the node's
    mean on its left, w the weight on its left and W that of the node.
    """
    weights = [(row >> WEIGHT_SHIFT) & WEIGHTS for row in rows]
    deviations = [(row & DEVIATIONS) - NO_DEVIATION for row in rows]
    node = lanes.real(functools.reduce(operator.add, weights))
    share = lanes.real(functools.reduce(operator.add, deviations)) / node
    weight, total = rows[0] - rows[0], rows[0] - rows[0]
    top = second = lanes.real(weight) - 1.0
    place = weight
    for i, row in enumerate(rows):
        lanes.store(ordered, row, i)
        if i == len(rows) - 1:
            break
        weight = weight + weights[i]
        total = total + deviations[i]
        left = lanes.real(weight)
        excess = lanes.real(total) - left * share
        gain = excess * excess / (left * (node - left))
        is_cut = ((row ^ rows[i + 1]) > BELOW_RANK) & (rows[i + 1] <= PADDING - 1)
        gain = lanes.where(is_cut, gain, lanes.real(weight - weight) - 1.0)
        lanes.store(gains, gain, i)
        is_best = gain > top
        second = lanes.where(is_best, top, lanes.where(gain > second, gain, second))
        top = lanes.where(is_best, gain, top)
        place = lanes.where(is_best, i, place)
    lanes.store(tops, top)
    lanes.store(seconds, second)
    lanes.store(best, place)
    return lanes.any(top > 0.0)


def _ordering(size):
    """Compile a function that sorts up to `size` words in each lane and finds the gains of cuts."""

    def order(lanes, words, places, *found):
        rows = [(lanes.load(words, lanes.item(places, i)),) for i in range(size)]
        for low, high in merge_exchanges(size):
            rows[low], rows[high] = compare_exchange(lanes, rows[low], rows[high])
        return write_gains(lanes, [word for (word,) in rows], *found)

    return on_lanes(N_LANES)(order)


_order_4, _order_8, _order_16, _order_32, _order_64 = map(_ordering, (4, 8, 16, 32, 64))


@inline_kernel
def sort_small_node(small, samples, start, n):
    """Sort the node's rows along every column, and find the gains of all cuts."""
    for i in range(n):
        small.places[i] = samples[start + i]
    size = 4
    while size < n:
        size *= 2
    for i in range(n, size):
        small.places[i] = SMALL_NODE_MAX
    for block in range(small.words.shape[0] // BLOCK):
        begin, end = block * BLOCK, (block + 1) * BLOCK
        words, ordered = small.words[begin:end], small.ordered[begin:end]
        gain = small.gain[begin:end]
        begin, end = block * N_LANES, (block + 1) * N_LANES
        top, second, place = small.top[begin:end], small.second[begin:end], small.place[begin:end]
        if size == 4:
            _order_4(words, small.places, ordered, gain, top, second, place)
        elif size == 8:
            _order_8(words, small.places, ordered, gain, top, second, place)
        elif size == 16:
            _order_16(words, small.places, ordered, gain, top, second, place)
        elif size == 32:
            _order_32(words, small.places, ordered, gain, top, second, place)
        else:
            _order_64(words, small.places, ordered, gain, top, second, place)
        if small.turned > 0:
            find_turned_gains(small, block, n)


@inline_kernel
def mark_small_node(small, table, samples, node, cut):
    """Mark in `is_left` which of the node's rows go left at a cut; return how many do."""
    n_left, other, column = 0, also_left(cut), np.int64(table.columns[cut.feature])
    for i in range(node.start, node.end):
        number = np.int64(samples[i])
        code = code_of(small, table, number, column)
        goes_left = (code <= cut.left_code) | (code == other)
        small.is_left[number] = goes_left
        n_left += goes_left
    return n_left


# ------------------------------------------------------------------------------- searching


@inline_kernel
def best_small_node_cut(small, samples, node, drawn, n_drawn, first, slack):
    """Find the best cut along the first `n_drawn` of the drawn columns, after they were sorted.

    A cut leaves more than `first` rows on each side. On equal scores the first column wins, then
    the leftmost cut. Returns its column's position in `drawn`, and the place of the last row that
    goes left; -1 for both if there is no cut.
    """
    columns, n = drawn.column, node.n
    least = _least_gain(small, columns, n_drawn, n, first, slack)
    n_candidates = 0
    for k in range(n_drawn):
        column = columns[k]
        small.candidates[n_candidates] = k
        n_candidates += small.top[column] >= least
    if n_candidates == 1 and first == 0:
        k = small.candidates[0]
        if small.second[columns[k]] < least:  # usually so: nothing to compare
            return k, np.int64(small.place[columns[k]])
    best = -np.inf
    best_k = np.int64(-1)
    place = np.int64(-1)
    seen = 0  # bits of rows that were alone on the left of a cut: their score is known
    for k in small.candidates[:n_candidates]:
        order_missing(small, samples, node, drawn, k)
        column, n_before = columns[k], n_in_front(small, columns[k])
        along = show_order(small.bits, small, column_of_words(small, column))
        gains = column if n_before > 0 else along
        begin, end = _cuts_that_leave(first, n, n_before)
        if is_bit(small.bits, column) or (first == 0 and small.second[column] < least):
            begin = np.int64(small.place[column])
            end = begin + 1
            if begin + n_before == 0:
                alone = 1 << number_at(small, 0, along)
                if seen & alone:
                    continue
                seen |= alone
        for i in range(begin, end):
            if small.gain[place_of(i, gains)] >= least:
                score = _score_cut(small, along, i, n_before, first, node)
                if score > best:
                    best = score
                    best_k = k
                    place = i
    return best_k, place


@inline_kernel
def _cuts_that_leave(first, n, n_before):
    """The range of cuts with more than `first` of n rows on each side, where `n_before` rows go
    left with every cut."""
    return max(first - n_before, np.int64(0)), n - 1 - first - n_before


@inline_kernel
def _least_gain(small, columns, n_drawn, n, first, slack):
    """The least gain that the cut with the best score may have, given rounding."""
    top = np.float32(0.0)
    for k in range(n_drawn):
        column = columns[k]
        if first > 0 and not is_bit(small.bits, column):
            small.top[column] = -1.0
            for i in range(*_cuts_that_leave(first, n, n_in_front(small, column))):
                small.top[column] = max(small.top[column], small.gain[place_of(i, column)])
        top = max(top, small.top[column])
    lowest = math.sqrt(np.float64(top)) * (1.0 - 2e-6) - 1.5
    least = max(lowest, 0.0) ** 2 - slack / (small.unit[0] * small.unit[0])
    return np.float32(max(least, 0.0))  # where there is no cut gains are negative


@inline_kernel
def _score_cut(small, column, last, n_before, first, node):
    """scikit-learn's score of the cut behind row `last`, if the last `n_before` rows come before
    all others. Its sums continue those of the cut before, or come from the right if that is
    shorter."""
    left_weight = 0.0
    left_sum = 0.0
    previous = 0  # rows left of the cut before
    for i in range(n_before + last + 1):
        row, place = number_in_turn(small, i, column, n_before, node.n), i - n_before
        left_weight += weight_at(small.targets, row)
        left_sum += weight_at(small.targets, row) * y_at(small.targets, row)
        if place < 0 or i < first:
            continue
        if rank_at(small, place, column) == rank_at(small, place + 1, column):
            continue
        if i + 1 - previous > node.n - i - 1:
            left_weight, left_sum = node.weight, node.total
            for k in range(node.n - 1, i, -1):
                row = number_in_turn(small, k, column, n_before, node.n)
                left_weight -= weight_at(small.targets, row)
                left_sum -= weight_at(small.targets, row) * y_at(small.targets, row)
        previous = i + 1
    return mean_score(left_weight, left_sum, node.weight, node.total)
