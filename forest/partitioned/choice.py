"""Choose the best cut of a node from the histograms of its rows.

Cells of a histogram take the place of the samples of a local tree. A cell becomes a record of its
weight and class, or of its weight and sums, and a key with its code. Cuts are then scanned and
scored by the code that scans samples (`cart.splitting.splitter.scan_cuts`), with the same result,
since sums of whole numbers do not depend on the order of addition.

    histogram   code 0: 3 of class 0   code 2: 5 of class 0, 1 of class 1     missing: 2 of class 1
    records     [ 3 0 ] [ 5 0 ] [ 1 1 ] [ 2 1 ]                   weight, class
    keys        [ 0|0     2|1     2|2  |  ?|3 ]                   code | record
    cuts                p=1              p=3                      cells go left
"""

from typing import NamedTuple

import numpy as np

from cart.growth.plan import Limits
from cart.jit.decorators import entry_kernel, inline_kernel, kernel
from cart.primitives.sort_keys import code_of, record_of
from cart.splitting import criterion as protocol
from cart.splitting import feature_draw
from cart.splitting.category_subsets import (
    find_places,
    is_categorical,
    keep_subset,
    replace_by_sides,
)
from cart.splitting.splitter import Bounds, SearchContext, cut_at, scan_cuts
from cart.table.node_samples import FeatureCodes, NodeSamples, order_node, rotate, with_range
from cart.table.ranking import MISSING
from cart.table.table import order_codes, same_value
from forest.partitioned.choice_of_subsets import CellSplitter
from forest.partitioned.histograms import ClassCells, SumCells, SumsOfCells, write

NOTHING, CUT, MORE = range(3)  # result of a search: no cut; a cut; more features are needed


class Chooser(NamedTuple):
    """What the kernels that choose cuts need: criterion, limits and buffers."""

    kind: ClassCells | SumCells
    context: SearchContext  # its samples are cells; its table has no codes
    rows: np.ndarray  # (n_cells,) int64: number of rows of each record
    limits: Limits
    total_weight: float  # of a tree
    n_numbers: np.ndarray  # (1,) int64: numbers of a cell, without the first row

    @classmethod
    def create(cls, plan, table, n_codes, n_numbers, total_weight, step):
        """Create a Chooser for trees to a plan.

        A feature has at most `n_codes` codes, including the missing one, and `n_numbers` for each.
        `step` is the length of a step of targets, or None for classes.
        """
        is_class = step is None
        n_cells = n_codes * n_numbers if is_class else n_codes
        limits = plan.limits._replace(min_weight_leaf=plan.min_weight_fraction_leaf * total_weight)
        kind = plan.criterion if is_class else SumsOfCells
        rows = np.zeros(n_cells, np.int64)
        context = SearchContext(
            CellSplitter(rows, np.zeros(n_codes, np.int64)),
            kind.create(1, plan.n_values, n_cells),
            NodeSamples.create(n_cells, 1 if is_class else 2),
            feature_draw.Draw.create(len(plan.hashed_names), plan.hashed_names),
            table.with_room(n_codes, 0, 1, 1, plan.n_values),
            limits._replace(min_samples_leaf=1),  # positions of a scan count cells, not rows
            Bounds(-np.inf, np.inf), False,
        )  # fmt: skip
        return cls(
            ClassCells() if is_class else SumCells(float(step)), context, rows, limits,
            float(total_weight), np.array([n_numbers]),
        )  # fmt: skip


class Choices(NamedTuple):
    """The results of the search for some nodes, one item each."""

    found: np.ndarray  # (n,) int8: NOTHING, CUT or MORE
    feature: np.ndarray  # (n,) int32
    left_code: np.ndarray  # (n,) int64: rows with a code up to this one go left
    # (n,) int64: the next code in the node; the number of codes if only missing values go right
    right_code: np.ndarray
    missing_way: np.ndarray  # (n,) int8: missing values go left (1), right (0), there are none (-1)
    left: np.ndarray  # (n, n_numbers) int64: the sum of all cells that go left
    impurity: np.ndarray  # (n, 2) float64: of the children
    # For splits on categories; in a table without any, n_codes is 0.
    subset: np.ndarray  # (n, n_codes) uint8: each goes right (1), left (2), is not in the node (0)
    listed_left: np.ndarray  # (n,) uint8: whether the left side has fewer rows

    @classmethod
    def create(cls, n, n_numbers, n_categories):
        return cls(
            np.zeros(n, np.int8), np.full(n, -2, np.int32), np.zeros(n, np.int64),
            np.zeros(n, np.int64), np.zeros(n, np.int8), np.zeros((n, n_numbers), np.int64),
            np.zeros((n, 2)), np.zeros((n, n_categories), np.uint8), np.zeros(n, np.uint8),
        )  # fmt: skip


class _Best(NamedTuple):
    """The best cut so far; `place` is the position of its feature among the node's histograms."""

    place: int
    p: int
    missing_left: bool
    score: float
    left_code: int
    right_code: int


