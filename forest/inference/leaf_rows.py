"""Training rows listed leaf by leaf, and quantiles of y over the leaves that a row reaches.

A training row is identified by its rank: its position in the stable order of y. The list of a tree
holds the ranks leaf after leaf, in the order of the leaves' numbers, and ascending within a leaf.
The last rank of a leaf is stored as its complement, a negative number, so that no second array is
needed for the ends of leaves:

    leaf of rank    0..7  =   3   1   3   4   1   3   1   4
    members               = [ 1   4  ~6 | 0   2  ~5 | 3  ~7 ]
                              leaf 1      leaf 3      leaf 4
    start of a row in leaf 3 = 3
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, inline_kernel
from cart.tree.nodes import LEAF

# A cumulative weight has reached q if it falls short by no more than this, which is far above
# rounding errors of a sum of weights, and far below the weight of a row.
TOLERANCE = 1e-10
NO_LEAF = -1  # start of a row's leaf in a tree that does not count for the row
_GROUP = 128  # ranks per group: weights are also summed by group, to skip groups in one step


class QuantileScratch(NamedTuple):
    """Buffers of `leaf_quantiles`."""

    weight: np.ndarray  # (n_samples,) float64: weight of each rank
    group_weight: np.ndarray  # (ceil(n_samples / 128),) float64: the sums over groups of ranks
    total: np.ndarray  # (n_trees,) float64: mass of the row's leaf
    end: np.ndarray  # (n_trees,) int64: where its list ends

    @classmethod
    def create(cls, n_samples, n_trees):
        """Create buffers for tables and forests of this size."""
        group_weight, end = np.zeros(-(-n_samples // _GROUP)), np.empty(n_trees, np.int64)
        return cls(np.zeros(n_samples), group_weight, np.empty(n_trees), end)


@inline_kernel
def _rank_of(entry):
    return entry if entry >= 0 else ~entry


@entry_kernel
def group_by_leaf(leaf, is_drawn, children_left, n_node_samples, end, n_drawn, members):
    """List the rows of one tree leaf by leaf.

    Parameters
    ----------
    leaf : ndarray of shape (n_samples,), int64
        Number of the leaf of each rank.
    is_drawn : ndarray of shape (n_samples,), bool
        Whether the tree was grown on the rank.
    children_left, n_node_samples : ndarray of shape (n_nodes,), int32
        Arrays of the tree.
    end, n_drawn : ndarray of shape (n_nodes,), int64
        Scratch.
    members : ndarray of shape (n_samples,), int32
        Output: the list.

    Returns
    -------
    bool
        False if a leaf does not hold as many of its drawn rows as the tree says: this is not the
        table that the tree was grown on, and nothing is listed.
    """
    end[:] = 0
    n_drawn[:] = 0
    for rank in range(leaf.shape[0]):
        end[leaf[rank]] += 1
        n_drawn[leaf[rank]] += is_drawn[rank]
    total = 0
    for node in range(end.shape[0]):
        if children_left[node] == LEAF and n_drawn[node] != n_node_samples[node]:
            return False
        total += end[node]
        end[node] = total - end[node]  # begins as the leaf's start; the next loop moves it
    for rank in range(leaf.shape[0]):
        members[end[leaf[rank]]] = rank
        end[leaf[rank]] += 1
    for node in range(end.shape[0]):
        if children_left[node] == LEAF:
            members[end[node] - 1] = ~members[end[node] - 1]
    return True


@inline_kernel
def _weigh_leaf(members, first, own, mass):
    """Mass of the rows, without `own`, in the leaf whose list begins at `first`; the list's end."""
    total = 0.0
    at = first
    while True:
        rank = _rank_of(members[at])
        if rank != own:
            total += mass[rank]
        if members[at] < 0:
            return total, at + 1
        at += 1


