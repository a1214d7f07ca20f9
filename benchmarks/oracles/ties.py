"""Exact arithmetic on the splits of a tree, to judge it even where rounding decides.

Gini, squared and absolute error are judged in whole numbers and fractions; entropy and Poisson
deviance in decimals with 50 digits more than their sums have. The score of a cut is, up to
constants of the node, its reduction of the impurity, a sum over sides and targets:

    gini, squared_error       S**2 / W
    entropy, poisson          S log(S / W)
    absolute_error            - sum of w |y - median|

where S are the weighted sums of the targets and W is the weight; in classification the targets are
indicators of the classes. A float stands for the decimal it is written as: 4.526 is 4526/1000, as
in the table it came from.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import NamedTuple

import numpy as np

from benchmarks.oracles.draw import FeatureDraw
from benchmarks.oracles.splitter import (
    EPSILON,
    SAME,
    decrease,
    impurity,
    resolve_count,
    weighted_median,
)

SCREEN = 1e-9  # relative to the node's impurity: cuts this close to the best are compared exactly
DIGITS, ROUND = 50, 20  # digits beyond those of the sums; decimal places of scores when compared
MAX_CELLS = 1_000_000  # of arrays that are allocated at once
NO_BOUNDS = (-np.inf, np.inf)


class Judged(NamedTuple):
    """A node and the verdict of exact arithmetic on it.

    `verdict` is "best" (the only best cut), "tie" (equal to the best), "pure" (a leaf of impurity
    zero), "leaf" (a leaf that must not or need not be split), "early" (best first, split before its
    turn) or "wrong".
    """

    node: int
    n_rows: int
    verdict: str

    @property
    def is_wrong(self):
        return self.verdict in ("early", "wrong")


class Lines(NamedTuple):
    """A node's rows ordered along features, one column per line, and where each may be cut."""

    feature: np.ndarray  # (n_lines,)
    missing_left: np.ndarray  # (n_lines,): 0 or 1; -1 if no value is missing
    order: np.ndarray  # (n_rows, n_lines): positions of the rows
    threshold: np.ndarray  # (n_rows - 1, n_lines): of the cut after each row; nan if there is none

    def key(self, position, line):
        """This cut in the form of `Training.key`."""
        feature, missing_left = self.feature[line], self.missing_left[line]
        return int(feature), float(self.threshold[position, line]), int(missing_left)


