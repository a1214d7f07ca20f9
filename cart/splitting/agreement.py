"""Surrogates of a split: the cuts of other features that send most weight the same way.

In a node each row has a vote: its weight if the split sends it left, minus its weight if right, and
0 if it lacks the value of the split's feature. Along another feature, the agreement of every cut,
in either direction, follows from the sum of the votes below it:

    votes               +1  +2 | -1  -1  +1  -2        left weighs 4, right 4
    sum below the cut     1    3    2   1   2  0
    low values left       right + sum: 7 of 8 at the cut that is drawn
    low values right      left - sum

For a feature with categories, each category goes the way of most of its weight; ties go the way of
the majority. Weights are whole numbers here (see `units_of`), so that sums do not depend on the
order of the rows, and agreements that are equal compare equal. The definitions are those of Breiman
et al. 1984, section 5.3. The rules for ties, and the rule that a cut must send at least two rows
either way (which does not hold for categories), are those of R's rpart.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel, kernel
from cart.primitives.float_order import are_whole
from cart.primitives.sort_keys import code_of, record_of
from cart.splitting.feature_draw import GOLDEN, scramble
from cart.table.ranking import MISSING
from cart.tree.nodes import side_of_category

LEAST_ROWS = 2  # rows that a cut must send either way
_STRIDE = 16  # rows that are summed up at once
_TOTAL = 51  # bits of the sum of all units, so that sums are exact as floats, too


class Sent(NamedTuple):
    """What a split sends left and right, of the rows that have its feature."""

    left: int  # units
    right: int  # units
    n_rows: int


class Agreement(NamedTuple):
    """The best cut of one feature, or its categories, as a surrogate."""

    agree: int  # units that go the same way as by the split
    majority: int  # units of the larger side
    total: int  # units of both sides
    left_code: int  # the cut is after this code; unused for categories
    right_code: int  # the next code
    low_left: bool  # whether codes up to left_code go left; for categories, whether ties do


class Ranking(NamedTuple):
    """The surrogates of the current node, in order of agreement."""

    feature: np.ndarray  # (k,) int64
    agree: np.ndarray  # (k,) int64, as in Agreement
    majority: np.ndarray  # (k,) int64
    total: np.ndarray  # (k,) int64
    left_code: np.ndarray  # (k,) uint32
    right_code: np.ndarray  # (k,) uint32
    low_left: np.ndarray  # (k,) uint8
    # (k, n_categories) uint32: the categories that rows have, ascending: twice the code, plus 1
    # if it goes left.
    listed: np.ndarray
    n_listed: np.ndarray  # (k,) int64
    n_sent: np.ndarray  # (k,) int64: rows without the split's value that the surrogate sends
    n: np.ndarray  # (1,) int64: how many surrogates there are

    @classmethod
    def create(cls, k, n_categories):
        """Room for k surrogates, of features with up to `n_categories`."""
        return cls(
            *(np.empty(k, np.int64) for _ in range(4)), *(np.empty(k, np.uint32) for _ in range(2)),
            np.empty(k, np.uint8), np.empty((k, n_categories), np.uint32), np.empty(k, np.int64),
            np.empty(k, np.int64), np.zeros(1, np.int64),
        )  # fmt: skip


def units_of(weight):
    """Convert weights to whole numbers.

    Weights that are whole are kept. Others are scaled by a power of two, so that their sum takes
    `_TOTAL` bits, and rounded.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,), float64

    Returns
    -------
    ndarray of shape (n_rows,), int64
        0 only if the weight is 0.
    """
    if are_whole(weight) and weight.sum() < 2.0**_TOTAL:
        return weight.astype(np.int64)
    units = np.rint(np.ldexp(weight, _TOTAL - np.frexp(weight.sum())[1]))
    return np.maximum(units, weight > 0.0).astype(np.int64)


@kernel
def agree_by_cut(keys, start, end, vote, sent, floor, heaviest):
    """Find the cut of a feature on whose side most weight agrees; among equals, the first one.

    Rows are summed up a few at a time, and their cuts are looked at one by one only if one of them
    may be better.

    Parameters
    ----------
    keys : ndarray of shape (at least end,), uint64
        keys[start:end] are the node's rows in the order of the feature, missing values last.
    vote : ndarray of shape (n_rows,), int64
    sent : Sent
    floor : int
        The agreement to beat, besides the majority.
    heaviest : int
        The largest weight of a row.

    Returns
    -------
    Agreement
        Its `agree` is 0 if no cut is above the floor.
    """
    sent, end = _of_known(keys, start, end, vote, sent)
    total, majority = sent.left + sent.right, max(sent.left, sent.right)
    most, least = max(floor, majority) - sent.right, sent.left - max(floor, majority)
    most_at, least_at = end, end
    if sent.n_rows >= 2 * LEAST_ROWS:
        i, below = _first_cut(keys, start, vote)
        last, reach = _last_cut(keys, end, vote), _STRIDE * heaviest
        while i <= last:
            if i + _STRIDE <= last and below + reach <= most and below - reach >= least:
                for j in range(i, i + _STRIDE):
                    below += vote[record_of(keys[j])]
                i += _STRIDE
                continue
            for j in range(i, min(i + _STRIDE, last + 1)):
                is_cut = code_of(keys[j]) != code_of(keys[j - 1])
                if is_cut and below > most:
                    most, most_at = below, j
                if is_cut and below < least:
                    least, least_at = below, j
                below += vote[record_of(keys[j])]
            i += _STRIDE
    low_left, low_right = sent.right + most, sent.left - least
    is_left = low_left > low_right or (low_left == low_right and most_at < least_at)
    at = most_at if is_left else least_at
    if at == end:
        return Agreement(np.int64(0), majority, total, np.int64(0), np.int64(0), False)
    return Agreement(
        max(low_left, low_right), majority, total, np.int64(code_of(keys[at - 1])),
        np.int64(code_of(keys[at])), is_left,
    )  # fmt: skip


@inline_kernel
def _first_cut(keys, i, vote):
    """The first cut, from i on, with enough voting rows below it, and the sum of their votes."""
    below, n = np.int64(0), np.int64(0)
    while n < LEAST_ROWS:
        of_row = vote[record_of(keys[i])]
        below += of_row
        n += of_row != 0
        i += 1
    return i, below


@inline_kernel
def _last_cut(keys, end, vote):
    """The last cut with enough voting rows above it."""
    n = np.int64(0)
    while n < LEAST_ROWS:
        end -= 1
        n += vote[record_of(keys[end])] != 0
    return end


@kernel
def agree_by_category(keys, start, end, vote, sent):
    """The agreement of a feature with categories, each of which goes the way of most weight."""
    sent, end = _of_known(keys, start, end, vote, sent)
    ties_left = sent.left > sent.right
    agree, i = np.int64(0), start
    while i < end and code_of(keys[i]) != MISSING:
        i, left, right = _sum_category(keys, i, end, vote)
        agree += max(left, right)
    total, majority = sent.left + sent.right, max(sent.left, sent.right)
    return Agreement(agree, majority, total, np.int64(0), np.int64(0), ties_left)


@inline_kernel
def _sum_category(keys, i, end, vote):
    """For the category whose rows begin at i: their end, and the units sent left and right."""
    category = code_of(keys[i])
    left, right = np.int64(0), np.int64(0)
    while i < end and code_of(keys[i]) == category:
        of_row = vote[record_of(keys[i])]
        left += max(of_row, np.int64(0))
        right -= min(of_row, np.int64(0))
        i += 1
    return i, left, right


@inline_kernel
def _of_known(keys, start, end, vote, sent):
    """What the split sends of the rows that have this feature, and where these rows end."""
    left, right, n_rows = sent
    i = end
    while i > start and code_of(keys[i - 1]) == MISSING:
        i -= 1
        of_row = vote[record_of(keys[i])]
        left -= max(of_row, np.int64(0))
        right += min(of_row, np.int64(0))
        n_rows -= of_row != 0
    return Sent(left, right, n_rows), i


class CandidateDraw(NamedTuple):
    """How to draw the features that may stand in for a split: all, or some anew in every node."""

    features: np.ndarray  # (n_allowed,) int64: room for the features drawn
    order: np.ndarray  # (n_allowed,) int64: the features to draw from; earlier ones win ties
    n_categories: np.ndarray  # (n_features,) int64; 0: numbers
    n_drawn: int
    seed: int
    # Whether agreement is a share of all that the split sends, or of the rows with both features.
    of_all: bool
    heaviest: int  # the largest weight of a row


@inline_kernel
def _draw_candidates(draw, start, end):
    """Draw the candidates of a node, which has rows start, ..., end - 1; return how many there are.
    The draw depends on these numbers and on the seed of the tree."""
    features, n = draw.features, np.int64(draw.features.shape[0])
    n_drawn = min(np.int64(draw.n_drawn), n)
    for i in range(n):
        features[i] = draw.order[i]
    if n_drawn < n:
        rows = np.uint64(start) << np.uint64(32) | np.uint64(end)
        state = scramble(np.uint64(draw.seed) ^ scramble(rows))
        for i in range(n_drawn):
            state += GOLDEN
            j = i + np.int64(scramble(state) % np.uint64(n - i))
            features[i], features[j] = features[j], features[i]
    return n_drawn


@kernel
def rank_surrogates(ranking, keys, start, end, vote, draw, primary, sent):
    """Rank the surrogates of a split: the best features among the candidates, which are drawn.

    Parameters
    ----------
    ranking : Ranking
        Is filled.
    keys : ndarray of shape (n_features, n), uint64
        keys[feature, start:end] are the node's rows in the order of the feature.
    vote : ndarray of shape (n_rows,), int64
    draw : CandidateDraw
    primary : int
        The feature that the node splits on.
    sent : Sent
    """
    ranking.n[0] = 0
    if ranking.feature.shape[0] == 0:
        return
    is_all = draw.of_all
    majority = max(sent.left, sent.right) if is_all else np.int64(0)
    for j in range(_draw_candidates(draw, start, end)):
        feature = draw.features[j]
        if feature == primary:
            continue
        mine = keys[feature]
        if draw.n_categories[feature] > 0:
            found = agree_by_category(mine, start, end, vote, sent)
        else:
            floor = majority
            if is_all and ranking.n[0] == ranking.feature.shape[0]:
                floor = ranking.agree[ranking.n[0] - 1]
            found = agree_by_cut(mine, start, end, vote, sent, floor, draw.heaviest)
        if is_all:
            found = Agreement(
                found.agree, max(sent.left, sent.right), sent.left + sent.right, found.left_code,
                found.right_code, found.low_left,
            )  # fmt: skip
        if found.agree <= found.majority:
            continue
        at = _insert(ranking, feature, found)
        if at >= 0 and draw.n_categories[feature] > 0:
            _list_sides(ranking, at, mine, start, end, vote, found.low_left)


@inline_kernel
def _insert(ranking, feature, found):
    """Insert a surrogate after those that agree as much or more; return its place or -1."""
    k, share = ranking.feature.shape[0], found.agree / found.total
    at = ranking.n[0]
    while at > 0 and ranking.agree[at - 1] / ranking.total[at - 1] < share:
        at -= 1
    if at == k:
        return np.int64(-1)
    last = min(ranking.n[0], k - 1)
    for i in range(last, at, -1):
        ranking.feature[i] = ranking.feature[i - 1]
        ranking.agree[i] = ranking.agree[i - 1]
        ranking.majority[i] = ranking.majority[i - 1]
        ranking.total[i] = ranking.total[i - 1]
        ranking.left_code[i] = ranking.left_code[i - 1]
        ranking.right_code[i] = ranking.right_code[i - 1]
        ranking.low_left[i] = ranking.low_left[i - 1]
        ranking.n_listed[i] = ranking.n_listed[i - 1]
        for j in range(ranking.n_listed[i]):
            ranking.listed[i, j] = ranking.listed[i - 1, j]
    ranking.feature[at] = feature
    ranking.agree[at] = found.agree
    ranking.majority[at] = found.majority
    ranking.total[at] = found.total
    ranking.left_code[at] = found.left_code
    ranking.right_code[at] = found.right_code
    ranking.low_left[at] = found.low_left
    ranking.n_listed[at] = 0
    ranking.n[0] = last + 1
    return at


@inline_kernel
def _list_sides(ranking, at, keys, start, end, vote, ties_left):
    """List the side of every category that occurs among the rows sent by the split."""
    n, i = 0, start
    while i < end and code_of(keys[i]) != MISSING:
        category = code_of(keys[i])
        i, left, right = _sum_category(keys, i, end, vote)
        if left + right > 0:
            goes_left = left > right or (left == right and ties_left)
            ranking.listed[at, n] = 2 * category + goes_left
            n += 1
    ranking.n_listed[at] = n


@kernel
def side_by_surrogates(ranking, codes, columns, row):
    """Where the first surrogate whose value a row has sends it: 1 left, 0 right, -1 if none does.

    Parameters
    ----------
    ranking : Ranking
    codes : ndarray of shape (n_columns, n_rows), uint32
        See `cart.table.table.Table`.
    columns : ndarray of shape (n_features,), int64
    row : int
    """
    for s in range(ranking.n[0]):
        code = codes[columns[ranking.feature[s]], row]
        if code == MISSING:
            continue
        side = np.int64((code <= ranking.left_code[s]) == (ranking.low_left[s] == 1))
        if ranking.n_listed[s] > 0:
            side = side_of_category(ranking.listed[s], ranking.n_listed[s], code)
        if side >= 0:
            ranking.n_sent[s] += 1
            return side
    return np.int64(-1)
