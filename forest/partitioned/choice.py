"""The best cut of a node whose rows are known by histograms.

Cells of a histogram stand where a local tree has samples: a cell is a record of its weight and
class, or of its weight and sums, and a key with its code. So cuts are scanned, and scored, by the
code that scans samples (`cart.splitting.splitter.scan_cuts`), and come out the same: sums of whole
numbers do not depend on how many are added at once.

    histogram   code 0: 3 of class 0   code 2: 5 of class 0, 1 of class 1     missing: 2 of class 1
    records     [ 3 0 ] [ 5 0 ] [ 1 1 ] [ 2 1 ]                   weight, class
    keys        [ 0|0     2|1     2|2  |  ?|3 ]                   code | record
    cuts                p=1              p=3                      cells go left
"""

from typing import NamedTuple

import numpy as np

from cart.growth.plan import Limits
from cart.jit.decorators import dispatch, entry_kernel, inline_kernel, kernel
from cart.primitives.sort_keys import code_of, record_of
from cart.splitting import criteria
from cart.splitting.criterion import Side
from cart.splitting.feature_draw import (
    KeyedDraw,
    begin_draw,
    child_key,
    mark_constant,
    mark_searched,
    next_feature,
    restart,
    root_key,
)
from cart.splitting.mean_criteria import SquaredError
from cart.splitting.splitter import BestSplitter, Bounds, SearchContext, cut_at, scan_cuts
from cart.table.node_samples import FeatureCodes, NodeSamples, rotate
from cart.table.table import Table, same_value
from forest.partitioned.histograms import ROW, WEIGHT

NOTHING, CUT, MORE = range(3)  # what is found: no cut; one; the node has to see more features


class SumsOfCells(SquaredError):
    """The squared error of cells: records are weights, sums of targets and of their squares."""

    __slots__ = ()

    def load(self, records, keys, n, keep_order):
        self.node[0] = 0.0
        self.weight[0] = 0.0
        self.squares[0] = 0.0
        for j in range(n):
            i = record_of(keys[j])
            self.weight[0] += records[i, 0]
            self.node[0] += records[i, 1]
            self.squares[0] += records[i, 2]

    def move(self, side, records, i, sign):
        return Side(side.weight + sign * records[i, 0], side.first + sign * records[i, 1], 0.0)

    def children_impurity(self, side, records, keys, n_left, n):
        weight_right = self.weight[0] - side.weight
        squares = 0.0
        for j in range(n_left):
            squares += records[record_of(keys[j]), 2]
        mean_left = side.first / side.weight
        mean_right = (self.node[0] - side.first) / weight_right
        variance_left = squares / side.weight - mean_left * mean_left
        variance_right = (self.squares[0] - squares) / weight_right - mean_right * mean_right
        return variance_left, variance_right


class ClassCells(NamedTuple):
    """Cells of class counts."""

    name: int = 0  # numba wants a field

    def write(self, numbers, first, node, rows):
        end = first
        for c in range(numbers.shape[0]):
            if numbers[c] != 0:
                node.records[end, 0] = numbers[c] & np.int64(WEIGHT)
                node.records[end, 1] = c
                rows[end] = numbers[c] // np.int64(ROW)
                end += 1
        return end


class SumCells(NamedTuple):
    """Cells of sums, in steps of that length."""

    step: float

    def write(self, numbers, first, node, rows):
        if numbers[0] == 0:
            return first
        node.records[first, 0] = numbers[0] & np.int64(WEIGHT)
        node.records[first, 1] = numbers[1] * self.step
        node.records[first, 2] = numbers[2] * (self.step * self.step)
        rows[first] = numbers[0] // np.int64(ROW)
        return first + 1


@dispatch
def write(kind, numbers, first, node, rows):
    """Write the records of a code from `first` on, and how many rows each is of; return the end."""
    return kind.write(numbers, first, node, rows)


class Chooser(NamedTuple):
    """What cuts are chosen with."""

    kind: ClassCells | SumCells
    criterion: tuple
    node: NodeSamples
    rows: np.ndarray  # (n_cells,) int64: of each record
    draw: KeyedDraw
    table: Table  # without codes
    limits: Limits
    total_weight: float  # of a tree

    @classmethod
    def create(cls, plan, table, n_codes, n_numbers, total_weight, step):
        """For trees to that plan; `step` is the length of a step of targets, None of classes.

        Codes of a feature are `n_codes` at most, with the missing one, of `n_numbers` each.
        """
        is_class = step is None
        n_cells = n_codes * n_numbers if is_class else n_codes
        node = NodeSamples.create(n_cells, 1 if is_class else 2)
        limits = plan.limits._replace(min_weight_leaf=plan.min_weight_fraction_leaf * total_weight)
        kind = plan.criterion if is_class else SumsOfCells
        return cls(
            ClassCells() if is_class else SumCells(float(step)),
            kind.create(1, plan.n_values, n_cells),
            node,
            np.zeros(n_cells, np.int64),
            KeyedDraw.create(plan.feature_keys),
            table,
            limits,
            float(total_weight),
        )


