"""Extra trees of regression: one cut a feature, at a threshold drawn at random.

Sums are taken over the samples in scikit-learn's order, which every feature looked at changes: its
exchange from both ends divides them at the threshold drawn, whether or not the cut is the best.

    samples   [ 9 4 0 7 3 ]      of a node, in the order that the feature before has left
    codes     [ 4 1 7 2 5 ]      gathered in that order; threshold between 2 and 4
    samples   [ 7 4 | 0 3 9 ]    exchanged; sums are taken from the shorter side
"""

from itertools import starmap
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, NO_CUT, NONE_MISSING, Cut
from cart.fast_paths.cache_copies import create_cache_copies
from cart.fast_paths.near_rows import (
    create_across,
    create_ranges,
    find_ranges,
    range_of,
    write_across,
)
from cart.fast_paths.regression.cut_criteria import SquaredErrorCuts
from cart.fast_paths.regression.cut_score import (
    WEIGHT,
    mean_score,
    weight_at,
    write_target,
    y_at,
)
from cart.fast_paths.regression.node_sums import (
    FEW,
    TOTAL,
    MeanChildren,
    add_up_children,
    exchange,
    exchange_few,
)
from cart.fast_paths.regression.tree_growth import (
    MeanPath,
    TreeGrowth,
    begin_growth,
    bounds_at,
    decrease_of,
    node_of,
    split_node,
    write_mean,
)
from cart.growth.best_first import grow_best_first
from cart.growth.depth_first import grow_depth_first
from cart.growth.frontier import NodeStack, moved, with_weight
from cart.growth.plan import Limits
from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.partition import goes_left
from cart.splitting.feature_draw import (
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
    random_between,
    random_side,
    restart,
)
from cart.splitting.splitter import RandomSplitter
from cart.table.float_table import FloatTable
from cart.table.node_samples import known_range
from cart.table.ranking import MISSING
from cart.table.table import code_up_to, same_value, value_of

COPY_BYTES = 2**15, 2**12  # of a column of the near tiers (see `cart.fast_paths.cache_copies`)


_FEW_STEPS = 16  # samples of which sums take as many steps on either side of a cut
_SHARE = 1 / 8  # of the columns that a node must look at for copies of its few rows to pay


class DrawnRows(NamedTuple):
    """Some rows: those of a node side by side, and what they point to."""

    samples: np.ndarray  # (n,) uint32: in scikit-learn's order
    codes: np.ndarray  # (n_columns, at least n) uint32
    targets: np.ndarray  # (2 n,) float64: see `cart.fast_paths.regression.cut_score`
    across: np.ndarray  # see `cart.fast_paths.near_rows`; or empty

    @classmethod
    def create(cls, n, codes, is_nearest=False):
        across = create_across(n, len(codes) if is_nearest else 0)
        return cls(np.empty(n, np.uint32), codes, np.empty(2 * n), across)


class Sides(NamedTuple):
    """Where codes send samples (see `cart.primitives.partition`): those up to `last` go left, where
    `step` is added to all, which makes the highest one, of missing values, 0."""

    codes: np.ndarray
    last: np.uint32
    step: np.uint32


class GatheredSides(Sides):
    """By codes that stand as the samples do."""

    __slots__ = ()

    def goes_left(self, i, item):
        return np.int64(np.uint32(self.codes[i] + self.step) <= self.last)


class LookedUpSides(Sides):
    """By codes of all rows."""

    __slots__ = ()

    def goes_left(self, i, item):
        return np.int64(np.uint32(self.codes[item] + self.step) <= self.last)


class DrawnCuts(NamedTuple):
    """The cuts drawn in a node of few rows, one behind the other."""

    feature: np.ndarray  # (n_features,) int64
    left_code: np.ndarray  # (n_features,) uint32
    missing: np.ndarray  # (n_features,) int64: where missing values go
    threshold: np.ndarray  # (n_features,) float64

    @classmethod
    def create(cls, n):
        return cls(
            np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n, np.int64), np.empty(n)
        )


