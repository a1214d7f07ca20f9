"""Split criteria: what a node's impurity is, and what a cut makes of it.

A criterion is a NamedTuple of small arrays and the methods of the protocol below. A node's
samples come as `keys`, in some order (see `cart.primitives.sort_keys`), and `records`, float64 of
shape (n_records, 1 + n_outputs): `record_of(key)` is the row that holds the sample's weight and
targets. Sums are taken in the order of the keys, and the right side of a cut is the node minus its
left side, as in scikit-learn, so that floating-point sums agree with it.

The left side of a cut is a `Side`, which kernels keep in registers; what does not fit (class
counts, further outputs) lies in the criterion's arrays.
"""

import math
from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, inline_kernel, kernel
from cart.primitives.sort_keys import record_of, sort_positions_by_value

_LN2 = math.log(2.0)
EPSILON = np.finfo(np.float64).eps
# Targets that sum to no more count as none (EPSILON in scikit-learn's `_criterion.pyx`).
_NO_SUM = 10 * EPSILON


class Side(NamedTuple):
    """The left side of a cut; what `first` and `second` are is the criterion's affair."""

    weight: float
    first: float
    second: float


# ---------------------------------------------------------------------------- the protocol


@dispatch
def load(criterion, records, keys, n, keep_order):
    """Sum up the first `n` keys: they are the node. `keep_order`: sums depend on their order."""
    criterion.load(records, keys, n, keep_order)


@dispatch
def needs_all(criterion):
    """Must `arrange` see all keys, also those that a cut reaches from the other end?"""
    return criterion.needs_all()


@dispatch
def arrange(criterion, records, keys, n):
    """Take the node's samples in the order of `keys`; the Side of the cut before the first."""
    return criterion.arrange(records, keys, n)


@dispatch
def advance(criterion, side, records, keys, cut, p, n):
    """Move the cut from behind the first `cut` samples to behind the first `p`, further right."""
    return criterion.advance(side, records, keys, cut, p, n)


@dispatch
def score(criterion, side):
    """Quality of the cut: higher is better, comparable within one node only."""
    return criterion.score(side)


@dispatch
def impurity(criterion, records, keys, n):
    """Impurity of the node."""
    return criterion.impurity(records, keys, n)


@dispatch
def children_impurity(criterion, side, records, keys, n_left, n):
    """Impurities left and right of the cut, which lies behind the first `n_left` samples."""
    return criterion.children_impurity(side, records, keys, n_left, n)


@dispatch
def side_values(criterion, side):
    """What the sides of the cut would predict, of the first class or the mean: left, right."""
    return criterion.side_values(side)


@dispatch
def write_value(criterion, value):
    """Write what the node predicts into `value`, (n_outputs, n_values)."""
    criterion.write_value(value)


# What class counts and sums have in common: a cut advances over the shorter way.


@dispatch
def all_right(criterion):
    """The Side of the cut before the first sample."""
    return criterion.all_right()


@dispatch
def all_left(criterion):
    """The Side of the cut behind the last sample."""
    return criterion.all_left()


@dispatch
def move(criterion, side, records, i, sign):
    """Move sample i from the right of the cut to its left (sign 1.0), or back (-1.0)."""
    return criterion.move(side, records, i, sign)


def _sums_need_no_sample(self):
    return False


def _arrange_sums(self, records, keys, n):
    return all_right(self)


def _advance_sums(self, side, records, keys, cut, p, n):
    if p - cut <= n - p:
        for i in range(cut, p):
            side = move(self, side, records, record_of(keys[i]), 1.0)
    else:
        side = all_left(self)
        for i in range(n - 1, p - 1, -1):
            side = move(self, side, records, record_of(keys[i]), -1.0)
    return side


@dispatch
def side_impurities(criterion, side):
    """Impurities left and right of the cut, where they follow from the Side."""
    return criterion.side_impurities(side)


