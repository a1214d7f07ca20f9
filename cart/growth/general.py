"""The general path: grow one tree depth first, or best first if the number of leaves is limited.

Node numbering, the order of random draws and the priority queue are scikit-learn's
(`DepthFirstTreeBuilder`, `BestFirstTreeBuilder` in `_tree.pyx`).
"""

import math
from typing import NamedTuple

import numpy as np

from cart.growth.best_first import Candidates, finished, most_nodes
from cart.growth.frontier import NodeStack, push_root
from cart.growth.loop import grow
from cart.growth.node_step import GeneralWay, Inherited, TreeRows, begin_inheritance
from cart.growth.routing import Learned
from cart.jit.decorators import entry_kernel
from cart.primitives.float_order import sums_are_exact
from cart.splitting import criteria
from cart.splitting.feature_draw import Draw, restart
from cart.table.node_samples import NodeSamples
from cart.tree.compact import compress_if_large
from cart.tree.nodes import Nodes
from cart.tree.pruning import prune
from cart.tree.tree import Tree

LEARNED = Learned()


class Origin(NamedTuple):
    """A node below the root at which growth begins, in a tree whose draws are keyed."""

    key: int  # uint64: of the node's draws
    depth: int
    weight: float  # of the whole tree


class Workspace(NamedTuple):
    """Everything a thread writes to while it grows trees, one after another."""

    nodes: Nodes
    node: NodeSamples
    draw: Draw
    stack: NodeStack
    inherited: Inherited
    candidates: Candidates  # for best-first growth
    criterion: tuple
    table: tuple


def create_workspace(plan, n_samples, n_rows, table):
    """Create a Workspace for trees on up to `n_samples` in-bag rows of a table with `n_rows`."""
    limits = plan.limits
    n_nodes = most_nodes(n_samples, limits)
    if limits.max_depth < 30:
        n_nodes = min(n_nodes, 2 ** (limits.max_depth + 1) - 1)
    return Workspace(
        Nodes.create(n_nodes, plan.n_outputs, plan.n_values),
        NodeSamples.create(n_samples, plan.n_outputs),
        Draw.create(len(table.columns), plan.hashed_names, n_nodes + 1),
        NodeStack.create(n_nodes + 1),
        Inherited.create(n_nodes + 1),
        Candidates.create(0 if limits.max_leaf_nodes < 0 else n_nodes),
        plan.criterion.create(plan.n_outputs, plan.n_values, n_samples),
        table.with_room(n_samples, n_rows, n_nodes, plan.n_outputs, plan.n_values),
    )


def make_records(codes, weight):
    """Put the weight and the targets of every row side by side, as kernels take them.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_outputs) or (n_samples,), float64
    weight : ndarray of shape (n_samples,) or scalar

    Returns
    -------
    ndarray of shape (n_samples, 1 + n_outputs), float64
    """
    codes = codes.reshape(len(codes), -1)
    records = np.empty((len(codes), 1 + codes.shape[1]))
    records[:, 0] = weight
    records[:, 1:] = codes
    return records


def grow_tree(table, records, plan, seed, workspace, origin=None, route=LEARNED):
    """Grow one tree and prune it, or grow what is below one of its nodes.

    Parameters
    ----------
    table : Table
    records : ndarray of shape (n_samples, 1 + n_outputs), float64, C order
        Weight and targets (class codes or numbers) of every row; rows of weight 0 are left out.
    plan : Plan
    seed : int
        Of the draws, in [0, 2**31 - 1).
    workspace : Workspace
        From `create_workspace`, for at least the rows that have a weight.
    origin : Origin, optional
        The node whose rows have weights in `records`; by default the root. If given, monotonic
        bounds of its ancestors are not applied, and nothing is pruned.
    route : Learned or BySurrogates
        Where rows without the value of a split go; see `cart.growth.routing`.

    Returns
    -------
    Tree
    """
    weight = np.ascontiguousarray(records[:, 0])
    samples = np.flatnonzero(weight).astype(np.uint64)
    if origin is not None:
        workspace.draw.hashes[0] = origin.key
    workspace.table.begin_tree(samples.astype(np.int64))
    keep_order = sums_depend_on_order(plan, weight)
    if not keep_order:
        distinct_records, numbers = number_distinct_records(records, plan.n_values)
        samples |= numbers[samples] << np.uint64(32)
        workspace = workspace._replace(node=workspace.node._replace(records=distinct_records))
    total_weight = weight.sum() if origin is None else origin.weight
    limits = plan.limits._replace(min_weight_leaf=plan.min_weight_fraction_leaf * total_weight)
    if origin is not None:
        limits = limits._replace(max_depth=limits.max_depth - origin.depth)
    way = GeneralWay(
        plan.splitter, workspace.criterion, workspace.node, workspace.draw, workspace.table,
        TreeRows(records, samples, total_weight, keep_order), workspace.inherited, workspace.stack,
        limits, route,
    )  # fmt: skip
    candidates, nodes = workspace.candidates, workspace.nodes
    n_nodes = _grow(way, nodes, candidates, seed, origin is not None)
    if limits.max_leaf_nodes < 0:
        nodes = Nodes(*(array[:n_nodes] for array in nodes))
    else:
        nodes = finished(candidates, n_nodes, *nodes[2:])
    tree = Tree.grown(compress_if_large(nodes), len(table.columns), workspace.table.end_tree(nodes))
    return prune(tree, plan.ccp_alpha) if plan.ccp_alpha > 0.0 and origin is None else tree


@entry_kernel
def _grow(way, nodes, candidates, seed, is_below):
    """Grow one tree, or what is below a node whose key is set; return how many nodes it has."""
    if not is_below:
        restart(way.draw, seed)
    begin_inheritance(way)
    push_root(way.stack, way.rows.samples.shape[0], 0.0)
    return grow(way, nodes, candidates)


def sums_depend_on_order(plan, weight):
    """Whether sums may be rounded: they are not if they are class counts of whole weights."""
    is_counted = plan.criterion in criteria.CLASSIFICATION.values()
    return not (is_counted and sums_are_exact(weight))


def number_distinct_records(records, n_values):
    """Number the distinct records, and find that of each sample.

    Parameters
    ----------
    records : ndarray of shape (n_samples, 1 + n_outputs), float64
        Whole numbers: weight and class codes.
    n_values : int
        Class codes are below this.

    Returns
    -------
    distinct_records : ndarray of shape (n_distinct, 1 + n_outputs), float64
        `records` itself, every sample with its own, if there would be no fewer.
    numbers : ndarray of shape (n_samples,), uint64
        The number of each sample's record.
    """
    n_samples, width = records.shape
    shape = (int(records[:, 0].max()) + 1,) + (n_values,) * (width - 1)
    if math.prod(shape) >= n_samples:
        return records, np.arange(n_samples, dtype=np.uint64)
    numbers = records[:, 0]
    for k in range(1, width):
        numbers = numbers * n_values + records[:, k]
    distinct_records = np.indices(shape).reshape(width, -1).T.astype(np.float64, order="C")
    return distinct_records, numbers.astype(np.uint64)