class Training:
    """Training data of one tree, in whole numbers and, to find candidates, in float64.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Numbers (or Fractions), or labels if the estimator is a classifier.
    weight : array of shape (n_samples,), numbers or Fractions
        0 for rows that the tree was not grown on.
    estimator : fitted decision tree of scikit-learn or of ours
        Provides the parameters.
    """

    def __init__(self, X, y, weight, estimator):
        self.X = np.asarray(X, np.float32)
        outputs = np.asarray(y).reshape(len(self.X), -1)
        targets = outputs
        if hasattr(estimator, "classes_"):
            targets = np.hstack([(v[:, None] == np.unique(v)).astype(int) for v in outputs.T])
        whole_weight = _whole(weight)
        self.weight = _compact(whole_weight)
        self.targets = _compact(_whole(targets))
        self.sums = _compact(self.targets.astype(object) * whole_weight[:, None])
        self.float_weight = np.asarray(weight, float)
        self.float_targets = np.asarray(targets, float)
        self.y = outputs
        self.criterion = "entropy" if estimator.criterion == "log_loss" else estimator.criterion
        self.has_logs = self.criterion in ("entropy", "poisson")

        n_samples, n_features = self.X.shape
        self.min_samples_leaf = resolve_count(estimator.min_samples_leaf, n_samples)
        self.min_samples_split = max(
            2 * self.min_samples_leaf, resolve_count(estimator.min_samples_split, n_samples)
        )
        self.max_depth = estimator.max_depth or n_samples
        self.min_weight_leaf = estimator.min_weight_fraction_leaf * self.float_weight.sum()
        self.min_impurity_decrease = estimator.min_impurity_decrease
        self.max_leaf_nodes = estimator.max_leaf_nodes
        self.max_features = estimator.max_features_
        self.is_random = estimator.splitter == "random"
        self.direction = np.zeros(n_features, int)
        if estimator.monotonic_cst is not None:  # bounds the first class's share, or the mean
            sign = -1 if hasattr(estimator, "classes_") else 1
            self.direction = sign * np.asarray(estimator.monotonic_cst)
        self.seed = np.random.RandomState(estimator.random_state).randint(2**31 - 1)

    @property
    def rows(self):
        """The rows of the root."""
        return np.flatnonzero(self.weight != 0)

    def key(self, tree, node, rows):
        """A node's split as (feature, threshold, side of missing values; -1: none)."""
        feature = tree.feature[node]
        has_missing = np.isnan(self.X[rows, feature]).any()
        side = tree.missing_go_to_left[node] if has_missing else -1
        return int(feature), float(tree.threshold[node]), int(side)

    def goes_left(self, rows, key):
        """Mask of the rows that a split sends to the left."""
        feature, threshold, missing_left = key
        x = self.X[rows, feature].astype(np.float64)  # next to float32 the threshold is rounded
        return np.where(np.isnan(x), missing_left == 1, x <= threshold)

    def is_pure(self, rows):
        """Whether the impurity is exactly zero."""
        return (self.targets[rows] == self.targets[rows[0]]).all()

    def score(self, left, right):
        """Exact score of a cut, given the rows on either side."""
        if self.criterion == "absolute_error":
            return -sum(self._error(side) for side in (left, right))
        return self._score(*self._totals(left), *self._totals(right))

    def _error(self, rows):
        """Exact weighted absolute error over all targets; it is the same for every median."""
        weight = self.weight[rows]
        total = 0
        for y in self.targets[rows].T:
            order = y.argsort(kind="stable")
            middle = (2 * weight[order].cumsum() >= weight.sum()).argmax()
            total += int((weight * abs(y - y[order[middle]])).sum())
        return total

    def _totals(self, rows):
        return self.sums[rows].sum(axis=0), self.weight[rows].sum()

    def _score(self, sums_left, weight_left, sums_right, weight_right):
        sides = (weight_left, *sums_left), (weight_right, *sums_right)
        left, right = ([*map(int, side)] for side in sides)
        if not self.has_logs:
            return _squares(*left) + _squares(*right)
        digits = DIGITS + len(str(max(*left, *right)))
        with localcontext(prec=digits):
            return round(_logs(digits, *left) + _logs(digits, *right), ROUND)

    def search(self, rows, draw, n_known):
        """Draw the features of a node and line up its rows along them.

        Returns
        -------
        lines : Lines, or None if all features are constant
        n_constant : int
            How many features are known to be constant afterwards.
        """
        x = self.X[rows]
        low, high = np.fmin.reduce(x), np.fmax.reduce(x)
        has_missing = np.isnan(x).any(axis=0)
        is_constant = np.isnan(low) | (~has_missing & (high <= low + SAME))

        def cut_at_random(feature):
            ends = float(low[feature]), float(high[feature])
            threshold = draw.random_between(*ends)
            missing_left = draw.random_below(2) if has_missing[feature] else -1
            return feature, ends[0] if threshold == ends[1] else threshold, missing_left

        if self.is_random:
            searched, n_constant = draw.draw(is_constant, n_known, cut_at_random)
        else:
            searched, n_constant = draw.draw(is_constant, n_known)
        if not searched:
            return None, n_constant
        if self.is_random:
            return self._line_up_halves(rows, searched), n_constant
        return _line_up(x, searched, has_missing), n_constant

    def _line_up_halves(self, rows, cuts):
        """Lines with left rows before right ones, one for each random cut."""
        feature, _, missing_left = zip(*cuts, strict=True)
        is_right = np.column_stack([~self.goes_left(rows, cut) for cut in cuts])
        threshold = np.full((len(rows) - 1, len(cuts)), np.nan)
        for line, (cut, n_left) in enumerate(zip(cuts, (~is_right).sum(axis=0), strict=True)):
            if 0 < n_left < len(rows):
                threshold[n_left - 1, line] = cut[1]
        order = is_right.argsort(axis=0, kind="stable")
        return Lines(np.array(feature), np.array(missing_left), order, threshold)

    def candidates(self, rows, lines, bounds=NO_BOUNDS):
        """The cuts of a node that may be the best.

        Returns
        -------
        cuts : dict from key to exact score (None if there is only one)
        legal : list of the keys that rounding cannot make illegal
        """
        n_left = np.arange(1, len(rows))[:, None]
        scores, slack = self._float_scores(rows, lines, bounds)
        may_be = (
            ~np.isnan(lines.threshold)
            & (n_left >= self.min_samples_leaf)
            & (n_left <= len(rows) - self.min_samples_leaf)
            & (slack >= -SCREEN)
        )
        if not may_be.any():
            return {}, []
        is_legal = may_be & (slack > SCREEN)
        to_beat = scores[is_legal].max(initial=-np.inf)
        chosen = np.argwhere(may_be & (scores >= to_beat - SCREEN))
        keys = [lines.key(*cut) for cut in chosen]
        legal = [key for key, cut in zip(keys, chosen, strict=True) if is_legal[tuple(cut)]]
        if len(keys) == 1:
            return {keys[0]: None}, legal
        exact = self._exact_scores(rows, lines.order, chosen)
        return dict(zip(keys, exact, strict=True)), legal

    def gain(self, rows, key):
        """Weighted impurity decrease of a cut, and the noise of this number."""
        y, weight = self.y[rows], self.float_weight[rows]
        share = weight.sum() / self.float_weight.sum()
        gain = share * decrease(y, weight, self.goes_left(rows, key), self.criterion)
        return gain, SCREEN * share * impurity(y, weight, self.criterion)

    def excess(self, rows, key):
        """Decrease of a cut beyond min_impurity_decrease; 0 if rounding decides."""
        gain, noise = self.gain(rows, key)
        excess = gain - self.min_impurity_decrease
        return 0.0 if abs(excess) <= noise else excess

    def parts_zeros(self, rows, left):
        """Whether, by Poisson deviance, a cut has only targets of 0 on one side."""
        return self.criterion == "poisson" and not all(
            self.targets[side].any(axis=0).all() for side in (rows[left], rows[~left])
        )

    def can_part_zeros(self, rows):
        """Whether, by Poisson deviance of one target, such a cut exists."""
        if self.criterion != "poisson":
            return False
        x, is_zero = self.X[rows], ~self.targets[rows].any(axis=1)
        low, high = np.fmin.reduce(x[~is_zero]), np.fmax.reduce(x[~is_zero])
        x = x[is_zero]
        return bool(((x < low) | (x > high) | np.isnan(x)).any())

    def value(self, rows):
        """The value that monotonic constraints bound: the first target's mean or median."""
        y, weight = self.float_targets[rows, 0], self.float_weight[rows]
        if self.criterion == "absolute_error":
            return weighted_median(y, weight)
        return weight @ y / weight.sum()

    def _float_scores(self, rows, lines, bounds):
        """Scores of all cuts, as shares of the node's score.

        Returns
        -------
        scores, slack : ndarray of shape (n_rows - 1, n_lines)
            `slack` is how far each cut is from being illegal; it is negative if the cut is illegal.
        """
        weight = self.float_weight[rows]
        targets = self.float_targets[rows]
        weight_left = weight[lines.order].cumsum(axis=0)
        weight_left, weight_right = weight_left[:-1], weight.sum() - weight_left[:-1]
        slack = np.where(
            np.minimum(weight_left, weight_right) >= self.min_weight_leaf, np.inf, -np.inf
        )
        if self.criterion == "absolute_error":
            scores, left, right = _float_errors(targets, weight, lines.order)
        else:
            sums = (weight[:, None] * targets)[lines.order].cumsum(axis=0)
            left, right = sums[:-1], sums[-1] - sums[:-1]
            if self.has_logs:
                scores = _float_logs(left, weight_left) + _float_logs(right, weight_right)
                scale = sums[-1].sum(axis=-1) / (targets.shape[1] or 1)
                scores /= np.where(scale > 0, scale, 1.0)
            else:
                scores = _float_squares(targets, weight, lines.order)
            if self.criterion == "poisson":  # neither side may have targets of 0 only
                least = np.minimum(left, right).min(axis=2)
                slack = np.minimum(slack, np.where(least > SCREEN * sums[-1].max(), np.inf, 0.0))
            left, right = left[..., 0] / weight_left, right[..., 0] / weight_right
        direction = self.direction[lines.feature]
        scale = np.abs(targets[:, 0]).max() or 1.0
        lowest, highest = np.minimum(left, right), np.maximum(left, right)
        room = np.minimum(lowest - bounds[0], bounds[1] - highest)
        room = np.minimum(room, (right - left) * direction) / scale
        return scores, np.where(direction == 0, slack, np.minimum(slack, room))

    def _exact_scores(self, rows, order, cuts):
        if len(rows) == 2:  # all cuts divide them in the same way
            yield from (0 for _ in cuts)
            return
        if self.criterion == "absolute_error":
            for position, line in cuts:
                in_line = rows[order[:, line]]
                yield self.score(in_line[: position + 1], in_line[position + 1 :])
            return
        sums_all, weight_all = self._totals(rows)
        prefixes = {
            line: (
                np.add.accumulate(self.sums[rows[order[:, line]]], axis=0),
                np.add.accumulate(self.weight[rows[order[:, line]]]),
            )
            for line in set(cuts[:, 1])
        }
        for position, line in cuts:
            sums, weight = (prefix[position] for prefix in prefixes[line])
            yield self._score(sums, weight, sums_all - sums, weight_all - weight)