class DrawnCut(NamedTuple):
    """What a search has found."""

    feature: int  # -1 where there is no cut
    cut: Cut  # in place of the right code: how many samples go left
    last: int  # the last feature looked at


class DrawnMeanWay(NamedTuple):
    """What the path works on; the protocol is that of `cart.growth.depth_first`."""

    table: tuple
    growth: TreeGrowth
    tiers: tuple  # of DrawnRows
    gathered: np.ndarray  # (n_rows,) uint32: codes of the feature at hand
    ranges: np.ndarray  # see `cart.fast_paths.near_rows`
    cuts: DrawnCuts
    stack: NodeStack
    limits: Limits

    def load(self, node):
        return with_weight(node, self.growth.sums[node.row, WEIGHT], node.impurity)

    def write_leaf(self, tree, this, node):
        write_mean(tree, this, node.impurity, node.end - node.start, tree.sums[node.row])

    def search(self, node):
        node = _copy_near(self.tiers, node)
        rows, draw, limits = self.tiers[node.tier], self.growth.draw, self.limits
        few, samples = _has_few(rows, node), rows.samples[node.start : node.end]
        if few:
            find_ranges(rows.across, samples, np.uint32(0), node.end - node.start, self.ranges)
        best, last, n_drawn = NO_CUT, np.int64(-1), 0
        drawing = begin_draw(draw, np.uint64(0), node.n_constant)
        j, drawing = next_feature(draw, drawing, limits.max_features)
        while j >= 0:
            last = draw.features[j]
            if _draw_cut(self, rows, samples, few, last, n_drawn):
                drawing = mark_searched(draw, drawing, j)
                if few:  # cuts are tried behind each other: two short loops take less time
                    n_drawn += 1
                else:
                    best = _try_cut(self, node, samples, few, 0, best)
            else:
                drawing = mark_constant(draw, drawing, j)
            j, drawing = next_feature(draw, drawing, limits.max_features)
        for k in range(n_drawn):
            best = _try_cut(self, node, samples, True, k, best)
        return node, DrawnCut(best.feature, best, last), end_draw(draw, drawing)

    def divide(self, node, found):
        rows, growth, cut = self.tiers[node.tier], self.growth, found.cut
        samples, n_left = rows.samples[node.start : node.end], np.int64(cut.right_code)
        if cut.feature != found.last:  # else they are divided
            codes, few = rows.codes[self.table.columns[cut.feature]], _has_few(rows, node)
            if not few:
                _gather(codes, samples, self.gathered)
            _divide(self, samples, codes, few, np.uint32(cut.left_code), cut.missing)
        mine, middle = node_of(growth, node), node.start + n_left
        halves = add_up_children(
            growth.criterion, rows.samples, rows.targets, mine, middle, growth.sums
        )
        decrease = decrease_of(mine, halves, growth.total_weight)
        return MeanChildren(middle, halves.left, halves.right, decrease, halves)

    def move_row(self, row, to):
        sums = self.growth.sums
        for k in range(sums.shape[1]):
            sums[to, k] = sums[row, k]

    def write_split(self, tree, this, node, found, children):
        cut = found.cut
        n_left = children.middle - node.start
        split_node(
            tree, this, node_of(tree, node), cut, n_left, children.halves, node.row, self.limits
        )
        tree.nodes.threshold[this] = cut.threshold


@inline_kernel
def _copy_near(tiers, node):
    """Copy the node's rows to the nearest tier that has room; return the node with its place there,
    or as it is."""
    start, end, tier = node.start, node.end, node.tier
    for nearer in range(node.tier + 1, len(tiers)):
        if end - start <= tiers[nearer].samples.shape[0]:
            _fill_cache_copy(tiers[tier], start, end - start, tiers[nearer])
            tier, start, end = nearer, 0, end - start
    return moved(node, start, end, tier)


@inline_kernel
def _has_few(rows, node):
    """Are the node's rows few, in the nearest tier?"""
    return rows.across.shape[0] > 0 and node.end - node.start <= FEW


