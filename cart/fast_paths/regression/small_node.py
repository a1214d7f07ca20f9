"""Few rows, ordered along all features at once: a feature in each lane of a vector.

Growth ends in very many small nodes. When a node has few rows, these get numbers of their own, and
their codes become ranks among them. Rank, number, weight and deviation from the mean fit into one
word, so a sorting network that exchanges vectors of words orders the rows of the node, and of all
nodes below it, along as many features as a vector has lanes. Cuts are judged in single precision
first; only those that may be the best are scored in scikit-learn's order of sums.
"""

import functools
import math
import operator
from typing import NamedTuple

import numpy as np

from cart.fast_paths.regression.cut_score import mean_score, weight_at, write_target, y_at
from cart.jit.decorators import inline_kernel
from cart.jit.simd import on_lanes
from cart.primitives.sorting_networks import NETWORK_MAX, merge_exchanges, sort_by_network

FEW = 63  # rows
N_LANES, _LANE_BITS = 8, 3
_BLOCK = (FEW + 1) * N_LANES  # words of as many columns
# A word, from the top: rank, number, weight, and the weighted deviation above the lowest that fits.
_RANK, _NUMBER, _WEIGHT = 25, 19, 14
_NUMBERS, _WEIGHTS, _DEVIATIONS = 63, 31, (1 << _WEIGHT) - 1
_ZERO = 1 << (_WEIGHT - 1)  # no deviation
_NUMBERS_ALL = (1 << _RANK) - 1  # all of a word but its rank
_BEHIND = FEW << _RANK | _ZERO  # a word of no weight behind all others
_CODE_MAX = 2**31 - 1
_LEAST = 1e-100  # of deviations, for their squares to be numbers; 1 / _LEAST is the largest