def _children_of_side(self, side, records, keys, n_left, n):
    return side_impurities(self, side)


def _score_of_side(self, side):
    left, right = side_impurities(self, side)
    return -(self.weight[0] - side.weight) * right - side.weight * left


@inline_kernel
def _mean(total, n_outputs):
    return total if n_outputs == 1 else total / n_outputs  # a division saved in every cut


# --------------------------------------------------------------------------- classification


NOTHING, SECOND_CLASS, SQUARES = range(3)


class ClassCounts(NamedTuple):
    """What the classification criteria share: weighted class counts of the node and a side.

    Where counts are whole numbers, and there is one output, the Side keeps what is exact however
    it was reached, so that no order of summation matters: of two classes the count of the second
    on the left, of more the sums of squared counts left and right.
    """

    node: np.ndarray  # (n_outputs, n_classes) float64
    left: np.ndarray  # (n_outputs, n_classes) float64
    weight: np.ndarray  # (1,) float64: of the node
    kept: np.ndarray  # (1,) int64: what the Side keeps: NOTHING, SECOND_CLASS or SQUARES

    @classmethod
    def create(cls, n_outputs, n_values, n_samples):
        counts = np.zeros((2, n_outputs, n_values))
        return cls(counts[0], counts[1], np.zeros(1), np.zeros(1, np.int64))

    def load(self, records, keys, n, keep_order):
        self.kept[0] = NOTHING
        if not keep_order and self.node.shape[0] == 1:
            self.kept[0] = SECOND_CLASS if self.node.shape[1] == 2 else SQUARES
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.node[k, c] = 0.0
        weight = 0.0
        if self.kept[0] == SECOND_CLASS:  # exact, and no sum waits for memory
            second = 0.0
            for j in range(n):
                i = record_of(keys[j])
                weight += records[i, 0]
                second += records[i, 0] * records[i, 1]
            self.node[0, 0] = weight - second
            self.node[0, 1] = second
        else:
            for j in range(n):
                i = record_of(keys[j])
                w = records[i, 0]
                for k in range(self.node.shape[0]):
                    self.node[k, int(records[i, k + 1])] += w
                weight += w
        self.weight[0] = weight

    needs_all = _sums_need_no_sample
    arrange = _arrange_sums
    advance = _advance_sums

    def all_right(self):
        if self.kept[0] == SECOND_CLASS:
            return Side(0.0, 0.0, 0.0)
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.left[k, c] = 0.0
        return Side(0.0, 0.0, _sum_of_squares(self.node))

    def all_left(self):
        if self.kept[0] == SECOND_CLASS:
            return Side(self.weight[0], self.node[0, 1], 0.0)
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                self.left[k, c] = self.node[k, c]
        return Side(self.weight[0], _sum_of_squares(self.node), 0.0)

    def move(self, side, records, i, sign):
        w = sign * records[i, 0]
        if self.kept[0] == SECOND_CLASS:
            return Side(side.weight + w, side.first + w * records[i, 1], 0.0)
        squares_left = side.first
        squares_right = side.second
        for k in range(self.left.shape[0]):
            c = int(records[i, k + 1])
            left = self.left[k, c]
            squares_left += w * (2.0 * left + w)
            squares_right -= w * (2.0 * (self.node[k, c] - left) - w)
            self.left[k, c] = left + w
        return Side(side.weight + w, squares_left, squares_right)

    def side_values(self, side):
        left = _count_left(self, side, 0, 0)
        return left / side.weight, (self.node[0, 0] - left) / (self.weight[0] - side.weight)

    def write_value(self, value):
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                value[k, c] = self.node[k, c] / self.weight[0]


@inline_kernel
def _count_left(criterion, side, k, c):
    if criterion.kept[0] == SECOND_CLASS:
        return side.first if c == 1 else side.weight - side.first
    return criterion.left[k, c]