@inline_kernel
def _fill_cache_copy(rows, start, n, nearer):
    """Copy what samples[start:start + n] point to."""
    samples = rows.samples[start : start + n]
    for column in range(nearer.codes.shape[0]):
        codes, copied = rows.codes[column], nearer.codes[column]
        for i in range(n):
            copied[i] = codes[samples[i]]
    if nearer.across.shape[0] > 0:
        write_across(nearer.across, nearer.codes, n)
    for i in range(n):
        row = samples[i]
        write_target(nearer.targets, i, weight_at(rows.targets, row), y_at(rows.targets, row))
        nearer.samples[i] = i


@inline_kernel
def _draw_cut(way, rows, samples, few, feature, k):
    """Draw the k-th cut of a node, of that feature; False where it is constant."""
    table, draw, cuts = way.table, way.growth.draw, way.cuts
    column = table.columns[feature]
    if few:
        lowest, highest, has_missing = range_of(way.ranges, column)
    else:
        lowest, highest, has_missing = _gather(rows.codes[column], samples, way.gathered)
    if lowest == MISSING or (not has_missing and same_value(table, column, lowest, highest)):
        return False
    low, high = value_of(table, column, lowest), value_of(table, column, highest)
    threshold = random_between(draw, feature, low, high)
    goes = NONE_MISSING
    if has_missing:
        goes = MISSING_LEFT if random_side(draw, feature, 0) else MISSING_RIGHT
    if not threshold < high:  # rounded up to it, or high - low is infinite
        threshold = low
    cuts.feature[k], cuts.threshold[k], cuts.missing[k] = feature, threshold, goes
    cuts.left_code[k] = code_up_to(table, column, lowest, highest, threshold)
    return True


@inline_kernel
def _try_cut(way, node, samples, few, k, best):
    """Divide the node at the k-th cut; return the better Cut."""
    rows, sums, limits = way.tiers[node.tier], way.growth.sums[node.row], way.limits
    feature, left_code, goes = way.cuts.feature[k], way.cuts.left_code[k], way.cuts.missing[k]
    n, codes = node.end - node.start, rows.codes[way.table.columns[feature]]
    n_left = _divide(way, samples, codes, few, left_code, goes)
    if min(n_left, n - n_left) < limits.min_samples_leaf:
        return best
    weight, total = sums[WEIGHT], sums[TOTAL]
    left_weight, left_sum = _sums_of_left(samples, rows.targets, n_left, n, weight, total)
    if not _is_legal(way, node, feature, left_weight, left_sum):
        return best
    score = mean_score(left_weight, left_sum, weight, total)
    if score > best.score:
        return Cut(feature, np.int64(left_code), n_left, score, goes, way.cuts.threshold[k])
    return best


@inline_kernel
def _gather(codes, samples, gathered):
    """Gather the codes of samples; the lowest and the highest known, and whether any is missing."""
    lowest, highest = MISSING, np.uint32(0)
    for i in range(samples.shape[0]):
        code = codes[samples[i]]
        lowest = min(lowest, code)
        highest = max(highest, code)
        gathered[i] = code
    if highest != MISSING:
        return lowest, highest, False
    lowest, highest, _ = known_range(gathered, samples.shape[0])
    return lowest, highest, True


@inline_kernel
def _divide(way, samples, codes, few, left_code, missing):
    """Divide a node's samples by a feature's codes, which are gathered unless they are `few`;
    return how many go left."""
    step = np.uint32(missing == MISSING_LEFT)
    last = np.uint32(left_code + step)
    if few:
        return exchange_few(LookedUpSides(codes, last, step), samples)
    sides, n_left = GatheredSides(way.gathered, last, step), np.int64(0)
    for i in range(samples.shape[0]):
        n_left += goes_left(sides, i, samples[i])
    exchange(sides, samples, n_left, way.growth.swap)
    return n_left