@entry_kernel
def choose(chooser, features, keys, own, cells, at, choices):
    """Choose the cuts of nodes.

    Parameters
    ----------
    chooser : Chooser
    features : ndarray of shape (n, k), int32
        Features whose histograms are given, in the order of each node's draw.
    keys : ndarray of shape (n,), uint64
        Keys of the nodes' draws.
    own : ndarray of shape (n, n_numbers), int64
        All rows of each node in one cell.
    cells : ndarray of shape (n, k, n_codes, n_numbers or more), int64
        The histograms.
    at : ndarray of shape (n,), int64
        Their items in `choices`.
    choices : Choices
        Output.
    """
    for i in range(keys.shape[0]):
        _load_criterion(chooser, own[i])
        _choose(chooser, features[i], keys[i], cells[i], at[i], choices)


@kernel
def _load_criterion(chooser, own):
    """Load the criterion with a node, of which `own` is the sum of all cells."""
    node = chooser.context.node
    n = write(chooser.kind, own, 0, node, chooser.rows)
    for j in range(n):
        node.keys[j] = np.uint64(j)
    protocol.load(chooser.context.criterion, node.records, node.keys, n, False)
    return n


@kernel
def _choose(chooser, features, key, cells, i, choices):
    """Write the best cut of one node into item i of `choices`, or that more features are needed."""
    context = chooser.context
    draw, table = context.draw, context.table
    best = _Best(-1, 0, False, -np.inf, 0, 0)
    draw.hashes[0] = key
    drawing = feature_draw.begin_draw(draw, 0, 0)
    j, drawing = feature_draw.next_feature(draw, drawing, chooser.limits.max_features)
    place = 0
    while j >= 0:
        if place >= features.shape[0]:
            choices.found[i] = MORE
            return
        feature = features[place]
        has_categories = is_categorical(table, table.columns[feature])
        codes, n_present = find_places(table, context, _load(chooser, feature, cells[place]))
        if has_categories:
            order_codes(table, context.node, codes, False)
        if codes.n_missing == codes.n or (
            codes.n_missing == 0 and same_value(table, codes.column, codes.lowest, codes.highest)
        ):
            if n_present > 1:
                drawing = feature_draw.mark_barred(draw, drawing, j)
            else:
                drawing = feature_draw.mark_constant(draw, drawing, j)
        else:
            drawing = feature_draw.mark_searched(draw, drawing, j)
            found = _search(chooser, codes, place, best)
            if has_categories and found.score > best.score:
                keep_subset(table, n_present, found.left_code)
            best = found
        place += 1
        j, drawing = feature_draw.next_feature(draw, drawing, chooser.limits.max_features)
    choices.found[i] = NOTHING
    if best.place >= 0:
        _write_cut(chooser, features[best.place], cells[best.place], best, i, choices)


@kernel
def _load(chooser, feature, cells):
    """Turn a histogram into the node's records and keys, code by code, missing values last."""
    context, n_numbers, missing = chooser.context, chooser.n_numbers[0], cells.shape[0] - 1
    node, column = context.node, context.table.columns[feature]
    lowest, highest, n = -1, 0, 0
    for code in range(missing):
        first = n
        n = write(chooser.kind, cells[code, :n_numbers], first, node, chooser.rows)
        context.splitter.first[code] = cells[code, cells.shape[1] - 1]
        if n > first:
            if lowest < 0:
                lowest = code
            highest = code
            for j in range(first, n):
                node.codes[j] = np.uint32(code)
                node.keys[j] = np.uint64(code - lowest) << np.uint64(32) | np.uint64(j)
    n_known = n
    n = write(chooser.kind, cells[missing, :n_numbers], n_known, node, chooser.rows)
    behind = highest - max(lowest, 0) + np.int64(context.table.tie_span[column]) + 1
    for j in range(n_known, n):
        node.codes[j] = MISSING
        node.keys[j] = np.uint64(behind) << np.uint64(32) | np.uint64(j)
    for j in range(n):
        node.numbers[j] = j
    return FeatureCodes(
        np.int64(feature), column, np.int64(n), np.int64(n), np.int64(n - n_known),
        np.uint32(max(lowest, 0)), np.uint32(highest),
    )  # fmt: skip


@kernel
def _search(chooser, codes, place, best):
    """Search a feature's cuts, with missing values on either side, as `BestSplitter` does."""
    n, n_missing = codes.n, codes.n_missing
    n_known = n - n_missing
    context = chooser.context
    for missing_left in range(2 if n_missing > 0 else 1):
        first, last = np.int64(1), min(n_known, n - 1)
        if missing_left:
            rotate(context.node, n, n_known)
            first, last = n_missing + 1, n - 1
        first, last = _with_enough_rows(chooser, n, first, last)
        score, p = scan_cuts(context, codes, first, last, best.score)
        if p > 0:
            left_code = np.int64(codes.lowest) + np.int64(code_of(context.node.keys[p - 1]))
            right_code = np.int64(codes.lowest) + np.int64(code_of(context.node.keys[p]))
            if missing_left == 0 and p == n_known:  # only the missing go right
                start = context.table.level_start
                right_code = start[codes.column + 1] - start[codes.column]
            best = _Best(
                np.int64(place), np.int64(p), missing_left == 1, score, left_code, right_code
            )
    return best


