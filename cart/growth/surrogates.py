"""Find the surrogates of a finished tree, by sending its rows down the tree once more.

    node, its rows      keys[feature, start:end] for every feature      (`cart.growth.sorted_rows`)
    1. votes            where the node's split sends the rows that have its value
    2. ranking          the features that agree most                    (`cart.splitting.agreement`)
    3. sides            rows without the value: by a surrogate, or to the node's default side
    4. children         keys divided along every feature; nodes of few rows have no surrogates

A pass costs rows x features x depth. It does not change the tree. If surrogates decide where rows
go during growth (`cart.growth.routing`), the pass finds the same surrogates in every node.
"""

from typing import NamedTuple

import numpy as np

from cart.growth.sorted_rows import SortedRows, begin_tree, divide_rows, keep_side
from cart.jit.decorators import entry_kernel, kernel
from cart.primitives.sort_keys import code_of, record_of
from cart.splitting.agreement import (
    LEAST_ROWS,
    CandidateDraw,
    Ranking,
    Sent,
    rank_surrogates,
    side_by_surrogates,
    units_of,
)
from cart.table.ranking import MISSING
from cart.table.thresholds import cut_of, write_thresholds
from cart.tree.nodes import LEAF, is_listed
from cart.tree.surrogates import Surrogates

# Rules for rows that lack the value of a split.
BY_TREE, BY_MAJORITY, BY_SURROGATES = 0, 1, 2
# Whether agreement is a share of all rows that the split sends, see `CandidateDraw.of_all`.
STYLES = {"all": True, "known": False}


class Followed(NamedTuple):
    """A finished tree, with codes in place of thresholds."""

    left: np.ndarray  # (n_nodes,) int32
    right: np.ndarray  # (n_nodes,) int32
    feature: np.ndarray  # (n_nodes,) int32
    left_code: np.ndarray  # (n_nodes,) int64: codes up to it go left; -1: none does
    missing_left: np.ndarray  # (n_nodes,) uint8
    list_start: np.ndarray  # (n_nodes + 1,) int64: see cart.tree.nodes.Categories
    listed: np.ndarray  # uint32
    listed_left: np.ndarray  # (n_nodes,) uint8

    @classmethod
    def of(cls, nodes, lists, table):
        """From nodes with thresholds, lists of categories (or None), and a complete table."""
        if lists is None:
            n_nodes = len(nodes.feature)
            lists = np.zeros(n_nodes + 1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint8)
        return cls(
            nodes.children_left, nodes.children_right, nodes.feature, codes_of_splits(nodes, table),
            nodes.missing_go_to_left, lists[0], lists[1], lists[2].astype(np.uint8),
        )  # fmt: skip


class Found(NamedTuple):
    """The surrogates found, in the order in which nodes are met."""

    node: np.ndarray  # (capacity,) int32
    feature: np.ndarray  # (capacity,) int32
    cut: np.ndarray  # (capacity,) uint64: see `cart.table.thresholds`
    low_left: np.ndarray  # (capacity,) uint8
    agree: np.ndarray  # (capacity,) float64
    adj: np.ndarray  # (capacity,) float64
    n_sent: np.ndarray  # (capacity,) int32
    list_start: np.ndarray  # (capacity + 1,) int64
    listed: np.ndarray  # uint32
    default_left: np.ndarray  # (n_nodes,) uint8: whether the left side weighs as much or more
    runs: np.ndarray  # (n_nodes, 2) int64: where the rows of each node begin and end
    has_unknown: np.ndarray  # (n_nodes,) bool: whether rows of the node lack its split's value


class Search(NamedTuple):
    """How surrogates are searched in a tree."""

    draw: CandidateDraw
    rule: int  # BY_TREE, BY_MAJORITY or BY_SURROGATES
    stack: np.ndarray  # (3, n_nodes + 1) int64: node, start and end of those that wait