@inline_kernel
def _sum_of_squares(counts):
    squares = 0.0
    for k in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            squares += counts[k, c] * counts[k, c]
    return squares


class Gini(ClassCounts):
    """1 - sum of squared class shares, the mean over outputs."""

    __slots__ = ()

    def impurity(self, records, keys, n):
        gini = 0.0
        for k in range(self.node.shape[0]):
            squares = 0.0
            for c in range(self.node.shape[1]):
                squares += self.node[k, c] * self.node[k, c]
            gini += 1.0 - squares / (self.weight[0] * self.weight[0])
        return gini / self.node.shape[0]

    children_impurity = _children_of_side
    score = _score_of_side

    def side_impurities(self, side):
        weight_left = side.weight
        weight_right = self.weight[0] - weight_left
        if self.kept[0] != NOTHING:
            squares_left = side.first
            squares_right = side.second
            if self.kept[0] == SECOND_CLASS:
                left = weight_left - side.first
                right = weight_right - (self.node[0, 1] - side.first)
                squares_left = left * left + side.first * side.first
                squares_right = right * right + (weight_right - right) * (weight_right - right)
            gini_left = 1.0 - squares_left / (weight_left * weight_left)
            gini_right = 1.0 - squares_right / (weight_right * weight_right)
            return gini_left, gini_right
        gini_left = 0.0
        gini_right = 0.0
        for k in range(self.node.shape[0]):
            squares_left = 0.0
            squares_right = 0.0
            for c in range(self.node.shape[1]):
                left = self.left[k, c]
                right = self.node[k, c] - left
                squares_left += left * left
                squares_right += right * right
            gini_left += 1.0 - squares_left / (weight_left * weight_left)
            gini_right += 1.0 - squares_right / (weight_right * weight_right)
        return _mean(gini_left, self.node.shape[0]), _mean(gini_right, self.node.shape[0])


class Entropy(ClassCounts):
    """- sum of p log2 p over the class shares p, the mean over outputs."""

    __slots__ = ()

    def impurity(self, records, keys, n):
        entropy = 0.0
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                entropy -= share_times_log(self.node[k, c], self.weight[0])
        return entropy / self.node.shape[0]

    children_impurity = _children_of_side
    score = _score_of_side

    def side_impurities(self, side):
        weight_left = side.weight
        weight_right = self.weight[0] - weight_left
        entropy_left = 0.0
        entropy_right = 0.0
        for k in range(self.node.shape[0]):
            for c in range(self.node.shape[1]):
                left = _count_left(self, side, k, c)
                entropy_left -= share_times_log(left, weight_left)
                entropy_right -= share_times_log(self.node[k, c] - left, weight_right)
        return _mean(entropy_left, self.node.shape[0]), _mean(entropy_right, self.node.shape[0])


@inline_kernel
def _log2(x):
    return math.log(x) / _LN2  # the last bit is that of scikit-learn's `log`


@inline_kernel
def share_times_log(count, weight):
    if count <= 0.0:
        return 0.0
    share = count / weight
    return share * _log2(share)


# ------------------------------------------------------------------------------- regression


