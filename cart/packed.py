"""Trees packed for walking: few bytes per node, children side by side, leaves that loop.

Places of nodes are those of `breadth_first`: the right child follows the left one, and a leaf is
its own left child that every value goes to, so a row that has arrived stays there and needs no
test. There are two forms of nodes: `Packed`, eight bytes that answer most trees, and `PackedWide`
for what does not fit into them.
"""

from typing import NamedTuple

import numpy as np

from cart.floats import TOP, ordinal_of
from cart.jit import dispatch, entry_kernel, inline_kernel
from cart.nodes import LEAF

SINGLE = np.dtype(np.float32)
MISSING_LEFT = np.uint32(1 << 31)
_LOW = np.uint64(0xFFFFFFFF)


class Packed(NamedTuple):
    """Trees for rows in single precision; tree t owns nodes start[t]:start[t + 1].

    Values and thresholds are compared as integers, their keys: see `cart.floats.ordinal_of`.
    Thresholds are rounded down to float32, which decides as the thresholds themselves do.
    """

    # (n_nodes,) int64: key of the threshold in the upper half; below it the place of the left
    # child within the tree, then the feature in `feature_bits`.
    words: np.ndarray
    feature_bits: np.uint64
    number: np.ndarray  # (n_nodes,) uint32: of the node in its Tree, MISSING_LEFT added where set
    start: np.ndarray  # (n_trees + 1,) int64
    value_at: np.ndarray  # (n_nodes,) uint32: row of the leaf in `value`
    value: np.ndarray  # (n_distinct, n_values) float64: of the leaves; pure ones share theirs

    def step(self, first, place, X, row, may_miss):
        word = self.words[first + np.uint64(place)]
        low = np.uint64(word) & _LOW
        left = np.uint32(low >> self.feature_bits)
        x = X[row + (low & ((np.uint64(1) << self.feature_bits) - np.uint64(1)))]
        if may_miss and x == TOP:
            return left + missing_goes_right(self, first, place, left)
        return left + np.uint32(np.int64(x) > (word >> 32))


class PackedWide(NamedTuple):
    """Trees of any size, for rows in either precision, with subsets of categories or without."""

    words: np.ndarray  # (n_nodes,) uint64: feature in the upper half, place of the left child
    threshold: np.ndarray  # (n_nodes,) float64; nan where the node splits on a subset
    number: np.ndarray
    start: np.ndarray
    value_at: np.ndarray
    value: np.ndarray
    list_start: np.ndarray  # (n_nodes,) int64: where in `lists` a subset begins; or empty
    lists: np.ndarray  # uint32: twice the length, plus 1 if they go left; then the categories

    def step(self, first, place, X, row, may_miss):
        at = first + np.uint64(place)
        word = self.words[at]
        left = np.uint32(word & _LOW)
        x = X[row + (word >> np.uint64(32))]
        threshold = self.threshold[at]
        if may_miss and np.isnan(x):
            return left + missing_goes_right(self, first, place, left)
        if np.isnan(threshold):
            return left + np.uint32(not is_in_left_subset(self.lists, self.list_start[at], x))
        return left + np.uint32(x > threshold)


@inline_kernel
def missing_goes_right(packed, first, place, left):
    """1 where a missing value goes right; 0 in a leaf."""
    right = packed.number[first + np.uint64(place)] < MISSING_LEFT
    return np.uint32(right and left != place)


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


@dispatch
def step(packed, first, place, X, row, may_miss):
    """The place to which a row goes on from `place` in the tree whose nodes begin at `first`.

    The values of the row begin at X[row]; a leaf is never left.
    """
    return packed.step(first, place, X, row, may_miss)


class Rows(NamedTuple):
    """Rows as the trees of one pack take them."""

    values: np.ndarray  # (n_rows * n_features,): int32 keys for `Packed`, else float32 or float64
    n_features: int
    may_miss: bool

    @property
    def n_samples(self):
        return len(self.values) // self.n_features

    @classmethod
    def of(cls, packed, X):
        """Prepare X, (n_samples, n_features), float32 or float64, C order.

        Raises
        ------
        ValueError
            If X is not of the dtype that the trees were packed for.
        """
        if isinstance(packed, PackedWide):
            return cls(X.ravel(), X.shape[1], has_missing(X))
        if X.dtype != SINGLE:
            raise ValueError(f"The trees were packed for rows in float32, but X is {X.dtype}.")
        keys = np.empty(X.size, np.int32)
        may_miss = _fill_keys(X.ravel().view(np.int32), keys)
        return cls(keys, X.shape[1], may_miss)