def first_difference(ours, theirs, training):
    """The first node in which two trees, grown depth first, differ, or None.

    Its verdict is "tie" (two cuts of exactly the same score), "pure" (a node of impurity zero that
    one of the trees splits), "limit" or "wrong". "limit" is a split whose decrease just equals the
    required one or, by Poisson deviance, a split of theirs with a side of zeros, whose sum was
    rounded to above 0.
    """
    n = min(len(ours.feature), len(theirs.feature))
    is_split = ours.feature[:n] >= 0
    differs = (
        (ours.feature[:n] != theirs.feature[:n])
        | (ours.threshold[:n] != theirs.threshold[:n])
        | (is_split & (ours.missing_go_to_left[:n] != theirs.missing_go_to_left[:n]))
    )
    if not differs.any():
        return None
    node = int(differs.argmax())
    rows = next(rows for number, rows in _walk(ours, training) if number == node)
    if ours.feature[node] < 0 or theirs.feature[node] < 0:
        splits = ours if theirs.feature[node] < 0 else theirs
        is_limit = training.excess(rows, training.key(splits, node, rows)) == 0.0
        is_limit |= splits is ours and training.can_part_zeros(rows)
        verdict = "limit" if is_limit else "wrong"
        return Judged(node, len(rows), "pure" if training.is_pure(rows) else verdict)
    sides = [training.goes_left(rows, training.key(tree, node, rows)) for tree in (ours, theirs)]
    if training.parts_zeros(rows, sides[1]):
        return Judged(node, len(rows), "limit")
    scores = [training.score(rows[left], rows[~left]) for left in sides]
    return Judged(node, len(rows), "tie" if scores[0] == scores[1] else "wrong")