def codes_of_splits(nodes, table):
    """The code up to which rows go left, at every node of a tree; -1 if none does.

    Parameters
    ----------
    nodes : cart.tree.nodes.Nodes
        With thresholds.
    table : Table or CategoricalTable
        Complete.

    Returns
    -------
    ndarray of shape (n_nodes,), int64
    """
    left_code = np.full(len(nodes.feature), -1)
    levels = table.tops.array, table.level_start, table.columns
    _look_up(nodes.feature, nodes.threshold, *levels, left_code)
    return left_code


@entry_kernel
def _look_up(feature, threshold, tops, level_start, columns, left_code):
    """Write, for each split, the last code whose value is not above the threshold."""
    for node in range(feature.shape[0]):
        if feature[node] < 0:
            continue
        column = columns[feature[node]]
        first = level_start[column]
        low, high = np.int64(first), np.int64(level_start[column + 1])
        while low < high:
            middle = (low + high) // 2
            if np.float64(tops[middle]) <= threshold[node]:
                low = middle + 1
            else:
                high = middle
        left_code[node] = low - first - 1


class Pass(NamedTuple):
    """The result of a pass of the rows down a tree."""

    surrogates: Surrogates  # without `primary`
    default_left: np.ndarray  # (n_nodes,) uint8: see Found
    runs: np.ndarray  # (n_nodes, 2) int64: of rows in `SortedRows.keys[0]`, until the next pass
    has_unknown: np.ndarray  # (n_nodes,) bool


