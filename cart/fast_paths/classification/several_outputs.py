"""Gini impurity of several outputs: the mean over the outputs.

The classes of a row, one for each output, are counted as one joint class. The counts of each
output's own classes follow from these:

    outputs    a: 0 1    b: 0 1 2
    class      0  1  2  3  4  5      a: 0 0 0 1 1 1, from class 3 on; b: 0 1 2 0 1 2
    cells      a0 a1 | b0 b1 b2      counts of each output's classes
"""

from typing import NamedTuple

import numpy as np

from cart.fast_paths.classification.cumulative_counts import count_left
from cart.fast_paths.classification.impurities import gain_of_squares
from cart.jit.decorators import inline_kernel, kernel

_ROUNDING = 6e-8  # of single precision, relative


def joint_codes(codes, n_values):
    """The joint classes of rows: one code for the classes of all outputs.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_outputs), float64
    n_values : int
        Every code is less than this.

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    places = n_values ** np.arange(codes.shape[1])[::-1]
    return codes @ places.astype(np.float64)


class GiniOfSeveralCuts(NamedTuple):
    """The mean of the Gini impurities of several outputs."""

    cells: np.ndarray  # (n_classes, n_outputs) int64: the cells in which a joint class is counted
    left: np.ndarray  # (n_cells,) int64: counts left of the current cut
    all: np.ndarray  # (n_cells,) int64: counts of the node
    of_class: np.ndarray  # (n_classes,) int64: of the cells of a joint class, added up

    @classmethod
    def create(cls, n_outputs, n_values):
        classes = np.arange(n_values**n_outputs)
        digits = np.unravel_index(classes, (n_values,) * n_outputs)
        cells = np.stack(digits, axis=1) + n_values * np.arange(n_outputs)
        counts = np.zeros((2, n_values * n_outputs), np.int64)
        return cls(cells.astype(np.int64), *counts, np.empty(len(cells), np.int64))

    def impurity_of(self, counts, weight):
        _count_cells(self.cells, counts, self.all)
        return _gini(self, self.all, np.float64(weight))

    def begin_left(self, left, counts):
        _count_cells(self.cells, counts, self.all)
        squares = np.int64(0)
        for cell in range(self.all.shape[0]):
            self.left[cell] = 0
            squares += self.all[cell] * self.all[cell]
        for c in range(self.cells.shape[0]):
            if counts[c] == 0:  # as most are in small nodes
                continue
            self.of_class[c] = 0
            for k in range(self.cells.shape[1]):
                self.of_class[c] += self.all[self.cells[c, k]]
        return np.int64(0), squares

    def move_left(self, left, counts, c, w):
        more = np.int64(0)
        for k in range(self.cells.shape[1]):
            cell = self.cells[c, k]
            before = self.left[cell]
            more += before
            self.left[cell] = before + w
        n_outputs, less = np.int64(self.cells.shape[1]), self.of_class[c] - more
        return w * (2 * more + n_outputs * w), w * (n_outputs * w - 2 * less)

    def approximate_gains(self, running, entries, first, last, counts, weight, low_mask):
        gain_of_squares(running, entries, first, last, weight, low_mask)

    def gain_to_beat(self, top, score, counts, weight):
        """The score is (gain - n_outputs W) / n_outputs; see GiniCuts."""
        n_outputs = np.float64(self.cells.shape[1])
        W = n_outputs * np.float64(weight)
        error = 10.0 * _ROUNDING * W
        return np.inf if top - W + error < n_outputs * score else top - 2.0 * error

    def scores_at_once(self, n):
        return False

    def bounds_more_classes(self):
        return False

    def score_cut(self, running, entries, i, counts, weight, layout):
        count_left(running, entries, i, counts, layout)
        left_weight = np.int64(running.weight[i])
        left, right = _halves(self, running.left, counts, left_weight, weight)
        left_weight = np.float64(left_weight)
        return -(np.float64(weight) - left_weight) * right - left_weight * left

    def child_impurities(self, left, counts, left_weight, weight):
        return _halves(self, left, counts, left_weight, weight)

    def write_shares(self, value, counts, weight):
        _count_cells(self.cells, counts, self.all)
        n_values = value.shape[1]
        for cell in range(self.all.shape[0]):
            share = np.float64(self.all[cell]) / np.float64(weight)
            value[cell // n_values, cell % n_values] = share


@inline_kernel
def _count_cells(cells, counts, into):
    """Write the counts of each output's own classes, from counts of joint classes."""
    for cell in range(into.shape[0]):
        into[cell] = 0
    for c in range(counts.shape[0]):
        if counts[c] == 0:
            continue
        for k in range(cells.shape[1]):
            into[cells[c, k]] += counts[c]


@inline_kernel
def _gini(self, counted, weight):
    n_outputs = self.cells.shape[1]
    n_values = counted.shape[0] // n_outputs
    gini = 0.0
    for k in range(n_outputs):
        squares = 0.0
        for c in range(n_values):
            count = np.float64(counted[k * n_values + c])
            squares += count * count
        gini += 1.0 - squares / (weight * weight)
    return gini / np.float64(n_outputs)


@kernel
def _halves(self, left, counts, left_weight, weight):
    """Impurities left and right of a cut."""
    _count_cells(self.cells, counts, self.all)
    _count_cells(self.cells, left, self.left)
    of_left = _gini(self, self.left, np.float64(left_weight))
    for cell in range(self.all.shape[0]):
        self.left[cell] = self.all[cell] - self.left[cell]
    return of_left, _gini(self, self.left, np.float64(weight - left_weight))
