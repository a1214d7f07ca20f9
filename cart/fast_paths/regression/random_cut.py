"""Extra trees by sums of weights and targets: one cut per feature, at a random threshold.

Sums are taken over the samples in scikit-learn's order. Each feature that is looked at changes this
order: scikit-learn divides the samples at the drawn threshold, by exchanging them from both ends,
whether or not the cut is the best.

    samples   [ 9 4 0 7 3 ]      of a node, in the order that the feature before has left
    codes     [ 4 1 7 2 5 ]      gathered in that order; threshold between 2 and 4
    samples   [ 7 4 | 0 3 9 ]    exchanged; sums are taken from the shorter side

On tables with categories, samples stay in the order of the table and are divided in a copy. Subsets
are drawn like thresholds (see `cart.splitting.category_subsets.draw_places`).
"""

from functools import partial
from itertools import starmap
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, NO_CUT, Cut
from cart.fast_paths.cache_copies import LEAST_SHARE, create_cache_copies, nearest_copy
from cart.fast_paths.drawn_cuts import (
    DrawnCuts,
    begin_cuts,
    draw_among,
    draw_cut,
    drawn_cut,
    find_sides,
)
from cart.fast_paths.regression.cut_criteria import cuts_of
from cart.fast_paths.regression.cut_score import (
    WEIGHT,
    is_free_of_order,
    score_divided,
)
from cart.fast_paths.regression.node_sums import FEW, TOTAL, exchange, exchange_few
from cart.fast_paths.regression.several_means import MOST as MOST_MEANS
from cart.fast_paths.regression.tree_growth import (
    MeanPath,
    MeanWay,
    TierRows,
    TreeGrowth,
    add_up_split,
    begin_growth,
    bounds_at,
    node_of,
    split_node,
)
from cart.growth.frontier import NodeStack
from cart.growth.loop import FoundCut, grow
from cart.growth.plan import Limits
from cart.jit.decorators import dispatch, entry_kernel, inline_kernel, like
from cart.primitives.gather import EXPECTED_MAX, expect, take
from cart.primitives.partition import partition
from cart.splitting.category_subsets import (
    CategoricalTable,
    keep_subset,
    replace_by_sides,
    write_list,
)
from cart.splitting.criteria import Entropy, Gini, Poisson, SquaredError
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    likely_next,
    mark,
    next_feature,
)
from cart.splitting.splitter import RandomSplitter, breaks
from cart.table.float_table import FloatTable

COPY_BYTES = 2**15, 2**12  # of a column in each cache copy (see `cart.fast_paths.cache_copies`)


class GatheredSides(NamedTuple):
    """Which samples go left by their codes (see `cart.primitives.partition`): code + step <= last.

    Codes are in the order of the samples. A step of 1 makes MISSING, the highest code, 0.
    """

    codes: np.ndarray
    last: np.uint32
    step: np.uint32

    def goes_left(self, i, item):
        return np.int64(np.uint32(self.codes[i] + self.step) <= self.last)


class MarkedSides(NamedTuple):
    """Which samples go left by their marks."""

    marks: np.uint64  # bit i is set if sample i goes left

    def goes_left(self, i, item):
        return np.int64((self.marks >> np.uint64(item)) & np.uint64(1))


@dispatch
def try_sides(division, way, node, samples, feature, sides):
    """Divide a node's samples by `sides`; return how many go left, and the score of the cut."""


@dispatch
def divide_at(division, way, node, samples, found):
    """Bring a node's samples into the order left | right of the cut found; list a subset, if it is
    one."""


class InPlace(NamedTuple):
    """Divides samples in place, by scikit-learn's exchange from both ends."""

    name: int = 0  # numba wants a field

    def try_sides(self, way, node, samples, feature, sides):
        n_left = exchange(sides, samples, way.growth.swap)
        return n_left, _score(way, node, samples, feature, n_left)

    def divide_at(self, way, node, samples, found):
        rows, cut = way.tiers[node.tier], found.cut
        if cut.feature == found.last:
            return  # the last trial divided them so
        column = way.table.columns[cut.feature]
        if _has_few(rows, node):
            exchange_few(MarkedSides(np.uint64(way.cuts.sides[column])), samples)
        else:
            take(rows.codes[column], samples, way.gathered)
            sides = _sides_of(way.gathered, np.uint32(cut.left_code), cut.missing)
            exchange(sides, samples, way.growth.swap)


class InCopy(NamedTuple):
    """Tries cuts on a copy of the samples, which stay in the order of the table."""

    room: np.ndarray  # (2, n_rows) uint32: the divided copy; scratch for those that go right

    def try_sides(self, way, node, samples, feature, sides):
        n, divided = samples.shape[0], self.room[0]
        n_left = partition(sides, samples, n, divided, self.room[1])
        return n_left, _score(way, node, divided[:n], feature, n_left)

    def divide_at(self, way, node, samples, found):
        cut, n = found.cut, samples.shape[0]
        column = way.table.columns[cut.feature]
        take(way.tiers[node.tier].codes[column], samples, way.gathered)
        replace_by_sides(way.table, way.gathered, n, column)
        sides = _sides_of(way.gathered, np.uint32(cut.left_code), cut.missing)
        partition(sides, samples, n, samples, self.room[1])