class TargetSums(NamedTuple):
    """What criteria on means share: weighted target sums of the node and its left side.

    The Side keeps the sum of the first output, `left` those of the others.
    """

    node: np.ndarray  # (n_outputs,) float64
    left: np.ndarray  # (n_outputs,) float64
    weight: np.ndarray  # (1,) float64: of the node
    squares: np.ndarray  # (1,) float64: weighted sum of squares of the node, over all outputs

    @classmethod
    def create(cls, n_outputs, n_values, n_samples):
        return cls(np.zeros(n_outputs), np.zeros(n_outputs), np.zeros(1), np.zeros(1))

    def load(self, records, keys, n, keep_order):
        for k in range(self.node.shape[0]):
            self.node[k] = 0.0
        weight = 0.0
        squares = 0.0
        for j in range(n):
            i = record_of(keys[j])
            w = records[i, 0]
            for k in range(self.node.shape[0]):
                wy = w * records[i, k + 1]
                self.node[k] += wy
                squares += wy * records[i, k + 1]
            weight += w
        self.weight[0] = weight
        self.squares[0] = squares

    needs_all = _sums_need_no_sample
    arrange = _arrange_sums
    advance = _advance_sums

    def all_right(self):
        for k in range(1, self.node.shape[0]):
            self.left[k] = 0.0
        return Side(0.0, 0.0, 0.0)

    def all_left(self):
        for k in range(1, self.node.shape[0]):
            self.left[k] = self.node[k]
        return Side(self.weight[0], self.node[0], 0.0)

    def move(self, side, records, i, sign):
        w = sign * records[i, 0]
        for k in range(1, self.left.shape[0]):
            self.left[k] += w * records[i, k + 1]
        return Side(side.weight + w, side.first + w * records[i, 1], 0.0)

    def side_values(self, side):
        right = self.node[0] - side.first
        return side.first / side.weight, right / (self.weight[0] - side.weight)

    def write_value(self, value):
        for k in range(self.node.shape[0]):
            value[k, 0] = self.node[k] / self.weight[0]


@inline_kernel
def _sum_left(criterion, side, k):
    return side.first if k == 0 else criterion.left[k]


class SquaredError(TargetSums):
    """Variance of the targets, the mean over outputs."""

    __slots__ = ()

    def impurity(self, records, keys, n):
        variance = self.squares[0] / self.weight[0]
        for k in range(self.node.shape[0]):
            variance -= (self.node[k] / self.weight[0]) * (self.node[k] / self.weight[0])
        return variance / self.node.shape[0]

    def children_impurity(self, side, records, keys, n_left, n):
        weight_right = self.weight[0] - side.weight
        squares = 0.0
        for j in range(n_left):
            i = record_of(keys[j])
            for k in range(self.node.shape[0]):
                squares += records[i, 0] * records[i, k + 1] * records[i, k + 1]
        variance_left = squares / side.weight
        variance_right = (self.squares[0] - squares) / weight_right
        for k in range(self.node.shape[0]):
            left = _sum_left(self, side, k)
            mean_left = left / side.weight
            mean_right = (self.node[k] - left) / weight_right
            variance_left -= mean_left * mean_left
            variance_right -= mean_right * mean_right
        return variance_left / self.node.shape[0], variance_right / self.node.shape[0]

    def score(self, side):
        rest = self.node[0] - side.first
        left = side.first * side.first
        right = rest * rest
        for k in range(1, self.node.shape[0]):
            rest = self.node[k] - self.left[k]
            left += self.left[k] * self.left[k]
            right += rest * rest
        return left / side.weight + right / (self.weight[0] - side.weight)


class Poisson(TargetSums):
    """Half the mean Poisson deviance from the mean, y log(y / mean), the mean over outputs.

    A side whose targets sum to 0 cannot be predicted by a Poisson mean: its impurity is infinite.
    """

    __slots__ = ()

    def impurity(self, records, keys, n):
        deviance = 0.0
        for k in range(self.node.shape[0]):
            if self.node[k] <= _NO_SUM:
                return np.inf
            mean = self.node[k] / self.weight[0]
            for j in range(n):
                deviance += _deviance(records, record_of(keys[j]), k, mean)
        return deviance / (self.weight[0] * self.node.shape[0])

    def children_impurity(self, side, records, keys, n_left, n):
        weight_right = self.weight[0] - side.weight
        left = 0.0
        right = 0.0
        for k in range(self.node.shape[0]):
            sum_left = _sum_left(self, side, k)
            sum_right = self.node[k] - sum_left
            left += _deviance_of(sum_left, side.weight, records, keys, k, 0, n_left)
            right += _deviance_of(sum_right, weight_right, records, keys, k, n_left, n)
        n_outputs = self.node.shape[0]
        return left / (side.weight * n_outputs), right / (weight_right * n_outputs)

    def score(self, side):
        weight_right = self.weight[0] - side.weight
        left = 0.0
        right = 0.0
        for k in range(self.node.shape[0]):
            sum_left = _sum_left(self, side, k)
            sum_right = self.node[k] - sum_left
            if sum_left <= _NO_SUM or sum_right <= _NO_SUM:
                return -np.inf
            left -= sum_left * _log2(sum_left / side.weight)
            right -= sum_right * _log2(sum_right / weight_right)
        return -left - right