class Choices(NamedTuple):
    """What is found for some nodes, an item each."""

    found: np.ndarray  # (n,) int8: NOTHING, CUT or MORE
    feature: np.ndarray  # (n,) int32
    left_code: np.ndarray  # (n,) int64: rows with a code up to this one go left
    right_code: np.ndarray  # (n,) int64: the next; how many there are where only missing go right
    missing_way: np.ndarray  # (n,) int8: missing values go left (1), right (0), there are none (-1)
    left: np.ndarray  # (n, n_numbers) int64: the cell of all that go left
    impurity: np.ndarray  # (n, 2) float64: of the children

    @classmethod
    def create(cls, n, n_numbers):
        return cls(
            np.zeros(n, np.int8), np.full(n, -2, np.int32), np.zeros(n, np.int64),
            np.zeros(n, np.int64), np.zeros(n, np.int8), np.zeros((n, n_numbers), np.int64),
            np.zeros((n, 2)),
        )  # fmt: skip


class _Best(NamedTuple):
    """The best cut so far; `place` says which of the node's histograms it cuts."""

    place: int
    p: int
    missing_left: bool
    score: float


@entry_kernel
def choose(chooser, features, keys, cells, choices):
    """Choose the cuts of nodes.

    Parameters
    ----------
    chooser : Chooser
    features : ndarray of shape (n, k), int32
        Whose histograms there are, in the order of each node's draw.
    keys : ndarray of shape (n,), uint64
        Of the draws.
    cells : ndarray of shape (n, k, n_codes, n_numbers), int64
    choices : Choices
        Is written.
    """
    for i in range(keys.shape[0]):
        _choose(chooser, features[i], keys[i], cells[i], i, choices)


@kernel
def _choose(chooser, features, key, cells, i, choices):
    draw, table = chooser.draw, chooser.table
    best = _Best(-1, 0, False, -np.inf)
    drawing = begin_draw(draw, key, 0)
    j, drawing = next_feature(draw, drawing, chooser.limits.max_features)
    place = 0
    while j >= 0:
        if place >= features.shape[0]:
            choices.found[i] = MORE
            return
        codes = _load(chooser, features[place], cells[place])
        if place == 0:
            criteria.load(
                chooser.criterion, chooser.node.records, chooser.node.keys, codes.n, False
            )
        if codes.n_missing == codes.n or (
            codes.n_missing == 0 and same_value(table, codes.column, codes.lowest, codes.highest)
        ):
            drawing = mark_constant(draw, drawing, j)
        else:
            drawing = mark_searched(draw, drawing, j)
            best = _search(chooser, codes, place, best)
        place += 1
        j, drawing = next_feature(draw, drawing, chooser.limits.max_features)
    choices.found[i] = NOTHING
    if best.place >= 0:
        _write_cut(chooser, features[best.place], cells[best.place], best, i, choices)


@kernel
def _load(chooser, feature, cells):
    """Make a histogram the node's records and keys; missing values stand last."""
    node, table = chooser.node, chooser.table
    column = table.columns[feature]
    n_known_codes = cells.shape[0] - 1
    lowest, highest, n = -1, 0, 0
    for code in range(n_known_codes):
        first = n
        n = write(chooser.kind, cells[code], first, node, chooser.rows)
        if n > first:
            if lowest < 0:
                lowest = code
            highest = code
            for j in range(first, n):
                node.keys[j] = np.uint64(code - lowest) << np.uint64(32) | np.uint64(j)
    n_known = n
    n = write(chooser.kind, cells[n_known_codes], n_known, node, chooser.rows)
    behind = highest - max(lowest, 0) + np.int64(table.tie_span[column]) + 1
    for j in range(n_known, n):
        node.keys[j] = np.uint64(behind) << np.uint64(32) | np.uint64(j)
    return FeatureCodes(
        np.int64(feature), column, np.int64(n), np.int64(n), np.int64(n - n_known),
        np.uint32(max(lowest, 0)), np.uint32(highest),
    )  # fmt: skip


@kernel
def _search(chooser, codes, place, best):
    """Search a feature's cuts, with missing values on either side, as
    `cart.splitting.splitter.BestSplitter` does."""
    n, n_missing = codes.n, codes.n_missing
    n_known = n - n_missing
    context = SearchContext(
        BestSplitter(0), chooser.criterion, chooser.node, chooser.draw, chooser.table,
        _of_cells(chooser.limits), Bounds(-np.inf, np.inf), False,
    )  # fmt: skip
    for missing_left in range(2 if n_missing > 0 else 1):
        first, last = np.int64(1), min(n_known, n - 1)
        if missing_left:
            rotate(chooser.node, n, n_known)
            first, last = n_missing + 1, n - 1
        first, last = _with_enough_rows(chooser, n, first, last)
        score, p = scan_cuts(context, codes, first, last, best.score)
        if p > 0:
            best = _Best(np.int64(place), np.int64(p), missing_left == 1, score)
    return best


