"""Splits on subsets of categories: order a node's categories, and list those that go left.

A categorical feature's codes are its categories. In every node they are replaced by places in an
order, so that the scan for thresholds searches subsets:

- one response (regression, two classes): by its mean. The best cut of this order is the best of all
  subsets (Fisher 1958; Breiman et al. 1984, section 4.2.2), unless leaves must have several rows;
- several (more classes, more outputs): of up to EXACT categories every subset is tried; more are
  ordered along the first principal component of their mean responses (Coppersmith, Hong and
  Hosking 1999);
- the random splitter draws a subset.

The guard: with many categories of few rows each, the order by mean response is mostly noise, and
the best cut along it looks better than it is. A feature of more than EXACT categories is split in a
node only if the mean responses of its categories vary at least `min_category_ratio` times as much
as by chance. This is the F ratio of an analysis of variance, which is 1 on average if categories
carry no information. It needs categories with several rows: if each has a single one, they are only
sorted if `min_category_ratio` is 0. If the guard bars all features that a node has drawn, the node
goes on to others, as it does past constant features; but its children look at barred ones again.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel, kernel, like
from cart.primitives.sort_keys import sort_positions_by_value
from cart.splitting.feature_draw import random_between, random_side
from cart.table.distinct_values import Levels, Ties
from cart.table.encoding import encode
from cart.table.node_samples import with_range
from cart.table.ranking import MISSING
from cart.table.table import Table
from cart.tree.nodes import Categories

EXACT = 8
_POWER_STEPS = 100  # at most, of the power iteration for the principal component
_CLOSE = 1e-12  # the iteration ends when no coordinate moves further


# ------------------------------------------------------------------ the protocol of the tables


@dispatch
def is_categorical(table, column):
    """Whether the column's codes are categories."""


@dispatch
def find_places(table, context, codes):
    """Replace the codes gathered by places, if they are categories.

    Returns
    -------
    codes : FeatureCodes
    n_present : int
        How many categories the node has.
    """


@dispatch
def draw_places(table, column, codes, draw, feature):
    """Replace the codes of a node by random places, 0 (left) and 1, if they are categories.

    Returns how many categories the node has.
    """


@dispatch
def keep_subset(table, n_present, left_place):
    """Remember which categories the best split so far sends left: those up to `left_place`."""


@dispatch
def list_subset(table, n_present, listed):
    """List the node's categories, ascending: 2 * category, plus 1 if it is in the subset kept.

    Returns how many there are.
    """


@dispatch
def replace_by_sides(table, codes, n, column):
    """Replace the n codes of a node by their sides in the best split, 0 (left) or 1, if they are
    categories."""


@dispatch
def write_list(table, i, column):
    """Store which categories go left at node i, if the column has categories."""


@dispatch
def find_subsets(splitter, context, codes):
    """Replace the categories gathered by places, which are then searched as if they were ranks.

    Returns how many categories the node has, and how many places there are.
    """