class SmallNode(NamedTuple):
    """A few rows, and those of the node at hand in order; columns come in blocks of lanes."""

    rows: np.ndarray  # (NETWORK_MAX,) uint32: of the table, ascending
    number: np.ndarray  # (n_rows,) uint8: of a row among the few
    codes: np.ndarray  # (n_blocks * _BLOCK,) int32: of every row, from the table; see `_place_of`
    words: np.ndarray  # (n_blocks * _BLOCK,) int32: of every row, and one behind all
    places: np.ndarray  # (FEW + 1,) int64: which rows of `words` the node has
    ordered: np.ndarray  # (n_blocks * _BLOCK,) int32: the node's words
    gain: np.ndarray  # (n_blocks * _BLOCK,) float32: of every cut; -1 where there is none
    top: np.ndarray  # (n_blocks * N_LANES,) float32: the highest of a column
    second: np.ndarray  # (n_blocks * N_LANES,) float32: the highest but one
    place: np.ndarray  # (n_blocks * N_LANES,) int32: of the highest
    targets: np.ndarray  # (2 * FEW,) float64
    is_left: np.ndarray  # (FEW,) uint8
    row: np.ndarray  # (1,) int64: the one that is ranked
    unit: np.ndarray  # (1,) float64: of deviations
    candidates: np.ndarray  # (n_features,) int64: which of the drawn may have the best cut

    @classmethod
    def create(cls, n_rows, n_columns, n_features):
        n_blocks = -(-n_columns // N_LANES)
        return cls(
            np.empty(NETWORK_MAX, np.uint32),
            np.empty(n_rows, np.uint8),
            np.empty(n_blocks * _BLOCK, np.int32),
            np.full(n_blocks * _BLOCK, _BEHIND, np.int32),
            np.empty(FEW + 1, np.int64),
            np.zeros(n_blocks * _BLOCK, np.int32),
            np.empty(n_blocks * _BLOCK, np.float32),
            *(np.empty(n_blocks * N_LANES, np.float32) for _ in range(2)),
            np.empty(n_blocks * N_LANES, np.int32),
            np.empty(2 * FEW),
            np.empty(FEW, np.uint8),
            np.empty(1, np.int64),
            np.empty(1),
            np.empty(n_features, np.int64),
        )


# ------------------------------------------------------------------------------- taking up


@inline_kernel
def enter_small_node(few, samples, start, n, targets, mean):
    """Give samples[start:start + n] numbers in the order of the table, and replace them by these.

    Their codes are to follow, by `write_code`, then `rank_codes`. Returns False, and does nothing,
    if weights do not fit into words or deviations are too small or large to be squared.
    """
    farthest = 0.0
    for i in range(start, start + n):
        weight, y = weight_at(targets, samples[i]), y_at(targets, samples[i])
        if weight > _WEIGHTS or weight != np.floor(weight):
            return False
        farthest = max(farthest, abs(weight * (y - mean)))
    if not _LEAST < farthest < 1.0 / _LEAST:  # rounding alone may make a node look impure
        return False
    for i in range(n):
        few.rows[i] = samples[start + i]
    sort_by_network(few.rows, n)
    for i in range(n):
        row = few.rows[i]
        few.number[row] = i
        write_target(few.targets, i, weight_at(targets, row), y_at(targets, row))
    for i in range(start, start + n):
        samples[i] = few.number[samples[i]]
    few.unit[0] = farthest / (_ZERO - 1)
    for i in range(n):
        deviation = weight_at(few.targets, i) * (y_at(few.targets, i) - mean)
        above = np.int64(math.floor(deviation / few.unit[0] + 0.5)) + _ZERO
        few.places[i] = i << _NUMBER | np.int64(weight_at(few.targets, i)) << _WEIGHT | above
    return True


def small_node_rows(max_features, n_features, n_some):
    """How many rows a node must have, at most, for them to be ordered along all features.

    Where nodes look at few of these, most of it is for nothing; where they look at some, `n_some`.
    """
    if 2 * max_features >= n_features:
        return FEW
    return n_some if 8 * max_features >= n_features else 0


@inline_kernel
def restore_rows(few, samples, start, n):
    """Replace numbers by the rows of the table again."""
    for i in range(start, start + n):
        samples[i] = few.rows[samples[i]]


@inline_kernel
def _place_of(i, column):
    """Where the i-th row of a column stands: columns lie in blocks, side by side."""
    block, lane = column >> _LANE_BITS, column & (N_LANES - 1)
    return block * _BLOCK + i * N_LANES + lane


@inline_kernel
def write_code(few, number, column, code):
    few.codes[_place_of(number, column)] = code


@inline_kernel
def write_word(few, number, column, code, rank):
    """Write a code that is known to be lower than others; `rank` says as how many, or orders so."""
    place = _place_of(number, column)
    few.codes[place] = code
    few.words[place] = np.int64(rank) << _RANK | few.places[number]


@inline_kernel
def read_code(few, number, column):
    return np.int64(few.codes[_place_of(number, column)])


def _ranking(size):
    """Compile the ranking of one row among `size` in each lane: how many have lower codes."""

    def rank(lanes, codes, words, number, word):
        mine = lanes.load(codes, lanes.item(number, 0))
        below = mine ^ mine
        for i in range(size):
            below = below + lanes.where(mine > lanes.load(codes, i), 1, below ^ below)
        lanes.store(words, below << _RANK | word, lanes.item(number, 0))
        return lanes.any(below > 0)

    return on_lanes(N_LANES)(rank)


_rank_8, _rank_16, _rank_32, _rank_64 = map(_ranking, (8, 16, 32, 64))


@inline_kernel
def rank_codes(few, n):
    """Write the words of all rows along all columns."""
    size = 8 if n <= 8 else 16 if n <= 16 else 32 if n <= 32 else 64
    for at in range(0, few.codes.shape[0], _BLOCK):
        codes, words = few.codes[at : at + _BLOCK], few.words[at : at + _BLOCK]
        for i in range(n * N_LANES, size * N_LANES):
            codes[i] = _CODE_MAX
        for i in range(n):
            few.row[0] = i
            word = np.int32(few.places[i])
            if size == 8:
                _rank_8(codes, words, few.row, word)
            elif size == 16:
                _rank_16(codes, words, few.row, word)
            elif size == 32:
                _rank_32(codes, words, few.row, word)
            else:
                _rank_64(codes, words, few.row, word)


# -------------------------------------------------------------------------------- ordering


def _ordering(size):
    """Compile the ordering of up to `size` words in each lane, and the gains of the cuts.

    The gain of a cut is s**2 / (w (W - w)), where s is the sum of the deviations from the node's
    mean on its left, w their weight and W that of the node.
    """

    def order(lanes, words, places, ordered, gains, tops, seconds, best):
        rows = [lanes.load(words, lanes.item(places, i)) for i in range(size)]
        for low, high in merge_exchanges(size):
            one, other = rows[low], rows[high]
            is_less = one <= other
            rows[low] = lanes.where(is_less, one, other)
            rows[high] = lanes.where(is_less, other, one)
        weights = [(row >> _WEIGHT) & _WEIGHTS for row in rows]
        deviations = [(row & _DEVIATIONS) - _ZERO for row in rows]
        node = lanes.real(functools.reduce(operator.add, weights))
        share = lanes.real(functools.reduce(operator.add, deviations)) / node
        weight, total = rows[0] - rows[0], rows[0] - rows[0]
        top = second = lanes.real(weight) - 1.0
        place = weight
        for i in range(size):
            lanes.store(ordered, rows[i], i)
            if i == size - 1:
                break
            weight = weight + weights[i]
            total = total + deviations[i]
            left = lanes.real(weight)
            excess = lanes.real(total) - left * share
            gain = excess * excess / (left * (node - left))
            is_cut = ((rows[i] ^ rows[i + 1]) > _NUMBERS_ALL) & (rows[i + 1] <= _BEHIND - 1)
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

    return on_lanes(N_LANES)(order)


_order_4, _order_8, _order_16, _order_32, _order_64 = map(_ordering, (4, 8, 16, 32, 64))


@inline_kernel
def sort_small_node(few, samples, start, n):
    """Bring the node's rows into the order of every column, and judge the cuts."""
    for i in range(n):
        few.places[i] = samples[start + i]
    size = 4
    while size < n:
        size *= 2
    for i in range(n, size):
        few.places[i] = FEW
    for block in range(few.top.shape[0] // N_LANES):
        begin, end = block * _BLOCK, (block + 1) * _BLOCK
        words, ordered = few.words[begin:end], few.ordered[begin:end]
        gain = few.gain[begin:end]
        begin, end = block * N_LANES, (block + 1) * N_LANES
        top, second, place = few.top[begin:end], few.second[begin:end], few.place[begin:end]
        if size == 4:
            _order_4(words, few.places, ordered, gain, top, second, place)
        elif size == 8:
            _order_8(words, few.places, ordered, gain, top, second, place)
        elif size == 16:
            _order_16(words, few.places, ordered, gain, top, second, place)
        elif size == 32:
            _order_32(words, few.places, ordered, gain, top, second, place)
        else:
            _order_64(words, few.places, ordered, gain, top, second, place)


@inline_kernel
def _word(few, i, column):
    return few.ordered[_place_of(i, column)]


@inline_kernel
def rank_at(few, i, column):
    """Rank of the node's row in place i along a column."""
    return np.int64(_word(few, i, column) >> _RANK)


@inline_kernel
def number_at(few, i, column):
    """Number of the node's row in place i along a column."""
    return np.int64(_word(few, i, column) >> _NUMBER & _NUMBERS)


@inline_kernel
def mark_small_node(few, column, left_code, n):
    """Mark the node's rows in `is_left`: codes up to `left_code` go left. Returns how many do."""
    n_left = 0
    for i in range(n):
        number = number_at(few, i, column)
        goes_left = read_code(few, number, column) <= left_code
        few.is_left[number] = goes_left
        n_left += goes_left
    return n_left


# ------------------------------------------------------------------------------- searching


@inline_kernel
def best_small_node_cut(few, columns, n_drawn, n, first, weight, total, slack):
    """The best of the cuts along columns[:n_drawn], none of which is constant, after
    `sort_small_node`.

    Among equals that of the first column, then the leftmost. Returns its column's place in
    `columns`, and the place of the last row that goes left; -1 for both where there is none.
    """
    least = _least_merit(few, columns, n_drawn, n, first, slack)
    n_candidates = 0
    for k in range(n_drawn):
        column = columns[k]
        few.candidates[n_candidates] = k
        n_candidates += few.top[column] >= least
    if n_candidates == 1 and first == 0:
        k = few.candidates[0]
        if few.second[columns[k]] < least:  # as in most nodes: nothing is to be compared
            return k, np.int64(few.place[columns[k]])
    best = -np.inf
    best_k = np.int64(-1)
    place = np.int64(-1)
    seen = 0  # rows that were alone on the left of a cut: their score is known
    for k in few.candidates[:n_candidates]:
        column = columns[k]
        begin, end = np.int64(first), n - 1 - first
        if first == 0 and few.second[column] < least:
            begin = np.int64(few.place[column])
            end = begin + 1
            if begin == 0:
                alone = 1 << number_at(few, 0, column)
                if seen & alone:
                    continue
                seen |= alone
        for i in range(begin, end):
            if few.gain[_place_of(i, column)] >= least:
                score = _score_cut(few, column, i, n, first, weight, total)
                if score > best:
                    best = score
                    best_k = k
                    place = i
    return best_k, place


@inline_kernel
def _least_merit(few, columns, n_drawn, n, first, slack):
    """The least gain that the best cut may have."""
    top = np.float32(0.0)
    for k in range(n_drawn):
        column = columns[k]
        if first > 0:
            few.top[column] = -1.0
            for i in range(first, n - 1 - first):
                few.top[column] = max(few.top[column], few.gain[_place_of(i, column)])
        top = max(top, few.top[column])
    lowest = math.sqrt(np.float64(top)) * (1.0 - 2e-6) - 1.5
    least = max(lowest, 0.0) ** 2 - slack / (few.unit[0] * few.unit[0])
    return np.float32(max(least, 0.0))  # where there is no cut gains are negative


@inline_kernel
def _score_cut(few, column, last, n, first, weight, total):
    """Quality of a cut as scikit-learn calculates it: from the cut before, or, if that is farther,
    from the right. (Reference: `RegressionCriterion.update` in `_criterion.pyx`.)"""
    left_weight = 0.0
    left_sum = 0.0
    behind = 0
    for i in range(last + 1):
        row = number_at(few, i, column)
        left_weight += weight_at(few.targets, row)
        left_sum += weight_at(few.targets, row) * y_at(few.targets, row)
        if i < first or rank_at(few, i, column) == rank_at(few, i + 1, column):
            continue
        if i + 1 - behind > n - i - 1:
            left_weight = weight
            left_sum = total
            for j in range(n - 1, i, -1):
                row = number_at(few, j, column)
                left_weight -= weight_at(few.targets, row)
                left_sum -= weight_at(few.targets, row) * y_at(few.targets, row)
        behind = i + 1
    return mean_score(left_weight, left_sum, weight, total)
