"""Whole class counts on tables with categories: subsets are cuts along an order of the categories.

A pass over a node's words counts the classes of each category that occurs. The guard and the order
are those of `cart.splitting.category_subsets`, with sums that are exact:

    words     a  b  a  c  b           categories of a node's rows
    tallies   a 2|0  b 2|1  c 1|1     weight | of the second class
    places    a 0    b 1    c 2       in the order of the shares; cuts between places are searched
                                      like cuts between codes
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT, NONE_MISSING, Cut, write_split
from cart.fast_paths.classification.cuts import (
    BestCuts,
    Ordered,
    divide_stably,
    is_open,
    read_codes,
    search_ordered,
)
from cart.fast_paths.classification.impurities import child_impurities
from cart.fast_paths.classification.packed_rows import ColumnCodes, class_of, row_number, weight_of
from cart.fast_paths.classification.path import ClassCountsPath
from cart.jit.decorators import inline_kernel, kernel, like
from cart.primitives.gather import gather
from cart.splitting.all_subsets import next_subset, place_subset
from cart.splitting.category_subsets import (
    EXACT,
    CategoricalTable,
    exceeds_f_ratio,
    keep_left,
    list_marked,
    mark_category,
    merge_categories,
    order_categories,
    write_subset,
)
from cart.splitting.feature_draw import BARRED
from cart.table.ranking import MISSING


@like(BestCuts)
class CategoryCuts(NamedTuple):
    """Searches all cuts of a feature of numbers, and the subsets of a feature of categories."""

    tallies: np.ndarray  # (n_categories, n_classes) int64: 0 between searches; see `_tally`

    @classmethod
    def create(cls, n_categories, n_classes):
        return cls(np.zeros((n_categories, 1 if n_classes <= 2 else n_classes), np.int64))

    def search_feature(self, way, node, searched, feature, best):
        if way.table.n_categories[way.table.columns[feature]] == 0:
            codes, n_present = read_codes(way, node, searched, feature, best), 0
        else:
            codes, n_present = _read_places(self, way, node, searched, feature, best)
        if not codes.is_searched:
            is_barred = n_present > 1 and is_open(best)
            return BARRED if is_barred else np.int64(codes.is_constant), best
        found = search_ordered(way, node, searched, feature, codes, best)
        if n_present > 0 and found.score > best.score:
            keep_left(way.table.subsets, n_present, found.left_code)
            found = Cut(feature, np.int64(0), np.int64(1), found.score, found.missing, 0.0)
        return np.int64(False), found

    def divide_words(self, way, node, cut, left_counts):
        subsets, rows = way.table.subsets, way.tiers[node.tier]
        column = way.table.columns[cut.feature]
        codes, above = rows.codes[column], way.table.n_categories[column]
        if above == 0:
            return divide_stably(way, node, cut, ColumnCodes(codes), left_counts)
        subsets.goes_left[above] = cut.missing == MISSING_LEFT
        sides = SubsetCodes(codes, subsets.goes_left, above)
        n_left = divide_stably(way, node, cut, sides, left_counts)
        _list_smaller_side(subsets, rows.words, node, cut, n_left, codes, way.layout)
        return n_left

    def write_cut(self, way, tree, this, node, cut, children):
        write_split(tree.nodes, this, cut, tree.cuts)
        if way.table.n_categories[way.table.columns[cut.feature]] > 0:
            write_subset(way.table.subsets, this)


# ------------------------------------------------------------------------------- the search


@kernel
def _read_places(cuts, way, node, searched, feature, best):
    """Read the places of a node's categories along a feature; return them as Ordered codes, and how
    many categories there are."""
    subsets, table = way.table.subsets, way.table
    n, column = node.end - node.start, table.columns[feature]
    n_known, n_present = _tally(cuts, subsets, way, node, searched, column)
    is_constant = n_present == 0 or (n_present == 1 and n_known == n)
    is_counted, is_searched, n_places = False, not is_constant and is_open(best), 1
    if is_searched:
        n_places = _find_places(cuts, way, node, searched, column, n_known, n_present)
        is_searched = n_places > 1 or n_known < n
    missing = np.uint32(n_places)
    if is_searched:
        n_cells = n_places * cuts.tallies.shape[1]
        is_counted = n_known == n and n_cells <= n
        if is_counted:
            _count_places(cuts, subsets, searched.prefix, n_present, n_cells)
            if way.limits.min_samples_leaf > 1:
                _count_samples(subsets, way, node, searched, column, n_places)
        else:
            _gather_places(subsets, way, node, searched.layout, column, missing)
    _clear(cuts, subsets, n_present)
    span = np.uint32(0), np.uint32(n_places - (n_known == n))
    return Ordered(span, missing, is_counted, is_constant, is_searched), n_present


@inline_kernel
def _tally(cuts, subsets, way, node, searched, column):
    """Count the classes of each category, and list the node's categories in `subsets.present`.

    A tally of two classes is one number: the weight in the high 32 bits, that of the second class
    below. Returns how many rows are not missing, and how many categories there are.
    """
    rows, tallies, layout = way.tiers[node.tier], cuts.tallies, searched.layout
    codes, n_present, n_missing = rows.codes[column], 0, 0
    for i in range(node.start, node.end):
        word = rows.words[i]
        category = codes[row_number(word, layout)]
        if category == MISSING:
            n_missing += 1
            continue
        w, c = weight_of(word, layout), class_of(word, layout)
        subsets.present[n_present] = category
        if tallies.shape[1] == 1:  # the weight says whether a category is new
            n_present += tallies[category, 0] == 0
            tallies[category, 0] += w << 32 | w * c
        else:
            n_present += subsets.n_rows[category] == 0
            subsets.n_rows[category] += 1
            tallies[category, c] += w
    return node.end - node.start - n_missing, n_present


@inline_kernel
def _write_responses(cuts, subsets, n_present):
    """Write the weights and responses of the node's categories, from their tallies."""
    tallies, squares = cuts.tallies, 0.0  # of responses, which are 0 and 1
    for p in range(n_present):
        category = subsets.present[p]
        if tallies.shape[1] == 1:
            subsets.weight[category] = tallies[category, 0] >> 32
            subsets.response[category, 0] = tallies[category, 0] & 0xFFFFFFFF
            squares += subsets.response[category, 0]
            continue
        weight = np.int64(0)
        for c in range(tallies.shape[1]):
            weight += tallies[category, c]
            subsets.response[category, c] = tallies[category, c]
        subsets.weight[category] = weight
        squares += weight
    subsets.squares[0] = squares


