"""Compact trees: node arrays in few bytes, without what the rest can make again.

Large trees are kept so until a node array is asked for, and pickles have all so. An array is left
out where `cart.tree.recompute` makes every bit of it; what the rules start from is stored:

    nodes, depth first   0 1 2 3 4
    leaves (bits)        0 1 0 1 1
    features, thresholds a   b          of the splits
    samples                4   2 3      of the leaves, and so are:
    counts                 x   y z      with WEIGHTS: the weight; with COUNTS that of each class
    totals                 x   y z      with SUMS: the sum of targets
    squares                x     z      with SUMS: of their squares, where `impure` has a bit
    impurities           x   x   z      with neither GINI nor SUMS, where `impure` has a bit

Numbers that are whole have the smallest dtype that holds them.
"""

import sys
from typing import NamedTuple

import numpy as np

from cart.files import DamagedModelError
from cart.jit.decorators import entry_kernel, inline_kernel
from cart.tree.nodes import LEAF, UNDEFINED, Grown, Nodes, Steps
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

MANY = 1_000  # nodes of a tree that is worth it
_PLAIN = ("n_nodes", "shape")  # what is stored and no array

# The node arrays that are stored whole, unless one of the flags says that they can be recomputed.
_ARRAYS = {
    CHILDREN: ("children_left", "children_right"),
    SPLITS: ("feature", "threshold"),
    MISSING_WAYS: ("missing_go_to_left",),
    SAMPLES: ("n_node_samples",),
    WEIGHTS: ("weighted_n_node_samples",),
    COUNTS | SUMS: ("value",),
}


class _Stored(NamedTuple):
    """What is stored in place of node arrays, as the kernels take it."""

    features: np.ndarray  # (n_splits,) int32
    thresholds: np.ndarray  # (n_splits,) float64
    is_impure: np.ndarray  # (n_nodes,) bool
    impurities: np.ndarray  # (n_impure,) float64: those that are not 0; with SUMS the squares
    samples: np.ndarray  # (n_leaves,) int32
    counts: np.ndarray  # (n_leaves, n_outputs * n_values) float64: of classes; or weights, one each
    totals: np.ndarray  # (n_leaves,) float64: sums of whole targets


