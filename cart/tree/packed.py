r"""Trees packed for walking: few bytes per node, children side by side, leaves that loop.

        R          place               0  1  2  3  4
       / \         node                R  A  B  C  D    both children of a node stand side by side
      A   B        way to left child   1  2  0  0  0    0: a leaf is its own left child
     / \           next place = place + way + (x > threshold), and in a leaf no x is greater
    C   D

Trees stand one behind the other, each in the order of `in_walking_order`: the right child follows
the left one, which is so many places further on; of a leaf it is the leaf itself, and every value
goes there, so a row that has arrived stays and needs no test. There are two forms of nodes:
`Packed`, eight bytes that answer most trees, and `PackedWide` for what does not fit into them.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, entry_kernel, inline_kernel
from cart.jit.instructions import prefetch
from cart.primitives.float_order import ordinal_of
from cart.tree.nodes import LEAF, nodes_of

SINGLE = np.dtype(np.float32)
MISSING_LEFT = np.uint32(1 << 31)
# The key of a missing value; above all others.
MISSING = np.uint32(0xFFFFFFFF)
_LINE = 64  # bytes of a cache line
_ONE, _LOW, _UPPER = np.uint64(1), np.uint64(0xFFFFFFFF), np.uint64(32)


class Packed(NamedTuple):
    """Trees for rows in single precision; tree t owns nodes start[t]:start[t + 1].

    Values and thresholds are compared as unsigned integers, their keys: see `key_of`. Thresholds
    are rounded down to float32, which decides as the thresholds themselves do. Behind its features
    a row has a zero, which is what leaves look at: there the key is free for another number.
    """

    # (2 * n_nodes,) uint32: of each node how many places further on its left child is, above the
    # feature in `feature_bits`; then the key of the threshold, in leaves the row of `value`.
    words: np.ndarray
    feature_bits: np.uint64
    number: np.ndarray  # (n_nodes,) uint32: of the node in its Tree, MISSING_LEFT added where set
    start: np.ndarray  # (n_trees + 1,) int64
    value: np.ndarray  # (n_distinct, n_values) float64: of the leaves; pure ones share theirs
    value_start: np.ndarray  # (n_trees + 1,) int64: where the rows of `value` of a tree begin
    n_features: int  # of the rows

    def step(self, place, X, row, may_miss):
        way = np.uint64(self.words[place + place])
        left = place + (way >> self.feature_bits)
        x = X[row + (way & ((_ONE << self.feature_bits) - _ONE))]
        if may_miss and x == MISSING:
            return left + missing_goes_right(self, place)
        return left + np.uint64(x > self.words[place + place + _ONE])

    def has_arrived(self, place):
        return np.uint64(self.words[place + place]) >> self.feature_bits == 0

    def value_at(self, place):
        return np.uint64(self.words[place + place + _ONE])

    def fetch(self, tree, part, n_parts):
        _fetch(self.words, 2 * self.start[tree], 2 * self.start[tree + 1], part, n_parts)
        fetch_values(self, tree, part, n_parts)


class PackedWide(NamedTuple):
    """Trees of any size, for rows in either precision, with subsets of categories or without."""

    words: np.ndarray  # (n_nodes,) uint64: feature in the upper half, way to the left child below
    threshold: np.ndarray  # (n_nodes,) float64; nan where the node splits on a subset
    number: np.ndarray
    start: np.ndarray
    row_of_value: np.ndarray  # (n_nodes,) uint32: of a leaf
    value: np.ndarray
    value_start: np.ndarray
    list_start: np.ndarray  # (n_nodes,) int64: where in `lists` a subset begins; or empty
    lists: np.ndarray  # uint32: twice the length, plus 1 if they go left; then the categories
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

    def has_arrived(self, place):
        return self.words[place] & _LOW == 0

    def value_at(self, place):
        return np.uint64(self.row_of_value[place])

    def fetch(self, tree, part, n_parts):
        _fetch(self.words, self.start[tree], self.start[tree + 1], part, n_parts)
        _fetch(self.threshold, self.start[tree], self.start[tree + 1], part, n_parts)
        fetch_values(self, tree, part, n_parts)


@inline_kernel
def missing_goes_right(packed, place):
    """1 where a missing value goes right at a node that is no leaf."""
    return np.uint64(packed.number[place] < MISSING_LEFT)


@inline_kernel
def is_in_left_subset(lists, first, category):
    """Does a category go left at the node whose list begins at `first`?"""
    low = first + 1
    end = low + np.int64(lists[first] >> 1)
    high = end
    while low < high:
        middle = (low + high) // 2
        if lists[middle] < category:
            low = middle + 1
        else:
            high = middle
    is_listed = low < end and lists[low] == category
    return is_listed == (lists[first] & 1 == 1)


@inline_kernel
def fetch_values(packed, tree, part, n_parts):
    """Have a part of the values of a tree's leaves brought into the cache."""
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


