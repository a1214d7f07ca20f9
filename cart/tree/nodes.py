"""Node arrays of a tree under scikit-learn's names; the root is node 0."""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import inline_kernel
from cart.primitives.sort_keys import first_not_below

LEAF = -1
UNDEFINED = -2
# Bits of `Steps.directions`: more samples go right than left; missing values go left.
MORE_GO_RIGHT, MISSING_GO_LEFT = 1, 2
# A list of categories becomes bits if these take at most so many words of 32, plus so many for each
# category listed.
WORDS_ANYWAY, WORDS_PER_ITEM = 8, 4


class Nodes(NamedTuple):
    """Node arrays as kernels see them; a leaf has both children LEAF."""

    children_left: np.ndarray  # (n_nodes,) int32
    children_right: np.ndarray  # (n_nodes,) int32
    feature: np.ndarray  # (n_nodes,) int32; UNDEFINED in a leaf
    threshold: np.ndarray  # (n_nodes,) float64: x <= threshold goes left; UNDEFINED in a leaf
    impurity: np.ndarray  # (n_nodes,) float64
    n_node_samples: np.ndarray  # (n_nodes,) int32
    weighted_n_node_samples: np.ndarray  # (n_nodes,) float64
    missing_go_to_left: np.ndarray  # (n_nodes,) uint8
    value: np.ndarray  # (n_nodes, n_outputs, n_values) float64: class shares or means

    @classmethod
    def create(cls, capacity, n_outputs, n_values):
        return cls(
            np.empty(capacity, np.int32), np.empty(capacity, np.int32),
            np.empty(capacity, np.int32), np.empty(capacity), np.empty(capacity),
            np.empty(capacity, np.int32), np.empty(capacity), np.empty(capacity, np.uint8),
            np.empty((capacity, n_outputs, n_values)),
        )  # fmt: skip

    @property
    def splits(self):
        """Features, negative in leaves, and thresholds, which may be written to."""
        return self.feature, self.threshold


class Steps(NamedTuple):
    """The parts of a tree by which rows take their steps: splits, and the values of leaves."""

    children_left: np.ndarray  # (n_nodes,) int32; undefined in leaves
    children_right: np.ndarray  # (n_nodes,) int32; LEAF in a leaf
    directions: np.ndarray  # (n_nodes,) uint8, of splits: MORE_GO_RIGHT | MISSING_GO_LEFT
    item: np.ndarray  # (n_nodes,) int32: index of a split in the next two arrays, a leaf in `value`
    feature: np.ndarray  # int32
    threshold: np.ndarray  # float64
    value: np.ndarray  # (n_items, n_outputs * n_values) float64

    @classmethod
    def of(cls, nodes):
        """Take them from anything with scikit-learn's node arrays."""
        left, right, feature = (
            np.ascontiguousarray(getattr(nodes, name), np.int32)
            for name in ("children_left", "children_right", "feature")
        )
        samples, missing_go_left = nodes.n_node_samples, nodes.missing_go_to_left
        directions = MORE_GO_RIGHT * (samples[right] > samples[left])
        directions |= MISSING_GO_LEFT * (np.asarray(missing_go_left) != 0)
        threshold, value = (
            np.require(array, requirements="CW") for array in (nodes.threshold, nodes.value)
        )
        item = np.arange(len(left), dtype=np.int32)
        value = value.reshape(len(left), -1)
        return cls(left, right, directions.astype(np.uint8), item, feature, threshold, value)


class Grown(NamedTuple):
    """The node arrays that depth-first growth writes; the others follow from the order of nodes.

    They are as in Nodes, but `missing_go_to_left` is empty if missing values follow the majority.
    """

    feature: np.ndarray
    threshold: np.ndarray
    impurity: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    missing_go_to_left: np.ndarray
    value: np.ndarray

    @classmethod
    def create(cls, capacity, n_outputs, n_values, has_missing=False):
        return cls(
            np.empty(capacity, np.int32), np.empty(capacity), np.empty(capacity),
            np.empty(capacity, np.int32), np.empty(capacity),
            np.empty(capacity if has_missing else 0, np.uint8),
            np.empty((capacity, n_outputs, n_values)),
        )  # fmt: skip


@inline_kernel
def from_node(grown, first):
    """The part of the arrays from node `first` on."""
    return Grown(
        grown.feature[first:], grown.threshold[first:], grown.impurity[first:],
        grown.n_node_samples[first:], grown.weighted_n_node_samples[first:],
        grown.missing_go_to_left[first:], grown.value[first:],
    )  # fmt: skip


def nodes_of(tree):
    """An object with the node arrays of a tree, ours or scikit-learn's, to be read once: a compact
    tree stays compact."""
    return getattr(tree, "nodes", tree)


def steps_of(tree):
    """The Steps of a tree, ours or scikit-learn's; a compact tree stays compact."""
    return getattr(tree, "steps", None) or Steps.of(tree)


def expanded_nodes_of(tree):
    """As `nodes_of`, for kernels that read the arrays more than once: our tree stays expanded."""
    return getattr(tree, "expanded", tree)