class SurrogateFinder:
    """Finds surrogates of trees that were grown on one table, one tree after another.

    Parameters
    ----------
    table : Table or CategoricalTable
        Complete.
    k : int
        Most surrogates of a node.
    style : {"all", "known"}
    n_drawn : int
        How many features are searched in a node.
    is_barred : ndarray of shape (n_features,), bool
        Which features may not be surrogates.
    hashed_names : ndarray of shape (n_features,), uint64, or None
        Of a keyed draw, whose order then decides between equal surrogates; else the first column
        is preferred.
    """

    def __init__(self, table, k, style, n_drawn, is_barred, hashed_names=None):
        self._table = table
        n_features = len(table.columns)
        by_hash = np.arange(n_features) if hashed_names is None else np.argsort(hashed_names)
        self._order = by_hash[~is_barred[by_hash]].astype(np.int64)
        self.rows = SortedRows.create(table)
        columns = getattr(table, "n_categories", np.zeros(len(table.codes), np.int64))
        self.n_categories = columns[table.columns]
        self.ranking = Ranking.create(min(k, n_features), int(self.n_categories.max(initial=0)))
        self._style, self._n_drawn = STYLES[style], min(n_drawn, len(self._order))
        self._taken = None

    def weigh(self, weight):
        """Set the weights of the rows, (n_rows,) or a scalar."""
        n_rows = len(self.rows.units)
        self.rows.units[:] = units_of(np.broadcast_to(np.asarray(weight, np.float64), n_rows))

    def find(self, nodes, lists, weight, seed, rule):
        """Find the surrogates of a tree.

        Parameters
        ----------
        nodes : cart.tree.nodes.Nodes
            With thresholds.
        lists : cart.tree.nodes.Categories or None
        weight : ndarray of shape (n_rows,), float64, or scalar
            Of the rows, in this tree.
        seed : int
            Of the draws of features, if not all are searched.
        rule : {BY_TREE, BY_MAJORITY, BY_SURROGATES}
            How rows without the value of a split went when the tree was grown.

        Returns
        -------
        Pass
        """
        if self._taken is not None:
            found, n, n_nodes = self._taken
            self._taken = None
        else:
            self.weigh(weight)
            n_nodes, found = len(nodes.feature), self._create_found(nodes)
            followed = Followed.of(nodes, lists, self._table)
            search = Search(self.draw_of(seed), rule, np.empty((3, n_nodes + 1), np.int64))
            n = _follow(followed, self.rows, self.ranking, found, search)
        surrogates = self._read(found, n, n_nodes, rule == BY_SURROGATES)
        default_left = found.default_left[:n_nodes].copy()
        return Pass(surrogates, default_left, found.runs[:n_nodes], found.has_unknown[:n_nodes])

    def take(self, found, n, n_nodes):
        """Take the first n surrogates of `found`, found during growth in a tree of `n_nodes`; the
        next call of `find` must be for this tree."""
        self._taken = found, n, n_nodes

    def room_for(self, n_rows):
        """A Found with room for a tree on `n_rows` rows, without categories."""
        k, n_nodes = len(self.ranking.feature), 2 * n_rows
        return self._empty_found(n_rows * k, 0, np.zeros(n_nodes, np.uint8))

    def draw_of(self, seed):
        """The draw of the features to search, in the tree of a seed."""
        room = np.empty(len(self._order), np.int64)
        return CandidateDraw(
            room, self._order, self.n_categories, self._n_drawn, seed,
            self._style, int(self.rows.units.max(initial=0)),
        )  # fmt: skip

    def _create_found(self, nodes):
        """A Found with room for the surrogates of a finished tree."""
        k = len(self.ranking.feature)
        is_split = nodes.children_left != LEAF
        n = nodes.n_node_samples[is_split]
        has_categories = self.n_categories.max(initial=0) > 0
        capacity = int(np.count_nonzero(n >= (2 if has_categories else 2 * LEAST_ROWS))) * k
        n_listed = int(np.minimum(n, self.n_categories.max(initial=0)).sum()) * k
        return self._empty_found(capacity, n_listed, nodes.missing_go_to_left.copy())

    def _empty_found(self, capacity, n_listed, default_left):
        """A Found with room for `capacity` surrogates that list `n_listed` categories."""
        n_nodes = len(default_left)
        integers = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        return Found(
            *integers, np.empty(capacity, np.uint64), np.empty(capacity, np.uint8),
            np.empty(capacity), np.empty(capacity), np.empty(capacity, np.int32),
            np.zeros(capacity + 1, np.int64), np.empty(n_listed, np.uint32),
            default_left, np.zeros((n_nodes, 2), np.int64), np.zeros(n_nodes, np.bool_),
        )  # fmt: skip

    def _read(self, found, n, n_nodes, routes):
        """The first n surrogates found, node by node, with thresholds."""
        feature, cuts = found.feature[:n].copy(), found.cut[:n].copy()
        threshold = cuts.view(np.float64)
        list_start = found.list_start[: n + 1]
        has_list = np.diff(list_start) > 0
        write_thresholds(np.where(has_list, -1, feature).astype(np.int32), threshold, self._table)
        threshold[has_list] = np.nan
        start = np.concatenate(([0], np.cumsum(np.bincount(found.node[:n], minlength=n_nodes))))
        met = Surrogates(
            start, feature, threshold, found.low_left[:n].copy(), list_start.copy(),
            found.listed[: list_start[-1]].copy(), np.zeros(n_nodes), found.agree[:n].copy(),
            found.adj[:n].copy(), found.n_sent[:n].copy(), routes,
        )  # fmt: skip
        return _by_node(met, found.node[:n])


def _by_node(met, node):
    """Sort splits by node, from the order in which nodes were met."""
    if np.all(np.diff(node) >= 0):
        return met
    order = np.argsort(node, kind="stable")
    in_order = met._replace(start=np.arange(len(node) + 1), primary=np.zeros(len(node)))
    return in_order.select(order, np.ones(len(node), bool))._replace(
        start=met.start, primary=met.primary
    )


