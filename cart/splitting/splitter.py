"""Split search in one node: draw features, search each, choose, divide the samples.

A feature is searched either at every cut (`BestSplitter`) or at one threshold drawn at random
(`RandomSplitter`, extra trees). Both see the node's samples as `keys` (see
`cart.table.node_samples`).
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.primitives.sort_keys import code_of
from cart.splitting import criteria
from cart.splitting.category_subsets import (
    EXACT,
    find_places,
    is_categorical,
    keep_subset,
    meet_categories,
    order_categories,
    put_in_one_place,
    take_places,
    take_sides,
    try_all_subsets,
    vary_enough,
)
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
    random_between,
    random_side,
)
from cart.table.node_samples import (
    divide_in_order,
    divide_stably,
    known_range,
    rotate,
)
from cart.table.ranking import MISSING
from cart.table.table import (
    code_up_to,
    divide_codes,
    gather,
    keeps_order,
    next_cut,
    order_codes,
    remember,
    same_value,
    top_of,
    value_of,
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


@inline_kernel
def best_split(
    splitter, criterion, node, draw, key, table, samples, start, n, limits, bounds, n_constant,
    keep_order,
):  # fmt: skip
    """Draw features and search each.

    The samples that are 0 in a sparse table are passed over where the criterion can do without.
    With `keep_order`, samples keep the order of the feature looked at before wherever they tie, as
    in scikit-learn, whose samples stay in the order of the last sort. It matters only where sums
    depend on their order.

    Returns
    -------
    best : Split
    last_feature : int
        The last one looked at.
    n_constant : int
        How many features are known to be constant now.
    """
    may_list = not (keeps_order(table) or criteria.needs_all(criterion))
    keep_order = keep_order and keeps_order(table)
    best = NO_SPLIT
    last_feature = -1
    drawing = begin_draw(draw, key, n_constant)
    j, drawing = next_feature(draw, drawing, limits.max_features)
    while j >= 0:
        feature = draw.features[j]
        last_feature = feature
        column = table.columns[feature]
        lowest, highest, n_listed = gather(table, column, samples, start, n, node, may_list)
        n_missing = 0
        if highest == MISSING:
            lowest, highest, n_missing = known_range(node.codes, n)
        lowest, highest, n_present = find_places(
            table, splitter, criterion, node, n, n_missing, draw, feature, limits, lowest, highest
        )
        if n_missing < n and (lowest < highest or n_missing > 0):
            order(
                splitter, node, n, n_listed, table, column, lowest, highest, n_missing, keep_order
            )
        if n_missing == n or (n_missing == 0 and same_value(table, column, lowest, highest)):
            drawing = mark_constant(draw, drawing, j)
        else:
            drawing = mark_searched(draw, drawing, j)
            found = search(
                splitter, criterion, node, n, n_listed, draw, table, feature, lowest, highest,
                n_missing, limits, bounds, best, keep_order,
            )  # fmt: skip
            if is_categorical(table, column) and found.score > best.score:
                keep_subset(table, node, n_present, found.left_code)
                found = Split(
                    feature, column, 0, np.nan, found.has_missing, found.missing_left, found.score
                )
            best = found
        j, drawing = next_feature(draw, drawing, limits.max_features)
    return best, last_feature, end_draw(draw, drawing)


# -------------------------------------------------------------------------------- splitters


@dispatch
def search(
    splitter, criterion, node, n, n_listed, draw, table, feature, lowest, highest, n_missing,
    limits, bounds, best, keep_order,
):  # fmt: skip
    """Search one feature; return the best Split so far."""
    return splitter.search(
        criterion, node, n, n_listed, draw, table, feature, lowest, highest, n_missing, limits,
        bounds, best, keep_order,
    )  # fmt: skip


@dispatch
def order(splitter, node, n, n_listed, table, column, lowest, highest, n_missing, keep_order):
    """Bring the node's keys into the order in which the feature is searched."""
    splitter.order(node, n, n_listed, table, column, lowest, highest, n_missing, keep_order)


@dispatch
def is_divided(splitter, best, last_feature):
    """Are the node's keys in the order left | right of the best split already?"""
    return splitter.is_divided(best, last_feature)


