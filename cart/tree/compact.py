"""Trees in few bytes: what follows from the leaves, or from the order of the nodes, is left out.

Large trees are kept so until a node array is asked for, and pickles have all so. What is left out
is made again, by the rules of `_derive`; an array that differs from what they make in one bit is
kept. (Which do not, growth may know.) They use no functions that differ between machines, such as
logarithms.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.float_order import WHOLE_MAX
from cart.tree.nodes import LEAF, UNDEFINED, Grown, Nodes

MANY = 1_000  # nodes of a tree that is worth it
_PLAIN = ("n_nodes", "shape")  # what is kept and no array

# What may follow: a bit each.
CHILDREN, SPLITS, WAYS, SAMPLES, WEIGHTS, COUNTS, GINI, SUMS = (1 << i for i in range(8))
DEPTH_FIRST = CHILDREN | SPLITS | WAYS | SAMPLES
WHOLE_COUNTS = WEIGHTS | COUNTS
WHOLE_SUMS = WEIGHTS | SUMS
SUMS_MAX = WHOLE_MAX / 16  # of whole squares, for rounding not to hide them
# The arrays that are kept where it does not.
_ARRAYS = {
    CHILDREN: ("children_left", "children_right"),
    SPLITS: ("feature", "threshold"),
    WAYS: ("missing_go_to_left",),
    SAMPLES: ("n_node_samples",),
    WEIGHTS: ("weighted_n_node_samples",),
    COUNTS | SUMS: ("value",),
}


class _Parts(NamedTuple):
    """What is kept of some of the nodes, in their order."""

    features: np.ndarray  # (n_splits,) int32
    thresholds: np.ndarray  # (n_splits,) float64
    is_impure: np.ndarray  # (n_nodes,) bool
    impurities: np.ndarray  # (n_impure,) float64: those that are not 0; see `totals`
    samples: np.ndarray  # (n_leaves,) int32
    counts: np.ndarray  # (n_leaves, n_outputs * n_values) float64: of classes; or weights, one each
    totals: np.ndarray  # (n_leaves,) float64: sums of whole targets; impurities are squares then


class Compact:
    """The node arrays of a tree in few bytes.

    Attributes
    ----------
    n_nodes : int
    shape : tuple of int
        Outputs, and values of each.
    """

    def __init__(self, kept):
        self._kept = kept  # see `_of`

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
        return cls._of(nodes, grown, is_leaf, _find_what_follows(nodes, is_leaf))

    @classmethod
    def of_grown(cls, grown, follows):
        """The arrays of nodes from growth that is depth first, which are written over.

        Parameters
        ----------
        grown : cart.tree.nodes.Grown
        follows : int
            A bit for each of what is known to follow, those of DEPTH_FIRST among them.
        """
        return cls._of(grown, grown, grown.feature < 0, follows)

    @classmethod
    def _of(cls, nodes, grown, is_leaf, follows):
        """What is kept of `nodes`; `grown` has the same, to be written over."""
        kept = {
            name: getattr(nodes, name).copy()
            for what, names in _ARRAYS.items()
            if not follows & what
            for name in names
        }
        by_counts, by_sums = bool(follows & COUNTS), bool(follows & SUMS)
        is_impure = grown.impurity.view(np.int64) != 0
        if by_sums:
            is_impure &= is_leaf
        shape, values = grown.value.shape[1:], grown.value.reshape(-1)
        n_leaves = int(np.count_nonzero(is_leaf))
        n_splits = len(is_leaf) - n_leaves
        n_impure = _take(grown, values, is_leaf, is_impure, by_counts, by_sums)
        kept |= {"n_nodes": len(is_leaf), "shape": shape, "leaves": np.packbits(is_leaf)}
        if follows & SPLITS:
            kept["features"] = _in_few_bytes(grown.feature[:n_splits])
            kept["thresholds"] = grown.threshold[:n_splits].copy()
        if follows & SAMPLES:
            kept["samples"] = _in_few_bytes(grown.n_node_samples[:n_leaves])
        if follows & WEIGHTS:
            counts = grown.value if by_counts else grown.weighted_n_node_samples
            kept["counts"] = _in_few_bytes(counts[:n_leaves].reshape(n_leaves, -1))
        if by_sums:
            kept["totals"] = _in_few_bytes(values[:n_leaves])
            kept["squares"] = _in_few_bytes(grown.impurity[:n_impure])
            kept["impure"] = np.packbits(is_impure)
        elif not follows & GINI:
            kept["impure"] = np.packbits(is_impure)
            kept["impurities"] = grown.impurity[:n_impure].copy()
        return cls(kept)

    @property
    def n_nodes(self):
        return self._kept["n_nodes"]

    @property
    def shape(self):
        return self._kept["shape"]

    @property
    def nbytes(self):
        return sum(item.nbytes for name, item in self._kept.items() if name not in _PLAIN)

    @property
    def splits(self):
        """Features, int32, and thresholds of the nodes that split; these may be written to."""
        return self._kept["features"].astype(np.int32), self._kept["thresholds"]

    def expand(self):
        """The node arrays, every bit as it was, as cart.tree.nodes.Nodes."""
        kept, n_nodes = self._kept, self.n_nodes
        is_leaf = _as_bools(kept["leaves"], n_nodes)
        n_leaves = int(np.count_nonzero(is_leaf))
        n_splits = n_nodes - n_leaves
        parts = _Parts(
            kept.get("features", np.zeros(n_splits)).astype(np.int32),
            kept.get("thresholds", np.zeros(n_splits)),
            _as_bools(kept.get("impure", np.zeros(n_nodes // 8 + 1, np.uint8)), n_nodes),
            kept.get("impurities", kept.get("squares", np.empty(0)).astype(np.float64)),
            kept.get("samples", np.zeros(n_leaves)).astype(np.int32),
            kept.get("counts", np.zeros((n_leaves, 1))).astype(np.float64),
            kept.get("totals", np.empty(0)).astype(np.float64),
        )
        follows = sum(what for what, names in _ARRAYS.items() if names[0] not in kept)
        follows &= ~COUNTS if "totals" in kept else ~SUMS
        if not {"totals", "impurities"} & kept.keys():
            follows |= GINI
        nodes = Nodes.create(n_nodes, *self.shape)
        by_counts, by_sums = bool(follows & COUNTS), bool(follows & SUMS)
        _put(nodes, nodes.value.reshape(-1), is_leaf, parts, by_counts, by_sums)
        whole = {name: kept[name].copy() for name in Nodes._fields if name in kept}
        nodes = nodes._replace(**whole)
        _apply(nodes, is_leaf, follows, True)
        return nodes

    def __getstate__(self):
        # As bytes: pickles of small arrays consist of their descriptions.
        return {name: item if name in _PLAIN else _write(item) for name, item in self._kept.items()}

    def __setstate__(self, state):
        self._kept = {
            name: item if name in _PLAIN else _read(*item) for name, item in state.items()
        }


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


def _find_what_follows(nodes, is_leaf):
    """The bits of what follows; GINI only with COUNTS, SUMS only with WEIGHTS."""
    if nodes.value.shape[1:] == (1, 1):
        follows = _apply(nodes, is_leaf, DEPTH_FIRST | WHOLE_SUMS, False)
        return follows if follows & WEIGHTS else follows & ~SUMS
    if nodes.value.shape[2] > 1:
        follows = _apply(nodes, is_leaf, DEPTH_FIRST | WHOLE_COUNTS | GINI, False)
        if follows & COUNTS:
            return follows
    return _apply(nodes, is_leaf, DEPTH_FIRST | WEIGHTS, False)


def _apply(nodes, is_leaf, follows, writes):
    n_nodes, *shape = nodes.value.shape
    n_sums = n_nodes if follows & SUMS else 0
    room = np.empty(n_nodes, np.int64), np.empty(shape), np.empty((n_sums, 2))
    return _derive(nodes, nodes.value.reshape(-1), is_leaf, np.int64(follows), writes, *room)


@entry_kernel
def _derive(nodes, values, is_leaf, follows, writes, roots, counts, sums):
    """Make what follows, or find out what does.

    Children are the two last subtrees whose roots are behind a split. Numbers of samples and whole
    weights of splits are sums over their children, as are class counts, and sums of whole targets
    and of their squares. Missing values follow the majority.

    Parameters
    ----------
    nodes : cart.tree.nodes.Nodes
        Complete if nothing is to be written; else with what `_put` writes.
    values : ndarray, float64
        Its `value`, flat.
    is_leaf : ndarray of shape (n_nodes,), bool
    follows : int
        A bit for each of what is to be written, or tried.
    writes : bool
    roots : ndarray of shape (n_nodes,), int64
        Scratch.
    counts : ndarray of shape (n_outputs, n_values), float64
        Scratch.
    sums : ndarray of shape (n_nodes, 2), float64
        Scratch for SUMS.

    Returns
    -------
    int
        The bits of what follows.
    """
    samples, weights = nodes.n_node_samples, nodes.weighted_n_node_samples
    differs = np.int64(0)
    n_roots = 0
    for node in range(is_leaf.shape[0] - 1, -1, -1):
        left, right = np.int64(LEAF), np.int64(LEAF)
        if not is_leaf[node] and n_roots >= 2:
            left, right = roots[n_roots - 1], roots[n_roots - 2]
            n_roots -= 2
        roots[n_roots] = node
        n_roots += 1
        differs |= _settle(nodes.children_left, node, left, CHILDREN, follows, writes)
        differs |= _settle(nodes.children_right, node, right, CHILDREN, follows, writes)
        left, right = np.int64(nodes.children_left[node]), np.int64(nodes.children_right[node])
        if is_leaf[node]:
            differs |= _settle(nodes.feature, node, UNDEFINED, SPLITS, follows, writes)
            differs |= _settle(nodes.threshold, node, UNDEFINED, SPLITS, follows, writes)
            differs |= _settle(nodes.missing_go_to_left, node, 0, WAYS, follows, writes)
        else:
            differs |= np.int64(nodes.feature[node] < 0) * SPLITS
            way = samples[left] > samples[right]
            differs |= _settle(nodes.missing_go_to_left, node, way, WAYS, follows, writes)
            both = samples[left] + samples[right]
            differs |= _settle(samples, node, both, SAMPLES, follows, writes)
        if follows & COUNTS:
            differs |= _derive_shares(
                nodes, values, is_leaf[node], node, left, right, follows, writes, counts
            )
        elif is_leaf[node]:
            differs |= np.int64(not _is_whole(weights[node])) * WEIGHTS
        else:
            weight = weights[left] + weights[right]
            differs |= _settle(weights, node, weight, WEIGHTS, follows, writes)
        if follows & SUMS:
            differs |= _derive_mean(nodes, values, is_leaf[node], node, left, right, writes, sums)
    return follows & ~differs


@inline_kernel
def _derive_mean(nodes, values, is_leaf, node, left, right, writes, sums):
    """The same of a node's mean and variance, which follow from its sums.

    Of a leaf to be written, `_put` has put them there; squares are missing where all targets are
    the same.
    """
    weight = nodes.weighted_n_node_samples[node]
    value, impurity = values[node], nodes.impurity[node]
    if not is_leaf:
        total, squares = sums[left, 0] + sums[right, 0], sums[left, 1] + sums[right, 1]
    elif not writes:
        total, squares = np.rint(value * weight), _squares(value, impurity, weight)
    else:
        mean = value / weight
        total, squares = value, impurity if impurity != 0.0 else mean * mean * weight
    sums[node, 0], sums[node, 1] = total, squares
    mean = total / weight
    differs = np.int64(not squares < SUMS_MAX) * SUMS  # nan too
    differs |= _settle(values, node, mean, SUMS, SUMS, writes)
    return differs | _settle(
        nodes.impurity, node, squares / weight - mean * mean, SUMS, SUMS, writes
    )


@inline_kernel
def _squares(mean, impurity, weight):
    """The weighted sum of whole squares."""
    return np.rint((impurity + mean * mean) * weight)


@inline_kernel
def _derive_shares(nodes, values, is_leaf, node, left, right, follows, writes, counts):
    """The same of a node's weight, class shares and Gini, which follow from its class counts.

    These are shares times weight; of a leaf to be written, `_put` has put them there.
    """
    weights = nodes.weighted_n_node_samples
    n_outputs, n_values = counts.shape
    width = n_outputs * n_values
    differs = np.int64(0)
    total = 0.0
    for output in range(n_outputs):
        for c in range(n_values):
            k = output * n_values + c
            if not is_leaf:
                count = _count(values, weights, left, k, width)
                count += _count(values, weights, right, k, width)
            elif writes:
                count = values[node * width + k]
            else:
                count = _count(values, weights, node, k, width)
                differs |= np.int64(not _is_whole(count)) * COUNTS
            counts[output, c] = count
            total += count if output == 0 else 0.0
    differs |= _settle(weights, node, total, COUNTS, follows, writes)
    impurity = 0.0
    for output in range(n_outputs):
        squares = 0.0
        for c in range(n_values):
            count = counts[output, c]
            squares += count * count
            at = node * width + output * n_values + c
            differs |= _settle(values, at, count / total, COUNTS, follows, writes)
        impurity += 1.0 - squares / (total * total)
    return differs | _settle(nodes.impurity, node, impurity / n_outputs, GINI, follows, writes)


@inline_kernel
def _settle(array, i, derived, what, follows, writes):
    """Write what was derived, or return its bit if it differs."""
    if not writes:
        return np.int64(not _is_same(array[i], derived)) * what
    if follows & what:
        array[i] = derived
    return np.int64(0)


@inline_kernel
def _is_same(x, derived):
    """To the bit; nan is never."""
    return (x == derived) & (math.copysign(1.0, x) == math.copysign(1.0, derived))


@inline_kernel
def _is_whole(x):
    return (x >= 0.0) & (x < WHOLE_MAX) & (x == np.rint(x))


@inline_kernel
def _count(values, weights, node, k, width):
    return np.rint(values[node * width + k] * weights[node])


@entry_kernel
def _take(grown, values, is_leaf, is_impure, by_counts, by_sums):
    """Move what is kept to the front of the arrays; `values` is their `value`, flat.

    Class counts, or sums and squares, take the place of what they are kept for. Returns how many
    are impure.
    """
    n_splits = n_leaves = n_impure = 0
    n_nodes = is_leaf.shape[0]
    width = values.shape[0] // n_nodes if by_counts else 0
    for node in range(n_nodes):  # without branches: which node is a leaf none foretells
        impurity, weight = grown.impurity[node], grown.weighted_n_node_samples[node]
        if by_sums:
            mean = values[node]
            values[n_leaves] = np.rint(mean * weight)
            impurity = _squares(mean, impurity, weight)
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
def _put(nodes, values, is_leaf, parts, by_counts, by_sums):
    """Put it into node arrays: class counts, or sums and squares, in the place of what follows."""
    n_splits = n_leaves = n_impure = 0
    for node in range(is_leaf.shape[0]):
        nodes.impurity[node] = 0.0
        if parts.is_impure[node]:
            nodes.impurity[node] = parts.impurities[n_impure]
            n_impure += 1
        if not is_leaf[node]:
            nodes.feature[node] = parts.features[n_splits]
            nodes.threshold[node] = parts.thresholds[n_splits]
            n_splits += 1
            continue
        nodes.n_node_samples[node] = parts.samples[n_leaves]
        nodes.weighted_n_node_samples[node] = parts.counts[n_leaves, 0]
        width = parts.counts.shape[1]
        for k in range(width if by_counts else 0):
            values[node * width + k] = parts.counts[n_leaves, k]
        if by_sums:
            values[node] = parts.totals[n_leaves]
        n_leaves += 1