class Compact:
    """The node arrays of a tree in few bytes.

    Attributes
    ----------
    n_nodes : int
    shape : tuple of int
        Outputs, and values of each.
    """

    def __init__(self, kept):
        self.kept = kept  # by the names above

    @classmethod
    def of(cls, nodes):
        """The arrays of some nodes.

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
        """The arrays of nodes from growth that is depth first, which are written over.

        Parameters
        ----------
        grown : cart.tree.nodes.Grown
        flags : int
            What is known to be recomputable, DEPTH_FIRST and more; without MISSING_WAYS `grown`
            has them.
        """
        return cls._of(grown, grown, grown.feature < 0, flags)

    @classmethod
    def _of(cls, nodes, grown, is_leaf, flags):
        """What is stored of `nodes`; `grown` has the same, to be written over."""
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
        """Features, int32, and thresholds of the nodes that split; these may be written to."""
        return self.kept["features"].astype(np.int32), self.kept["thresholds"]

    @property
    def _flags(self):
        """What has to be recomputed: all that is not stored."""
        kept = self.kept
        flags = sum(flag for flag, names in _ARRAYS.items() if names[0] not in kept)
        flags &= ~COUNTS if "totals" in kept else ~SUMS
        return flags if {"totals", "impurities"} & kept.keys() else flags | GINI

    def expand(self):
        """The node arrays, every bit as it was, as cart.tree.nodes.Nodes."""
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
        """Which nodes are leaves, and what is stored as the kernels take it."""
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
        """What rows meet in the nodes, as cart.tree.nodes.Steps: less than `expand` makes."""
        flags = self._flags
        if flags & DEPTH_FIRST != DEPTH_FIRST:
            return Steps.of(self.expand())
        is_leaf, stored = self._stored()
        has_sums = bool(flags & SUMS)
        value = self.kept.get("value")
        is_made = value is None
        steps = Steps.create(self.n_nodes, *self.shape) if is_made else Steps.create(self.n_nodes)
        steps = steps if is_made else steps._replace(value=value)
        roots = np.empty(self.n_nodes // 2 + 1, np.int32)
        _unfold(steps, steps.value.reshape(-1), is_leaf, stored, is_made, has_sums, roots)
        return steps

    def __getstate__(self):
        # As bytes: pickles of small arrays consist of their descriptions.
        return {name: item if name in _PLAIN else _write(item) for name, item in self.kept.items()}

    def __setstate__(self, state):
        try:
            self.kept = {
                name: item if name in _PLAIN else _read(*item) for name, item in state.items()
            }
        except (AttributeError, TypeError, ValueError, SyntaxError) as error:
            raise DamagedModelError(f"The arrays of a tree are damaged: {error}.") from error


def compress_if_large(nodes):
    """Keep nodes that stand where others will be written.

    Parameters
    ----------
    nodes : cart.tree.nodes.Nodes

    Returns
    -------
    Compact, or Nodes where they are few
    """
    if len(nodes.feature) < MANY:
        return Nodes(*(array.copy() for array in nodes))
    return Compact.of(nodes)


def _write(array):
    return sys.intern(array.dtype.str), array.shape[1:], array.tobytes()


def _read(dtype, shape, content):
    return np.frombuffer(content, dtype).reshape(-1, *shape).copy()


def _as_bools(bits, n):
    return np.unpackbits(bits, count=n).view(bool)


def _in_few_bytes(numbers):
    """Whole numbers in few bytes."""
    ends = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    return numbers.astype(np.result_type(*map(np.min_scalar_type, ends)))


@entry_kernel
def _move_to_front(grown, values, is_leaf, is_impure, has_counts, has_sums):
    """Move what is stored to the front of the arrays, and return how many are impure.

    `values` is their `value`, flat. Class counts take the place of shares, sums and squares that
    of means and variances.
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
    """Write what is stored into node arrays, where `_move_to_front` has taken it from."""
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
def _unfold(steps, values, is_leaf, stored, makes_values, has_sums, roots):
    """Write the steps of nodes that are numbered depth first, by the rules of
    `cart.tree.recompute`; of values those of leaves alone."""
    n_nodes, width = is_leaf.shape[0], stored.counts.shape[1]
    split, leaf = stored.features.shape[0], stored.samples.shape[0]
    n_roots = 0
    for node in range(n_nodes - 1, -1, -1):
        left, right = np.int32(LEAF), np.int32(LEAF)
        feature, threshold = np.int32(UNDEFINED), np.float64(UNDEFINED)
        goes_left = False
        if is_leaf[node]:
            leaf -= 1
            samples = stored.samples[leaf]
            if makes_values and has_sums:
                values[node] = stored.totals[leaf] / stored.counts[leaf, 0]
            elif makes_values:
                _write_shares(stored.counts[leaf], values[node * width :], steps.value.shape[1])
        else:
            split -= 1
            left, right = roots[n_roots - 1], roots[n_roots - 2]
            n_roots -= 2
            feature, threshold = stored.features[split], stored.thresholds[split]
            samples = steps.n_node_samples[left] + steps.n_node_samples[right]
            goes_left = steps.n_node_samples[left] > steps.n_node_samples[right]
        roots[n_roots] = node
        n_roots += 1
        steps.children_left[node], steps.children_right[node] = left, right
        steps.feature[node], steps.threshold[node] = feature, threshold
        steps.n_node_samples[node], steps.missing_go_to_left[node] = samples, goes_left


@inline_kernel
def _write_shares(counts, values, n_outputs):
    n_values = counts.shape[0] // n_outputs
    total = 0.0
    for k in range(n_values):
        total += counts[k]
    for k in range(counts.shape[0]):
        values[k] = counts[k] / total
