"""Divide a node's samples and sum up its children by squared error, to the bit as scikit-learn."""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import may_be_split, push, write_leaf
from cart.fast_paths.regression.cut_score import WEIGHT, weight_at, y_at
from cart.jit.decorators import inline_kernel
from cart.primitives.float_order import are_whole
from cart.tree.compact import SUMS, SUMS_MAX, WEIGHTS

TOTAL, SQUARES = 1, 2  # of a node that waits, beside its WEIGHT
_ONE_BY_ONE = 12  # of fewer samples it is faster to exchange one after another


class DrawnFeatures(NamedTuple):
    """The features of the node at hand that are to be searched, in the order of the draw."""

    feature: np.ndarray  # (n_features,) int64
    column: np.ndarray  # (n_features,) int64: of the table
    first: np.ndarray  # (n_features,) int64: where its entries begin

    @classmethod
    def create(cls, n_features):
        return cls(*np.empty((3, n_features), np.int64))


class SwapScratch(NamedTuple):
    """Which samples change sides."""

    leaving: np.ndarray  # (n,) uint32: places in the left part of those that go right; then these
    coming: np.ndarray  # (n,) uint32: places in the right part of those that go left, from the end

    @classmethod
    def create(cls, n):
        return cls(*np.empty((2, n), np.uint32))


@inline_kernel
def swap_across(samples, start, end, n_left, is_left, swap):
    """Divide samples[start:end], of which n_left go left, as scikit-learn does: a sample from the
    left end that goes right changes places with one from the right end, until that goes left.

    So one sample decides where the next is looked for, and processors cannot guess. What comes of
    it: those that come replace those that leave, in turn; the others on the right move one place to
    the left, and those that leave get the places that this leaves free, from the end.
    """
    if end - start < _ONE_BY_ONE:
        _swap_one_by_one(samples, start, end, is_left)
        return
    middle = start + n_left
    leaving, coming = swap.leaving, swap.coming
    n_leaving = 0
    for i in range(start, middle):
        leaving[n_leaving] = i
        n_leaving += 1 - np.int64(is_left[samples[i]])
    n_coming = 0
    for i in range(end - 1, middle - 1, -1):
        coming[n_coming] = i
        n_coming += np.int64(is_left[samples[i]])
    for k in range(n_leaving):
        i = leaving[k]
        leaving[k] = samples[i]
        samples[i] = samples[coming[k]]
    first = samples[middle]
    for i in range(middle, end - 1):
        samples[i] = samples[i + 1]
    free = end - 1
    for k in range(n_leaving):
        samples[free] = leaving[k]
        free = np.int64(coming[k]) - 1
    if free >= middle:  # the first goes right: it leaves, as it were, after all others
        samples[free] = first


@inline_kernel
def _swap_one_by_one(samples, start, end, is_left):
    while start < end:
        row = samples[start]
        if is_left[row]:
            start += 1
        else:
            end -= 1
            samples[start] = samples[end]
            samples[end] = row


@inline_kernel
def add_up_node(samples, targets, start, end, sums):
    """Weight, sum and squares of samples[start:end], written to `sums`."""
    weight = 0.0
    total = 0.0
    squares = 0.0
    for i in range(start, end):
        row = samples[i]
        here = weight_at(targets, row)
        y = y_at(targets, row)
        weight += here
        total += here * y
        squares += here * y * y
    sums[WEIGHT] = weight
    sums[TOTAL] = total
    sums[SQUARES] = squares


def flags_of(follows, targets, weights):
    """What is known to follow in nodes (see `cart.tree.compact`): with means and impurities where
    sums are whole."""
    heaviest, farthest = weights.sum(axis=1).max(), np.abs(targets).max()
    is_exact = follows & WEIGHTS and heaviest * farthest**2 < SUMS_MAX
    return follows | SUMS if is_exact and are_whole(targets) else follows


@inline_kernel
def impurity_of(weight, total, squares):
    mean = total / weight
    return squares / weight - mean * mean


@inline_kernel
def add_up_children(samples, targets, start, middle, end, sums, left_sums, right_sums):
    """Add up either side of a node that is divided; return the impurities, left and right.

    Those are scikit-learn's: from the left child's sums, which it takes from the right where that
    is shorter, and the node's less these. `sums` are the node's; they may be the memory of
    `right_sums`.
    """
    weight, total, squares = sums[WEIGHT], sums[TOTAL], sums[SQUARES]
    add_up_node(samples, targets, middle, end, right_sums)
    add_up_node(samples, targets, start, middle, left_sums)
    left_weight, left_sum = left_sums[WEIGHT], left_sums[TOTAL]
    if middle - start > end - middle:
        left_weight = weight
        left_sum = total
        for i in range(end - 1, middle - 1, -1):
            row = samples[i]
            left_weight -= weight_at(targets, row)
            left_sum -= weight_at(targets, row) * y_at(targets, row)
    left = impurity_of(left_weight, left_sum, left_sums[SQUARES])
    right = impurity_of(weight - left_weight, total - left_sum, squares - left_sums[SQUARES])
    return left, right, left_weight


@inline_kernel
def write_mean(nodes, this, impurity, n, sums):
    """Write node `this` as a leaf, its mean included."""
    write_leaf(nodes, this, impurity, n, sums[WEIGHT])
    nodes.value[this, 0, 0] = sums[TOTAL] / sums[WEIGHT]


@inline_kernel
def place_children(
    nodes, stack, sums, height, n_nodes, start, middle, end, tier, depth, n_constant, left,
    right, limits,
):  # fmt: skip
    """Write the children of a split that are leaves, where their turn has come; the others wait.

    The left child has its sums in sums[height + 1], the right one in sums[height].
    Returns how many nodes wait and how many are written.
    """
    if may_be_split(middle - start, depth, left, limits):
        push(stack, height, middle, end, tier, depth, n_constant, right)
        push(stack, height + 1, start, middle, tier, depth, n_constant, left)
        return height + 2, n_nodes
    write_mean(nodes, n_nodes, left, middle - start, sums[height + 1])
    if may_be_split(end - middle, depth, right, limits):
        push(stack, height, middle, end, tier, depth, n_constant, right)
        return height + 1, n_nodes + 1
    write_mean(nodes, n_nodes + 1, right, end - middle, sums[height])
    return height, n_nodes + 2


@inline_kernel
def decrease_of(weight, left_weight, impurity, left, right, total_weight):
    """How much a split lessens the impurity of the whole tree."""
    right_weight = weight - left_weight
    return (weight / total_weight) * (
        impurity - (right_weight / weight * right) - (left_weight / weight * left)
    )
