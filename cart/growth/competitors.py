"""Find the competitors of a finished tree's splits: the best splits of other features, by node.

The rows of each node are known from the pass of `cart.growth.surrogates`. In a node, each feature
is searched as in growth, by the splitter that does without missing values. The improvement of the
node's own split is judged in the same way.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, kernel
from cart.splitting.category_subsets import is_categorical, list_subset
from cart.splitting.known_rows import KnownBestSplitter, improvement, load_known
from cart.splitting.splitter import (
    NO_SPLIT,
    Bounds,
    SearchContext,
    load_feature,
    order,
    order_feature,
    search_ordered,
)
from cart.table.node_samples import FeatureCodes, NodeSamples, known_range, load_node
from cart.table.ranking import MISSING
from cart.table.table import gather
from cart.tree.nodes import is_listed
from cart.tree.surrogates import Competitors

# Improvements up to this share of the best one are taken for rounding errors, as in rpart.
_NOISE = 1e-10


class Judged(NamedTuple):
    """The nodes of a tree whose splits are judged, and their rows."""

    nodes: np.ndarray  # (n_judged,) int64: numbers of the nodes, ascending
    runs: np.ndarray  # (n_nodes, 2) int64: node i has samples[runs[i, 0]:runs[i, 1]]
    samples: np.ndarray  # (n,) uint64
    records: np.ndarray  # (n_rows, 1 + n_outputs) float64


class Best(NamedTuple):
    """The best split of every feature in the current node."""

    gain: np.ndarray  # (n_features,) float64; 0 if there is none
    threshold: np.ndarray  # (n_features,) float64
    n_listed: np.ndarray  # (n_features,) int64
    listed: np.ndarray  # (n_features, n_categories) uint32


class Written(NamedTuple):
    """The competitors found, node by node."""

    n: np.ndarray  # (n_nodes,) int64: competitors of each node
    feature: np.ndarray  # (capacity,) int32
    threshold: np.ndarray  # (capacity,) float64
    improvement: np.ndarray  # (capacity,) float64
    list_start: np.ndarray  # (capacity + 1,) int64
    listed: np.ndarray  # uint32
    primary: np.ndarray  # (n_nodes,) float64: improvement of the node's own split


class CompetitorFinder:
    """Finds competitors of trees that were grown on one table, one tree after another.

    Parameters
    ----------
    table : Table or CategoricalTable
        Complete, with codes of 32 bits.
    plan : cart.growth.plan.Plan
    k : int
        Most competitors of a node.
    """

    def __init__(self, table, plan, k):
        n_features, n_rows = len(table.columns), table.codes.shape[1]
        n_categories = getattr(table, "n_categories", np.zeros(len(table.codes), np.int64))
        self._most = int(n_categories.max(initial=0))
        self._table = table.with_room(n_rows, n_rows, 1, plan.n_outputs, plan.n_values)
        self._node = NodeSamples.create(n_rows, plan.n_outputs)
        self._criterion = plan.criterion.create(plan.n_outputs, plan.n_values, n_rows)
        self._limits = plan.limits
        self._k = min(k, n_features)
        self._best = Best(
            np.zeros(n_features), np.zeros(n_features), np.zeros(n_features, np.int64),
            np.zeros((n_features, self._most), np.uint32),
        )  # fmt: skip

    def find(self, followed, judged, min_weight_leaf):
        """Find the competitors in the nodes to judge, and the improvements of their own splits.

        Parameters
        ----------
        followed : cart.growth.surrogates.Followed
        judged : Judged
        min_weight_leaf : float

        Returns
        -------
        cart.tree.surrogates.Competitors
        """
        n_judged, n_nodes = len(judged.nodes), len(followed.feature)
        capacity = n_judged * self._k
        sizes = np.diff(judged.runs[judged.nodes], axis=1)
        n_listed = int(np.minimum(sizes, self._most).sum()) * self._k
        written = Written(
            np.zeros(n_nodes, np.int64), np.empty(capacity, np.int32), np.empty(capacity),
            np.empty(capacity), np.zeros(capacity + 1, np.int64), np.empty(n_listed, np.uint32),
            np.zeros(n_nodes),
        )  # fmt: skip
        context = SearchContext(
            KnownBestSplitter(), self._criterion, self._node, 0, self._table,
            self._limits._replace(min_weight_leaf=min_weight_leaf), Bounds(-np.inf, np.inf), True,
        )  # fmt: skip
        n = _judge(context, followed, judged, self._best, written, self._k)
        list_start = written.list_start[: n + 1].copy()
        return Competitors(
            np.concatenate(([0], np.cumsum(written.n))), written.feature[:n].copy(),
            written.threshold[:n].copy(), list_start, written.listed[: list_start[-1]].copy(),
            written.primary, written.improvement[:n].copy(),
        )  # fmt: skip


@entry_kernel
def _judge(context, tree, judged, best, written, k):
    """Judge the splits of nodes, one by one; return how many competitors were found."""
    n_written = np.int64(0)
    for i in range(judged.nodes.shape[0]):
        node = judged.nodes[i]
        start, n = judged.runs[node, 0], judged.runs[node, 1] - judged.runs[node, 0]
        load_node(context.node, judged.records, judged.samples, start, n, context.keep_order)
        written.primary[node] = _judge_split(context, tree, node, judged.samples, start, n)
        if k == 0:
            continue
        for feature in range(best.gain.shape[0]):
            best.gain[feature] = 0.0
            if feature != tree.feature[node]:
                _judge_feature(context, feature, judged.samples, start, n, best)
        first = n_written
        n_written = _keep_best(best, written, n_written, k, written.primary[node])
        written.n[node] = n_written - first
    return n_written


@kernel
def _judge_split(context, tree, node, samples, start, n):
    """The improvement of a node's own split, judged by the rows that have its feature."""
    feature, of_node = tree.feature[node], context.node
    column = context.table.columns[feature]
    gather(context.table, column, samples, start, n, of_node, False)
    listed = tree.listed[tree.list_start[node] : tree.list_start[node + 1]]
    n_left = np.int64(0)
    for i in range(n):
        code = of_node.codes[i]
        if code == MISSING:
            continue
        if is_categorical(context.table, column):
            goes_left = is_listed(listed, code) == (tree.listed_left[node] == 1)
        else:
            goes_left = np.int64(code) <= tree.left_code[node]
        of_node.codes[i] = np.uint32(0 if goes_left else 1)
        n_left += goes_left
    _, _, n_missing = known_range(of_node.codes, n)
    sides = FeatureCodes(np.int64(feature), column, n, n, n_missing, np.uint32(0), np.uint32(1))
    order(context.splitter, context, sides)
    if n_left == 0 or n_left == n - n_missing:
        return 0.0
    load_known(context, sides)
    return improvement(context, n_left, n - n_missing)[0]


