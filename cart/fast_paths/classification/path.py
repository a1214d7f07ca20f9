"""Grow classification trees on whole class counts: the fast path of Gini and entropy.

Rows are packed (see `cart.fast_paths.classification.packed_rows`). A node's class counts come from
its parent, so a node that is not searched is never read.
"""

from itertools import starmap
from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import (
    MISSING_LEFT,
    MISSING_RIGHT,
    NO_CUT,
    NONE_MISSING,
    Cut,
    FastPath,
    tree_at,
    write_leaf,
    write_split,
    write_way_of_missing,
)
from cart.fast_paths.cache_copies import create_cache_copies
from cart.fast_paths.classification.best_cut import Monotony, choose_cut, with_enough_weight
from cart.fast_paths.classification.cumulative_counts import (
    ClassNode,
    PrefixCounts,
    add_up,
    add_up_counts,
    count_codes,
    count_keys,
)
from cart.fast_paths.classification.impurities import (
    EntropyCuts,
    GiniCuts,
    child_impurities,
    impurity_of,
    write_shares,
)
from cart.fast_paths.classification.packed_rows import (
    Layout,
    code_of_key,
    gather_keys,
    pack_rows,
    partition_packed_rows,
    row_number,
)
from cart.fast_paths.classification.screening import add_up_kept, is_worth_screening, screen
from cart.fast_paths.classification.several_outputs import GiniOfSeveralCuts, joint_codes
from cart.growth.best_first import grow_best_first
from cart.growth.depth_first import Children, grow_depth_first
from cart.growth.frontier import NodeStack, moved, push_root, with_weight
from cart.growth.node_step import child_bounds
from cart.growth.plan import Limits
from cart.jit.decorators import dispatch, entry_kernel, inline_kernel, kernel
from cart.primitives.radix_sort import N_DIGITS, ROOM, sort_short_keys
from cart.splitting.criteria import Entropy, Gini
from cart.splitting.feature_draw import (
    Draw,
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
    restart,
)
from cart.splitting.splitter import Bounds
from cart.table.table import same_value
from cart.tree.recompute import DEPTH_FIRST, GINI, WEIGHTS, WHOLE_COUNTS

CACHE_COPY_BYTES = (
    2**19,
    2**16,
)  # of a column of the near tiers (see `cart.fast_paths.cache_copies`)
_HISTOGRAM_MIN = 64  # rows
_CLASSES_MAX = 256
_OUTPUTS_MAX, _JOINT_MAX = 6, 64  # of several outputs, and classes that they have together
_WEIGHT_MAX = 2**26  # whose square is exact in double precision
# Weight of which every thread keeps a table for entropy: so much, or so much per row.
_TABLE_MAX, _PER_ROW = 2**20, 8


class ClassRows(NamedTuple):
    """Some rows: their words, those of a node side by side, and the codes that they point to."""

    words: np.ndarray  # (n,) uint32
    codes: np.ndarray  # (n_columns, at least n), of the table's type

    @classmethod
    def create(cls, n, codes):
        return cls(np.empty(n, np.uint32), codes)


class ClassScratch(NamedTuple):
    """What a thread writes to while it searches a node."""

    keys: np.ndarray  # (n + ROOM,) uint32
    spare: np.ndarray  # (n + ROOM,) uint32
    digits: np.ndarray  # (N_DIGITS,) int32
    pending: np.ndarray  # (capacity, n_classes) int64: class counts, a row per pending node
    total: np.ndarray  # (1,) float64: weight of the tree
    lower: np.ndarray  # (capacity,) float64: of the first class's share (monotonic constraints)
    upper: np.ndarray  # (capacity,) float64

    @classmethod
    def create(cls, n, n_classes, capacity):
        return cls(
            np.empty(n + ROOM, np.uint32),
            np.empty(n + ROOM, np.uint32),
            np.empty(N_DIGITS, np.int32),
            np.empty((capacity, n_classes), np.int64),
            np.empty(1),
            np.full(capacity, -np.inf),
            np.full(capacity, np.inf),
        )