def why_different(ours, theirs, training):
    """Why two trees differ; every node of ours is replayed.

    Returns
    -------
    str
        The verdict on the first difference: "tie", "pure" or "wrong"; "limit" if rounding decides
        whether a split is legal and both trees replay. In best-first trees nodes of the same number
        need not correspond: "tie" if both trees replay, and "limit" if only ours does, by Poisson
        deviance where a cut may separate zeros.
    """
    if any(node.is_wrong for node in replay(ours, training)):
        return "wrong"
    best_first = training.max_leaf_nodes is not None
    verdict = "tie" if best_first else first_difference(ours, theirs, training).verdict
    if best_first or verdict == "wrong":
        if any(node.is_wrong for node in replay(theirs, training)):
            by_zeros = best_first and training.can_part_zeros(training.rows)
            return "limit" if by_zeros else "wrong"
        return "tie" if best_first else "limit"
    return verdict


def replay(tree, training):
    """Judge every node of a tree: draw its features again and search them exactly.

    Depth-first and best-first growth both draw in the order of the node numbers.

    Returns
    -------
    list of Judged
    """
    draw = FeatureDraw(training.X.shape[1], training.max_features, training.seed)
    best_first = training.max_leaf_nodes is not None
    depth = np.zeros(len(tree.feature), int)
    n_known = np.zeros(len(tree.feature), int)
    bounds = {0: NO_BOUNDS}
    judged, gains = [], {}
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
            lines, n_constant = training.search(rows, draw, n_known[node])
            cuts, legal = training.candidates(rows, lines, bounds[node]) if lines else ({}, [])
            verdict = _judge(tree, node, rows, cuts, legal, training)
            if best_first and legal and training.excess(rows, legal[0]) > 0:
                gains[node] = training.gain(rows, legal[0])
            if not is_leaf:
                children = [tree.children_left[node], tree.children_right[node]]
                depth[children] = depth[node] + 1
                n_known[children] = 0 if best_first else n_constant
                key = training.key(tree, node, rows)
                bounds |= _child_bounds(rows, key, bounds[node], children, training)
        judged.append(Judged(node, len(rows), verdict))
    if best_first:
        for node in _out_of_turn(tree, gains, training.max_leaf_nodes):
            judged[node] = judged[node]._replace(verdict="early")
    return judged