@like(MeanWay)
class DrawnMeanWay(NamedTuple):
    """What the path works on; see the protocol of `cart.growth.loop`.

    The `right_code` of a cut that was found is how many samples go left.
    """

    table: tuple
    growth: TreeGrowth
    tiers: tuple  # of TierRows
    gathered: np.ndarray  # (n_rows,) uint32: codes of the current feature
    cuts: DrawnCuts  # of a node of few rows
    scores: np.ndarray  # (8,) float64: by the set of rows, of three, that go left (bits)
    division: NamedTuple  # InPlace or InCopy
    stack: NodeStack
    limits: Limits

    def search(self, node):
        node = nearest_copy(self.tiers, node, self.growth.criterion)
        rows, draw, limits = self.tiers[node.tier], self.growth.draw, self.limits
        few, samples = _has_few(rows, node), rows.samples[node.start : node.end]
        if few:
            begin_cuts(self.cuts, rows.across, samples, np.uint32(0), node.end - node.start)
        best, last = NO_CUT, np.int64(-1)
        drawing = begin_draw(draw, node.row, node.n_constant)
        j, drawing = next_feature(draw, drawing, limits.max_features)
        while j >= 0:
            last = draw.features[j]
            if few:
                is_constant = not draw_cut(self.cuts, self.table, draw, last)
            else:
                if node.tier == 0 and samples.shape[0] <= EXPECTED_MAX:
                    following = self.table.columns[likely_next(draw, drawing, j, 1)]
                    expect(rows.codes[following], samples, np.uint32(0))
                is_constant, best = _search_feature(self, node, samples, last, best)
            drawing = mark(draw, drawing, j, is_constant)
            j, drawing = next_feature(draw, drawing, limits.max_features)
        in_any_order = is_free_of_order(self.growth.criterion) and not limits.is_monotonic
        if few and samples.shape[0] <= 3 and in_any_order:
            best, last = _try_three(self, node, samples), np.int64(-1)
        elif few:
            best = _try_drawn(self, node, samples, best)
        return node, FoundCut(best.feature, best, last), end_draw(draw, drawing)

    def divide(self, node, found):
        rows, growth = self.tiers[node.tier], self.growth
        divide_at(self.division, self, node, rows.samples[node.start : node.end], found)
        middle = node.start + np.int64(found.cut.right_code)
        return add_up_split(growth, rows.samples, rows.targets, node_of(growth, node), middle)

    def write_split(self, tree, this, node, found, children):
        split_node(tree, this, node_of(tree, node), found.cut, children, self.limits)
        tree.nodes.threshold[this] = found.cut.threshold
        write_list(self.table, this, self.table.columns[found.feature])


@inline_kernel
def _has_few(rows, node):
    """Are the node's rows in the nearest tier, and at most FEW?"""
    return rows.across.shape[0] > 0 and node.end - node.start <= FEW


@inline_kernel
def _search_feature(way, node, samples, feature, best):
    """Draw a cut of a feature and try it; return whether the feature is constant, and the better
    Cut."""
    table, codes = way.table, way.gathered[: samples.shape[0]]
    take(way.tiers[node.tier].codes[table.columns[feature]], samples, codes)
    cut, n_present = draw_among(table, way.growth.draw, feature, codes)
    if cut.feature < 0:
        return True, best
    sides = _sides_of(way.gathered, np.uint32(cut.left_code), cut.missing)
    n_left, score = try_sides(way.division, way, node, samples, feature, sides)
    if score > best.score:
        keep_subset(table, n_present, cut.left_code)
        best = Cut(feature, cut.left_code, n_left, score, cut.missing, cut.threshold)
    return False, best


@inline_kernel
def _try_drawn(way, node, samples, best):
    """Try the cuts that have been drawn; return the best one."""
    rows, cuts, columns = way.tiers[node.tier], way.cuts, way.table.columns
    find_sides(cuts, rows.across, samples, node.end - node.start)
    for k in range(cuts.n_drawn[0]):
        feature = cuts.feature[k]
        column = columns[feature]
        n_left = exchange_few(MarkedSides(np.uint64(cuts.sides[column])), samples)
        score = _score(way, node, samples, feature, n_left)
        if score > best.score:
            best = drawn_cut(cuts, feature, column, n_left, score)
    return best


