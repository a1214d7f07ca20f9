"""Split search in one node: draw features, search each, choose the best split, divide the samples.

A feature is searched at every cut between two values that differ (`BestSplitter`), or at one
threshold drawn at random (`RandomSplitter`, extra trees). Both see the node's samples as `keys`,
`code | record` (see `cart.table.node_samples`), here with the codes in the order searched:

    codes     1  1  2 | 4  4  7          a cut after p = 3 samples: codes up to 2 go left
    left      w0 w1 w2 ->                the criterion moves samples from right to left
    cuts      -  p  p   -  p             there is none between equal codes, nor between codes that
                                         differ by tie_span or less if their values count as one
    threshold = (value_of(2) + value_of(4)) / 2
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.primitives.sort_keys import code_of
from cart.splitting import criterion as protocol
from cart.splitting.all_subsets import try_all_subsets, try_known_subsets
from cart.splitting.category_subsets import (
    EXACT,
    draw_places,
    exceeds_f_ratio,
    find_places,
    is_categorical,
    keep_subset,
    merge_categories,
    order_categories,
    replace_by_places,
    replace_by_sides,
    sum_by_category,
)
from cart.splitting.feature_draw import (
    BARRED,
    begin_draw,
    end_draw,
    mark,
    next_feature,
    random_between,
    random_side,
)
from cart.table.node_samples import (
    FeatureCodes,
    NodeSamples,
    divide_by_exchange,
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
    same_value,
    threshold_between,
    update_positions,
    value_of,
)


class Split(NamedTuple):
    """A split of a node; `feature` and `column` are -1 if there is none."""

    feature: int
    column: int
    left_code: int  # samples with a code up to this one go left
    threshold: float  # values up to this one go left; +inf: all values that are not missing
    has_missing: bool  # whether the feature has missing values in the node
    missing_left: bool  # whether they go left
    score: float


NO_SPLIT = Split(-1, -1, 0, 0.0, False, False, -np.inf)


class Bounds(NamedTuple):
    """The interval of a node's prediction under monotonic constraints."""

    lower: float
    upper: float


@inline_kernel
def breaks(bounds, direction, left, right):
    """Whether the predictions of two children break a monotonic constraint."""
    return (
        min(left, right) < bounds.lower
        or max(left, right) > bounds.upper
        or (left - right) * direction > 0
    )


class SearchContext(NamedTuple):
    """Everything that the search in a node needs."""

    splitter: tuple
    criterion: tuple
    node: NodeSamples
    draw: tuple
    table: tuple
    limits: tuple  # cart.growth.plan.Limits
    bounds: Bounds
    keep_order: bool  # whether sums depend on the order of the samples


@inline_kernel
def keeps_samples_in_order(context):
    """Whether samples that tie keep the order of the feature searched before.

    In scikit-learn they do, since samples stay in the order of the last sort. It matters only if
    sums depend on their order.
    """
    return context.keep_order and keeps_order(context.table)


@inline_kernel
def best_split(context, samples, start, n, row, n_constant):
    """Draw features, search each, and return the best split.

    Parameters
    ----------
    context : SearchContext
    samples, start, n : ndarray, int, int
        The node has samples[start:start + n].
    row : int
        The row of the stack in which the node waited.
    n_constant : int
        How many features are known to be constant.

    Returns
    -------
    best : Split
    last_feature : int
        The last feature looked at.
    n_constant : int
        How many features are known to be constant in the node's children.
    """
    draw, max_features = context.draw, context.limits.max_features
    best = NO_SPLIT
    last_feature = -1
    drawing = begin_draw(draw, row, n_constant)
    j, drawing = next_feature(draw, drawing, max_features)
    while j >= 0:
        feature = draw.features[j]
        last_feature = feature
        codes, n_present = load_feature(context, feature, samples, start, n)
        is_constant = np.int64(not order_feature(context, codes))
        if not is_constant:
            best = search_ordered(context, codes, n_present, best)
        elif n_present > 1:
            is_constant = BARRED
        drawing = mark(draw, drawing, j, is_constant)
        j, drawing = next_feature(draw, drawing, max_features)
    end_search(context.splitter, context, n)
    return best, last_feature, end_draw(draw, drawing)


@inline_kernel
def order_feature(context, codes):
    """Bring the node's keys into the order of a feature; return False if it is constant."""
    if codes.n_missing == codes.n:
        return False
    parts_missing = codes.n_missing > 0 and judges_missing(context.splitter)
    if parts_missing or codes.lowest < codes.highest:
        order(context.splitter, context, codes)
    return parts_missing or not same_value(context.table, codes.column, codes.lowest, codes.highest)


