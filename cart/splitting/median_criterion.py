"""The absolute error criterion, from the weighted medians of the sides of a cut."""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import kernel, like
from cart.primitives.sort_keys import record_of, sort_positions_by_value
from cart.splitting.criterion import AnyCriterion, Side


@like(AnyCriterion)
class AbsoluteError(NamedTuple):
    """Mean absolute difference from the weighted median, the mean over outputs.

        keys          [ k0   k1   k2   k3  ]
        error_left      e0   e01  e012 ...         of the samples up to each
        error_right     ...  e123 e23  e3          of the samples from each on

    `arrange` finds the errors and medians of all prefixes and suffixes of the order in O(n log n),
    with a Fenwick tree over the ranks of the targets (as in scikit-learn 1.8).
    """

    median: np.ndarray  # (n_outputs,) float64: of the node
    weight: np.ndarray  # (1,) float64: of the node
    cut: np.ndarray  # (1,) int64: how many samples are on the left
    error_left: np.ndarray  # (n,) float64: absolute error of the first 1, 2, ... samples
    error_right: np.ndarray  # (n,) float64: of the samples from the 1st, 2nd, ... on
    median_left: np.ndarray  # (n,) float64: median of the first 1, 2, ..., for the last output
    median_right: np.ndarray  # (n,) float64: of the samples from the 1st, 2nd, ... on
    rank: np.ndarray  # (n_outputs, n) int64: of each record's target in the node, from 1 on
    ordered: np.ndarray  # (n_outputs, n + 1) float64: the node's targets by rank
    heavy: np.ndarray  # (n_outputs, n + 1) float64: the weights by rank
    numbers: np.ndarray  # (n,) int64: the ranks of the samples in the current order
    spare: np.ndarray  # (2, n) int64
    tree: np.ndarray  # (2, n + 1) float64: Fenwick tree of weights and of weighted targets

    @classmethod
    def create(cls, n_outputs, n_values, n_samples):
        return cls(
            np.zeros(n_outputs), np.zeros(1), np.zeros(1, np.int64), *np.empty((4, n_samples)),
            np.empty((n_outputs, n_samples), np.int64), *np.empty((2, n_outputs, n_samples + 1)),
            np.empty(n_samples, np.int64), np.empty((2, n_samples), np.int64),
            np.empty((2, n_samples + 1)),
        )  # fmt: skip

    def load(self, records, keys, n, keep_order):
        self.weight[0] = 0.0
        for j in range(n):
            self.weight[0] += records[record_of(keys[j]), 0]
        targets = self.tree[0]  # free until `arrange`
        for k in range(self.median.shape[0]):
            for j in range(n):
                targets[j] = records[record_of(keys[j]), k + 1]
            sort_positions_by_value(self.tree.T, 0, n, self.spare)
            total = 0.0
            middle = 0.5 * self.weight[0]
            self.median[k] = 0.0
            found = False
            for j in range(n):
                i = record_of(keys[self.spare[0, j]])
                self.rank[k, i] = j + 1
                self.ordered[k, j + 1] = records[i, k + 1]
                self.heavy[k, j + 1] = records[i, 0]
                total += records[i, 0]
                if not found and total >= middle:
                    found = True
                    self.median[k] = records[i, k + 1]
                    if total == middle and j + 1 < n:
                        following = targets[self.spare[0, j + 1]]
                        self.median[k] = (records[i, k + 1] + following) / 2.0

    def impurity(self, records, keys, n):
        error = 0.0
        for k in range(self.median.shape[0]):
            for j in range(n):
                i = record_of(keys[j])
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
            for p in range(n):
                self.numbers[p] = self.rank[k, record_of(keys[p])]
            ordered, heavy = self.ordered[k], self.heavy[k]
            grow_errors(
                self.numbers, heavy, ordered, self.tree, self.error_left, self.median_left, n, 1
            )
            grow_errors(
                self.numbers, heavy, ordered, self.tree, self.error_right, self.median_right, n, -1
            )
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

    def write_value(self, value):
        for k in range(self.median.shape[0]):
            value[k, 0] = self.median[k]


@kernel
def grow_errors(numbers, weight, y, tree, errors, medians, n, step):
    """Add the absolute errors of all prefixes of a sequence of rows (step 1), or of all suffixes
    (step -1), to `errors`, and write their medians.

    `numbers` are the rows' ranks by their targets, from 1 on; `weight` and `y` are by rank.
    """
    for j in range(n + 1):
        tree[0, j] = 0.0
        tree[1, j] = 0.0
    highest_bit = 1
    while 2 * highest_bit <= n:
        highest_bit *= 2
    total_weight = 0.0
    total = 0.0
    p = 0 if step > 0 else n - 1
    for _ in range(n):
        j = numbers[p]
        w = weight[j]
        wy = w * y[j]
        while j <= n:
            tree[0, j] += w
            tree[1, j] += wy
            j += j & -j
        total_weight += w
        total += wy
        last, following, weight_left, sum_left = _find_half(
            tree, n, highest_bit, 0.5 * total_weight
        )
        median = y[following + 1]
        if last != following:
            median = (y[last + 1] + median) / 2.0
        medians[p] = median
        weight_right = total_weight - weight_left
        sum_right = total - sum_left
        errors[p] += (sum_right - median * weight_right) + (median * weight_left - sum_left)
        p += step


@kernel
def _find_half(tree, n, highest_bit, half):
    """Find where the cumulative weight crosses `half`.

    Returns the ranks, from 0 on, of the last sample below and the first above (the same, unless
    `half` is met exactly between two), and the weight and sum of the samples before the latter.
    """
    at = 0
    weight = 0.0
    total = 0.0
    rest = half
    bit = highest_bit
    while bit > 0:
        j = at + bit
        if j <= n and rest >= tree[0, j]:
            rest -= tree[0, j]
            at = j
            weight += tree[0, j]
            total += tree[1, j]
        bit >>= 1
    below = at
    if rest == 0.0:  # `half` was met
        below = 0
        rest = half
        bit = highest_bit
        while bit > 0:
            j = below + bit
            if j <= n and rest > tree[0, j]:
                rest -= tree[0, j]
                below = j
            bit >>= 1
    return below, at, weight, total