@inline_kernel
def _add_leaf(members, own, mass, total, scratch, with_groups):
    """Add each row's share of the mass of its leaf to the weights."""
    for i in range(members.shape[0]):
        rank = _rank_of(members[i])
        if rank != own:
            share = mass[rank] / total
            scratch.weight[rank] += share
            if with_groups:
                scratch.group_weight[rank // _GROUP] += share


@inline_kernel
def _clear_leaf(members, scratch):
    for i in range(members.shape[0]):
        rank = _rank_of(members[i])
        scratch.weight[rank] = 0.0
        scratch.group_weight[rank // _GROUP] = 0.0


@inline_kernel
def _read_quantiles(levels, n_voters, y, scratch, out):
    """Write the quantiles of y under weights that sum to n_voters; `levels` must ascend."""
    weight, group_weight = scratch.weight, scratch.group_weight
    end = group_weight.shape[0]
    while group_weight[end - 1] == 0.0:
        end -= 1
    group = 0
    before = 0.0  # weight of the groups skipped
    for k in range(levels.shape[0]):
        goal = (levels[k] - TOLERANCE) * n_voters
        while group < end - 1 and (
            group_weight[group] == 0.0 or before + group_weight[group] < goal
        ):
            before += group_weight[group]
            group += 1
        found = 0
        reached = before
        for rank in range(group * _GROUP, min((group + 1) * _GROUP, weight.shape[0])):
            if weight[rank] > 0.0:
                found = rank
                reached += weight[rank]
                if reached >= goal:
                    break
        out[k] = y[found]


@entry_kernel
def leaf_quantiles(members, start, own, mass, y, levels, scratch, out):
    """Quantiles of y over the leaves of each row, every tree with the same weight.

    Parameters
    ----------
    members : ndarray of shape (n_trees, n_members), int32
        From `group_by_leaf`; perhaps only the ranks that were drawn, each as often as it was.
    start : ndarray of shape (n_trees, n_rows), int32
        Where the leaf of the row begins in the list of the tree; NO_LEAF leaves the tree out.
    own : ndarray of shape (n_rows,), int64
        A rank that does not count for the row; -1 counts all.
    mass : ndarray of shape (n_samples,), float64
        Weight of each rank within a leaf; the sum in every leaf must be positive.
    y : ndarray of shape (n_samples,), float64
        Ascending.
    levels : ndarray of shape (n_levels,), float64
        Ascending, between 0 and 1.
    scratch : QuantileScratch
        Its weights must be zeros, and are zeros again afterwards.
    out : ndarray of shape (n_rows, n_levels), float64
        Output; nan where no tree counts.
    """
    n_trees, n_samples = members.shape[0], y.shape[0]
    total, end = scratch.total, scratch.end
    for i in range(out.shape[0]):
        n_voters = 0
        n_entries = 0
        for tree in range(n_trees):
            if start[tree, i] != NO_LEAF:
                total[tree], end[tree] = _weigh_leaf(members[tree], start[tree, i], own[i], mass)
                n_voters += 1
                n_entries += end[tree] - start[tree, i]
        if n_voters == 0:
            out[i] = np.nan
            continue
        # If most rows get a weight, it is faster to sum the groups, and to clear all, at the end.
        is_dense = n_entries > n_samples
        for tree in range(n_trees):
            if start[tree, i] != NO_LEAF:
                leaf = members[tree, start[tree, i] : end[tree]]
                _add_leaf(leaf, own[i], mass, total[tree], scratch, not is_dense)
        if is_dense:
            for rank in range(n_samples):
                scratch.group_weight[rank // _GROUP] += scratch.weight[rank]
        _read_quantiles(levels, n_voters, y, scratch, out[i])
        if is_dense:
            scratch.weight[:] = 0.0
            scratch.group_weight[:] = 0.0
            continue
        for tree in range(n_trees):
            if start[tree, i] != NO_LEAF:
                _clear_leaf(members[tree, start[tree, i] : end[tree]], scratch)