def has_medians(tree, training):
    """Whether each value is a weighted median of its node.

    If half of the weight lies on either side of a gap, every value in the gap is a median, and
    rounding decides which one a tree has.
    """
    for node, rows in _walk(tree, training):
        for k, value in enumerate(tree.value[node, :, 0]):
            y, weight = training.float_targets[rows, k], training.weight[rows]
            heavier_side = max(weight[y < value].sum(), weight[y > value].sum())
            if 2 * heavier_side > weight.sum():
                return False
    return training.criterion == "absolute_error"


def _judge(tree, node, rows, cuts, legal, training):
    """Verdict on a node whose features were searched."""
    if tree.children_left[node] < 0:
        best_first = training.max_leaf_nodes is not None
        if not legal or best_first or training.excess(rows, legal[0]) <= 0:
            return "leaf"
        return "pure" if training.is_pure(rows) else "wrong"
    key = training.key(tree, node, rows)
    if key not in cuts or (training.min_impurity_decrease and training.excess(rows, key) < 0):
        return "wrong"
    if len(cuts) == 1:
        return "best"
    return "tie" if all(cuts[key] >= cuts[other] for other in legal) else "wrong"


def _out_of_turn(tree, gains, max_leaf_nodes):
    """Nodes split while a pending one had a larger gain, or left although more leaves were allowed.

    `gains` holds the gain and its noise for each node that could be split.
    """
    first_child = tree.children_left
    split = np.flatnonzero(first_child >= 0)
    for node in split[first_child[split].argsort()]:
        gain, noise = gains.get(node, (np.inf, 0.0))
        for other, (its_gain, its_noise) in gains.items():
            waits = other < first_child[node] and not 0 <= first_child[other] <= first_child[node]
            if waits and its_gain - gain > noise + its_noise:
                yield node
                break
    if len(split) + 1 < max_leaf_nodes:
        yield from (node for node in gains if first_child[node] < 0)


def _child_bounds(rows, key, bounds, children, training):
    """Bounds on the values of both children, if the split's feature has a constraint."""
    direction = training.direction[key[0]]
    if direction == 0:
        return dict.fromkeys(children, bounds)
    left = training.goes_left(rows, key)
    middle = training.value(rows[left]) / 2 + training.value(rows[~left]) / 2
    below, above = (bounds[0], middle), (middle, bounds[1])
    return dict(zip(children, (below, above) if direction > 0 else (above, below), strict=True))


