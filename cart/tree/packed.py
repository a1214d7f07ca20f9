r"""Trees packed for walking: few bytes per node, children side by side, leaves that loop.

        R          place               0  1  2  3  4
       / \         node                R  A  B  C  D    both children of a node are side by side
      A   B        offset of left      1  2  0  0  0    0: a leaf is its own left child
     / \           next place = place + offset + (x > threshold); in a leaf no x is greater
    C   D

Trees follow each other, with their nodes in the order of `_fill`. A node stores an offset: how many
places further on its left child is; the right child follows the left one. A leaf is its own left
child, and every value goes there, so that a row that has arrived stays, without a test. There are
three forms of nodes: `Packed`, eight bytes each, for most trees; `PackedSubsets`, the same with
splits on subsets of categories; and `PackedWide` for all others.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel, like
from cart.jit.instructions import prefetch
from cart.primitives.row_keys import (
    INFINITE,
    MISSING,
    key_of,
    keys_of,
    keys_of_columns,
    whole_number_of,
    write_keys,
)
from cart.primitives.threads import in_parts
from cart.tree.nodes import (
    LEAF,
    MISSING_GO_LEFT,
    MORE_GO_RIGHT,
    WORDS_ANYWAY,
    WORDS_PER_ITEM,
    has_categories,
    is_in_left_subset,
    steps_of,
)
from cart.tree.packed_protocol import (
    MISSING_LEFT,
    as_compared,
    missing_goes_right,
    write_leaf,
    write_split,
)
from cart.tree.packed_surrogates import add_surrogates, goes_by_surrogates

NO_TABLE = np.empty((0, 0))
_LINE = 64  # bytes of a cache line
_NODES_PER_THREAD = 20_000  # nodes that make another thread worth its start
# From _MANY_COLUMNS on, rows have only the columns that trees use, if at most one in _FEW_COLUMNS.
_MANY_COLUMNS, _FEW_COLUMNS = 64, 2
_ONE, _LOW, _UPPER = np.uint64(1), np.uint64(0xFFFFFFFF), np.uint64(32)


class Infinite(ValueError):
    """Rows to be sent down trees have values that are infinite in single precision."""


class Packed(NamedTuple):
    """Trees for rows in single precision; tree t owns nodes start[t]:start[t + 1].

    Values and thresholds are compared by their keys, which are unsigned integers: see `key_of`.
    Thresholds are rounded down to float32, which does not change any comparison. After its columns
    a row has a zero, which leaves look at. No key is below it, so that leaves can store another
    number in place of a threshold.

        table    .1 .7 .3 .9 .4 .2 .8 .5      if trees use few features of a wide table, rows have
        columns  1 3 6                        only these, and nodes number them from 0
        row      .7 .9 .8 0
    """

    # (2 * n_nodes,) uint32, two of each node: the offset in the bits above `feature_bits` and the
    # feature below; then the key of the threshold, or in a leaf the row of `value`.
    words: np.ndarray
    feature_bits: np.uint64
    number: np.ndarray  # (n_nodes,) uint32: of the node in its Tree, plus MISSING_LEFT or 0
    start: np.ndarray  # (n_trees + 1,) int64
    value: np.ndarray  # (n_distinct, n_values) float64: of the leaves; pure ones share theirs
    value_start: np.ndarray  # (n_trees + 1,) int64: where the rows of `value` of a tree begin
    n_features: int  # of tables
    columns: np.ndarray  # (n_columns,) int64: the features that rows have: all, or those used

    def step(self, place, X, row, may_miss):
        word = np.uint64(self.words[place + place])
        left = place + (word >> self.feature_bits)
        x = X[row + (word & ((_ONE << self.feature_bits) - _ONE))]
        if may_miss and x == MISSING:
            return left + missing_goes_right(self, place)
        return left + np.uint64(x > self.words[place + place + _ONE])

    def value_at(self, place):
        return np.uint64(self.words[place + place + _ONE])

    def left_of(self, place):
        return place + (np.uint64(self.words[place + place]) >> self.feature_bits)

    def value_met(self, place, X, row):
        word = np.uint64(self.words[place + place])
        return X[row + (word & ((_ONE << self.feature_bits) - _ONE))]

    def is_missing(self, x):
        return x == MISSING

    def as_compared(self, threshold):
        rounded = np.float32(threshold)  # if it was rounded up, take the next lower key
        return key_of(rounded.view(np.int32)) - np.uint32(rounded > threshold)

    def write_split(self, place, offset, feature, threshold):
        self.words[2 * place] = np.uint64(offset) << self.feature_bits | feature
        self.words[2 * place + 1] = as_compared(self, threshold)

    def write_leaf(self, place, row):
        self.words[2 * place] = self.columns.shape[0]
        self.words[2 * place + 1] = row

    def fetch(self, tree, part, n_parts):
        _fetch(self.words, 2 * self.start[tree], 2 * self.start[tree + 1], part, n_parts)
        fetch_values(self, tree, part, n_parts)

    def write_rows(self, X, values):
        return write_keys(X, values)


@like(Packed)
class PackedSubsets(NamedTuple):
    """Trees for rows in single precision, some of whose nodes split on subsets of categories.

    The highest of a node's `feature_bits` says whether it does. In place of a threshold it has the
    place of its subset in `lists`. The other fields are those of `Packed`; rows have all columns.
    """

    words: np.ndarray
    feature_bits: np.uint64
    number: np.ndarray
    start: np.ndarray
    value: np.ndarray
    value_start: np.ndarray
    n_features: int
    columns: np.ndarray
    lists: np.ndarray  # uint32: see `cart.tree.nodes.Categories.in_one`

    def step(self, place, X, row, may_miss):
        word = np.uint64(self.words[place + place])
        by_subset = _ONE << (self.feature_bits - _ONE)
        left = place + (word >> self.feature_bits)
        x = X[row + (word & (by_subset - _ONE))]
        if may_miss and x == MISSING:
            return left + missing_goes_right(self, place)
        at = self.words[place + place + _ONE]
        if word & by_subset:
            return left + np.uint64(not is_in_left_subset(self.lists, at, whole_number_of(x)))
        return left + np.uint64(x > at)


class PackedWide(NamedTuple):
    """Trees of any size, for rows in either precision, with subsets of categories or without."""

    words: np.ndarray  # (n_nodes,) uint64: feature in the upper half, offset in the lower half
    threshold: np.ndarray  # (n_nodes,) float64; nan where the node splits on a subset
    number: np.ndarray
    start: np.ndarray
    row_of_value: np.ndarray  # (n_nodes,) uint32: of a leaf
    value: np.ndarray
    value_start: np.ndarray
    list_start: np.ndarray  # (n_nodes,) int64: where in `lists` a subset begins; or empty
    lists: np.ndarray  # uint32: see `cart.tree.nodes.Categories.in_one`
    n_features: int

    def step(self, place, X, row, may_miss):
        word = self.words[place]
        left = place + (word & _LOW)
        x = X[row + (word >> _UPPER)]
        threshold = self.threshold[place]
        if may_miss and np.isnan(x):
            return left + missing_goes_right(self, place) * np.uint64(left != place)
        if np.isnan(threshold):
            return left + np.uint64(not is_in_left_subset(self.lists, self.list_start[place], x))
        return left + np.uint64(x > threshold)

    def value_at(self, place):
        return np.uint64(self.row_of_value[place])

    def left_of(self, place):
        return place + (self.words[place] & _LOW)

    def value_met(self, place, X, row):
        return X[row + (self.words[place] >> _UPPER)]

    def is_missing(self, x):
        return np.isnan(x)

    def as_compared(self, threshold):
        return threshold

    def write_split(self, place, offset, feature, threshold):
        self.words[place] = feature << _UPPER | np.uint64(offset)
        self.threshold[place] = threshold

    def write_leaf(self, place, row):
        self.words[place] = 0
        self.threshold[place] = np.inf
        self.row_of_value[place] = row

    def fetch(self, tree, part, n_parts):
        _fetch(self.words, self.start[tree], self.start[tree + 1], part, n_parts)
        _fetch(self.threshold, self.start[tree], self.start[tree + 1], part, n_parts)
        fetch_values(self, tree, part, n_parts)

    def write_rows(self, X, values):
        return INFINITE  # never called: these trees take tables as they are


@inline_kernel
def fetch_values(packed, tree, part, n_parts):
    """Prefetch a part, of n_parts, of the values of a tree's leaves."""
    k = packed.value.shape[1]
    first, end = packed.value_start[tree], packed.value_start[tree + 1]
    _fetch(packed.value, k * first, k * end, part, n_parts)


