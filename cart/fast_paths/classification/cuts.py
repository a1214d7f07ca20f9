"""How a node searches the cuts of a feature on whole class counts: the protocol, and all cuts.

Other classes with the same methods search other cuts, or by other means: one cut at a random
threshold (`random_cut`), sparse columns (`sparse_cut`), or sorted rows (`sorted_cuts`).
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, MISSING_RIGHT, NONE_MISSING, Cut, write_split
from cart.fast_paths.classification.best_cut import Monotony, choose_cut, with_enough_weight
from cart.fast_paths.classification.cumulative_counts import (
    add_up,
    add_up_counts,
    count_few_codes,
    count_keys,
    count_samples,
    with_enough_samples,
)
from cart.fast_paths.classification.packed_rows import (
    ColumnCodes,
    code_of_key,
    gather_keys,
    partition_packed_rows,
)
from cart.fast_paths.classification.screening import add_up_kept, is_worth_screening, screen
from cart.growth.node_step import bounds_at
from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.primitives.radix_sort import sort_short_keys
from cart.splitting.splitter import Bounds
from cart.table.table import same_value

_HISTOGRAM_MIN = 64  # rows
# So few codes are counted in a pass for each: with two classes, and with more.
FEW_CODES, _FEW_CODES_MORE = 5, 3


@dispatch
def begin_tree(cuts, way, n):
    """Begin a tree of n words."""


@dispatch
def begin_search(cuts, way, node, searched):
    """Prepare the search of a node."""


@dispatch
def end_search(cuts, way, node, searched, best):
    """Try the cuts that were put off; return the best Cut of all."""


@dispatch
def divide_words(cuts, way, node, cut, left_counts):
    """Bring the node's words into the order left | right, and write the class counts of the left;
    return how many go left."""


@dispatch
def expect_next(cuts, way, node, drawing, j):
    """Prefetch what the search of the feature after the one at position j will read."""


@dispatch
def search_feature(cuts, way, node, searched, feature, best):
    """Search a feature; return whether it is constant in the node, or BARRED (see
    `cart.splitting.feature_draw.mark`), and the better Cut."""


@dispatch
def write_cut(cuts, way, tree, this, node, cut, children):
    """Write the feature and threshold of the split `this`, which has these children."""


@inline_kernel
def write_threshold(tree, this, cut):
    """Write the feature and threshold of a split at a cut whose threshold is known."""
    tree.nodes.feature[this], tree.nodes.threshold[this] = cut.feature, cut.threshold


@inline_kernel
def divide_stably(way, node, cut, codes, left_counts):
    """Divide a node's words as `divide_words` does, by the codes of the cut's column, keeping the
    order on each side."""
    words, scratch = way.tiers[node.tier].words[node.start : node.end], way.scratch
    return partition_packed_rows(
        codes, cut, words, way.layout, scratch.keys, scratch.spare, left_counts
    )


class BestCuts(NamedTuple):
    """Searches all cuts of a feature."""

    name: int = 0  # numba wants a field

    def begin_tree(self, way, n):
        pass

    def begin_search(self, way, node, searched):
        pass

    def expect_next(self, way, node, drawing, j):
        pass

    def search_feature(self, way, node, searched, feature, best):
        return search_codes(way, node, searched, feature, best)

    def end_search(self, way, node, searched, best):
        return best

    def divide_words(self, way, node, cut, left_counts):
        codes = ColumnCodes(way.tiers[node.tier].codes[way.table.columns[cut.feature]])
        return divide_stably(way, node, cut, codes, left_counts)

    def write_cut(self, way, tree, this, node, cut, children):
        write_split(tree.nodes, this, cut, tree.cuts)


@inline_kernel
def search_codes(way, node, searched, feature, best):
    """Search all cuts of a feature, as `search_feature`."""
    codes = read_codes(way, node, searched, feature, best)
    if codes.is_searched:
        best = search_ordered(way, node, searched, feature, codes, best)
    return codes.is_constant, best


class CutRules(NamedTuple):
    """Limits on the cuts of a feature, and where its missing values are."""

    least: int  # samples on each side of a cut
    missing: np.uint32  # the code of missing values
    has_missing: bool  # in the node
    min_weight: float
    monotony: Monotony


@inline_kernel
def _put_in_order(searched, scratch, n, span, score, rules, table, column):
    """Order the entries that may lie beside the best cut, and write their prefix counts.

    `span` has the lowest and the highest code of the keys. Returns the entries and their number.
    """
    criterion, prefix, layout, counts, _ = searched
    lowest, highest = span
    keys, spare = scratch.keys, scratch.spare
    if not rules.has_missing and _try_to_count(searched, rules.least, n, span, keys, spare):
        n_levels = add_up_counts(criterion, prefix, lowest, highest, counts, layout)
        return prefix.levels, n_levels
    needs_all = rules.has_missing or rules.least > 1
    needs_all |= rules.min_weight > 0.0 or rules.monotony.direction != 0
    is_screened = not needs_all and is_worth_screening(criterion, n, counts.shape[0])
    shift = np.uint32(0)
    if is_screened:
        n, shift = screen(searched, keys, n, span, score, table, column, spare)
        keys, spare = spare, keys
    if sort_short_keys(keys, n, layout.low_bits, lowest, highest, spare, scratch.digits):
        keys = spare
    if is_screened:
        add_up_kept(criterion, prefix, keys, n, lowest, shift, counts, layout)
    else:
        add_up(criterion, prefix, keys, n, counts, layout)
    return keys, n


@inline_kernel
def _try_to_count(searched, least, n, span, keys, spare):
    """Count keys by code, if it is worth it and there is room; return whether they are counted."""
    _, prefix, layout, counts, _ = searched
    lowest, highest = span
    n_codes, n_classes = np.int64(highest - lowest) + 1, counts.shape[0]
    n_cells, n_few = n_codes * n_classes, FEW_CODES if n_classes == 2 else _FEW_CODES_MORE
    if n_codes <= n_few and n_cells <= prefix.histogram.shape[0]:
        count_few_codes(prefix, keys[:n], lowest, highest, counts, layout, spare)
        return True
    if n < _HISTOGRAM_MIN or n_cells >= n:
        return False
    count_keys(prefix, keys[:n], lowest, layout.low_bits, n_codes, n_classes, layout)
    if least > 1:
        count_samples(prefix, keys, n, lowest, highest, layout)
    return True


class Ordered(NamedTuple):
    """Codes of a node's rows, ready to be searched: counted in the histogram, or as keys."""

    span: tuple  # the lowest and the highest, uint32
    missing: np.uint32  # the code of missing values
    is_counted: bool  # in the histogram, as places of categories are
    is_constant: bool  # whether there is only one value
    is_searched: bool  # whether a cut may be better than the best so far


