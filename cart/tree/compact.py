"""Compact trees: node arrays in few bytes, without what can be recomputed from the rest.

Large trees are compact until a node array is asked for, and all trees are in pickles. An array is
left out if `cart.tree.recompute` reproduces every bit of it. These arrays are what it starts from:

    nodes, depth first   0 1 2 3 4
    leaves (bits)        0 1 0 1 1
    features, thresholds a   b          of splits
    samples                4   2 3      of leaves, as the next three:
    counts                 x   y z      with WEIGHTS: the weight; with COUNTS: the weight per class
    totals                 x   y z      with SUMS: the sum of targets
    squares                x     z      with SUMS: the sum of squares, if `impure` has the bit set
    impurities           x   x   z      without GINI and SUMS, if `impure` has the bit set

Whole numbers are stored in the smallest dtype that holds them.
"""

import sys
from typing import NamedTuple

import numpy as np

from cart.files import DamagedModelError
from cart.jit.decorators import entry_kernel, kernel
from cart.tree.nodes import LEAF, MISSING_GO_LEFT, MORE_GO_RIGHT, Grown, Nodes, Steps
from cart.tree.recompute import (
    CHILDREN,
    COUNTS,
    DEPTH_FIRST,
    GINI,
    MISSING_WAYS,
    SAMPLES,
    SPLITS,
    SUMS,
    WEIGHTS,
    find_recomputable,
    recompute,
    whole_squares,
)

_MANY = 1_000  # nodes from which on a tree is worth compacting
_PLAIN = ("n_nodes", "shape")  # items that are not arrays

# The node arrays that are stored as they are, unless one of the flags says that they can be
# recomputed.
_ARRAYS = {
    CHILDREN: ("children_left", "children_right"),
    SPLITS: ("feature", "threshold"),
    MISSING_WAYS: ("missing_go_to_left",),
    SAMPLES: ("n_node_samples",),
    WEIGHTS: ("weighted_n_node_samples",),
    COUNTS | SUMS: ("value",),
}


class _Stored(NamedTuple):
    """What is stored in place of node arrays, as kernels take it."""

    features: np.ndarray  # (n_splits,) int32
    thresholds: np.ndarray  # (n_splits,) float64
    is_impure: np.ndarray  # (n_nodes,) bool
    impurities: np.ndarray  # (n_impure,) float64: those that are not 0; with SUMS the squares
    samples: np.ndarray  # (n_leaves,) int32
    counts: np.ndarray  # (n_leaves, n_outputs * n_values) float64: of classes; or (n_leaves, 1)
    totals: np.ndarray  # (n_leaves,) float64: sums of whole targets