@inline_kernel
def is_worth_counting(n, n_codes, n_classes):
    """Are the rows to be counted per code? The histogram has a cell for each of n rows."""
    return n >= _HISTOGRAM_MIN and n_codes * n_classes < n


class Asked(NamedTuple):
    """What a feature's cuts are searched under."""

    first: int  # entries that a cut leaves on either side, and one more
    missing: np.uint32  # the code of missing values
    has_missing: bool  # in the node
    min_weight: float
    monotony: Monotony


@inline_kernel
def _put_in_order(node, scratch, n, span, score, asked, table, column):
    """Order what the best cut may lie among, and sum it up; return the entries and how many.

    `span` are the lowest and the highest code of the keys.
    """
    criterion, running, layout, counts, _ = node
    lowest, highest = span
    keys, spare = scratch.keys, scratch.spare
    needs_all = asked.first > 0 or asked.has_missing
    if not needs_all and is_worth_counting(n, np.int64(highest - lowest) + 1, counts.shape[0]):
        count_keys(running, keys, n, lowest, highest, counts.shape[0], layout)
        n_levels = add_up_counts(criterion, running, lowest, highest, counts, layout)
        return running.levels, n_levels
    needs_all |= asked.min_weight > 0.0 or asked.monotony.direction != 0
    if not needs_all and is_worth_screening(criterion, n, counts.shape[0]):
        n_kept, shift = screen(node, keys, n, span, score, table, column, spare)
        kept = spare
        if sort_short_keys(kept, n_kept, layout.low_bits, lowest, highest, keys, scratch.digits):
            kept = keys
        add_up_kept(criterion, running, kept, n_kept, lowest, shift, counts, layout)
        return kept, n_kept
    if sort_short_keys(keys, n, layout.low_bits, lowest, highest, spare, scratch.digits):
        keys = spare
    add_up(criterion, running, keys, n, counts, layout)
    return keys, n


@inline_kernel
def _fill_cache_copy(rows, start, n, layout, nearer):
    """Copy words[start:start + n] and their codes."""
    for column in range(nearer.codes.shape[0]):
        codes = rows.codes[column]
        copied = nearer.codes[column]
        for i in range(n):
            copied[i] = codes[row_number(rows.words[start + i], layout)]
    for i in range(n):
        word = rows.words[start + i] & layout.low_mask
        nearer.words[i] = np.uint32(i) << layout.low_bits | word


@inline_kernel
def _copy_near(tiers, layout, node):
    """Copy the node's rows to the nearest tier that has room; return the node with its place there,
    or as it is."""
    start, end, tier = node.start, node.end, node.tier
    for nearer in range(node.tier + 1, len(tiers)):
        if end - start <= tiers[nearer].words.shape[0]:
            n = end - start
            _fill_cache_copy(tiers[tier], start, n, layout, tiers[nearer])
            tier, start, end = nearer, 0, n
    return moved(node, start, end, tier)


@dispatch
def search_feature(cuts, way, node, searched, feature, best):
    """Search a feature; return whether it is constant in the node, and the better Cut."""
    return cuts.search_feature(way, node, searched, feature, best)


@dispatch
def write_cut(cuts, way, tree, this, node, cut, children):
    """Write feature and threshold of the split of a node that has such children."""
    cuts.write_cut(way, tree, this, node, cut, children)


class BestCuts(NamedTuple):
    """The best of all cuts of a feature."""

    name: int = 0  # numba wants a field

    def search_feature(self, way, node, searched, feature, best):
        return _search_feature(way, node, searched, feature, best)

    def write_cut(self, way, tree, this, node, cut, children):
        write_split(tree.nodes, this, cut, tree.cuts)