@entry_kernel
def _follow(tree, rows, ranking, found, search):
    """Send rows down a tree and rank the surrogates of its nodes; return how many were found."""
    stack, n_found = search.stack, np.int64(0)
    stack[0, 0], stack[1, 0], stack[2, 0] = 0, 0, begin_tree(rows)
    height = 1
    while height > 0:
        height -= 1
        node, start, end = stack[0, height], stack[1, height], stack[2, height]
        left, right = tree.left[node], tree.right[node]
        found.runs[node, 0], found.runs[node, 1] = start, end
        if left == LEAF:
            continue
        feature = np.int64(tree.feature[node])
        n_categories = search.draw.n_categories[feature]
        sent, n_known = _vote(tree, node, feature, rows, start, end, n_categories)
        found.default_left[node] = sent.left >= sent.right
        rank_surrogates(ranking, rows.keys, start, end, rows.vote, search.draw, feature, sent)
        _send_unknown(tree, node, rows, rows.keys[feature, n_known:end], ranking, found, search)
        n_found = keep_found(ranking, found, n_found, node)
        found.has_unknown[node] = n_known < end
        is_left_leaf, is_right_leaf = tree.left[left] == LEAF, tree.left[right] == LEAF
        if is_left_leaf and is_right_leaf:
            continue  # the order of the rows is not needed any more
        n_left = np.int64(0)
        for i in range(start, end):
            n_left += rows.goes_left[record_of(rows.keys[feature, i])]
        middle = start + n_left
        if is_left_leaf or is_right_leaf:
            keep_side(rows, start, end, is_right_leaf)
        else:
            divide_rows(rows, start, end)
        stack[0, height], stack[1, height], stack[2, height] = right, middle, end
        stack[0, height + 1], stack[1, height + 1], stack[2, height + 1] = left, start, middle
        height += 2
    return n_found


@kernel
def _vote(tree, node, feature, rows, start, end, n_categories):
    """Set the votes of a node's rows by its split; return what it sends, and the position of the
    first row without its value."""
    keys = rows.keys[feature]
    left, right, n_rows = np.int64(0), np.int64(0), np.int64(0)
    first, last = tree.list_start[node], tree.list_start[node + 1]
    for i in range(start, end):
        code, row = code_of(keys[i]), record_of(keys[i])
        if code == MISSING:
            for j in range(i, end):
                rows.vote[record_of(keys[j])] = 0
            return Sent(left, right, n_rows), i
        if n_categories > 0:
            has_it = is_listed(tree.listed[first:last], code)
            goes_left = np.int64(has_it == (tree.listed_left[node] == 1))
        else:
            goes_left = np.int64(np.int64(code) <= tree.left_code[node])
        unit = rows.units[row]
        rows.goes_left[row] = goes_left
        rows.vote[row] = unit if goes_left else -unit
        left += unit * goes_left
        right += unit * (1 - goes_left)
        n_rows += 1
    return Sent(left, right, n_rows), end


@kernel
def _send_unknown(tree, node, rows, keys, ranking, found, search):
    """Send the rows that lack the value of the node's split; count those that surrogates send."""
    for s in range(ranking.n[0]):
        ranking.n_sent[s] = 0
    for i in range(keys.shape[0]):
        row = record_of(keys[i])
        side = side_by_surrogates(ranking, rows.codes, rows.columns, row)
        if search.rule == BY_TREE:
            side = np.int64(tree.missing_left[node])
        elif search.rule == BY_MAJORITY or side < 0:
            side = np.int64(found.default_left[node])
        rows.goes_left[row] = side


@kernel
def keep_found(ranking, found, n_found, node):
    """Write the surrogates of a node to `found`; return how many there are now."""
    for s in range(ranking.n[0]):
        total = np.float64(ranking.total[s])
        agree, majority = ranking.agree[s] / total, ranking.majority[s] / total
        found.node[n_found] = node
        found.feature[n_found] = ranking.feature[s]
        found.cut[n_found] = cut_of(ranking.left_code[s], ranking.right_code[s])
        found.low_left[n_found] = ranking.low_left[s]
        found.agree[n_found] = agree
        found.adj[n_found] = (agree - majority) / (1.0 - majority)
        found.n_sent[n_found] = ranking.n_sent[s]
        first = found.list_start[n_found]
        for j in range(ranking.n_listed[s]):
            found.listed[first + j] = ranking.listed[s, j]
        found.list_start[n_found + 1] = first + ranking.n_listed[s]
        n_found += 1
    return n_found