@dispatch
def step(packed, place, X, row, may_miss):
    """The place to which a row goes on from `place`; a leaf is never left.

    The values of the row begin at X[row].
    """
    return packed.step(place, X, row, may_miss)


@dispatch
def has_arrived(packed, place):
    """Is there a leaf?"""
    return packed.has_arrived(place)


@dispatch
def value_at(packed, place):
    """The row of `value` that belongs to a leaf."""
    return packed.value_at(place)


@dispatch
def fetch(packed, tree, part, n_parts):
    """Have a part of a tree, one of `n_parts`, brought into the cache."""
    return packed.fetch(tree, part, n_parts)


class PackedRows(NamedTuple):
    """Rows as the trees of one pack take them."""

    values: np.ndarray  # (n_rows * width,): uint32 keys for `Packed`, else float32 or float64
    width: int  # the number of features, with keys one more
    may_miss: bool

    @property
    def n_samples(self):
        return len(self.values) // self.width

    @classmethod
    def of(cls, packed, X):
        """Prepare X, (n_samples, n_features), float32 or float64, C order.

        Raises
        ------
        ValueError
            If X is not of the width or the dtype that the trees were packed for.
        """
        if X.shape[1:] != (packed.n_features,):  # kernels would read past the end of a row
            raise ValueError(
                f"The trees take rows of n_features={packed.n_features}, "
                f"but X is of shape {X.shape}."
            )
        if isinstance(packed, PackedWide):
            return cls(X.ravel(), X.shape[1], has_missing(X))
        if X.dtype != SINGLE:
            raise ValueError(f"The trees were packed for rows in float32, but X is {X.dtype}.")
        width = X.shape[1] + 1
        keys = np.empty(len(X) * width, np.uint32)
        may_miss = _fill_keys(X.ravel().view(np.int32), width, keys)
        return cls(keys, width, may_miss)


def has_missing(X):
    """Is any value of a dense table missing?"""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum(dtype=np.float64)))


@inline_kernel
def key_of(bits):
    """Place of a float32 value among all, see `cart.primitives.float_order.ordinal_of`, counted
    from 0, uint32."""
    return np.uint32(np.int64(ordinal_of(bits)) + (np.int64(1) << 31))


@entry_kernel
def _fill_keys(bits, width, keys):
    """Keys of float32 values, given as their bits, a zero behind each row; is any missing?"""
    may_miss = False
    at = 0
    for i in range(0, keys.shape[0], width):
        for j in range(width - 1):
            key = key_of(bits[at])
            at += 1
            keys[i + j] = key
            may_miss |= key == MISSING
        keys[i + width - 1] = 0
    return may_miss


def in_walking_order(nodes):
    """The nodes of a tree in the order in which rows meet them.

    Both children of a node stand side by side. Below them stands all that lies under the one that
    more samples came to, then all under the other: a row mostly goes on in the line of memory that
    it is in, or in the next.

    Parameters
    ----------
    nodes : object with scikit-learn's node arrays

    Returns
    -------
    order : ndarray of shape (n_nodes,), int64
        Number of the node at each place.
    left : ndarray of shape (n_nodes,), int64
        Place of the left child, which the right one follows; a leaf's own place.
    """
    order, left, waiting = np.empty((3, len(nodes.children_left)), np.int64)
    children = nodes.children_left, nodes.children_right
    _fill_places(*children, nodes.n_node_samples, order, left, waiting)
    return order, left


@entry_kernel
def _fill_places(children_left, children_right, n_samples, order, left, waiting):
    order[0] = 0
    waiting[0] = 0
    n_placed, height = 1, 1
    while height > 0:
        height -= 1
        place = waiting[height]
        node = order[place]
        left[place] = place
        if children_left[node] == LEAF:
            continue
        left[place] = n_placed
        order[n_placed], order[n_placed + 1] = children_left[node], children_right[node]
        more_go_right = n_samples[children_right[node]] > n_samples[children_left[node]]
        waiting[height] = n_placed + np.int64(not more_go_right)
        waiting[height + 1] = n_placed + np.int64(more_go_right)
        height += 2
        n_placed += 2


def round_down(threshold):
    """The largest float32 values that are not above float64 ones."""
    with np.errstate(over="ignore"):
        rounded = np.float32(threshold)
    too_high = rounded > threshold
    rounded[too_high] = np.nextafter(rounded[too_high], np.float32(-np.inf))
    return rounded


