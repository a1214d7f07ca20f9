"""Sorted rows of tables with categories: the rows of categorical columns are ordered by place.

Columns of numbers are presorted (see `cart.fast_paths.regression.sorted_rows`). When a node looks
at a column of categories, it finds their places (see `cart.splitting.category_subsets`), and a
counting sort puts its rows in the order of the places. A subset is then a cut like any other:

    samples   4  7  8  9             of a node, in the order of the table
    category  c  a  c  b             mean responses: a < c < b
    entries   [ 0 7 | 1 4 | 1 8 | 2 9 ]       place, row

Samples stay in the order of the table: no order is kept from one feature to the next.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import MISSING_LEFT
from cart.fast_paths.regression.cut_score import weight_at, y_at
from cart.fast_paths.regression.presorted_rows import PresortedRows, first_of
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.fast_paths.regression.sorted_rows import (
    begin_tree,
    code_at,
    divide_rows,
    load_feature,
    mark_left,
    room_for,
    row_at,
)
from cart.jit.decorators import kernel, like
from cart.primitives.sort_keys import CODE_SHIFT
from cart.splitting.category_subsets import (
    EXACT,
    CategoricalTable,
    Subsets,
    exceeds_f_ratio,
    list_marked,
    mark_category,
    merge_categories,
    order_categories,
    write_subset,
)
from cart.splitting.criteria import Poisson, SquaredError
from cart.table.ranking import MISSING
from cart.table.table import Table


@like(PresortedRows)
class CategoryRows(NamedTuple):
    """The rows of the tree along every column; see `cart.fast_paths.regression.sorted_rows`."""

    sorted: PresortedRows  # of columns of numbers; entries of categories are written here, too
    entries: np.ndarray  # sorted.entries
    numbers: Table  # the table with columns of numbers as its only features
    chosen: np.ndarray  # (n_features,) int64: scratch for a list of features
    subsets: Subsets
    samples: np.ndarray  # see `cart.fast_paths.regression.sorted_path.SortedScratch`
    targets: np.ndarray
    min_ratio: float  # the F ratio that the guard asks for

    def begin_tree(self, table, in_bag, n, is_in_bag):
        self.subsets.weight[:], self.subsets.response[:] = 0.0, 0.0  # as after every search
        begin_tree(self.sorted, self.numbers, in_bag, n, is_in_bag)

    def load_feature(self, table, column, place, node):
        if table.n_categories[column] == 0:
            return load_feature(self.sorted, table, column, place, node)
        return _load_categories(self, table, column, node)

    def unlisted_code(self, column, n):
        return MISSING

    def list_all(self, table, column, first, node):
        return first

    def room_for(self, column, place, node):
        return room_for(self.sorted, column, place, node)

    def mark_left(self, table, cut, node, is_left):
        return mark_left(self.sorted, table, cut, node, is_left)

    def divide_rows(self, table, features, node, cut, n_left, is_left):
        n_chosen = 0
        for j in range(features.shape[0]):
            self.chosen[n_chosen] = features[j]
            n_chosen += table.n_categories[table.columns[features[j]]] == 0
        divide_rows(self.sorted, table, self.chosen[:n_chosen], node, cut, n_left, is_left)

    def divide_feature(self, column, start, n, depth, n_left, is_left):
        pass

    def note_split(self, table, this, node, cut, n_left):
        column = table.columns[cut.feature]
        if table.n_categories[column] > 0:
            _list_smaller_side(self, table.codes[column], column, node, cut, n_left)
            write_subset(self.subsets, this)

    def has_all_entries(self):
        return False

    def hand_to_small_node(self, small, table, features, samples, targets, node):
        return False


@kernel
def _load_categories(rows, table, column, node):
    """See `cart.fast_paths.regression.sorted_rows.load_feature`. If no cut may part the categories,
    of which there are several, the lowest code returned is above the highest."""
    subsets, codes = rows.subsets, table.codes[column]
    at = first_of(rows.sorted, column, node.start, node.depth)
    n_known, n_present = _sum_by_category(subsets, codes, rows.samples, rows.targets, node)
    n_places, is_guarded = n_present, table.n_categories[column] > EXACT
    if n_present < 2 or (
        is_guarded and not exceeds_f_ratio(subsets, n_present, n_known, rows.min_ratio)
    ):
        merge_categories(subsets, n_present)
        n_places = min(n_present, 1)
    else:
        order_categories(subsets, n_present)
    lowest, highest = np.uint32(n_places == 1 and n_present > 1), np.uint32(max(n_places, 1) - 1)
    if n_known < node.n:
        lowest, highest = np.uint32(0) if n_known > 0 else MISSING, MISSING
    if lowest < highest:
        _count_into_order(rows, codes, rows.entries[at:], node, n_known, n_places)
    for p in range(n_present):
        category = subsets.present[p]
        subsets.n_rows[category] = 0
        subsets.weight[category], subsets.response[category, 0] = 0.0, 0.0
    return at, lowest, highest


@kernel
def _sum_by_category(subsets, codes, samples, targets, node):
    """Sum up the responses of each category, and list the node's categories in `subsets.present`.

    Returns how many rows are not missing, and how many categories there are.
    """
    n_known, n_present, squares = 0, 0, 0.0
    for i in range(node.start, node.end):
        row = samples[i]
        category = codes[row]
        if category == MISSING:
            continue
        n_known += 1
        subsets.present[n_present] = category  # no branch: whether it is new is unpredictable
        n_present += subsets.n_rows[category] == 0
        subsets.n_rows[category] += 1
        weight, y = weight_at(targets, row), y_at(targets, row)
        subsets.weight[category] += weight
        subsets.response[category, 0] += weight * y
        squares += weight * y * y
    subsets.squares[0] = squares
    return n_known, n_present


@kernel
def _count_into_order(rows, codes, entries, node, n_known, n_places):
    """Write the node's entries in the order of the places, missing ones last."""
    subsets, behind = rows.subsets, n_known
    first = subsets.spare[1]
    first[0] = 0
    for place in range(1, n_places):
        before = subsets.present[subsets.spare[0, place - 1]]
        first[place] = first[place - 1] + subsets.n_rows[before]
    for i in range(node.start, node.end):
        row = np.uint64(rows.samples[i])
        category = codes[row]
        if category == MISSING:
            entries[behind] = np.uint64(MISSING) << CODE_SHIFT | row
            behind += 1
        else:
            place = subsets.place[category]
            entries[first[place]] = np.uint64(place) << CODE_SHIFT | row
            first[place] += 1