def has_missing(X):
    """Is any value of a dense table missing?"""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum(dtype=np.float64)))


@entry_kernel
def _fill_keys(bits, keys):
    """Keys of float32 values, given as their bits; returns whether any is missing."""
    may_miss = False
    for i in range(bits.shape[0]):
        keys[i] = ordinal_of(bits[i])
        may_miss |= keys[i] == TOP
    return may_miss


def breadth_first(tree):
    """The nodes of a tree, level by level.

    Parameters
    ----------
    tree : object with scikit-learn's node arrays

    Returns
    -------
    order : ndarray of shape (n_nodes,), int64
        Number of the node at each place.
    left : ndarray of shape (n_nodes,), int64
        Place of the left child, which the right one follows; a leaf's own place.
    """
    order = np.empty(tree.node_count, np.int64)
    left = np.empty(tree.node_count, np.int64)
    _fill_places(tree.children_left, tree.children_right, order, left)
    return order, left


@entry_kernel
def _fill_places(children_left, children_right, order, left):
    order[0] = 0
    n_placed = 1
    for place in range(order.shape[0]):
        node = order[place]
        left[place] = place
        if children_left[node] != LEAF:
            left[place] = n_placed
            order[n_placed] = children_left[node]
            order[n_placed + 1] = children_right[node]
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
    counts = [tree.node_count for tree in trees]
    start = np.concatenate(([0], np.cumsum(counts)))
    n_values = trees[0].value.shape[1] * trees[0].value.shape[2]
    # Leaves of one class share a row; those of several outputs could not be told by one class.
    n_shared = n_values if trees[0].value.shape[1] == 1 and n_values > 1 else 0
    value = np.zeros((n_shared + (start[-1] + len(trees)) // 2, n_values))
    value[:n_shared, :n_shared] = np.eye(n_shared)
    number = np.empty(start[-1], np.uint32)
    value_at = np.zeros(start[-1], np.uint32)
    feature_bits = int(max(tree.n_features for tree in trees) - 1).bit_length()
    has_subsets = any(getattr(tree, "categories", None) is not None for tree in trees)
    fits = feature_bits + (max(counts) - 1).bit_length() <= 32
    is_wide = has_subsets or np.dtype(dtype) != SINGLE or not fits
    words = np.empty(start[-1], np.uint64 if is_wide else np.int64)
    threshold = np.empty(start[-1] if is_wide else 0)
    n_rows = n_shared
    for tree, first, end in zip(trees, start, start[1:], strict=False):
        order, left = breadth_first(tree)
        mine = words[first:end]
        if is_wide:
            _write_wide(tree.feature, tree.threshold, order, left, mine, threshold[first:end])
        else:
            bits = round_down(tree.threshold).view(np.int32)
            _write_narrow(tree.feature, bits, order, left, feature_bits, mine)
        n_rows = _number(
            tree.missing_go_to_left, tree.value.reshape(tree.node_count, -1), order, left,
            number[first:end], value_at[first:end], value, n_shared, n_rows,
        )  # fmt: skip
    rest = number, start, value_at, value[:n_rows].copy()
    if not is_wide:
        return Packed(words, np.uint64(feature_bits), *rest)
    return PackedWide(words, threshold, *rest, *_lists(trees, start, number, has_subsets))


@entry_kernel
def _number(missing_left, values, order, left, number, value_at, value, n_shared, n_rows):
    """Number the nodes, and keep the values of the leaves; returns how many rows are in use."""
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
            value_at[place] = pure
        else:
            value_at[place] = n_rows
            for k in range(values.shape[1]):
                value[n_rows, k] = values[node, k]
            n_rows += 1
    return n_rows


@entry_kernel
def _write_narrow(feature, bits, order, left, feature_bits, words):
    for place in range(order.shape[0]):
        node = order[place]
        word = np.int64(left[place]) << feature_bits
        if left[place] == place:
            words[place] = word | (np.int64(TOP) << 32)  # nothing exceeds it
        else:
            words[place] = word | feature[node] | (np.int64(ordinal_of(bits[node])) << 32)


@entry_kernel
def _write_wide(feature, exact, order, left, words, threshold):
    for place in range(order.shape[0]):
        node = order[place]
        words[place] = left[place]
        threshold[place] = np.inf
        if left[place] != place:
            words[place] |= np.uint64(feature[node]) << np.uint64(32)
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