class ClassCountsWay(NamedTuple):
    """What the path works on; the protocol is that of `cart.growth.depth_first`."""

    cuts: tuple  # which are searched
    criterion: tuple  # of cart.fast_paths.classification.impurities
    table: tuple
    layout: Layout
    tiers: tuple  # of ClassRows
    scratch: ClassScratch
    prefix: PrefixCounts
    draw: Draw
    stack: NodeStack
    limits: Limits

    def load(self, node):
        weight = _sum(self.scratch.pending[node.row])
        return with_weight(node, np.float64(weight), node.impurity)

    def write_leaf(self, tree, this, node):
        counts = self.scratch.pending[node.row]
        weight = _sum(counts)
        write_leaf(tree.nodes, this, node.impurity, node.end - node.start, weight)
        write_shares(self.criterion, tree.nodes.value[this], counts, weight)
        if self.limits.is_monotonic:
            value, bounds = tree.nodes.value[this, 0], bounds_at(self, node.row)
            value[0] = min(max(value[0], bounds.lower), bounds.upper)
            if value.shape[0] == 2:
                value[1] = 1.0 - value[0]

    def search(self, node):
        node = _copy_near(self.tiers, self.layout, node)
        counts, weight = self.scratch.pending[node.row], np.int64(node.weight)
        searched = ClassNode(self.criterion, self.prefix, self.layout, counts, weight)
        draw, limits = self.draw, self.limits
        best = NO_CUT
        drawing = begin_draw(draw, np.uint64(0), node.n_constant)
        j, drawing = next_feature(draw, drawing, limits.max_features)
        while j >= 0:
            feature = draw.features[j]
            is_constant, best = search_feature(self.cuts, self, node, searched, feature, best)
            if is_constant:
                drawing = mark_constant(draw, drawing, j)
            else:
                drawing = mark_searched(draw, drawing, j)
            j, drawing = next_feature(draw, drawing, limits.max_features)
        return node, best, end_draw(draw, drawing)

    def divide(self, node, cut):
        counts, left_counts = self.scratch.pending[node.row], self.scratch.pending[node.row + 1]
        rows = self.tiers[node.tier]
        codes = rows.codes[self.table.columns[cut.feature]]
        n_left = partition_packed_rows(
            codes, cut, rows.words, node.start, node.end - node.start, self.layout,
            self.scratch.spare, left_counts,
        )  # fmt: skip
        weight, left_weight = np.int64(node.weight), _sum(left_counts)
        left, right = child_impurities(self.criterion, left_counts, counts, left_weight, weight)
        share_left = np.float64(left_weight) / np.float64(weight)
        share_right = np.float64(weight - left_weight) / np.float64(weight)
        decrease = (np.float64(weight) / self.scratch.total[0]) * (
            node.impurity - share_right * right - share_left * left
        )
        for c in range(counts.shape[0]):
            counts[c] -= left_counts[c]
        if self.limits.is_monotonic:
            _pass_on_bounds(self, node.row, self.limits.monotonic[cut.feature])
        return Children(node.start + n_left, left, right, decrease)

    def move_row(self, row, to):
        scratch = self.scratch
        for c in range(scratch.pending.shape[1]):
            scratch.pending[to, c] = scratch.pending[row, c]
        scratch.lower[to], scratch.upper[to] = scratch.lower[row], scratch.upper[row]

    def write_split(self, tree, this, node, cut, children):
        write_cut(self.cuts, self, tree, this, node, cut, children)
        start, end = node.start, node.end
        write_way_of_missing(tree.nodes, this, cut, children.middle - start, end - start)


@inline_kernel
def bounds_at(way, row):
    return Bounds(way.scratch.lower[row], way.scratch.upper[row])


@kernel
def _pass_on_bounds(way, row, direction):
    """Bounds of the children, whose counts are there: the right one in `row`, the left above."""
    scratch, bounds = way.scratch, bounds_at(way, row)
    right, left = scratch.pending[row], scratch.pending[row + 1]
    value = np.float64(left[0]) / np.float64(_sum(left)) / 2.0
    value += np.float64(right[0]) / np.float64(_sum(right)) / 2.0
    for is_left in (True, False):
        own = child_bounds(bounds, direction, value, is_left)
        scratch.lower[row + is_left], scratch.upper[row + is_left] = own.lower, own.upper