@inline_kernel
def _clear(cuts, subsets, n_present):
    n_cells = cuts.tallies.shape[1]
    for p in range(n_present):
        category = subsets.present[p]
        for c in range(n_cells):
            cuts.tallies[category, c] = 0
        if n_cells > 1:
            subsets.n_rows[category] = 0


@inline_kernel
def _find_places(cuts, way, node, searched, column, n_known, n_present):
    """Give the node's categories their places (see `cart.splitting.splitter.find_best_subsets`);
    return how many places there are."""
    subsets, min_ratio = way.table.subsets, way.limits.min_category_ratio
    is_guarded = way.table.n_categories[column] > EXACT
    is_barred = is_guarded and n_present == n_known and min_ratio > 0.0  # one row each
    if not is_barred:
        _write_responses(cuts, subsets, n_present)
        is_barred = is_guarded and not exceeds_f_ratio(subsets, n_present, n_known, min_ratio)
    if is_barred:
        if n_known < node.end - node.start:  # missing values may be parted from the others
            merge_categories(subsets, n_present)
        return 1
    order_categories(subsets, n_present)
    if cuts.tallies.shape[1] > 1 and 2 < n_present <= EXACT:
        _try_all_subsets(cuts, way, node, searched, n_known, n_present)
        return 2
    return n_present


@inline_kernel
def _count_places(cuts, subsets, prefix, n_present, n_cells):
    """Write the class counts of places to the histogram, as if places were codes."""
    n_classes, histogram = cuts.tallies.shape[1], prefix.histogram
    prefix.origin[0] = 0
    for cell in range(n_cells):
        histogram[cell] = 0
    for p in range(n_present):
        category = subsets.present[p]
        cell = np.int64(subsets.place[category]) * n_classes
        for c in range(n_classes):
            histogram[cell + c] += cuts.tallies[category, c]


@inline_kernel
def _count_samples(subsets, way, node, searched, column, n_places):
    """Count the samples of each place."""
    rows, samples = way.tiers[node.tier], searched.prefix.samples
    codes = rows.codes[column]
    for place in range(n_places):
        samples[place] = 0
    for i in range(node.start, node.end):
        samples[subsets.place[codes[row_number(rows.words[i], searched.layout)]]] += 1