@like(Table)
class CategoricalTable(NamedTuple):
    """A `cart.table.table.Table` in which some columns hold categories, whole numbers from 0 on."""

    codes: np.ndarray  # as in Table; the code of a category is the category
    levels: Levels
    tops: Levels
    level_start: np.ndarray
    ties: Ties
    tie_span: np.ndarray
    columns: np.ndarray
    n_categories: np.ndarray  # (n_columns,) int64; 0: the column holds numbers
    subsets: "Subsets | None" = None  # a thread's own

    is_complete = True  # it has the values of its codes

    @classmethod
    def encode(cls, columns, n_categories, n_jobs=None):
        """Rank the columns of numbers; see `cart.table.encoding.encode`."""
        return cls(*encode(columns, n_categories, n_jobs), n_categories)

    def with_room(self, n_samples, n_rows, n_nodes, n_outputs, n_values):
        most = self.n_categories.max() + 1  # one for missing values
        subsets = Subsets.create(most, n_samples, n_nodes, n_outputs, n_values)
        return self._replace(subsets=subsets)

    def begin_tree(self, samples):
        self.subsets.n_listed[:] = 0

    def end_tree(self, nodes):
        return Categories.of_nodes(nodes, self.subsets)

    def keeps_order(self):
        return False

    def is_categorical(self, column):
        return self.n_categories[column] > 0

    def find_places(self, context, codes):
        if self.n_categories[codes.column] == 0 or codes.n_missing == codes.n:
            return codes, 0
        n_present, n_places = find_subsets(context.splitter, context, codes)
        return with_range(codes, 0, n_places - 1), n_present

    def draw_places(self, column, codes, draw, feature):
        if self.n_categories[column] == 0:
            return np.int64(0)
        n_present = list_present(self.subsets, codes)
        if n_present > 0:
            draw_sides(self.subsets, n_present, draw, feature)
            replace_by_places(self.subsets, codes, codes.shape[0])
        return n_present

    def keep_subset(self, n_present, left_place):
        keep_left(self.subsets, n_present, left_place)

    def list_subset(self, n_present, listed):
        for p in range(n_present):
            c = np.uint32(self.subsets.present[p])
            item = 2 * c + self.subsets.goes_left[c]
            at = p
            while at > 0 and listed[at - 1] > item:
                listed[at] = listed[at - 1]
                at -= 1
            listed[at] = item
        return n_present

    def replace_by_sides(self, codes, n, column):
        if self.n_categories[column] > 0:
            list_smaller_side(self.subsets, codes, n)

    def write_list(self, i, column):
        if self.n_categories[column] > 0:
            write_subset(self.subsets, i)


# ------------------------------------------------------------------------------- the search