@inline_kernel
def search_ordered(context, codes, n_present, best):
    """Search the feature in whose order the keys are, and return the best split so far."""
    found = search(context.splitter, context, codes, best)
    if is_categorical(context.table, codes.column) and found.score > best.score:
        keep_subset(context.table, n_present, found.left_code)
        found = Split(
            codes.feature, codes.column, 0, np.nan, found.has_missing, found.missing_left,
            found.score,
        )  # fmt: skip
    return found


@inline_kernel
def load_feature(context, feature, samples, start, n):
    """Gather the node's codes of a feature; return FeatureCodes and the number of categories.

    Samples that are 0 in a sparse table may be left out if the criterion can do without them.
    """
    table, node = context.table, context.node
    column = table.columns[feature]
    may_list = not (keeps_order(table) or protocol.needs_all(context.criterion))
    lowest, highest, n_listed = gather(table, column, samples, start, n, node, may_list)
    n_missing = 0
    if highest == MISSING:
        lowest, highest, n_missing = known_range(node.codes, n)
    codes = FeatureCodes(
        feature, column, np.int64(n), np.int64(n_listed), np.int64(n_missing), np.uint32(lowest),
        np.uint32(highest),
    )  # fmt: skip
    return find_places(table, context, codes)


# -------------------------------------------------------------------------------- splitters


@dispatch
def search(splitter, context, codes, best):
    """Search one feature; return the best Split so far."""


@dispatch
def judges_missing(splitter):
    """Whether the splitter tries the split of missing values from all others."""


@dispatch
def order(splitter, context, codes):
    """Bring the node's keys into the order in which the feature is searched."""


@dispatch
def is_divided(splitter, best, last_feature):
    """Whether the node's keys are in the order left | right of the best split already."""


@dispatch
def end_search(splitter, context, n):
    """Make sure that the criterion is loaded with all `n` samples of the node, as before."""


class BestSplitter(NamedTuple):
    """Tries every cut between two values that differ, with missing values on either side."""

    name: int = 0  # numba needs at least one field

    def find_subsets(self, context, codes):
        return find_best_subsets(context, codes, False)

    def judges_missing(self):
        return True

    def order(self, context, codes):
        order_codes(context.table, context.node, codes, keeps_samples_in_order(context))

    def search(self, context, codes, best):
        n, n_missing = codes.n, codes.n_missing
        n_known = n - n_missing
        for missing_left in range(2 if n_missing > 0 else 1):
            first = 1
            last = min(n_known, n - 1)
            if missing_left:
                rotate(context.node, n, n_known)
                first = n_missing + 1
                last = n - 1
            score, p = scan_cuts(context, codes, first, last, best.score)
            if p > 0:
                best = split_at(context, codes, p, n_missing > 0, missing_left == 1, score)
        return best

    def is_divided(self, best, last_feature):
        return False

    def end_search(self, context, n):
        pass


class RandomSplitter(NamedTuple):
    """Tries one threshold drawn at random between the lowest and highest value (Geurts 2006)."""

    name: int = 1  # numba needs at least one field

    def find_subsets(self, context, codes):
        mine = context.node.codes[: codes.n]
        n_present = draw_places(context.table, codes.column, mine, context.draw, codes.feature)
        return n_present, min(n_present, 2)

    def judges_missing(self):
        return True

    def search(self, context, codes, best):
        table, limits = context.table, context.limits
        feature, column, n = codes.feature, codes.column, codes.n
        threshold = draw_threshold(context, codes)
        missing_left = False
        if codes.n_missing > 0:
            missing_left = random_side(context.draw, feature, 0)
        left_code = code_up_to(table, column, codes.lowest, codes.highest, threshold)
        p = divide_codes(
            table, context.node, codes, left_code, missing_left, keeps_samples_in_order(context)
        )
        if p < limits.min_samples_leaf or n - p < limits.min_samples_leaf:
            return best
        side = cut_at(context.criterion, context.node, p, n)
        if not is_legal(context, side, feature):
            return best
        score = protocol.score(context.criterion, side)
        if score > best.score:
            has_missing = codes.n_missing > 0
            best = Split(feature, column, left_code, threshold, has_missing, missing_left, score)
        return best

    def order(self, context, codes):
        pass

    def is_divided(self, best, last_feature):
        return best.feature == last_feature

    def end_search(self, context, n):
        pass


@inline_kernel
def draw_threshold(context, codes):
    """Draw a threshold below the highest value gathered; for categories, the lowest value."""
    low = value_of(context.table, codes.column, codes.lowest)
    if is_categorical(context.table, codes.column):
        return low
    high = value_of(context.table, codes.column, codes.highest)
    threshold = random_between(context.draw, codes.feature, low, high)
    # It may be rounded up to `high`, or not finite if high - low overflows.
    return threshold if threshold < high else low