@inline_kernel
def _search_feature(way, node, searched, feature, best):
    table, rows, scratch = way.table, way.tiers[node.tier], way.scratch
    criterion, prefix, layout, counts, weight = searched
    column = table.columns[feature]
    codes = rows.codes[column]
    start, n = node.start, node.end - node.start
    n_classes = counts.shape[0]
    n_codes = table.level_start[column + 1] - table.level_start[column]
    missing = np.uint32(n_codes)
    is_free = way.limits.min_samples_leaf == 1
    counts_codes = is_free and is_worth_counting(n, n_codes + 1, n_classes)
    if counts_codes:
        span = count_codes(prefix, codes, rows.words, start, n, n_codes, n_classes, layout)
        if span[1] == missing:
            counts_codes = False
    if not counts_codes:
        span = gather_keys(codes, rows.words, start, n, layout, missing, scratch.keys)
    if same_value(table, column, span[0], span[1]):
        return True, best
    if not best.score < 0.0:  # no cut is better: both sides are pure
        return False, best
    asked = _what_is_asked(way, node, feature, missing, span[1] == missing)
    if counts_codes:
        entries = prefix.levels
        n_entries = add_up_counts(criterion, prefix, span[0], span[1], counts, layout)
    else:
        entries, n_entries = _put_in_order(
            searched, scratch, n, span, best.score, asked, table, column
        )
    begin, goes = asked.first, MISSING_RIGHT if asked.has_missing else NONE_MISSING
    while True:
        first, last = begin, n_entries - 1 - asked.first
        if asked.min_weight > 0.0:
            first, last = with_enough_weight(prefix, first, last, weight, asked.min_weight)
        score, i = choose_cut(
            searched, entries, first, last, best.score, table, column, asked.monotony
        )
        if i >= 0:
            left_code = np.int64(entries[i] >> layout.low_bits)
            right_code = np.int64(entries[i + 1] >> layout.low_bits)
            best = Cut(feature, left_code, right_code, score, goes, 0.0)
        if goes != MISSING_RIGHT:
            return False, best
        goes = MISSING_LEFT
        _put_missing_first(searched, entries, n, missing)
        entries = prefix.levels
        while begin < n and code_of_key(entries[begin], layout) == missing:
            begin += 1


@inline_kernel
def _what_is_asked(way, node, feature, missing, has_missing):
    first, monotony = way.limits.min_samples_leaf - 1, monotony_of(way, node, feature)
    return Asked(first, missing, has_missing, way.limits.min_weight_leaf, monotony)


@inline_kernel
def monotony_of(way, node, feature):
    limits = way.limits
    bounds = bounds_at(way, node.row) if limits.is_monotonic else Bounds(-np.inf, np.inf)
    return Monotony(np.int64(limits.monotonic[feature]), bounds)


@kernel
def _put_missing_first(node, keys, n, missing):
    """Write the ordered keys to `levels`, the missing values before the others, and sum them up."""
    criterion, running, layout, counts, _ = node
    n_known = n
    while code_of_key(keys[n_known - 1], layout) == missing:
        n_known -= 1
    turned = running.levels
    n_missing = n - n_known
    for i in range(n_missing):
        turned[i] = keys[n_known + i]
    for i in range(n_known):
        turned[n_missing + i] = keys[i]
    add_up(criterion, running, turned, n, counts, layout)


@inline_kernel
def _sum(counts):
    total = np.int64(0)
    for c in range(counts.shape[0]):
        total += counts[c]
    return total


@entry_kernel
def grow_trees(way, trees, weights, classes, seeds, first_node):
    """Grow one tree per row of `weights`; tree t has the nodes from first_node[t] on."""
    for t in range(weights.shape[0]):
        _begin_tree(way, weights[t], classes, seeds[t])
        n_nodes = grow_depth_first(way, tree_at(trees, first_node[t]))
        first_node[t + 1] = first_node[t] + n_nodes