@inline_kernel
def _fetch(items, first, end, part, n_parts):
    n = end - first
    for at in range(
        first + n * part // n_parts, first + n * (part + 1) // n_parts, _LINE // items.itemsize
    ):
        prefetch(items, at)


class PackedRows(NamedTuple):
    """Rows as packed trees take them, or a table and room for some of its rows at a time."""

    values: np.ndarray  # (n_rows * width,): uint32 keys for `Packed`, else float32 or float64
    width: int  # the number of columns, plus 1 with keys
    may_miss: bool
    table: np.ndarray  # (n_samples, n_features) float64; or empty if `values` has all rows

    @property
    def n_samples(self):
        """The number of rows in `values`; with a table, the number there is room for."""
        return len(self.values) // self.width

    @classmethod
    def of(cls, packed, X):
        """Prepare X, (n_samples, n_features), float32 or float64, in any memory order.

        Values in double precision are rounded if trees were packed for single precision.

        Raises
        ------
        Infinite
            If a value in double precision is infinite in single precision.
        ValueError
            If X does not have the number of features that the trees were packed for.
        """
        check_width(packed, X)
        if not goes_by_keys(packed):
            values = np.require(X.ravel(), requirements="W")
            return cls(values, X.shape[1], has_missing(X), NO_TABLE)
        columns = _without_surrogates(packed).columns
        picks, is_double = picks_columns(packed, X), X.dtype == np.float64
        if is_narrow(packed) and not is_double:  # other columns need no check for overflow
            X = X.take(columns, 1) if X.flags.c_contiguous else X.T[columns].T
            columns, picks = np.arange(len(columns)), not X.flags.c_contiguous
        keys, may_miss, found = keys_of_columns(X, columns) if picks else keys_of(X)
        if found == INFINITE and is_double:
            raise Infinite
        return cls(keys, len(columns) + 1, may_miss, NO_TABLE)

    @classmethod
    def in_turn(cls, packed, X, n_rows):
        """Leave it to the kernel to prepare X, float64, in any memory order, n_rows at a time.

        The trees must compare by keys.
        """
        check_width(packed, X)
        width = X.shape[1] + 1
        keys = np.empty(min(n_rows, len(X)) * width, np.uint32)
        table = X if X.flags.carray else np.require(X, requirements="CAW")
        return cls(keys, width, False, table)