@kernel
def find_best_subsets(context, codes, of_known):
    """Replace the node's categories by places in an order, one of whose cuts is the best subset.

    With `of_known`, subsets are judged by the samples whose category is known. Returns how many
    categories and how many places there are.
    """
    n_present = sum_by_category(context.table.subsets, context.node, codes.n)
    return place_best_subsets(context, codes, n_present, codes.n - codes.n_missing, of_known)


@kernel
def place_best_subsets(context, codes, n_present, n_known, of_known):
    """As `find_best_subsets`, for `n_present` categories of `n_known` rows, already summed up."""
    subsets, node, n = context.table.subsets, context.node, codes.n
    if context.table.n_categories[codes.column] > EXACT and not exceeds_f_ratio(
        subsets, n_present, n_known, context.limits.min_category_ratio
    ):
        merge_categories(subsets, n_present)
        replace_by_places(subsets, node.codes, n)
        return n_present, 1
    order_categories(subsets, n_present)
    replace_by_places(subsets, node.codes, n)
    if subsets.response.shape[1] > 1 and 2 < n_present <= EXACT:
        if of_known:
            try_known_subsets(context, codes, n_present)
        else:
            try_all_subsets(context, codes, n_present)
        return n_present, 2
    return n_present, n_present


@inline_kernel
def is_legal(context, side, feature):
    """Whether a cut leaves enough weight on either side and satisfies a monotonic constraint."""
    criterion, limits = context.criterion, context.limits
    direction = limits.monotonic[feature]
    if direction != 0 and breaks(context.bounds, direction, *protocol.side_values(criterion, side)):
        return False
    return min(side.weight, criterion.weight[0] - side.weight) >= limits.min_weight_leaf


@kernel
def cut_at(criterion, node, p, n):
    """The Side of the cut after the first p samples in order."""
    side = protocol.arrange(criterion, node.records, node.keys, n)
    return protocol.advance(criterion, side, node.records, node.keys, 0, p, n)


@kernel
def scan_cuts(context, codes, first, last, best_score):
    """Find the best cut of the ordered node that beats `best_score`: its score and position.

    A position p, from `first` to `last`, means that p samples go left; 0 means that no cut is
    better.
    """
    criterion, table, limits = context.criterion, context.table, context.limits
    feature, column, lowest, n = codes.feature, codes.column, codes.lowest, codes.n
    keys = context.node.keys
    records = context.node.records
    best = 0
    cut = 0  # how many samples the criterion has on the left
    tie_span = table.tie_span[column]
    is_bound = limits.monotonic[feature] != 0 or limits.min_weight_leaf > 0.0
    side = protocol.arrange(criterion, records, keys, n)
    last = min(last, n - limits.min_samples_leaf)
    following = next_cut(table, max(first, limits.min_samples_leaf) - 1)
    while following <= last:
        p = following
        following = next_cut(table, p)
        low = code_of(keys[p - 1])
        high = code_of(keys[p])
        if high - low <= tie_span and same_value(table, column, lowest + low, lowest + high):
            continue
        side = protocol.advance(criterion, side, records, keys, cut, p, n)
        cut = p
        if not protocol.may_score(criterion, side, best_score):
            continue
        if is_bound and not is_legal(context, side, feature):
            continue
        score = protocol.score(criterion, side)
        if score > best_score:
            best_score = score
            best = p
    return best_score, best


@kernel
def split_at(context, codes, p, has_missing, missing_left, score):
    """The Split after the first p samples in order."""
    table, keys, column, lowest = context.table, context.node.keys, codes.column, codes.lowest
    left_code = np.int64(lowest + code_of(keys[p - 1]))
    threshold = np.inf
    if missing_left or p < codes.n - codes.n_missing:
        right_code = np.int64(lowest + code_of(keys[p]))
        threshold = threshold_between(table, column, left_code, right_code)
    return Split(codes.feature, column, left_code, threshold, has_missing, missing_left, score)


@inline_kernel
def gather_sides(context, split, samples, start, n):
    """Gather codes that say where samples go: left up to `split.left_code`, unless missing."""
    gather(context.table, split.column, samples, start, n, context.node, False)
    replace_by_sides(context.table, context.node.codes, n, split.column)


@inline_kernel
def divide(context, split, last_feature, samples, start, n):
    """Divide samples[start:start + n] and the keys left | right, by the codes that were gathered.

    Returns how many go left.
    """
    table, node = context.table, context.node
    if keeps_samples_in_order(context):
        divided = is_divided(context.splitter, split, last_feature)
        return divide_by_exchange(split, divided, node, samples, start, n)
    n_left = divide_stably(split, node, samples, start, n)
    update_positions(table, samples, start, n)
    return n_left
