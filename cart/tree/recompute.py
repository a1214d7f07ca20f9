r"""Recompute node arrays from the rest, or find out which of them can be recomputed bit for bit.

Nodes are numbered depth first: the right child of a split comes after the whole subtree of its left
child. The rules go from the last node to the first, with a stack of subtrees without a parent:

    node             0 1 2 3 4         0
    is_leaf          0 1 0 1 1        / \         the stack, its top first, once a node is done:
    children_left    1 . 3 . .       1   2        node 4: 4    3: 3 4    2: 2    1: 1 2    0: 0
    children_right   2 . 4 . .          / \
    n_node_samples   9 4 5 2 3         3   4      samples: 5 = 2 + 3, 9 = 4 + 5

The rules use no functions whose results differ between machines, such as logarithms.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.primitives.float_order import WHOLE_MAX
from cart.tree.nodes import LEAF, UNDEFINED, Nodes

# Flags: which arrays can be recomputed on expansion, and so are not stored.
CHILDREN = 1  # the roots of the two subtrees on top of the stack
SPLITS = 2  # features and thresholds of leaves, which are undefined; those of splits are stored
MISSING_WAYS = 4  # missing values follow the majority
SAMPLES = 8  # numbers of samples of splits: sums over their children
WEIGHTS = 16  # weights of splits, if leaves have whole ones: sums over their children
COUNTS = 32  # class shares: whole counts of leaves, and sums of those, over the weight
GINI = 64  # impurities, from class counts; only with COUNTS
SUMS = 128  # means and variances, from sums of whole targets and their squares; only with WEIGHTS

DEPTH_FIRST = CHILDREN | SPLITS | MISSING_WAYS | SAMPLES
WHOLE_COUNTS = WEIGHTS | COUNTS
SUMS_MAX = WHOLE_MAX / 16  # sums of squares below this can be restored in spite of rounding


class _Work(NamedTuple):
    """Node arrays, and what to recompute of them."""

    nodes: Nodes  # complete; if `writes`, only with what is stored (see `compact._spread`)
    values: np.ndarray  # float64: their `value`, flat
    is_leaf: np.ndarray  # (n_nodes,) bool
    flags: np.int64  # what to recompute
    writes: bool  # whether to write the results, or else compare them with what is there
    roots: np.ndarray  # (n_nodes,) int64: the stack of subtrees
    counts: np.ndarray  # (n_outputs, n_values) float64: scratch for the class counts of a node
    sums: np.ndarray  # (n_nodes, 2) float64: scratch for SUMS, of targets and of squares


def recompute(nodes, is_leaf, flags, writes):
    """Recompute node arrays and write them, or find out which can be recomputed.

    Parameters
    ----------
    nodes : cart.tree.nodes.Nodes
        Numbered depth first.
    is_leaf : ndarray of shape (n_nodes,), bool
    flags : int
        What to recompute.
    writes : bool
        If False, results are only compared with what is in `nodes`.

    Returns
    -------
    int
        The flags of all that was reproduced bit for bit.
    """
    n_nodes, *shape = nodes.value.shape
    n_sums = n_nodes if flags & SUMS else 0
    room = np.empty(n_nodes, np.int64), np.empty(shape), np.empty((n_sums, 2))
    values = nodes.value.reshape(-1)
    return _recompute(_Work(nodes, values, is_leaf, np.int64(flags), writes, *room))


def find_recomputable(nodes, is_leaf):
    """Return the flags of all that can be recomputed; see `recompute`."""
    if nodes.value.shape[1:] == (1, 1):
        flags = recompute(nodes, is_leaf, DEPTH_FIRST | WEIGHTS | SUMS, False)
        return flags if flags & WEIGHTS else flags & ~SUMS
    if nodes.value.shape[2] > 1:
        flags = recompute(nodes, is_leaf, DEPTH_FIRST | WHOLE_COUNTS | GINI, False)
        if flags & COUNTS:
            return flags
    return recompute(nodes, is_leaf, DEPTH_FIRST | WEIGHTS, False)


@entry_kernel
def _recompute(work):
    differs = np.int64(0)
    n_roots = 0
    for node in range(work.is_leaf.shape[0] - 1, -1, -1):
        left, right = np.int64(LEAF), np.int64(LEAF)
        if not work.is_leaf[node] and n_roots >= 2:
            left, right = work.roots[n_roots - 1], work.roots[n_roots - 2]
            n_roots -= 2
        work.roots[n_roots] = node
        n_roots += 1
        differs |= _write_or_compare(work, work.nodes.children_left, node, left, CHILDREN)
        differs |= _write_or_compare(work, work.nodes.children_right, node, right, CHILDREN)
        left = np.int64(work.nodes.children_left[node])
        right = np.int64(work.nodes.children_right[node])
        differs |= _recompute_split(work, node, left, right)
        if work.flags & COUNTS:
            differs |= _recompute_shares(work, node, left, right)
        else:
            differs |= _recompute_weight(work, node, left, right)
        if work.flags & SUMS:
            differs |= _recompute_mean(work, node, left, right)
    return work.flags & ~differs


@inline_kernel
def _recompute_split(work, node, left, right):
    """Recompute the undefined split of a leaf; or a split's way of missing values, and samples."""
    nodes, samples = work.nodes, work.nodes.n_node_samples
    if work.is_leaf[node]:
        differs = _write_or_compare(work, nodes.feature, node, UNDEFINED, SPLITS)
        differs |= _write_or_compare(work, nodes.threshold, node, UNDEFINED, SPLITS)
        return differs | _write_or_compare(work, nodes.missing_go_to_left, node, 0, MISSING_WAYS)
    differs = np.int64(nodes.feature[node] < 0) * SPLITS
    goes_left = samples[left] > samples[right]
    differs |= _write_or_compare(work, nodes.missing_go_to_left, node, goes_left, MISSING_WAYS)
    return differs | _write_or_compare(work, samples, node, samples[left] + samples[right], SAMPLES)