@inline_kernel
def _gather_places(subsets, way, node, layout, column, missing):
    """Write the keys of the node's words, with places instead of codes."""
    rows, keys, above = way.tiers[node.tier], way.scratch.keys, way.table.n_categories[column]
    words = rows.words[node.start : node.end]
    gather(rows.codes[column], words, layout.low_bits, np.uint32(1), keys)
    subsets.place[above] = missing
    for i in range(words.shape[0]):
        place = subsets.place[min(np.int64(keys[i]), above)]
        keys[i] = place << layout.low_bits | words[i] & layout.low_mask


@kernel
def _try_all_subsets(cuts, way, node, searched, n_known, n_present):
    """Give the best of all subsets place 0, the other categories place 1."""
    subsets = way.table.subsets
    best, best_score = 1, -np.inf
    for missing_left in range(2 if n_known < node.end - node.start else 1):
        score, subset = _best_subset(cuts, way, node, searched, n_known, n_present, missing_left)
        if score > best_score:
            best, best_score = subset, score
    place_subset(subsets, n_present, best)


@kernel
def _best_subset(cuts, way, node, searched, n_known, n_present, missing_left):
    """Try the subsets of `cart.splitting.all_subsets`, in that order; return the best score and the
    subset that has it."""
    subsets, limits, tallies, n = way.table.subsets, way.limits, cuts.tallies, node.end - node.start
    criterion, prefix, _, counts, weight = searched
    left, left_weight, n_left = prefix.left, np.int64(0), 0
    for c in range(counts.shape[0]):
        left[c] = 0
    if missing_left:
        n_left = n - n_known
        for c in range(counts.shape[0]):
            left[c] = counts[c]
            for p in range(n_present):
                left[c] -= tallies[subsets.present[p], c]
            left_weight += left[c]
    best, best_score, subset = 1, -np.inf, 0
    for step in range(1, 1 << (n_present - 1)):
        moved, subset = next_subset(step, subset)
        sign = 1 if (subset >> moved) & 1 else -1
        category = subsets.present[subsets.spare[0, moved]]
        n_left += sign * subsets.n_rows[category]
        for c in range(counts.shape[0]):
            left[c] += sign * tallies[category, c]
            left_weight += sign * tallies[category, c]
        right_weight = weight - left_weight
        if min(n_left, n - n_left) < limits.min_samples_leaf:
            continue
        if np.float64(min(left_weight, right_weight)) < limits.min_weight_leaf:
            continue
        of_left, of_right = child_impurities(criterion, left, counts, left_weight, weight)
        score = -np.float64(right_weight) * of_right - np.float64(left_weight) * of_left
        if score > best_score:
            best, best_score = subset, score
    return best_score, best


# -------------------------------------------------------------------------------- dividing


class SubsetCodes(NamedTuple):
    """The codes of a column of categories, read as sides of a split: 0 goes left, 1 right."""

    codes: np.ndarray  # (n_rows,), of the table's type
    goes_left: np.ndarray  # by category; item `above` is for missing values
    above: int

    def gather_codes(self, words, layout, gathered):
        gather(self.codes, words, layout.low_bits, np.uint32(1), gathered)
        for i in range(words.shape[0]):
            gathered[i] = 1 - self.goes_left[min(np.int64(gathered[i]), self.above)]


@kernel
def _list_smaller_side(subsets, words, node, cut, n_left, codes, layout):
    """List the categories on the smaller side of a divided node."""
    middle, n_missing = node.start + n_left, 0
    if cut.missing != NONE_MISSING:
        for i in range(node.start, node.end):
            n_missing += codes[row_number(words[i], layout)] == MISSING
    if cut.missing == MISSING_LEFT:
        n_left -= n_missing
    listed_left = 2 * n_left < node.end - node.start - n_missing
    start, end = (node.start, middle) if listed_left else (middle, node.end)
    n_listed = 0
    for i in range(start, end):
        category = codes[row_number(words[i], layout)]
        if category != MISSING:
            n_listed = mark_category(subsets, n_listed, category)
    list_marked(subsets, n_listed, listed_left)


class CategoryCountsPath(ClassCountsPath):
    """Grows classification trees on tables with categories, one at a time."""

    table_kind = CategoricalTable
    most_outputs = 1

    def _create_cuts(self):
        return CategoryCuts.create(self._table.n_categories.max(), self._n_classes)