@inline_kernel
def _sums_of_left(samples, targets, n_left, n, weight, total):
    """Weight and sum of samples[:n_left], from the shorter side."""
    right = n - n_left
    from_left = np.int64(n_left <= right)  # unpredictable, so that there is no branch
    from_right = 1 - from_left
    first, step, n_moved = (n - 1) * from_right, from_left - from_right, min(n_left, right)
    sign = np.float64(step)
    weight, total = weight if from_right else 0.0, total if from_right else 0.0
    if n < _FEW_STEPS:  # as many steps for every feature: how many are needed is unpredictable
        for i in range(n // 2):
            row = samples[first + i * step]
            here = sign * np.float64(i < n_moved) * weight_at(targets, row)
            weight += here
            total += here * y_at(targets, row)
        return weight, total
    for i in range(n_moved):
        row = samples[first + i * step]
        here = sign * weight_at(targets, row)
        weight += here
        total += here * y_at(targets, row)
    return weight, total


@inline_kernel
def _is_legal(way, node, feature, left_weight, left_sum):
    """Does the cut leave enough weight on either side, and keep a monotonic constraint?"""
    limits, sums = way.limits, way.growth.sums[node.row]
    right_weight = sums[WEIGHT] - left_weight
    direction = limits.monotonic[feature]
    if direction != 0:
        left, right = left_sum / left_weight, (sums[TOTAL] - left_sum) / right_weight
        bounds = bounds_at(way.growth, node.row)
        if (
            min(left, right) < bounds.lower
            or max(left, right) > bounds.upper
            or (left - right) * direction > 0
        ):
            return False
    return min(left_weight, right_weight) >= limits.min_weight_leaf


@entry_kernel
def _grow_trees(table, growth, rows, weights, y, seeds, limits, first_node):
    """Grow one tree per row of `weights`; tree t has the nodes from first_node[t] on."""
    for t in range(weights.shape[0]):
        way = _begin_tree(table, growth, rows, weights[t], y, seeds[t], limits, first_node[t])
        first_node[t + 1] = first_node[t] + grow_depth_first(way, way.growth)


@inline_kernel
def _begin_tree(table, growth, rows, weights, y, seed, limits, first_node):
    """What a tree whose nodes begin with `first_node` grows on; its root waits."""
    tiers, gathered, ranges, cuts = rows
    samples, targets = tiers[0].samples, tiers[0].targets
    restart(growth.draw, seed)
    n = 0
    for row in range(y.shape[0]):
        write_target(targets, row, weights[row], y[row])
        samples[n] = row
        n += weights[row] > 0.0
    tree = begin_growth(growth, first_node, samples, targets, n)
    return DrawnMeanWay(table, tree, tiers, gathered, ranges, cuts, tree.stack, limits)


@entry_kernel
def _grow_best_first(table, growth, rows, weights, y, seed, limits, candidates):
    """Grow one tree; return how many nodes it has."""
    way = _begin_tree(table, growth, rows, weights, y, seed, limits, 0)
    return grow_best_first(way, way.growth, growth.nodes, candidates)


class RandomMeanPath(MeanPath):
    """Grows extra trees of regression by squared error."""

    splitter, table_kind = RandomSplitter, FloatTable
    takes_missing = takes_bounds = takes_leaves = True
    _grow_trees = staticmethod(_grow_trees)
    _grow_one_best_first = staticmethod(_grow_best_first)

    @property
    def _criterion(self):
        return SquaredErrorCuts()

    def _needs_lists(self):
        return True

    def _create_rows(self):
        codes, limits = self._table.codes, self._plan.limits
        n_columns, n_rows = codes.shape
        is_depth_first = limits.max_leaf_nodes < 0  # else a copy would not be used up at once
        n_bytes = COPY_BYTES if is_depth_first else ()
        near = create_cache_copies(codes, limits.max_features, n_bytes)
        n_few = FEW if is_depth_first and limits.max_features >= _SHARE * n_columns else 0
        nearest = n_few, np.empty((n_columns, n_few), codes.dtype), True
        tiers = tuple(starmap(DrawnRows.create, [(n_rows, codes), *near, nearest]))
        cuts = DrawnCuts.create(len(self._table.columns))
        return tiers, np.empty(n_rows, np.uint32), create_ranges(n_columns), cuts