@inline_kernel
def is_listed(listed, code):
    """Whether a category is in an ascending list."""
    n = listed.shape[0]
    at = first_not_below(listed, n, code)
    return at < n and listed[at] == code


@inline_kernel
def side_of_category(listed, n, category):
    """The side of a category in a list of sides: 1 left, 0 right, -1 not listed.

    The first n items of `listed` are twice a category, plus 1 if it goes left; they ascend.
    """
    at = first_not_below(listed, n, 2 * np.int64(category))
    if at < n and listed[at] >> 1 == category:
        return np.int64(listed[at] & 1)
    return np.int64(-1)


def runs_of(first, counts):
    """Join the runs of counts[i] positions from first[i] on; return them, and where each begins."""
    start = np.concatenate(([0], np.cumsum(counts)))
    return np.arange(start[-1]) + np.repeat(first - start[:-1], counts), start


class Categories(NamedTuple):
    """Which categories go left at the nodes that split on a subset; their threshold is nan.

    A node lists the categories of its smaller side. All others, including those that it has not met
    in training, go to the other side.
    """

    start: np.ndarray  # (n_nodes + 1,) int64: node i owns listed[start[i]:start[i + 1]]
    listed: np.ndarray  # uint32, ascending per node
    listed_left: np.ndarray  # (n_nodes,) uint8: whether the listed categories go left

    @classmethod
    def of_nodes(cls, nodes, subsets):
        """Take the lists that the growth of `nodes` has left in `subsets`."""
        n_nodes = len(nodes.feature)
        grown = cls(subsets.start[: n_nodes + 1], subsets.listed, subsets.listed_left[:n_nodes])
        return grown.select(np.arange(n_nodes), (nodes.feature >= 0) & np.isnan(nodes.threshold))

    def select(self, kept, is_subset):
        """The lists of the nodes `kept`; empty where `is_subset` is False."""
        sizes = np.where(is_subset, np.diff(self.start)[kept], 0)
        taken, start = runs_of(self.start[kept], sizes)
        listed_left = np.where(is_subset, self.listed_left[kept], 0)
        return Categories(start, self.listed[taken], listed_left)

    def in_one(self, is_subset):
        """Put all lists into one array, in which `is_in_left_subset` looks them up.

        A list becomes bits, one for every category up to the largest that is listed, unless these
        would take much more memory. A head precedes both:

            listed  2 5     [ head | 0b100100 ]      bits, 32 in an item
            listed  7 9000  [ head | 7 9000 ]        the categories

        Returns
        -------
        begins : ndarray of shape (n_nodes,), int64
            Where a node's list begins; -1 where `is_subset` is False.
        lists : ndarray, uint32
            A head is 4 times the number of items, plus 2 if they are bits, plus 1 if the listed
            categories go left.
        """
        nodes = np.flatnonzero(is_subset)
        start, sizes = self.start[nodes], np.diff(self.start)[nodes]
        last = np.append(self.listed, 0)[start + sizes - 1].astype(np.int64)
        n_words = np.where(sizes > 0, last // 32 + 1, 0)
        are_bits = n_words <= WORDS_ANYWAY + WORDS_PER_ITEM * sizes
        n_items = np.where(are_bits, n_words, sizes)
        ends = np.cumsum(n_items + 1)
        heads = ends - n_items - 1
        begins = np.full(len(is_subset), -1)
        lists = np.zeros(ends[-1] if len(ends) else 0, np.uint32)
        begins[nodes] = heads
        lists[heads] = 4 * n_items + 2 * are_bits + self.listed_left[nodes]
        of_bits, head = np.repeat(are_bits, sizes), np.repeat(heads, sizes)
        place = np.arange(len(self.listed)) - np.repeat(start, sizes)
        at = head + 1 + np.where(of_bits, self.listed // 32, place)
        bits = np.uint32(1) << self.listed % np.uint32(32)
        np.bitwise_or.at(lists, at, np.where(of_bits, bits, self.listed))
        return begins, lists

    def of(self, node):
        """The categories that the node lists, and whether they go left."""
        listed = self.listed[self.start[node] : self.start[node + 1]]
        return listed, bool(self.listed_left[node])


def levels_of(left, right):
    """Yield the numbers of the nodes of each level, from the root on, given all children."""
    level = np.zeros(1, np.int64)
    while len(level):
        yield level
        level = level[left[level] != LEAF]
        level = np.concatenate((left[level], right[level]))


def has_categories(tree):
    """Whether some node of a tree, which may be scikit-learn's, splits on a subset."""
    return getattr(tree, "categories", None) is not None


@inline_kernel
def is_in_left_subset(lists, first, category):
    """Whether a category goes left at the node whose list begins at `first`, see
    `Categories.in_one`; one that was not met in training, -1 or a high number, is in no list."""
    head, category = np.int64(lists[first]), np.int64(category)
    n, listed_left = head >> 2, head & 1
    if head & 2:
        k = category >> 5
        is_inside = np.int64((k >= 0) & (k < n))  # no branch: it may be unpredictable
        word = np.int64(lists[first + is_inside * (1 + k)])
        return (word >> (category & 31)) & is_inside == listed_left
    begin = np.int64(first) + 1
    return is_listed(lists[begin : begin + n], category) == (listed_left == 1)