@inline_kernel
def _of_cells(limits):
    """The limits of a scan whose positions count cells, not rows."""
    return Limits(
        limits.max_depth, limits.min_samples_split, np.int64(1), limits.min_weight_leaf,
        limits.max_features, limits.max_leaf_nodes, limits.min_impurity_decrease,
        limits.min_category_ratio, limits.is_monotonic, limits.monotonic,
    )  # fmt: skip


@inline_kernel
def _with_enough_rows(chooser, n, first, last):
    """The positions from `first` to `last` that leave `min_samples_leaf` rows on either side."""
    least = chooser.limits.min_samples_leaf
    if least > 1:
        n_rows = 0
        for j in range(n):
            n_rows += chooser.rows[record_of(chooser.node.keys[j])]
        n_left = 0
        highest = 0
        for p in range(1, n):
            n_left += chooser.rows[record_of(chooser.node.keys[p - 1])]
            if n_left < least:
                first = max(first, p + 1)
            if n_rows - n_left >= least:
                highest = p
        last = min(last, highest)
    return first, last


@kernel
def _write_cut(chooser, feature, cells, best, i, choices):
    """Write the best cut, unless its decrease of impurity is too small."""
    node, criterion, p = chooser.node, chooser.criterion, best.p
    codes = _load(chooser, feature, cells)
    n, n_known = codes.n, codes.n - codes.n_missing
    if best.missing_left:
        rotate(node, n, n_known)
    left_code = np.int64(codes.lowest) + np.int64(code_of(node.keys[p - 1]))
    table, column = chooser.table, codes.column
    right_code = table.level_start[column + 1] - table.level_start[column]
    if best.missing_left or p < n_known:
        right_code = np.int64(codes.lowest) + np.int64(code_of(node.keys[p]))
    else:
        left_code = np.int64(codes.highest)
    side = cut_at(criterion, node, p, n)
    left, right = criteria.children_impurity(criterion, side, node.records, node.keys, p, n)
    impurity = criteria.impurity(criterion, node.records, node.keys, n)
    weight = criterion.weight[0]
    decrease = (weight / chooser.total_weight) * (
        impurity - ((weight - side.weight) / weight * right) - (side.weight / weight * left)
    )
    if decrease + criteria.EPSILON < chooser.limits.min_impurity_decrease:
        return
    choices.found[i] = CUT
    choices.feature[i] = feature
    choices.left_code[i], choices.right_code[i] = left_code, right_code
    choices.missing_way[i] = -1
    if codes.n_missing > 0:
        choices.missing_way[i] = 1 if best.missing_left else 0
    choices.impurity[i, 0], choices.impurity[i, 1] = left, right
    for c in range(cells.shape[1]):
        total = np.int64(0)
        for code in range(left_code + 1):
            total += cells[code, c]
        if best.missing_left:
            total += cells[cells.shape[0] - 1, c]
        choices.left[i, c] = total


# --------------------------------------------------------------------------------- draws


@entry_kernel
def root_keys(draw, seeds, keys):
    """Write the keys of the roots of trees with these seeds."""
    for i in range(seeds.shape[0]):
        restart(draw, seeds[i])
        keys[i] = root_key(draw)


@entry_kernel
def child_keys(draw, keys, children):
    """Write the keys of the left and the right child of every node."""
    for i in range(keys.shape[0]):
        children[i, 0] = child_key(draw, keys[i], True)
        children[i, 1] = child_key(draw, keys[i], False)


@entry_kernel
def first_features(draw, keys, features):
    """Write the features that every node looks at first, in the order of its draw."""
    n_wanted = features.shape[1]
    for i in range(keys.shape[0]):
        drawing = begin_draw(draw, keys[i], 0)
        for k in range(n_wanted):
            j, drawing = next_feature(draw, drawing, n_wanted)
            features[i, k] = draw.features[j]


@entry_kernel
def impurities(chooser, cells, result):
    """Write the impurity of nodes whose cells are given, (n, n_numbers)."""
    node, criterion = chooser.node, chooser.criterion
    for i in range(cells.shape[0]):
        n = write(chooser.kind, cells[i], 0, node, chooser.rows)
        for j in range(n):
            node.keys[j] = np.uint64(j)
        criteria.load(criterion, node.records, node.keys, n, False)
        result[i] = criteria.impurity(criterion, node.records, node.keys, n)