@kernel
def _judge_feature(context, feature, samples, start, n, best):
    """Write the best split of a feature in the node to `best`."""
    codes, n_present = load_feature(context, feature, samples, start, n)
    if not order_feature(context, codes):
        return
    found = search_ordered(context, codes, n_present, NO_SPLIT)
    if found.feature < 0:
        return
    best.gain[feature] = found.score
    best.threshold[feature] = found.threshold
    best.n_listed[feature] = 0
    if is_categorical(context.table, codes.column):
        best.n_listed[feature] = list_subset(context.table, n_present, best.listed[feature])


@kernel
def _keep_best(best, written, n_written, k, primary):
    """Write the k best features, ties by number; return how many competitors there are now."""
    least = primary
    for feature in range(best.gain.shape[0]):
        least = max(least, best.gain[feature])
    least *= _NOISE
    for _ in range(k):
        feature = np.int64(0)
        for other in range(1, best.gain.shape[0]):
            if best.gain[other] > best.gain[feature]:
                feature = np.int64(other)
        if not best.gain[feature] > least:
            break
        written.feature[n_written] = feature
        written.threshold[n_written] = best.threshold[feature]
        written.improvement[n_written] = best.gain[feature]
        begin = written.list_start[n_written]
        for j in range(best.n_listed[feature]):
            written.listed[begin + j] = best.listed[feature, j]
        written.list_start[n_written + 1] = begin + best.n_listed[feature]
        best.gain[feature] = 0.0
        n_written += 1
    return n_written