def pack(trees, dtype):
    """Pack trees for rows of one precision.

    Parameters
    ----------
    trees : list of objects with scikit-learn's node arrays
    dtype : dtype
        float32 or float64: of the rows.

    Returns
    -------
    Packed or PackedWide
    """
    if len({(tree.n_features, tree.n_outputs, tree.max_n_classes) for tree in trees}) > 1:
        raise ValueError("Trees of other features, outputs or classes cannot vote together.")
    counts = [tree.node_count for tree in trees]
    start = np.concatenate(([0], np.cumsum(counts)))
    n_values = trees[0].n_outputs * trees[0].max_n_classes
    # Leaves of one class share a row; those of several outputs could not be told by one class.
    n_shared = n_values if trees[0].n_outputs == 1 and n_values > 1 else 0
    value = np.zeros((n_shared + (start[-1] + len(trees)) // 2, n_values))
    value[:n_shared, :n_shared] = np.eye(n_shared)
    number = np.empty(start[-1], np.uint32)
    row_of_value = np.zeros(start[-1], np.uint32)
    n_features = int(max(tree.n_features for tree in trees))
    feature_bits = n_features.bit_length()
    has_subsets = any(getattr(tree, "categories", None) is not None for tree in trees)
    fits = feature_bits + (max(counts) - 1).bit_length() <= 32
    is_wide = has_subsets or np.dtype(dtype) != SINGLE or not fits
    words = np.empty(start[-1], np.uint64) if is_wide else np.empty(2 * start[-1], np.uint32)
    threshold = np.empty(start[-1] if is_wide else 0)
    value_start = np.full(len(start), n_shared)
    for t, (tree, first, end) in enumerate(zip(trees, start, start[1:], strict=False)):
        nodes = nodes_of(tree)
        order, left = in_walking_order(nodes)
        value_start[t + 1] = _number(
            (nodes.missing_go_to_left, nodes.value.reshape(tree.node_count, -1)), (order, left),
            number[first:end], row_of_value[first:end], value, n_shared, value_start[t],
        )  # fmt: skip
        if is_wide:
            mine = words[first:end], threshold[first:end]
            _write_wide(nodes.feature, nodes.threshold, order, left, *mine)
        else:
            bits = round_down(nodes.threshold).view(np.int32)
            _write_narrow(
                nodes.feature, bits, order, left, row_of_value[first:end], tree.n_features,
                feature_bits, words[2 * first : 2 * end],
            )  # fmt: skip
    values = value[: value_start[-1]].copy(), value_start
    if not is_wide:
        return Packed(words, np.uint64(feature_bits), number, start, *values, n_features)
    lists = _lists(trees, start, number, has_subsets)
    return PackedWide(words, threshold, number, start, row_of_value, *values, *lists, n_features)


@entry_kernel
def _number(of_nodes, places, number, row_of_value, value, n_shared, n_rows):
    """Number the nodes, and keep the values of the leaves; returns how many rows are in use."""
    (missing_left, values), (order, left) = of_nodes, places
    for place in range(order.shape[0]):
        node = order[place]
        number[place] = node
        if left[place] != place:
            if missing_left[node]:
                number[place] |= MISSING_LEFT
            continue
        n_zeros, pure = 0, 0
        for k in range(n_shared):
            if values[node, k] == 0.0:
                n_zeros += 1
            else:
                pure = k
        if n_shared > 0 and n_zeros == n_shared - 1 and values[node, pure] == 1.0:
            row_of_value[place] = pure
        else:
            row_of_value[place] = n_rows
            for k in range(values.shape[1]):
                value[n_rows, k] = values[node, k]
            n_rows += 1
    return n_rows


@entry_kernel
def _write_narrow(feature, bits, order, left, row_of_value, n_features, feature_bits, words):
    for place in range(order.shape[0]):
        node = order[place]
        if left[place] == place:
            words[2 * place] = n_features
            words[2 * place + 1] = row_of_value[place]
        else:
            words[2 * place] = (left[place] - place) << feature_bits | feature[node]
            words[2 * place + 1] = key_of(bits[node])


@entry_kernel
def _write_wide(feature, exact, order, left, words, threshold):
    for place in range(order.shape[0]):
        node = order[place]
        words[place] = left[place] - place
        threshold[place] = np.inf
        if left[place] != place:
            words[place] |= np.uint64(feature[node]) << _UPPER
            threshold[place] = exact[node]


def _lists(trees, start, number, has_subsets):
    """list_start and lists of `PackedWide`."""
    if not has_subsets:
        return np.empty(0, np.int64), np.empty(0, np.uint32)
    list_start = np.full(start[-1], -1)
    lists = [np.empty(0, np.uint32)]
    for tree, first, end in zip(trees, start, start[1:], strict=False):
        if getattr(tree, "categories", None) is not None:
            begins, listed = tree.categories.in_one(tree.is_subset)
            begins[begins >= 0] += sum(map(len, lists))
            list_start[first:end] = begins[number[first:end] & ~MISSING_LEFT]
            lists.append(listed)
    return list_start, np.concatenate(lists)