@inline_kernel
def _with_enough_rows(chooser, n, first, last):
    """Narrow `first` and `last` to cuts that leave `min_samples_leaf` rows on either side."""
    least, keys = chooser.limits.min_samples_leaf, chooser.context.node.keys
    if least > 1:
        n_rows = 0
        for j in range(n):
            n_rows += chooser.rows[record_of(keys[j])]
        n_left = 0
        highest = 0
        for p in range(1, n):
            n_left += chooser.rows[record_of(keys[p - 1])]
            if n_left < least:
                first = max(first, p + 1)
            if n_rows - n_left >= least:
                highest = p
        last = min(last, highest)
    return first, last


@kernel
def _write_cut(chooser, feature, cells, best, i, choices):
    """Write the best cut, unless its weighted impurity decrease is too small."""
    table, node, criterion = chooser.context.table, chooser.context.node, chooser.context.criterion
    has_categories = is_categorical(table, table.columns[feature])
    codes = _load(chooser, feature, cells)
    if has_categories:
        replace_by_sides(table, node.codes, codes.n, codes.column)
        order_node(node, with_range(codes, 0, 1), np.uint32(1), False)
    n = codes.n
    if best.missing_left:
        rotate(node, n, n - codes.n_missing)
    side = cut_at(criterion, node, best.p, n)
    left, right = protocol.children_impurity(criterion, side, node.records, node.keys, best.p, n)
    impurity = protocol.impurity(criterion, node.records, node.keys, n)
    weight = criterion.weight[0]
    decrease = (weight / chooser.total_weight) * (
        impurity - ((weight - side.weight) / weight * right) - (side.weight / weight * left)
    )
    if decrease + protocol.EPSILON < chooser.limits.min_impurity_decrease:
        return
    choices.found[i] = CUT
    choices.feature[i] = feature
    choices.left_code[i], choices.right_code[i] = best.left_code, best.right_code
    choices.missing_way[i] = best.missing_left if codes.n_missing > 0 else -1
    choices.impurity[i, 0], choices.impurity[i, 1] = left, right
    _write_left(chooser, cells, best, has_categories, i, choices)


@kernel
def _write_left(chooser, cells, best, has_categories, i, choices):
    """Write the sum of all cells that go left and, for categories, which of them go where."""
    node, n_known_codes, n_numbers = chooser.context.node, cells.shape[0] - 1, chooser.n_numbers[0]
    n_rows, n_left_rows, at = 0, 0, 0
    for code in range(n_known_codes):
        if has_categories:
            n = write(chooser.kind, cells[code, :n_numbers], 0, node, chooser.rows)
            of_code = 0
            for j in range(n):
                of_code += chooser.rows[j]
            goes_left = n > 0 and node.codes[at] == 0  # the sides of the records
            at += n
            n_rows += of_code
            n_left_rows += of_code if goes_left else 0
            choices.subset[i, code] = 0 if of_code == 0 else (2 if goes_left else 1)
        else:
            goes_left = code <= best.left_code
        if goes_left:
            for c in range(n_numbers):
                choices.left[i, c] += cells[code, c]
    choices.listed_left[i] = 2 * n_left_rows < n_rows
    if best.missing_left:
        for c in range(n_numbers):
            choices.left[i, c] += cells[n_known_codes, c]


# --------------------------------------------------------------------------------- draws


@entry_kernel
def root_keys(seeds, keys):
    """Write the keys of the roots of trees with these seeds."""
    for i in range(seeds.shape[0]):
        keys[i] = feature_draw.root_key(seeds[i])


@entry_kernel
def child_keys(keys, children):
    """Write the keys of the left and the right child of every node."""
    for i in range(keys.shape[0]):
        children[i, 0] = feature_draw.child_key(keys[i], True)
        children[i, 1] = feature_draw.child_key(keys[i], False)


@entry_kernel
def first_features(draw, keys, features):
    """Write the first features that every node considers, in the order of its draw."""
    n_wanted = features.shape[1]
    for i in range(keys.shape[0]):
        draw.hashes[0] = keys[i]
        drawing = feature_draw.begin_draw(draw, 0, 0)
        for k in range(n_wanted):
            j, drawing = feature_draw.next_feature(draw, drawing, n_wanted)
            features[i, k] = draw.features[j]


@entry_kernel
def impurities(chooser, cells, result):
    """Write the impurity of nodes, given the sum of the cells of each, (n, n_numbers)."""
    node, criterion = chooser.context.node, chooser.context.criterion
    for i in range(cells.shape[0]):
        n = _load_criterion(chooser, cells[i])
        result[i] = protocol.impurity(criterion, node.records, node.keys, n)