@inline_kernel
def _begin_tree(way, weight, classes, seed):
    """Let the root of a tree wait."""
    root = way.scratch.pending[0]
    restart(way.draw, seed)
    n_rows = pack_rows(weight, classes, way.layout, way.tiers[0].words, root)
    total = _sum(root)
    way.scratch.total[0] = total
    way.scratch.lower[0], way.scratch.upper[0] = -np.inf, np.inf
    push_root(way.stack, n_rows, impurity_of(way.criterion, root, total))


@entry_kernel
def _grow_best_first(way, tree, candidates, weight, classes, seed):
    _begin_tree(way, weight, classes, seed)
    return grow_best_first(way, tree, tree.nodes, candidates)


class ClassCountsPath(FastPath):
    """Grows classification trees whose weights are whole numbers."""

    criteria: tuple[type, ...] = (Gini, Entropy)
    takes_missing = takes_bounds = takes_leaves = True
    cuts_searched: tuple = BestCuts()
    copy_bytes: tuple[int, ...] = CACHE_COPY_BYTES
    most_outputs = _OUTPUTS_MAX

    def __init__(self, table, codes, plan):
        super().__init__(table, codes, plan)
        self._n_classes = plan.n_values**plan.n_outputs
        self._criterion = GiniCuts() if plan.criterion is Gini else EntropyCuts.create(0)
        if plan.n_outputs > 1:
            self._criterion = GiniOfSeveralCuts.create(plan.n_outputs, plan.n_values)
            self._y = joint_codes(self._y, plan.n_values)

    @classmethod
    def knows(cls, plan):
        n_joint = plan.n_values**plan.n_outputs
        if plan.n_outputs == 1:
            return super().knows(plan) and n_joint <= _CLASSES_MAX
        is_gini = plan.criterion is Gini and plan.n_values > 1
        return super().knows(plan) and is_gini and n_joint <= _JOINT_MAX

    def accepts(self, weights, is_whole):
        """Are the weights whole numbers that fit into words? Lays them out."""
        n_rows, top = len(self._y), weights.sum(axis=1).max()
        if not (super().accepts(weights, is_whole) and is_whole and top <= _WEIGHT_MAX):
            return False
        self._layout = Layout.of(n_rows, self._n_classes, weights.max())
        if isinstance(self._criterion, EntropyCuts) and len(self._criterion.table) <= top:
            if top > max(_TABLE_MAX, _PER_ROW * n_rows):
                return False
            self._criterion = EntropyCuts.create(int(top))
        return self._layout is not None

    def _flags(self, weights, is_whole):
        if self._plan.limits.is_monotonic:
            return DEPTH_FIRST | WEIGHTS
        follows = DEPTH_FIRST | WHOLE_COUNTS
        return follows | GINI if self._plan.criterion is Gini else follows

    def _create_scratch(self):
        codes, n_rows = self._table.codes, len(self._y)
        limits = self._plan.limits
        is_depth_first = limits.max_leaf_nodes < 0  # else a copy would not be used up at once
        n_bytes = self.copy_bytes if is_depth_first else ()
        near = create_cache_copies(codes, limits.max_features, n_bytes)
        return (
            tuple(starmap(ClassRows.create, [(n_rows, codes), *near])),
            ClassScratch.create(n_rows, self._n_classes, self._n_rows_of_stack),
            PrefixCounts.create(n_rows, self._n_classes),
        )

    def _grow(self, weights, seeds, first_node, trees, candidates=None):
        draw, stack, tiers, scratch, prefix = self._scratch
        way = ClassCountsWay(
            self.cuts_searched,
            self._criterion,
            self._table,
            self._layout,
            tiers,
            scratch,
            prefix,
            draw,
            stack,
            self._limits(weights),
        )
        if candidates is None:
            grow_trees(way, trees, weights, self._y, seeds, first_node)
        else:
            growing = trees, candidates, weights[0], self._y, seeds[0]
            first_node[1] = _grow_best_first(way, *growing)