@inline_kernel
def _deviance(records, i, k, mean):
    y = records[i, k + 1]
    return records[i, 0] * (y * math.log(y / mean)) if y > 0.0 else 0.0


@kernel
def _deviance_of(total, weight, records, keys, k, first, end):
    """Sum over keys[first:end], whose targets sum to `total`."""
    if total <= _NO_SUM:
        return np.inf
    deviance = 0.0
    for j in range(first, end):
        deviance += _deviance(records, record_of(keys[j]), k, total / weight)
    return deviance


class AbsoluteError(NamedTuple):
    """Mean absolute difference from the weighted median, the mean over outputs.

    `arrange` finds the errors and medians of all beginnings and all ends of the order in
    O(n log n), with a Fenwick tree over the ranks of the targets (as in scikit-learn 1.8). The
    node's samples are its first n records.
    """

    median: np.ndarray  # (n_outputs,) float64: of the node
    weight: np.ndarray  # (1,) float64: of the node
    cut: np.ndarray  # (1,) int64: how many samples lie left
    error_left: np.ndarray  # (n,) float64: absolute error of the first 1, 2, ... samples
    error_right: np.ndarray  # (n,) float64: of the samples from the 1st, 2nd, ... on
    median_left: np.ndarray  # (n,) float64: the medians of the same, of the last output
    median_right: np.ndarray  # (n,) float64
    rank: np.ndarray  # (n_outputs, n) int64: of each record's target in the node
    ordered: np.ndarray  # (n_outputs, n) float64: the node's targets, ascending
    spare: np.ndarray  # (2, n) int64
    tree: np.ndarray  # (2, n + 1) float64: Fenwick tree of weights and of weighted targets

    @classmethod
    def create(cls, n_outputs, n_values, n_samples):
        return cls(
            np.zeros(n_outputs),
            np.zeros(1),
            np.zeros(1, np.int64),
            *np.empty((4, n_samples)),
            np.empty((n_outputs, n_samples), np.int64),
            np.empty((n_outputs, n_samples)),
            np.empty((2, n_samples), np.int64),
            np.empty((2, n_samples + 1)),
        )

    def load(self, records, keys, n, keep_order):
        self.weight[0] = 0.0
        for i in range(n):
            self.weight[0] += records[i, 0]
        for k in range(self.median.shape[0]):
            sort_positions_by_value(records, k + 1, n, self.spare)
            total = 0.0
            middle = 0.5 * self.weight[0]
            self.median[k] = 0.0
            found = False
            for j in range(n):
                i = self.spare[0, j]
                self.rank[k, i] = j
                self.ordered[k, j] = records[i, k + 1]
                total += records[i, 0]
                if not found and total >= middle:
                    found = True
                    self.median[k] = records[i, k + 1]
                    if total == middle and j + 1 < n:
                        following = records[self.spare[0, j + 1], k + 1]
                        self.median[k] = (records[i, k + 1] + following) / 2.0

    def impurity(self, records, keys, n):
        error = 0.0
        for k in range(self.median.shape[0]):
            for i in range(n):
                error += records[i, 0] * abs(records[i, k + 1] - self.median[k])
        return error / (self.weight[0] * self.median.shape[0])

    def needs_all(self):
        return True

    def arrange(self, records, keys, n):
        self.cut[0] = 0
        for i in range(n):
            self.error_left[i] = 0.0
            self.error_right[i] = 0.0
        for k in range(self.median.shape[0]):
            _grow_errors(self, records, keys, n, k, 0, 1, self.error_left, self.median_left)
            _grow_errors(self, records, keys, n, k, n - 1, -1, self.error_right, self.median_right)
        return Side(0.0, 0.0, 0.0)

    def advance(self, side, records, keys, cut, p, n):
        weight = side.weight
        for j in range(cut, p):
            weight += records[record_of(keys[j]), 0]
        self.cut[0] = p
        return Side(weight, 0.0, 0.0)

    def side_values(self, side):
        return self.median_left[self.cut[0] - 1], self.median_right[self.cut[0]]

    def side_impurities(self, side):
        n_outputs = self.median.shape[0]
        left = self.error_left[self.cut[0] - 1] / (side.weight * n_outputs)
        right = self.error_right[self.cut[0]] / ((self.weight[0] - side.weight) * n_outputs)
        return left, right

    children_impurity = _children_of_side
    score = _score_of_side

    def write_value(self, value):
        for k in range(self.median.shape[0]):
            value[k, 0] = self.median[k]