class Subsets(NamedTuple):
    """Work space of a thread for splits on categories, and the lists of the tree's splits."""

    n_rows: np.ndarray  # (n_categories,) int64: in the node; 0 between searches
    weight: np.ndarray  # (n_categories,) float64
    response: np.ndarray  # (n_categories, n_responses) float64: weighted sums
    squares: np.ndarray  # (1,) float64: weighted sum of squared responses of the node
    place: np.ndarray  # (n_categories,) uint32: in the order of the node
    present: np.ndarray  # (n_categories + 1,) int64: the node's categories
    score: np.ndarray  # (n_categories, 1) float64: what categories are sorted by
    spare: np.ndarray  # (2, n_categories) int64
    covariance: np.ndarray  # (n_responses + 2, n_responses) float64; the last two rows are vectors
    goes_left: np.ndarray  # (n_categories,) uint8: in the best split so far
    # The lists of the tree, see cart.tree.nodes.Categories.
    start: np.ndarray  # (n_nodes + 1,) int64: set at nodes that list any, whose numbers ascend
    listed: np.ndarray  # (capacity,) uint32
    listed_left: np.ndarray  # (n_nodes,) uint8
    # (2,) int64: how many categories all nodes list; twice the number that the current node lists,
    # plus its listed_left
    n_listed: np.ndarray

    @classmethod
    def create(cls, n_categories, n_samples, n_nodes, n_outputs, n_values):
        """Room for trees on `n_samples` rows.

        A node lists the categories of its smaller side. A row is on the smaller side of at most
        log2(n_samples) splits.
        """
        one = n_outputs == 1 and n_values <= 2
        n_responses = 1 if one else n_outputs * n_values
        return cls(
            np.zeros(n_categories, np.int64), np.empty(n_categories),
            np.empty((n_categories, n_responses)), np.empty(1), np.empty(n_categories, np.uint32),
            np.empty(n_categories + 1, np.int64), np.empty((n_categories, 1)),
            np.empty((2, n_categories), np.int64), np.empty((n_responses + 2, n_responses)),
            np.empty(n_categories, np.uint8), np.zeros(n_nodes + 1, np.int64),
            np.empty(n_samples * int(n_samples).bit_length() // 2 + 1, np.uint32),
            np.empty(n_nodes, np.uint8), np.zeros(2, np.int64),
        )  # fmt: skip


@kernel
def sum_by_category(subsets, node, n):
    """Find the node's categories and sum up their responses; return the number of categories."""
    n_present = 0
    n_outputs = node.records.shape[1] - 1
    n_responses = subsets.response.shape[1]
    n_values = n_responses // n_outputs
    squares = 0.0
    for i in range(n):
        c = node.codes[i]
        if c == MISSING:
            continue
        if subsets.n_rows[c] == 0:
            subsets.present[n_present] = c
            n_present += 1
            subsets.weight[c] = 0.0
            for r in range(n_responses):
                subsets.response[c, r] = 0.0
        subsets.n_rows[c] += 1
        record = node.numbers[i]
        w = node.records[record, 0]
        subsets.weight[c] += w
        for k in range(n_outputs):
            target = node.records[record, k + 1]
            if n_values == 1:
                subsets.response[c, k] += w * target
                squares += w * target * target
            else:  # the responses are 1 for the sample's class, 0 for the others
                subsets.response[c, k * n_values + int(target)] += w
                squares += w
    subsets.squares[0] = squares
    for p in range(n_present):
        subsets.n_rows[subsets.present[p]] = 0
    return n_present


@kernel
def list_present(subsets, codes):
    """List the categories of a node in the order of its samples; return how many there are."""
    n_present = np.int64(0)
    for i in range(codes.shape[0]):
        if codes[i] != MISSING:
            n_present = mark_category(subsets, n_present, codes[i])
    for p in range(n_present):
        subsets.n_rows[subsets.present[p]] = 0
    return n_present


@kernel
def draw_sides(subsets, n_present, draw, feature):
    """Draw a side, 0 (left) or 1, as the place of each of the node's categories; neither side is
    left empty."""
    n_right = 0
    for p in range(n_present):
        goes_right = random_side(draw, feature, p)
        subsets.place[subsets.present[p]] = goes_right
        n_right += goes_right
    if n_right == 0 or n_right == n_present:
        p = min(int(random_between(draw, feature, 0.0, float(n_present))), n_present - 1)
        subsets.place[subsets.present[p]] = 1 if n_right == 0 else 0


@kernel
def exceeds_f_ratio(subsets, n_present, n_known, min_ratio):
    """Whether the F ratio of the categories' mean responses, summed over responses, is enough."""
    if n_known == n_present:  # one row each: signal and noise cannot be told apart
        return min_ratio == 0.0
    between = 0.0
    within = subsets.squares[0]
    for r in range(subsets.response.shape[1]):
        total = 0.0
        weight = 0.0
        of_categories = 0.0
        for p in range(n_present):
            c = subsets.present[p]
            response = subsets.response[c, r]
            of_categories += response * response / subsets.weight[c]
            total += response
            weight += subsets.weight[c]
        between += of_categories - total * total / weight
        within -= of_categories
    return between * (n_known - n_present) >= min_ratio * within * (n_present - 1)


@kernel
def merge_categories(subsets, n_present):
    """Give all of the node's categories one place, so that no cut separates them."""
    for p in range(n_present):
        subsets.place[subsets.present[p]] = 0


@kernel
def order_categories(subsets, n_present):
    """Set the places of the node's categories, in the order of their mean responses."""
    n_responses = subsets.response.shape[1]
    if n_responses > 1:
        _principal_component(subsets, n_present)
    axis = subsets.covariance[n_responses]
    for p in range(n_present):
        c = subsets.present[p]
        score = 0.0
        for r in range(n_responses):
            mean = subsets.response[c, r] / subsets.weight[c]
            score += mean if n_responses == 1 else axis[r] * mean
        subsets.score[p, 0] = score
    sort_positions_by_value(subsets.score, 0, n_present, subsets.spare)
    for p in range(n_present):
        subsets.place[subsets.present[subsets.spare[0, p]]] = p


@kernel
def _principal_component(subsets, n_present):
    """Find the first principal component of the categories' mean responses, by power iteration.

    It is left in the row after the covariance matrix. If all means are equal it may be any vector.
    """
    n_responses = subsets.response.shape[1]
    covariance = subsets.covariance
    axis = covariance[n_responses]
    following = covariance[n_responses + 1]
    total = 0.0
    for r in range(n_responses):
        axis[r] = 0.0
        for s in range(n_responses):
            covariance[r, s] = 0.0
    for p in range(n_present):
        c = subsets.present[p]
        total += subsets.weight[c]
        for r in range(n_responses):
            axis[r] += subsets.response[c, r]
    for p in range(n_present):
        c = subsets.present[p]
        weight = subsets.weight[c]
        for r in range(n_responses):
            following[r] = subsets.response[c, r] / weight - axis[r] / total
        for r in range(n_responses):
            for s in range(n_responses):
                covariance[r, s] += weight * following[r] * following[s]
    widest = 0
    for r in range(n_responses):
        if covariance[r, r] > covariance[widest, widest]:
            widest = r
    for r in range(n_responses):  # start from its column, which is not orthogonal to the component
        axis[r] = covariance[r, widest]
    for _ in range(_POWER_STEPS):
        largest = 0.0
        for r in range(n_responses):
            following[r] = 0.0
            for s in range(n_responses):
                following[r] += covariance[r, s] * axis[s]
            if abs(following[r]) > abs(largest):
                largest = following[r]
        if largest == 0.0:
            return
        moved = 0.0
        for r in range(n_responses):
            moved = max(moved, abs(following[r] / largest - axis[r]))
            axis[r] = following[r] / largest
        if moved <= _CLOSE:
            return


@kernel
def replace_by_places(subsets, codes, n):
    """Replace n categories in `codes` by their places."""
    for i in range(n):
        if codes[i] != MISSING:
            codes[i] = subsets.place[codes[i]]


# ------------------------------------------------------------------------------ the subset


@inline_kernel
def keep_left(subsets, n_present, left_place):
    """Remember that the categories up to `left_place` go left."""
    for p in range(n_present):
        c = subsets.present[p]
        subsets.goes_left[c] = subsets.place[c] <= left_place


@kernel
def list_smaller_side(subsets, codes, n):
    """List the categories of the smaller side of a node; replace its n codes by 0 (left) and 1."""
    n_left = np.int64(0)
    n_known = 0
    for i in range(n):
        c = codes[i]
        if c != MISSING:
            n_known += 1
            n_left += subsets.goes_left[c]
    listed_left = 2 * n_left < n_known
    n_listed = 0
    for i in range(n):
        c = codes[i]
        if c == MISSING:
            continue
        if (subsets.goes_left[c] == 1) == listed_left:
            n_listed = mark_category(subsets, n_listed, c)
        codes[i] = 1 - subsets.goes_left[c]
    list_marked(subsets, n_listed, listed_left)


@inline_kernel
def mark_category(subsets, n_listed, category):
    """Add a category to those to be listed, unless it is among them; return how many they are."""
    if subsets.n_rows[category] == 0:
        subsets.n_rows[category] = 1
        subsets.present[n_listed] = category
        n_listed += 1
    return n_listed


@kernel
def list_marked(subsets, n_listed, listed_left):
    """List the marked categories, ascending."""
    for p in range(n_listed):
        subsets.n_rows[subsets.present[p]] = 0
        subsets.score[p, 0] = subsets.present[p]
    sort_positions_by_value(subsets.score, 0, n_listed, subsets.spare)
    first = subsets.n_listed[0]
    for p in range(n_listed):
        subsets.listed[first + p] = subsets.present[subsets.spare[0, p]]
    subsets.n_listed[1] = 2 * n_listed + listed_left


@inline_kernel
def write_subset(subsets, i):
    """Store the current list as that of node i."""
    subsets.start[i] = subsets.n_listed[0]
    subsets.n_listed[0] += subsets.n_listed[1] >> 1
    subsets.start[i + 1] = subsets.n_listed[0]
    subsets.listed_left[i] = subsets.n_listed[1] & 1