@inline_kernel
def _recompute_weight(work, node, left, right):
    weights = work.nodes.weighted_n_node_samples
    if work.is_leaf[node]:
        return np.int64(not _is_whole(weights[node])) * WEIGHTS
    return _write_or_compare(work, weights, node, weights[left] + weights[right], WEIGHTS)


@inline_kernel
def _recompute_mean(work, node, left, right):
    """Recompute a node's mean and variance from its sums.

    If results are written, a leaf has the sums in place of mean and variance; that of squares is
    missing (0) if all targets are the same.
    """
    sums, impurities = work.sums, work.nodes.impurity
    weight = work.nodes.weighted_n_node_samples[node]
    value, impurity = work.values[node], impurities[node]
    if not work.is_leaf[node]:
        total, squares = sums[left, 0] + sums[right, 0], sums[left, 1] + sums[right, 1]
    elif not work.writes:
        total, squares = np.rint(value * weight), whole_squares(value, impurity, weight)
    else:
        mean = value / weight
        total, squares = value, impurity if impurity != 0.0 else mean * mean * weight
    sums[node, 0], sums[node, 1] = total, squares
    mean = total / weight
    differs = np.int64(not squares < SUMS_MAX) * SUMS  # nan too
    differs |= _write_or_compare(work, work.values, node, mean, SUMS)
    return differs | _write_or_compare(work, impurities, node, squares / weight - mean * mean, SUMS)


@inline_kernel
def whole_squares(mean, impurity, weight):
    """The weighted sum of squared targets, rounded, as it is whole."""
    return np.rint((impurity + mean * mean) * weight)


@inline_kernel
def _recompute_shares(work, node, left, right):
    """Recompute a node's weight, class shares and Gini impurity from its class counts.

    Counts are shares times weight. If results are written, a leaf has counts in place of shares.
    """
    n_outputs, n_values = work.counts.shape
    differs = np.int64(0)
    total = 0.0
    for output in range(n_outputs):
        for c in range(n_values):
            k = output * n_values + c
            if not work.is_leaf[node]:
                count = _count(work, left, k) + _count(work, right, k)
            elif work.writes:
                count = work.values[node * n_outputs * n_values + k]
            else:
                count = _count(work, node, k)
                differs |= np.int64(not _is_whole(count)) * COUNTS
            work.counts[output, c] = count
            total += count if output == 0 else 0.0
    weights = work.nodes.weighted_n_node_samples
    differs |= _write_or_compare(work, weights, node, total, COUNTS)
    return differs | _recompute_gini(work, node, total)


@inline_kernel
def _recompute_gini(work, node, total):
    """Recompute the class shares and the Gini impurity from counts and their total."""
    n_outputs, n_values = work.counts.shape
    differs = np.int64(0)
    impurity = 0.0
    for output in range(n_outputs):
        squares = 0.0
        for c in range(n_values):
            count = work.counts[output, c]
            squares += count * count
            at = (node * n_outputs + output) * n_values + c
            differs |= _write_or_compare(work, work.values, at, count / total, COUNTS)
        impurity += 1.0 - squares / (total * total)
    impurities = work.nodes.impurity
    return differs | _write_or_compare(work, impurities, node, impurity / n_outputs, GINI)


@inline_kernel
def _write_or_compare(work, array, i, recomputed, flag):
    """Write a number if its flag is set, and return 0; or return its flag if it differs, else 0."""
    if not work.writes:
        return np.int64(not _is_same(array[i], recomputed)) * flag
    if work.flags & flag:
        array[i] = recomputed
    return np.int64(0)


@inline_kernel
def _is_same(x, recomputed):
    """Whether two numbers are the same to the bit; nan never is."""
    return (x == recomputed) & (math.copysign(1.0, x) == math.copysign(1.0, recomputed))


@inline_kernel
def _is_whole(x):
    return (x >= 0.0) & (x < WHOLE_MAX) & (x == np.rint(x))


@inline_kernel
def _count(work, node, k):
    """The class count at position k of a node's shares."""
    weight = work.nodes.weighted_n_node_samples[node]
    return np.rint(work.values[node * work.counts.size + k] * weight)