@inline_kernel
def read_codes(way, node, searched, feature, best):
    """Write the keys of a node along a feature; return them as Ordered codes."""
    table, rows, column = way.table, way.tiers[node.tier], way.table.columns[feature]
    missing = np.uint32(table.level_start[column + 1] - table.level_start[column])
    n = node.end - node.start
    span = gather_keys(
        rows.codes[column], rows.words, node.start, n, searched.layout, missing, way.scratch.keys
    )
    is_constant = same_value(table, column, span[0], span[1])
    return Ordered(span, missing, False, is_constant, not is_constant and is_open(best))


@inline_kernel
def is_open(best):
    """May another cut be better? Not if both sides of the best one are pure."""
    return best.score < 0.0


@inline_kernel
def search_ordered(way, node, searched, feature, codes, best):
    """Search the cuts between ordered codes; return the best of them and `best`."""
    table, scratch, n = way.table, way.scratch, node.end - node.start
    criterion, prefix, layout, counts, weight = searched
    column, span, missing = table.columns[feature], codes.span, codes.missing
    limits, monotony = way.limits, monotony_of(way, node, feature)
    rules = CutRules(
        limits.min_samples_leaf, missing, span[1] == missing, limits.min_weight_leaf, monotony
    )
    if codes.is_counted:
        entries = prefix.levels
        n_entries = add_up_counts(criterion, prefix, span[0], span[1], counts, layout)
    else:
        entries, n_entries = _put_in_order(
            searched, scratch, n, span, best.score, rules, table, column
        )
    begin, end = rules.least - 1, n_entries - rules.least
    if rules.least > 1 and prefix.origin[0] >= 0:
        begin, end = with_enough_samples(prefix, n_entries, rules.least, layout)
    goes = MISSING_RIGHT if rules.has_missing else NONE_MISSING
    while True:
        first, last = begin, end
        if rules.min_weight > 0.0:
            first, last = with_enough_weight(prefix, first, last, weight, rules.min_weight)
        score, i = choose_cut(
            searched, entries, first, last, best.score, table, column, rules.monotony
        )
        if i >= 0:
            left_code = np.int64(entries[i] >> layout.low_bits)
            right_code = np.int64(entries[i + 1] >> layout.low_bits)
            best = Cut(feature, left_code, right_code, score, goes, 0.0)
        if goes != MISSING_RIGHT:
            return best
        goes = MISSING_LEFT
        _put_missing_first(searched, entries, n, missing)
        entries = prefix.levels
        while begin < n and code_of_key(entries[begin], layout) == missing:
            begin += 1


@inline_kernel
def monotony_of(way, node, feature):
    limits = way.limits
    bounds = bounds_at(way.scratch, node.row) if limits.is_monotonic else Bounds(-np.inf, np.inf)
    return Monotony(np.int64(limits.monotonic[feature]), bounds)


@kernel
def _put_missing_first(searched, keys, n, missing):
    """Write the ordered keys to `levels`, missing values first, and their prefix counts."""
    criterion, prefix, layout, counts, _ = searched
    n_known = n
    while code_of_key(keys[n_known - 1], layout) == missing:
        n_known -= 1
    turned = prefix.levels
    n_missing = n - n_known
    for i in range(n_missing):
        turned[i] = keys[n_known + i]
    for i in range(n_known):
        turned[n_missing + i] = keys[i]
    add_up(criterion, prefix, turned, n, counts, layout)