def goes_by_keys(packed):
    """Whether trees compare rows by keys, in single precision."""
    return isinstance(_without_surrogates(packed), Packed | PackedSubsets)


def _without_surrogates(packed):
    return getattr(packed, "packed", packed)


def is_narrow(packed):
    """Whether rows have only some columns of a table: those that trees use."""
    return isinstance(packed, Packed) and len(packed.columns) < packed.n_features


def picks_columns(packed, X):
    """Whether the keys of a table are best made column by column, or of some columns only."""
    is_across = X.shape[1] >= _MANY_COLUMNS and not X.flags.c_contiguous
    return goes_by_keys(packed) and (is_narrow(packed) or is_across)


def check_width(packed, X):
    if X.shape[1:] != (packed.n_features,):  # kernels would read past the end of a row
        raise ValueError(
            f"The trees expect n_features={packed.n_features}, but X has shape {X.shape}."
        )


def has_missing(X):
    """Whether any value of a dense table may be missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum(dtype=np.float64)))


def pack(trees, dtype, n_jobs=None, every_column=False, shares_leaves=True):
    """Pack trees for rows of one precision.

    Parameters
    ----------
    trees : list of objects with scikit-learn's node arrays
    dtype : dtype
        Of the rows: float32 or float64.
    n_jobs : int or None
        As in joblib.
    every_column : bool, default=False
        Whether rows have all columns, so that rows prepared for other trees can be sent down these.
    shares_leaves : bool, default=True
        Whether pure leaves of all trees share their values. Else tree t has rows
        value_start[t]:value_start[t + 1] of `value` for itself.

    Returns
    -------
    Packed, PackedSubsets, PackedWide, or PackedWithSurrogates if rows go by surrogates
    """
    if len({(tree.n_features, tree.n_outputs, tree.max_n_classes) for tree in trees}) > 1:
        raise ValueError("Trees with different features, outputs or classes cannot vote together.")
    counts = np.array([tree.node_count for tree in trees])
    start = np.concatenate(([0], np.cumsum(counts)))
    n_values = trees[0].n_outputs * trees[0].max_n_classes
    # Pure leaves of a class share a row of `value`; with several outputs one class is not enough.
    n_shared = n_values if shares_leaves and trees[0].n_outputs == 1 and n_values > 1 else 0
    value_start = n_shared + np.concatenate(([0], np.cumsum((counts + 1) // 2)))
    value = np.empty((value_start[-1], n_values))
    value[:n_shared, :n_shared] = np.eye(n_shared)
    number = np.empty(start[-1], np.uint32)
    n_features = int(trees[0].n_features)
    listed = [len(tree.categories.listed) for tree in trees if has_categories(tree)]
    has_subsets = len(listed) > 0
    columns = np.arange(n_features) if every_column or has_subsets else _columns_of(trees)
    feature_bits = n_features.bit_length() + has_subsets
    most_in_lists = WORDS_PER_ITEM * sum(listed) + (WORDS_ANYWAY + 1) * has_subsets * start[-1]
    bits = feature_bits + (int(counts.max()) - 1).bit_length(), int(most_in_lists).bit_length()
    list_start, lists = np.empty(0, np.int64), np.empty(0, np.uint32)
    has_both = has_subsets and any(map(goes_by_surrogates, trees))  # these may list categories, too
    if np.dtype(dtype) != np.float32 or max(bits) > 32 or has_both:
        n = start[-1]
        packed = PackedWide(
            np.empty(n, np.uint64), np.empty(n), number, start, np.zeros(n, np.uint32), value,
            value_start, list_start, lists, n_features,
        )  # fmt: skip
    else:
        words, of_feature = np.empty(2 * start[-1], np.uint32), np.uint64(feature_bits)
        packed = Packed(words, of_feature, number, start, value, value_start, n_features, columns)
        packed = PackedSubsets(*packed, lists) if has_subsets else packed
    n_rows = np.empty(len(trees), np.int64)

    def fill(first_tree, end_tree):
        waiting = np.empty((2, counts.max()), np.int32)
        for t in range(first_tree, end_tree):
            steps = steps_of(trees[t])
            if is_narrow(packed):
                place = np.searchsorted(columns, steps.feature)
                steps = steps._replace(feature=place.astype(np.int32))
            n_rows[t] = _fill(packed, np.int64(t), steps, waiting)

    in_parts(fill, len(trees), n_jobs, -(-_NODES_PER_THREAD // (int(start[-1]) // len(trees) + 1)))
    if n_shared:  # close the gaps
        kept = zip(value_start, n_rows, strict=False)
        parts = [value[:n_shared], *(value[first : first + n] for first, n in kept)]
        ends = np.cumsum([n_shared, *n_rows])
        packed = packed._replace(value=np.concatenate(parts), value_start=ends)
    return add_surrogates(_with_lists(packed, trees) if has_subsets else packed, trees)


def _columns_of(trees):
    """The columns of a table that rows have: all, or, if trees use few of many, those."""
    n_features = int(trees[0].n_features)
    if n_features < _MANY_COLUMNS or any(map(goes_by_surrogates, trees)):
        return np.arange(n_features)
    is_used = np.zeros(n_features, bool)
    is_used[0] = True  # rows need a column, even if all trees are lone roots
    for tree in trees:
        features = getattr(tree, "splits", None) or (tree.feature,)
        is_used[features[0][features[0] >= 0]] = True
    columns = np.flatnonzero(is_used)
    return columns if len(columns) * _FEW_COLUMNS <= n_features else np.arange(n_features)


def with_values(packed, value):
    """Replace the values of the leaves of a packed tree.

    Parameters
    ----------
    packed : Packed, PackedWide or PackedWithSurrogates
        Of one tree.
    value : ndarray of shape (n_distinct, n_values), float64
        Replaces its `value`.
    """
    return packed._replace(value=value, value_start=np.zeros_like(packed.value_start))


@entry_kernel
def _fill(packed, tree, steps, waiting):
    """Pack a tree in the order in which rows meet its nodes; return how many rows of `value` it has
    for itself.

    Both children of a node are side by side. After them comes all that is below the child with more
    samples, then all that is below the other: the next node of a row is mostly in the same cache
    line, or in the next one.
    """
    first, first_row = packed.start[tree], packed.value_start[tree]
    n_shared = packed.value_start[0]
    nodes, places = waiting
    _fetch(steps.threshold, 0, steps.threshold.shape[0], 0, 1)
    node, place = np.int64(0), np.int64(0)
    n_placed, height, n_rows = np.int64(1), 0, np.int64(0)
    while True:
        left, right = np.int64(steps.children_left[node]), np.int64(steps.children_right[node])
        directions, item = np.int64(steps.directions[node]), steps.item[node]
        if right != LEAF:
            packed.number[first + place] = node | (directions & MISSING_GO_LEFT) << 30
            feature, threshold = np.uint64(steps.feature[item]), steps.threshold[item]
            write_split(packed, first + place, n_placed - place, feature, threshold)
            more_go_right = np.int64(directions & MORE_GO_RIGHT)
            nodes[height] = left if more_go_right else right
            places[height] = n_placed + 1 - more_go_right
            height += 1
            node = right if more_go_right else left
            place = n_placed + more_go_right
            n_placed += 2
            continue
        packed.number[first + place] = node
        row = _shared_row(steps.value[item], n_shared)
        if row < 0:
            row = n_shared + n_rows
            for k in range(steps.value.shape[1]):
                packed.value[first_row + n_rows, k] = steps.value[item, k]
            n_rows += 1
        write_leaf(packed, first + place, row)
        if height == 0:
            return n_rows
        height -= 1
        node, place = np.int64(nodes[height]), np.int64(places[height])


@inline_kernel
def _shared_row(values, n_shared):
    """The row of `value` that a pure leaf shares with others of its class, or -1."""
    n_zeros, pure = np.int64(0), np.int64(0)
    for k in range(n_shared):
        if values[k] == 0.0:
            n_zeros += 1
        else:
            pure = np.int64(k)
    return pure if n_shared > 0 and n_zeros == n_shared - 1 and values[pure] == 1.0 else -1


def _with_lists(packed, trees):
    """Add the lists of categories to trees packed without."""
    list_start, parts, n_before = np.full(packed.start[-1], -1), [np.empty(0, np.uint32)], 0
    for tree, first, end in zip(trees, packed.start, packed.start[1:], strict=False):
        if has_categories(tree):
            begins, listed = tree.categories.in_one(tree.is_subset)
            begins[begins >= 0] += n_before
            list_start[first:end] = begins[packed.number[first:end] & ~MISSING_LEFT]
            parts.append(listed)
            n_before += len(listed)
    lists = np.concatenate(parts)
    if isinstance(packed, PackedWide):
        return packed._replace(list_start=list_start, lists=lists)
    places = np.flatnonzero(list_start >= 0)
    packed.words[2 * places] |= np.uint32(1 << int(packed.feature_bits) - 1)
    packed.words[2 * places + 1] = list_start[places]
    return packed._replace(lists=lists)
