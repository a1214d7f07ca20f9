"""Is a tree right, where rounding decides? Its splits, judged in exact arithmetic.

Gini and squared error are judged in whole numbers and fractions, entropy in 50-digit decimals.
The score of a cut is, up to constants of the node, what it takes off the impurity:

    sum over outputs of S_left**2 / W_left + S_right**2 / W_right

with S the weighted sums of the targets; for Gini the targets are the classes' indicators. A float
stands for the decimal that it is written as: 4.526 is 4526/1000, as in the table it came from.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import NamedTuple

import numpy as np

from tests.oracles.draw import FeatureDraw
from tests.oracles.splitter import EPSILON, SAME, decrease, impurity, resolve_count

SCREEN = 1e-9  # cuts so close to the best, relative to the node's sum of squares, are compared
DIGITS, ROUND = 50, 20  # of decimals; compared after so many places


class Judged(NamedTuple):
    """A node and what exact arithmetic says about it.

    `verdict` is "best" (the only best cut), "tie" (equal to the best), "pure" (a leaf of impurity
    zero), "leaf" (may or need not be split) or "wrong".
    """

    node: int
    n_rows: int
    verdict: str


class Training:
    """What one tree was grown from, in whole numbers and, to find candidates, in float64.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Numbers (or Fractions), or labels where the estimator is a classifier.
    weight : array of shape (n_samples,), numbers or Fractions
        0 for rows that the tree has not seen.
    estimator : fitted decision tree of scikit-learn or of ours
        For its parameters.
    """

    def __init__(self, X, y, weight, estimator):
        self.X = np.asarray(X, np.float32)
        if hasattr(estimator, "classes_"):
            targets = (np.asarray(y)[:, None] == np.unique(y)).astype(int)
        else:
            targets = np.asarray(y)[:, None]
        whole_weight = _whole(weight)
        self.weight = _compact(whole_weight)
        self.sums = _compact(_whole(targets) * whole_weight[:, None])
        self.float_weight = np.asarray(weight, float)
        self.float_targets = np.asarray(targets, float)
        self.y = np.asarray(y)
        self.criterion = estimator.criterion
        self.has_logs = estimator.criterion in ("entropy", "log_loss")

        n_samples = len(self.X)
        self.min_samples_leaf = resolve_count(estimator.min_samples_leaf, n_samples)
        self.min_samples_split = max(
            2 * self.min_samples_leaf, resolve_count(estimator.min_samples_split, n_samples)
        )
        self.max_depth = estimator.max_depth or n_samples
        self.min_weight_leaf = estimator.min_weight_fraction_leaf * self.float_weight.sum()
        self.min_impurity_decrease = estimator.min_impurity_decrease
        self.best_first = estimator.max_leaf_nodes is not None
        self.max_features = estimator.max_features_
        self.seed = np.random.RandomState(estimator.random_state).randint(2**31 - 1)

    @property
    def rows(self):
        """The rows that the root holds."""
        return np.flatnonzero(self.weight != 0)

    def is_pure(self, rows):
        """Whether the impurity is exactly zero."""
        return (self.float_targets[rows] == self.float_targets[rows[0]]).all()

    def score(self, left, right):
        """Exact score of a cut, given the rows on either side."""
        return self._score(*self._totals(left), *self._totals(right))

    def _totals(self, rows):
        return self.sums[rows].sum(axis=0), self.weight[rows].sum()

    def _score(self, sums_left, weight_left, sums_right, weight_right):
        score = _logs if self.has_logs else _squares
        left = score(int(weight_left), *map(int, sums_left))
        right = score(int(weight_right), *map(int, sums_right))
        with localcontext(prec=DIGITS):
            return round(left + right, ROUND) if self.has_logs else left + right

    def candidates(self, rows, features):
        """Legal cuts of a node that may be the best, each with its exact score.

        Returns
        -------
        dict from (feature, threshold) to the score, None where there is only one
        """
        x = self.X[np.ix_(rows, features)]
        order = x.argsort(axis=0, kind="stable")
        x = np.take_along_axis(x, order, axis=0)
        scores = self._float_scores(rows, order)
        n_left = np.arange(1, len(rows))[:, None]
        legal = (
            (x[1:] > x[:-1] + SAME)
            & (n_left >= self.min_samples_leaf)
            & (n_left <= len(rows) - self.min_samples_leaf)
            & ~np.isnan(scores)
        )
        if not legal.any():
            return {}
        scores = np.where(legal, scores, -np.inf)
        cuts = np.argwhere(scores >= scores.max() - SCREEN)
        last, first = x[cuts[:, 0], cuts[:, 1]], x[cuts[:, 0] + 1, cuts[:, 1]]
        thresholds = last.astype(float) / 2 + first.astype(float) / 2
        keys = [(features[c], t) for c, t in zip(cuts[:, 1], thresholds, strict=True)]
        if len(keys) == 1:
            return {keys[0]: None}
        return dict(zip(keys, self._exact_scores(rows, order, cuts), strict=True))

    def excess(self, rows, cut):
        """What a cut takes off the impurity, less what a split must; 0 if rounding decides."""
        is_left = self.X[rows, cut[0]] <= cut[1]
        y, weight = self.y[rows], self.float_weight[rows]
        share = weight.sum() / self.float_weight.sum()
        excess = share * decrease(y, weight, is_left, self.criterion) - self.min_impurity_decrease
        noise = SCREEN * share * impurity(y, weight, self.criterion)
        return 0.0 if abs(excess) <= noise else excess

    def _float_scores(self, rows, order):
        """Scores of all cuts as shares of the node's; nan where a side weighs too little."""
        weight = self.float_weight[rows]
        targets = self.float_targets[rows]
        if not self.has_logs:
            targets = targets - targets[0]  # exactly zero in a pure node
            targets -= weight @ targets / weight.sum()
        weight_left = weight[order].cumsum(axis=0)
        left = (weight[:, None] * targets)[order].cumsum(axis=0)
        weight_all, total = weight_left[-1], left[-1]
        weight_left, left = weight_left[:-1], left[:-1]
        weight_right, right = weight_all - weight_left, total - left
        if self.has_logs:
            scores = _float_x_log_x(left).sum(axis=2) + _float_x_log_x(right).sum(axis=2)
            scores -= _float_x_log_x(weight_left) + _float_x_log_x(weight_right)
            scale = weight_all
        else:
            scores = (left**2).sum(axis=2) / weight_left + (right**2).sum(axis=2) / weight_right
            scale = (weight[:, None] * targets**2).sum() or 1.0
        too_light = np.minimum(weight_left, weight_right) < self.min_weight_leaf
        return np.where(too_light, np.nan, scores / scale)

    def _exact_scores(self, rows, order, cuts):
        if len(rows) == 2:  # there is one way to part them
            yield from (0 for _ in cuts)
            return
        sums_all, weight_all = self._totals(rows)
        prefixes = {
            column: (
                np.add.accumulate(self.sums[rows[order[:, column]]], axis=0),
                np.add.accumulate(self.weight[rows[order[:, column]]]),
            )
            for column in set(cuts[:, 1])
        }
        for position, column in cuts:
            sums, weight = (prefix[position] for prefix in prefixes[column])
            yield self._score(sums, weight, sums_all - sums, weight_all - weight)