@kernel
def _list_smaller_side(rows, codes, column, node, cut, n_left):
    """List the categories on the smaller side of a cut; the node's entries are in order."""
    at = first_of(rows.sorted, column, node.start, node.depth)
    entries, n_known = rows.entries[at : at + node.n], node.n
    while code_at(entries, n_known - 1) == MISSING:
        n_known -= 1
    if cut.missing == MISSING_LEFT:
        n_left -= node.n - n_known
    listed_left = 2 * n_left < n_known
    first, end = (0, n_left) if listed_left else (n_left, n_known)
    n_listed = 0
    for i in range(first, end):
        n_listed = mark_category(rows.subsets, n_listed, codes[row_at(entries, i)])
    list_marked(rows.subsets, n_listed, listed_left)


class CategoryMeanPath(SortedPath):
    """Grows trees by squared error and Poisson deviance on tables with categories, one at a
    time."""

    criteria = (SquaredError, Poisson)
    table_kind = CategoricalTable
    most_outputs = 1
    _has_small_nodes = False
    _presort_share = 1 / 8  # lower than usual: the only alternative is the general path

    @classmethod
    def fits(cls, table, plan):
        return super().fits(table, plan) and cls._presorting_pays(table, plan)

    def _create_sorted(self, table, samples, targets):
        ratio = self._plan.limits.min_category_ratio
        columns = table.columns[table.n_categories[table.columns] == 0]
        numbers = Table(*(getattr(table, name) for name in Table._fields))._replace(columns=columns)
        rows, room = PresortedRows.create(table), np.empty(len(table.columns), np.int64)
        return CategoryRows(
            rows, rows.entries, numbers, room, table.subsets, samples, targets, float(ratio)
        )