@kernel
def _grow_errors(criterion, records, keys, n, k, first, step, errors, medians):
    """Let a set of samples grow from `first` in steps; add its absolute errors, note medians."""
    ordered = criterion.ordered
    tree = criterion.tree
    for j in range(n + 1):
        tree[0, j] = 0.0
        tree[1, j] = 0.0
    highest_bit = 1
    while 2 * highest_bit <= n:
        highest_bit *= 2
    total_weight = 0.0
    total = 0.0
    p = first
    for _ in range(n):
        i = record_of(keys[p])
        w = records[i, 0]
        rank = criterion.rank[k, i]
        wy = w * ordered[k, rank]
        j = rank + 1
        while j <= n:
            tree[0, j] += w
            tree[1, j] += wy
            j += j & -j
        total_weight += w
        total += wy
        last, following, weight_left, sum_left = _find_half(
            tree, n, highest_bit, 0.5 * total_weight
        )
        if last != following:
            median = (ordered[k, last] + ordered[k, following]) / 2.0
        else:
            median = ordered[k, following]
        medians[p] = median
        weight_right = total_weight - weight_left
        sum_right = total - sum_left
        errors[p] += (sum_right - median * weight_right) + (median * weight_left - sum_left)
        p += step


@kernel
def _find_half(tree, n, highest_bit, half):
    """Where the cumulative weight crosses `half`.

    Returns the ranks of the last sample below and the first above (the same, unless `half` is
    met exactly between two), and the weight and sum of what lies before the latter.
    """
    at = 0
    weight = 0.0
    total = 0.0
    bit = highest_bit
    while bit > 0:
        j = at + bit
        if j <= n:
            if half == tree[0, j]:
                break
            if half > tree[0, j]:
                half -= tree[0, j]
                at = j
                weight += tree[0, j]
                total += tree[1, j]
        bit >>= 1
    if bit == 0:
        return at, at, weight, total
    below = at
    rest = half
    smaller = bit
    while smaller > 0:
        j = below + smaller
        if j <= n and rest > tree[0, j]:
            rest -= tree[0, j]
            below = j
        smaller >>= 1
    while bit > 0:
        j = at + bit
        if j <= n and half >= tree[0, j]:
            half -= tree[0, j]
            at = j
            weight += tree[0, j]
            total += tree[1, j]
        bit >>= 1
    return below, at, weight, total


# The names a user types.
CLASSIFICATION = {"gini": Gini, "entropy": Entropy, "log_loss": Entropy}
REGRESSION = {
    "squared_error": SquaredError,
    "absolute_error": AbsoluteError,
    "poisson": Poisson,
}