def first_difference(ours, theirs, training):
    """The first node in which two trees differ, or None.

    Its verdict is "tie" (two cuts of exactly the same score), "pure" (a node of impurity zero,
    which one of them splits) or "wrong".
    """
    n = min(len(ours.feature), len(theirs.feature))
    differs = (ours.feature[:n] != theirs.feature[:n]) | (
        ours.threshold[:n] != theirs.threshold[:n]
    )
    if not differs.any():
        return None
    node = int(differs.argmax())
    rows = dict(_walk(ours, training))[node]
    if ours.feature[node] < 0 or theirs.feature[node] < 0:
        return Judged(node, len(rows), "pure" if training.is_pure(rows) else "wrong")
    scores = []
    for tree in (ours, theirs):
        left = training.X[rows, tree.feature[node]] <= tree.threshold[node]
        scores.append(training.score(rows[left], rows[~left]))
    return Judged(node, len(rows), "tie" if scores[0] == scores[1] else "wrong")


def replay(tree, training):
    """Judge every node of a tree: draw its features again and search them exactly.

    Both ways of growing draw in the order of the node numbers.

    Returns
    -------
    list of Judged
    """
    draw = FeatureDraw(training.X.shape[1], training.max_features, training.seed)
    depth = np.zeros(len(tree.feature), int)
    n_known = np.zeros(len(tree.feature), int)
    judged = []
    for node, rows in _walk(tree, training):
        is_leaf = tree.children_left[node] < 0
        if (
            depth[node] >= training.max_depth
            or len(rows) < training.min_samples_split
            or training.float_weight[rows].sum() < 2 * training.min_weight_leaf
        ):
            verdict = "leaf" if is_leaf else "wrong"
        elif tree.impurity[node] <= EPSILON:
            verdict = "pure" if is_leaf and training.is_pure(rows) else "wrong"
        else:
            x = training.X[rows]
            features, n_constant = draw.draw(x.max(axis=0) <= x.min(axis=0) + SAME, n_known[node])
            verdict = _judge(tree, node, rows, features, training)
            if not is_leaf:
                children = [tree.children_left[node], tree.children_right[node]]
                depth[children] = depth[node] + 1
                n_known[children] = 0 if training.best_first else n_constant
        judged.append(Judged(node, len(rows), verdict))
    return judged