class BestSplitter(NamedTuple):
    """Every cut between two values that differ, missing values on either side."""

    name: int = 0  # numba wants a field

    def find_subsets(
        self, subsets, criterion, node, n, n_missing, n_categories, draw, feature, limits
    ):
        n_present = meet_categories(subsets, node, n)
        if n_categories > EXACT and not vary_enough(
            subsets, n_present, n - n_missing, limits.min_category_ratio
        ):
            put_in_one_place(subsets, n_present)
            take_places(subsets, node, n)
            return n_present, min(n_present, 2)  # one place: no split, though not constant
        order_categories(subsets, n_present)
        take_places(subsets, node, n)
        if subsets.response.shape[1] > 1 and 2 < n_present <= EXACT:
            try_all_subsets(criterion, subsets, node, n, n_missing, n_present, limits)
            return n_present, 2
        return n_present, n_present

    def order(self, node, n, n_listed, table, column, lowest, highest, n_missing, keep_order):
        order_codes(table, node, n, n_listed, column, lowest, highest, n_missing, keep_order)

    def search(
        self, criterion, node, n, n_listed, draw, table, feature, lowest, highest, n_missing,
        limits, bounds, best, keep_order,
    ):  # fmt: skip
        n_known = n - n_missing
        for missing_left in range(2 if n_missing > 0 else 1):
            first = 1
            last = min(n_known, n - 1)
            if missing_left:
                rotate(node, n, n_known)
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

    def find_subsets(
        self, subsets, criterion, node, n, n_missing, n_categories, draw, feature, limits
    ):
        n_present = meet_categories(subsets, node, n)
        n_right = 0
        for p in range(n_present):
            goes_right = random_side(draw, feature, p)
            subsets.place[subsets.present[p]] = goes_right
            n_right += goes_right
        if n_right == 0 or n_right == n_present:  # neither side stays empty
            p = min(int(random_between(draw, feature, 0.0, float(n_present))), n_present - 1)
            subsets.place[subsets.present[p]] = 1 if n_right == 0 else 0
        take_places(subsets, node, n)
        return n_present, min(n_present, 2)

    def search(
        self, criterion, node, n, n_listed, draw, table, feature, lowest, highest, n_missing,
        limits, bounds, best, keep_order,
    ):  # fmt: skip
        column = table.columns[feature]
        low = value_of(table, column, lowest)
        high = value_of(table, column, highest)
        threshold = low
        if not is_categorical(table, column):
            threshold = random_between(draw, feature, low, high)
        missing_left = False
        if n_missing > 0:
            missing_left = random_side(draw, feature, 0)
        if not threshold < high:  # rounded up to it, or high - low is infinite
            threshold = low
        left_code = code_up_to(table, column, lowest, highest, threshold)
        p = divide_codes(table, node, n, n_listed, column, left_code, missing_left, keep_order)
        if p < limits.min_samples_leaf or n - p < limits.min_samples_leaf:
            return best
        side = cut_at(criterion, node, p, n)
        if not _is_legal(criterion, side, limits, bounds, feature):
            return best
        score = criteria.score(criterion, side)
        if score > best.score:
            best = Split(feature, column, left_code, threshold, n_missing > 0, missing_left, score)
        return best

    def order(self, node, n, n_listed, table, column, lowest, highest, n_missing, keep_order):
        pass

    def is_divided(self, best, last_feature):
        return best.feature == last_feature


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
    tie_span = table.tie_span[column]
    is_bound = limits.monotonic[feature] != 0 or limits.min_weight_leaf > 0.0
    side = criteria.arrange(criterion, records, keys, n)
    last = min(last, n - limits.min_samples_leaf)
    following = next_cut(table, max(first, limits.min_samples_leaf) - 1)
    while following <= last:
        p = following
        following = next_cut(table, p)
        low = code_of(keys[p - 1])
        high = code_of(keys[p])
        if high - low <= tie_span and same_value(table, column, lowest + low, lowest + high):
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
    left_code = np.int64(lowest + code_of(node.keys[p - 1]))
    threshold = np.inf
    if missing_left or p < n_known:
        low = top_of(table, column, left_code)
        high = value_of(table, column, np.int64(lowest + code_of(node.keys[p])))
        threshold = low / 2.0 + high / 2.0
        if not threshold < high:  # rounded up to it
            threshold = low
    return Split(feature, column, left_code, threshold, n_missing > 0, missing_left, score)


@inline_kernel
def divide(splitter, table, split, last_feature, node, samples, start, n, keep_order):
    """Bring samples[start:start + n] and the keys into the order left | right.

    Returns how many go left.
    """
    gather(table, split.column, samples, start, n, node, False)
    take_sides(table, node, n, split.column)
    if keep_order and keeps_order(table):
        divided = is_divided(splitter, split, last_feature)
        return divide_in_order(split, divided, node, samples, start, n)
    n_left = divide_stably(split, node, samples, start, n)
    remember(table, samples, start, n)
    return n_left