@inline_kernel
def _try_three(way, node, samples):
    """Try the cuts that have been drawn, for two or three rows without constraints.

    The order of so few rows does not matter: one row is alone on its side, and a sum of two is the
    same in either order. So the score depends only on which rows go left.
    """
    rows, cuts, columns, scores = way.tiers[node.tier], way.cuts, way.table.columns, way.scores
    n = samples.shape[0]
    everyone, last = (1 << n) - 1, n - 1
    scores[0] = scores[everyone] = -np.inf
    for i in range(n):
        alone = 1 << i
        samples[0], samples[i] = samples[i], samples[0]
        scores[alone] = _score(way, node, samples, np.int64(0), np.int64(1))
        samples[0], samples[i] = samples[i], samples[0]
        if n == 3:
            samples[last], samples[i] = samples[i], samples[last]
            scores[everyone - alone] = _score(way, node, samples, np.int64(0), np.int64(2))
            samples[last], samples[i] = samples[i], samples[last]
    find_sides(cuts, rows.across, samples, n)
    best, best_column, score, n_left = np.int64(-1), np.int64(0), -np.inf, np.int64(0)
    for k in range(cuts.n_drawn[0]):
        feature = cuts.feature[k]
        column = columns[feature]
        marks, sides = np.uint64(cuts.sides[column]), np.int64(0)
        for i in range(n):
            sides |= np.int64((marks >> np.uint64(samples[i])) & np.uint64(1)) << i
        if scores[sides] > score:
            best, best_column, score = feature, column, scores[sides]
            n_left = 1 + np.int64(sides & (sides - 1) > 0)
    if best < 0:
        return NO_CUT
    return drawn_cut(cuts, best, best_column, n_left, score)


@inline_kernel
def _score(way, node, samples, feature, n_left):
    """Score of a cut at which the samples are divided; -inf if limits forbid it."""
    targets, sums = way.tiers[node.tier].targets, way.growth.sums[node.row]
    if min(n_left, samples.shape[0] - n_left) < way.limits.min_samples_leaf:
        return -np.inf
    weight, total, score = score_divided(way.growth.criterion, samples, targets, n_left, sums)
    return score if _is_legal(way, node, feature, weight, total) else -np.inf


@inline_kernel
def _sides_of(gathered, left_code, missing):
    """The GatheredSides of a cut."""
    step = np.uint32(missing == MISSING_LEFT)
    return GatheredSides(gathered, np.uint32(left_code + step), step)


@inline_kernel
def _is_legal(way, node, feature, left_weight, left_sum):
    """Does the cut leave enough weight on both sides, and respect the monotonic constraint?"""
    limits, sums = way.limits, way.growth.sums[node.row]
    right_weight = sums[WEIGHT] - left_weight
    direction = limits.monotonic[feature]
    if direction != 0:
        left, right = left_sum / left_weight, (sums[TOTAL] - left_sum) / right_weight
        if breaks(bounds_at(way.growth, node.row), direction, left, right):
            return False
    return min(left_weight, right_weight) >= limits.min_weight_leaf


@entry_kernel
def _grow_trees(table, growth, rows, weights, y, seeds, limits, first_node):
    """Grow one tree per row of `weights`; the nodes of tree t begin at first_node[t]."""
    rows, candidates = rows
    for t in range(weights.shape[0]):
        way = _begin_tree(table, growth, rows, weights[t], y, seeds[t], limits, first_node[t])
        first_node[t + 1] = first_node[t] + grow(way, way.growth, candidates)


@inline_kernel
def _begin_tree(table, growth, rows, weights, y, seed, limits, first_node):
    """Begin a tree whose nodes start at `first_node`: return its way, with the root pending."""
    tiers, gathered, cuts, scores, division = rows
    first = tiers[0]
    tree = begin_growth(growth, first_node, first.samples, first.targets, weights, y, seed)
    return DrawnMeanWay(table, tree, tiers, gathered, cuts, scores, division, tree.stack, limits)


class RandomMeanPath(MeanPath):
    """Grows extra trees by squared error and Poisson deviance; and by Gini impurity and entropy
    where weights are not whole numbers."""

    criteria: tuple[type, ...] = (SquaredError, Poisson, Gini, Entropy)
    splitter = RandomSplitter
    table_kind: type = FloatTable
    most_outputs = MOST_MEANS
    takes_missing = takes_bounds = takes_leaves = True
    _has_small_nodes = False
    _grow_trees = staticmethod(_grow_trees)

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        self._criterion = cuts_of(plan, self._y)

    def _create_rows(self):
        codes, limits = self._table.codes, self._plan.limits
        n_columns, n_rows = codes.shape
        n_looked_at = 0 if self._is_best_first else limits.max_features  # for depth first only
        near = create_cache_copies(codes, n_looked_at, COPY_BYTES)
        pays = self.table_kind is FloatTable and n_looked_at >= LEAST_SHARE * n_columns
        n_few = FEW if pays else 0
        nearest = n_few, np.empty((n_columns, n_few), codes.dtype), True
        tiers = tuple(
            starmap(partial(TierRows.create, self._per_row), [(n_rows, codes), *near, nearest])
        )
        gathered, cuts = np.empty(n_rows, np.uint32), DrawnCuts.create(self._table)
        rows = tiers, gathered, cuts, np.empty(8), self._create_division()
        return rows, self._candidates

    def _create_division(self):
        return InPlace()


class RandomCategoryMeanPath(RandomMeanPath):
    """Grows extra trees on tables with categories, one at a time."""

    criteria = SquaredError, Poisson
    table_kind = CategoricalTable
    most_outputs = 1

    def _create_division(self):
        return InCopy(np.empty((2, len(self._y)), np.uint32))