def _judge(tree, node, rows, features, training):
    """Verdict on a node that was searched."""
    cuts = training.candidates(rows, features)
    if tree.children_left[node] < 0:
        if not cuts or training.best_first or training.excess(rows, next(iter(cuts))) <= 0:
            return "leaf"
        return "pure" if training.is_pure(rows) else "wrong"
    cut = (tree.feature[node], tree.threshold[node])
    if cut not in cuts or (training.min_impurity_decrease and training.excess(rows, cut) < 0):
        return "wrong"
    if len(cuts) == 1:
        return "best"
    return "tie" if cuts[cut] == max(cuts.values()) else "wrong"


def _walk(tree, training):
    """Yield each node, in the order of their numbers, with its rows."""
    waiting = {0: training.rows}
    for node in range(len(tree.feature)):
        rows = waiting.pop(node)
        yield node, rows
        if tree.children_left[node] >= 0:
            left = training.X[rows, tree.feature[node]] <= tree.threshold[node]
            waiting[tree.children_left[node]] = rows[left]
            waiting[tree.children_right[node]] = rows[~left]


def _whole(numbers):
    """Numbers times their common denominator, as Python's integers."""
    numbers = np.asarray(numbers)
    fractions = [
        v if isinstance(v, Fraction) else Fraction(repr(v)) for v in numbers.ravel().tolist()
    ]
    scale = lcm(*{f.denominator for f in fractions})
    return np.array([int(f * scale) for f in fractions], object).reshape(numbers.shape)


def _compact(integers):
    """The same integers as int64, if their sums cannot overflow."""
    return integers.astype(np.int64) if abs(integers).sum() < 2**62 else integers


@lru_cache(maxsize=10_000)
def _squares(weight, *sums):
    return Fraction(sum(s * s for s in sums), weight)


@lru_cache(maxsize=10_000)
def _logs(weight, *sums):
    with localcontext(prec=DIGITS):
        return sum(_x_log_x(s) for s in sums) - _x_log_x(weight)


def _x_log_x(x):
    return Decimal(x) * Decimal(x).ln() if x else Decimal(0)


def _float_x_log_x(x):
    x = np.maximum(x, 0)
    return x * np.log(np.where(x > 0, x, 1))