def _line_up(x, features, has_missing):
    """Known values in order, then missing ones; if there are any, also a line with these first."""
    twice = [(f, left) for f in features for left in ([0, 1] if has_missing[f] else [-1])]
    feature, missing_left = np.array(twice, int).reshape(-1, 2).T
    x = x[:, feature]
    order = x.argsort(axis=0, kind="stable")  # nan is last
    n_known = (~np.isnan(x)).sum(axis=0)
    for line in np.flatnonzero(missing_left == 1):
        order[:, line] = np.roll(order[:, line], -n_known[line])
    x = np.take_along_axis(x, order, axis=0)
    low, high = x[:-1], x[1:]
    threshold = np.where(high > low + SAME, low.astype(float) / 2 + high.astype(float) / 2, np.nan)
    threshold[~np.isnan(low) & np.isnan(high)] = np.inf
    return Lines(feature, missing_left, order, threshold)


def _walk(tree, training):
    """Yield each node in the order of numbers, with its rows."""
    waiting = {0: training.rows}
    for node in range(len(tree.feature)):
        rows = waiting.pop(node)
        yield node, rows
        if tree.children_left[node] >= 0:
            left = training.goes_left(rows, training.key(tree, node, rows))
            waiting[tree.children_left[node]] = rows[left]
            waiting[tree.children_right[node]] = rows[~left]


def _whole(numbers):
    """Numbers times their common denominator, as Python integers."""
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
def _logs(digits, weight, *sums):
    with localcontext(prec=digits):
        return sum(_x_log_x(s) for s in sums) - sum(sums) * Decimal(weight).ln()


def _x_log_x(x):
    return Decimal(x) * Decimal(x).ln() if x else Decimal(0)


def _float_logs(sums, weight):
    sums = np.maximum(sums, 0)
    terms = sums * (np.log(np.where(sums > 0, sums, 1)) - np.log(weight)[..., None])
    return terms.sum(axis=-1)


def _float_squares(targets, weight, order):
    targets = targets - targets[0]  # exactly zero in a pure node
    targets -= weight @ targets / weight.sum()
    sums = (weight[:, None] * targets)[order].cumsum(axis=0)
    weight_left = weight[order].cumsum(axis=0)
    left, right = sums[:-1], sums[-1] - sums[:-1]
    scores = (left**2).sum(axis=2) / weight_left[:-1]
    scores += (right**2).sum(axis=2) / (weight_left[-1] - weight_left[:-1])
    return scores / ((weight[:, None] * targets**2).sum() or 1.0)


def _float_errors(targets, weight, order):
    """Scores of all cuts, and the first target's medians on either side."""
    scores = np.zeros((len(order) - 1, order.shape[1]))
    medians = []
    for k in range(targets.shape[1]):
        y, w = targets[order, k], weight[order]
        left, below = _errors_of_beginnings(y, w)
        right, above = _errors_of_beginnings(y[::-1], w[::-1])
        scores -= left[:-1] + right[-2::-1]
        medians += [below[:-1], above[-2::-1]]
    return scores / (-scores.min(initial=0.0) or 1.0), *medians[:2]


def _errors_of_beginnings(y, weight):
    """Absolute errors and medians of the first 1, 2, ... values of each column."""
    if y.size * len(y) > MAX_CELLS and y.shape[1] > 1:
        columns = [_errors_of_beginnings(y[:, [c]], weight[:, [c]]) for c in range(y.shape[1])]
        return tuple(np.hstack(parts) for parts in zip(*columns, strict=True))
    by_value = y.argsort(axis=0, kind="stable")
    y = np.take_along_axis(y, by_value, axis=0)
    weight = np.take_along_axis(weight, by_value, axis=0)
    inside = (by_value <= np.arange(len(y))[:, None, None]) * weight  # [beginning, value, column]
    upto = inside.cumsum(axis=1)
    half = upto[:, -1:] / 2
    at_low = (upto >= half * (1 - SCREEN)).argmax(axis=1)
    at_high = (upto > half * (1 + SCREEN)).argmax(axis=1)
    low, high = (np.take_along_axis(y, at, axis=0) for at in (at_low, at_high))
    return (inside * abs(y - low[:, None])).sum(axis=1), low / 2 + high / 2
