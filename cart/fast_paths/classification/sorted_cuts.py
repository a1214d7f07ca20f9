"""Trees of two classes with surrogates, grown on the sorted rows that surrogates need anyway.

A node's rows are in order along every feature (`cart.growth.sorted_rows`), and a feature is
searched in one pass over them. Let w be the weight left of a cut and s that of the second class
there, W and S those of the node. The cut decreases the impurity by a constant times

    (s W - S w)**2 / (w (W - w))

Rows are summed up a few at a time. At any cut inside such a part, s W - S w is at least its value
before the part plus what all rows of the first class there add, which is negative, and at most its
value before the part plus what all rows of the second class add. Only if one of these bounds could
beat the best cut are the cuts inside looked at one by one, and only those that beat it, up to
rounding, are scored as in scikit-learn:

    rows       [ a b a a | b b a b | a a b a ]     second class b
    s W - S w  [         -4 .. 4 ..        0 ]     here the best is in the second part

When a node is split, the same rows vote for surrogates; then they are divided along every feature.
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.base import NONE_MISSING, Cut, is_cut, write_split
from cart.fast_paths.classification.cuts import BestCuts, is_open
from cart.fast_paths.classification.impurities import score_cut
from cart.fast_paths.classification.path import ClassCountsPath, grow_trees
from cart.growth.frontier import may_split
from cart.growth.loop import left_child, right_child
from cart.growth.sorted_rows import SortedRows, begin_tree, divide_rows, keep_side
from cart.growth.surrogates import Found, keep_found
from cart.jit.decorators import inline_kernel, kernel, like
from cart.primitives.sort_keys import code_of, record_of
from cart.splitting.agreement import CandidateDraw, Ranking, Sent, rank_surrogates
from cart.splitting.criteria import Gini
from cart.table.table import same_value

_STRIDE = 16  # rows that are summed up at once
_WEIGHT_MAX = 15  # of a row, so that its cell fits into a byte
_ROUNDING = 1e-14  # error of scores and of their terms, relative to the node's weight


@like(BestCuts)
class SortedCuts(NamedTuple):
    """Searches all cuts of a feature in sorted rows, and finds the surrogates of a split."""

    rows: SortedRows
    cells: np.ndarray  # (n_rows,) uint8: weight times 16, plus the weight in the second class
    vote: np.ndarray  # (n_rows,) int8: see `cart.splitting.agreement`
    is_unit: bool  # whether all rows of the tree weigh 1
    ranking: Ranking
    found: Found
    draw: CandidateDraw
    n_found: np.ndarray  # (1,) int64

    def begin_tree(self, way, n):
        self.n_found[0] = 0
        begin_tree(self.rows)

    def search_feature(self, way, node, searched, feature, best):
        keys, table = self.rows.keys[feature], way.table
        column = table.columns[feature]
        lowest, highest = code_of(keys[node.start]), code_of(keys[node.end - 1])
        if same_value(table, column, lowest, highest):
            return True, best
        if not is_open(best):
            return False, best
        score, at = _best_cut(self, way, node, searched, feature, best.score)
        if at >= 0:
            left, right = np.int64(code_of(keys[at])), np.int64(code_of(keys[at + 1]))
            best = Cut(feature, left, right, score, NONE_MISSING, 0.0)
        return False, best

    def write_cut(self, way, tree, this, node, cut, children):
        write_split(tree.nodes, this, cut, tree.cuts)
        _find_surrogates(self, this, node, children.middle, cut.feature)
        left = may_split(left_child(node, children, 0), way.limits)
        right = may_split(right_child(node, children, 0), way.limits)
        if left and right:
            divide_rows(self.rows, node.start, node.end)
        elif left or right:
            keep_side(self.rows, node.start, node.end, left)


@kernel
def _best_cut(cuts, way, node, searched, feature, score):
    """Find the best cut of a feature that scores more than `score`; return its score and place. The
    place is -1 if there is none."""
    keys, cells, is_unit = cuts.rows.keys[feature], cuts.cells, cuts.is_unit
    leaf = np.int64(way.limits.min_samples_leaf)
    first, last = node.start + leaf - 1, node.end - leaf
    whole, second = np.float64(searched.weight), np.float64(searched.counts[1])
    up, down = whole - second, -second  # what weight 1 of the second, first class adds to d
    least = _gain_to_beat(score, searched)
    best, w, s, i = np.int64(-1), np.int64(0), np.int64(0), np.int64(node.start)
    while i < first:
        cell = np.int64(cells[record_of(keys[i])])
        w, s = w + (cell >> 4), s + (cell & 15)
        i += 1
    while i < last:
        end = min(i + _STRIDE, last)
        more, more_second = np.int64(0), np.int64(0)
        if is_unit:
            for j in range(i, end):
                more_second += np.int64(cells[record_of(keys[j])])
            more_second -= 16 * (end - i)
            more = end - i
        else:
            for j in range(i, end):
                cell = np.int64(cells[record_of(keys[j])])
                more += cell >> 4
                more_second += cell & 15
        before, after = np.float64(w), np.float64(w + more)
        d = np.float64(s) * whole - second * before
        highest = d + np.float64(more_second) * up
        lowest = d + np.float64(more - more_second) * down
        reach = max(highest, -lowest)
        share = min(before * (whole - before), after * (whole - after))
        if reach * reach < least * share:
            w, s, i = w + more, s + more_second, end
            continue
        while i < end:
            cell = np.int64(cells[record_of(keys[i])])
            w, s = w + (cell >> 4), s + (cell & 15)
            left = np.float64(w)
            d = np.float64(s) * whole - second * left
            if d * d >= least * (left * (whole - left)):
                low, high = code_of(keys[i]), code_of(keys[i + 1])
                if low != high:
                    found = _score(searched, w, s)
                    if found > score and is_cut(way.table, way.table.columns[feature], low, high):
                        score, best = found, i
                        least = _gain_to_beat(score, searched)
            i += 1
    return score, best


@inline_kernel
def _gain_to_beat(score, searched):
    """The least (s W - S w)**2 / (w (W - w)) with which a cut may score more."""
    whole, second = np.float64(searched.weight), np.float64(searched.counts[1])
    first = whole - second
    if score == -np.inf:
        return -1.0
    gain = (score + whole - (second * second + first * first) / whole) * whole / 2.0
    return gain - _ROUNDING * whole * whole


@inline_kernel
def _score(searched, w, s):
    """Score of a cut with these weights on its left, as scikit-learn calculates it."""
    criterion, prefix, layout, counts, weight = searched
    prefix.weight[0], prefix.second[0] = w, s
    return score_cut(criterion, prefix, prefix.levels, np.int64(0), counts, weight, layout)


@kernel
def _find_surrogates(cuts, this, node, middle, feature):
    """Let the rows of a node vote by its split, and keep the surrogates that agree most."""
    rows, found, ranking = cuts.rows, cuts.found, cuts.ranking
    keys, start, end = rows.keys[feature], node.start, node.end
    left, right = np.int64(0), np.int64(0)
    for i in range(start, middle):
        row = record_of(keys[i])
        rows.goes_left[row], cuts.vote[row] = 1, rows.units[row]
        left += rows.units[row]
    for i in range(middle, end):
        row = record_of(keys[i])
        rows.goes_left[row], cuts.vote[row] = 0, -rows.units[row]
        right += rows.units[row]
    sent = Sent(left, right, np.int64(end - start))
    found.runs[this, 0], found.runs[this, 1] = start, end
    found.default_left[this] = left >= right
    rank_surrogates(ranking, rows.keys, start, end, cuts.vote, cuts.draw, feature, sent)
    for s in range(ranking.n[0]):
        ranking.n_sent[s] = 0
    cuts.n_found[0] = keep_found(ranking, found, cuts.n_found[0], this)


class SortedCountsPath(ClassCountsPath):
    """Grows trees of two classes together with their surrogates.

    Parameters
    ----------
    table, codes, plan : see `cart.fast_paths.base.FastPath`
    finder : cart.growth.surrogates.SurrogateFinder
        On this table; it is given the surrogates of each tree (`take`).
    weigh : callable
        Returns the weights by which agreement is counted, given those that a tree is grown with.
    """

    criteria = (Gini,)
    takes_missing = takes_bounds = takes_leaves = False
    copy_bytes = ()
    most_outputs = 1

    def __init__(self, table, codes, plan, finder, weigh):
        super().__init__(table, codes, plan)
        self._finder, self._weigh = finder, weigh
        self._found = None

    @classmethod
    def knows(cls, plan):
        return super().knows(plan) and plan.n_values == 2 and plan.ccp_alpha == 0.0

    def accepts(self, weights, is_whole):
        """Whether the weights, of one tree, are whole numbers of at most _WEIGHT_MAX."""
        if weights.max() > _WEIGHT_MAX:
            return False
        self._finder.weigh(self._weigh(weights[0]))
        is_light = self._finder.rows.units.max() <= _WEIGHT_MAX
        return is_light and super().accepts(weights, is_whole)

    def _grow(self, weights, seeds, first_node, trees):
        finder, (weight,) = self._finder, weights
        if self._found is None:
            self._found = finder.room_for(len(self._y))
        cells, is_unit = (weight * (16 + self._y)).astype(np.uint8), bool(weight.max() == 1.0)
        cuts = SortedCuts(
            finder.rows, cells, np.empty(len(cells), np.int8), is_unit, finder.ranking,
            self._found, finder.draw_of(int(seeds[0])), np.zeros(1, np.int64),
        )  # fmt: skip
        way = self._way(weights)._replace(cuts=cuts)
        grow_trees(way, trees, self._candidates, weights, self._y, seeds, first_node)
        finder.take(self._found, int(cuts.n_found[0]), int(first_node[1]))