class Compact:
    """The node arrays of a tree in few bytes.

    Attributes
    ----------
    n_nodes : int
    shape : tuple of int
        Number of outputs, and of values of each.
    """

    def __init__(self, kept):
        self.kept = kept  # a dict, by the names in the docstring of the module and in _ARRAYS

    @classmethod
    def of(cls, nodes):
        """Compact the arrays of some nodes.

        Parameters
        ----------
        nodes : cart.tree.nodes.Nodes
        """
        nodes = Nodes(*(np.require(array, requirements="CW") for array in nodes))
        is_leaf = nodes.children_left == LEAF
        grown = Grown._make(getattr(nodes, name).copy() for name in Grown._fields)
        return cls._of(nodes, grown, is_leaf, find_recomputable(nodes, is_leaf))

    @classmethod
    def of_grown(cls, grown, flags):
        """Compact the arrays of nodes grown depth first, which are overwritten.

        Parameters
        ----------
        grown : cart.tree.nodes.Grown
        flags : int
            What is known to be recomputable: DEPTH_FIRST and more. If MISSING_WAYS is not among
            them, `grown` has `missing_go_to_left`.
        """
        return cls._of(grown, grown, grown.feature < 0, flags)

    @classmethod
    def _of(cls, nodes, grown, is_leaf, flags):
        """Compact `nodes`; `grown` has the same values, and is overwritten."""
        kept = {
            name: getattr(nodes, name).copy()
            for flag, names in _ARRAYS.items()
            if not flags & flag
            for name in names
        }
        has_counts, has_sums = bool(flags & COUNTS), bool(flags & SUMS)
        is_impure = grown.impurity.view(np.int64) != 0
        if has_sums:
            is_impure &= is_leaf
        values = grown.value.reshape(-1)
        n_leaves = int(np.count_nonzero(is_leaf))
        n_splits = len(is_leaf) - n_leaves
        n_impure = _move_to_front(grown, values, is_leaf, is_impure, has_counts, has_sums)
        kept |= {"n_nodes": len(is_leaf), "shape": grown.value.shape[1:]}
        kept["leaves"] = np.packbits(is_leaf)
        if flags & SPLITS:
            kept["features"] = _in_few_bytes(grown.feature[:n_splits])
            kept["thresholds"] = grown.threshold[:n_splits].copy()
        if flags & SAMPLES:
            kept["samples"] = _in_few_bytes(grown.n_node_samples[:n_leaves])
        if flags & WEIGHTS:
            counts = grown.value if has_counts else grown.weighted_n_node_samples
            kept["counts"] = _in_few_bytes(counts[:n_leaves].reshape(n_leaves, -1))
        if has_sums:
            kept["totals"] = _in_few_bytes(values[:n_leaves])
            kept["squares"] = _in_few_bytes(grown.impurity[:n_impure])
        elif not flags & GINI:
            kept["impurities"] = grown.impurity[:n_impure].copy()
        if not flags & GINI:
            kept["impure"] = np.packbits(is_impure)
        return cls(kept)

    @property
    def n_nodes(self):
        return self.kept["n_nodes"]

    @property
    def shape(self):
        return self.kept["shape"]

    @property
    def nbytes(self):
        return sum(item.nbytes for name, item in self.kept.items() if name not in _PLAIN)

    @property
    def splits(self):
        """Features, int32, and thresholds of the splits; the thresholds may be written to."""
        return self.kept["features"].astype(np.int32), self.kept["thresholds"]

    @property
    def _flags(self):
        """What has to be recomputed: everything that is not stored."""
        kept = self.kept
        flags = sum(flag for flag, names in _ARRAYS.items() if names[0] not in kept)
        flags &= ~COUNTS if "totals" in kept else ~SUMS
        return flags if {"totals", "impurities"} & kept.keys() else flags | GINI

    def expand(self):
        """Return the node arrays, bit for bit as they were, as cart.tree.nodes.Nodes."""
        kept, n_nodes, flags = self.kept, self.n_nodes, self._flags
        is_leaf, stored = self._stored()
        nodes = Nodes.create(n_nodes, *self.shape)
        has_counts, has_sums = bool(flags & COUNTS), bool(flags & SUMS)
        _spread(nodes, nodes.value.reshape(-1), is_leaf, stored, has_counts, has_sums)
        nodes = nodes._replace(
            **{name: kept[name].copy() for name in Nodes._fields if name in kept}
        )
        recompute(nodes, is_leaf, flags, True)
        return nodes

    def _stored(self):
        """Which nodes are leaves, and what is stored, as a _Stored."""
        kept, n_nodes = self.kept, self.n_nodes
        is_leaf = _as_bools(kept["leaves"], n_nodes)
        n_leaves = int(np.count_nonzero(is_leaf))
        n_splits = n_nodes - n_leaves
        return is_leaf, _Stored(
            kept.get("features", np.zeros(n_splits)).astype(np.int32),
            kept.get("thresholds", np.zeros(n_splits)),
            _as_bools(kept.get("impure", np.zeros(n_nodes // 8 + 1, np.uint8)), n_nodes),
            kept.get("impurities", kept.get("squares", np.empty(0)).astype(np.float64)),
            kept.get("samples", np.zeros(n_leaves)).astype(np.int32),
            kept.get("counts", np.zeros((n_leaves, 1))).astype(np.float64),
            kept.get("totals", np.empty(0)).astype(np.float64),
        )

    def steps(self):
        """Return the cart.tree.nodes.Steps, which takes less work than `expand`."""
        flags = self._flags
        if flags & DEPTH_FIRST != DEPTH_FIRST:
            return Steps.of(self.expand())
        kept, n_nodes, value = self.kept, self.n_nodes, self.kept.get("value")
        is_leaf, samples = _as_bools(kept["leaves"], n_nodes), kept["samples"].astype(np.int32)
        right, item, *room = np.empty((4, n_nodes + 1), np.int32)
        directions = np.empty(n_nodes, np.uint8)
        _order(is_leaf, samples, (right, item, directions), tuple(room))
        if value is not None:
            value = value.reshape(n_nodes, -1)[np.flatnonzero(is_leaf)]
        elif flags & SUMS:
            value = kept["totals"][:, np.newaxis] / kept["counts"].astype(np.float64)
        else:
            value = kept["counts"].astype(np.float64)
            _divide_by_weight(value, self.shape[0])
        left = np.arange(1, n_nodes + 1, dtype=np.int32)
        return Steps(left, right[:n_nodes], directions, item[:n_nodes], *self.splits, value)

    def __getstate__(self):
        # As bytes: in the pickle of a small array most of the space is its description.
        return {name: item if name in _PLAIN else _write(item) for name, item in self.kept.items()}

    def __setstate__(self, state):
        try:
            self.kept = {
                name: item if name in _PLAIN else _read(*item) for name, item in state.items()
            }
        except (AttributeError, TypeError, ValueError, SyntaxError) as error:
            raise DamagedModelError(f"The arrays of a tree are damaged: {error}.") from error


def compress_if_large(nodes):
    """Copy nodes out of arrays that will be overwritten.

    Parameters
    ----------
    nodes : cart.tree.nodes.Nodes

    Returns
    -------
    Compact, or Nodes if they are few
    """
    if len(nodes.feature) < _MANY:
        return Nodes(*(array.copy() for array in nodes))
    return Compact.of(nodes)


def _write(array):
    return sys.intern(array.dtype.str), array.shape[1:], array.tobytes()


def _read(dtype, shape, content):
    return np.frombuffer(content, dtype).reshape(-1, *shape).copy()


def _as_bools(bits, n):
    return np.unpackbits(bits, count=n).view(bool)


def _in_few_bytes(numbers):
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    dtype = np.min_scalar_type(high)
    return numbers.astype(dtype if low == 0 else np.result_type(dtype, np.min_scalar_type(low)))


@entry_kernel
def _move_to_front(grown, values, is_leaf, is_impure, has_counts, has_sums):
    """Move what is stored to the front of the arrays; return the number of impure nodes.

    `values` is their `value`, flat. Class counts replace shares; sums and squares replace means and
    variances.
    """
    n_splits = n_leaves = n_impure = 0
    n_nodes = is_leaf.shape[0]
    width = values.shape[0] // n_nodes if has_counts else 0
    for node in range(n_nodes):  # branch-free: which node is a leaf is unpredictable
        impurity, weight = grown.impurity[node], grown.weighted_n_node_samples[node]
        if has_sums:
            mean = values[node]
            values[n_leaves] = np.rint(mean * weight)
            impurity = whole_squares(mean, impurity, weight)
        grown.impurity[n_impure] = impurity
        n_impure += is_impure[node]
        grown.feature[n_splits] = grown.feature[node]
        grown.threshold[n_splits] = grown.threshold[node]
        n_splits += not is_leaf[node]
        grown.n_node_samples[n_leaves] = grown.n_node_samples[node]
        grown.weighted_n_node_samples[n_leaves] = weight
        for k in range(width):
            values[n_leaves * width + k] = np.rint(values[node * width + k] * weight)
        n_leaves += is_leaf[node]
    return n_impure


@entry_kernel
def _spread(nodes, values, is_leaf, stored, has_counts, has_sums):
    """Write what is stored to node arrays, at the positions `_move_to_front` has taken it from."""
    n_splits = n_leaves = n_impure = 0
    for node in range(is_leaf.shape[0]):
        nodes.impurity[node] = 0.0
        if stored.is_impure[node]:
            nodes.impurity[node] = stored.impurities[n_impure]
            n_impure += 1
        if not is_leaf[node]:
            nodes.feature[node] = stored.features[n_splits]
            nodes.threshold[node] = stored.thresholds[n_splits]
            n_splits += 1
            continue
        nodes.n_node_samples[node] = stored.samples[n_leaves]
        nodes.weighted_n_node_samples[node] = stored.counts[n_leaves, 0]
        width = stored.counts.shape[1]
        for k in range(width if has_counts else 0):
            values[node * width + k] = stored.counts[n_leaves, k]
        if has_sums:
            values[node] = stored.totals[n_leaves]
        n_leaves += 1


@entry_kernel
def _order(is_leaf, leaf_samples, steps, room):
    """Write `children_right`, `item` and `directions` of the Steps of nodes numbered depth first.

    `room` has two arrays of n_nodes + 1 numbers. The first is for the samples of the leaves before
    each node, whose differences are the samples of subtrees. The second is a stack of splits whose
    right child has not come yet; then it is for the samples up to the end of every subtree.
    """
    right, item, directions = steps
    before, waiting = room
    _find_right(is_leaf, leaf_samples, right, item, before, waiting)
    _find_directions(is_leaf, right, directions, before, waiting)


@kernel
def _find_right(is_leaf, leaf_samples, right, item, before, waiting):
    """Find right children: a leaf ends the left subtree of the last waiting split, so that the next
    node is the right child of this split."""
    n_leaves, n_splits, n_waiting = np.uint64(0), np.uint64(0), np.uint64(0)
    n_samples, n_nodes = np.int64(0), is_leaf.shape[0]
    waiting[0] = n_nodes  # for the last leaf, after which there is no node
    for node in range(n_nodes):  # branch-free: which node is a leaf is unpredictable
        leaf = np.uint64(is_leaf[node])
        split = np.uint64(1) - leaf
        item[node] = leaf * n_leaves + split * n_splits
        before[node] = n_samples
        n_samples += leaf_samples[n_leaves] * np.int64(leaf)
        n_leaves += leaf
        n_splits += split
        right[node] = LEAF
        waiting[n_waiting + np.uint64(1)] = node
        right[waiting[n_waiting + split]] = node + 1
        n_waiting += split - leaf
    before[n_nodes] = n_samples


@kernel
def _find_directions(is_leaf, right, directions, before, behind):
    """Find the child with more samples; write the samples up to the end of subtrees to `behind`."""
    n_nodes = is_leaf.shape[0]
    for i in range(n_nodes):
        node = np.uint64(n_nodes - 1 - i)
        leaf, middle = is_leaf[node], np.uint64(right[node])
        middle = node + np.uint64(1) if leaf else middle
        here, end = before[middle], behind[middle]
        end = here if leaf else end
        n_left, n_right = here - before[node], end - here
        directions[node] = MORE_GO_RIGHT * (n_right > n_left) | MISSING_GO_LEFT * (n_left > n_right)
        behind[node] = end


@entry_kernel
def _divide_by_weight(counts, n_outputs):
    """Turn the class counts of leaves into class shares, in place."""
    n_values = counts.shape[1] // n_outputs
    for i in range(counts.shape[0]):
        total = 0.0
        for k in range(n_values):
            total += counts[i, k]
        for k in range(counts.shape[1]):
            counts[i, k] /= total
