"""Histograms of open nodes, which partitions compute and which are added up over partitions.

A node considers a few features. For each feature and code, the rows of the node with that code are
added up in cells of whole numbers, whose sums are the same in every order:

    classes    cells[code, c] = rows << 32 | weight         of class c
    numbers    cells[code]    = [ rows << 32 | weight, sum of w q, sum of w q * q ]

q are targets in whole steps, see `forest.partitioned.table.targets`. The last code is that of
missing values. With categories, a cell has one more number, see
`forest.partitioned.choice_of_subsets`. Criteria read cells as records:

    classes    a record of each class: weight, class
    numbers    one record: weight, sum of targets, sum of their squares
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch, entry_kernel
from cart.primitives.sort_keys import record_of
from cart.splitting.criterion import Side
from cart.splitting.mean_criteria import SquaredError

ROW = 1 << 32  # one row, in a word of rows and weight
WEIGHT = ROW - 1  # mask of the weight in such a word
FIRST = 1 << 62  # FIRST - row is largest for the first of several rows


class ClassTargets(NamedTuple):
    """The classes of a partition's rows."""

    codes: np.ndarray  # (n_rows,) uint16

    def add(self, cells, row, weight):
        cells[self.codes[row]] += np.int64(ROW) + weight


class NumberTargets(NamedTuple):
    """The targets of a partition's rows, in whole steps."""

    steps: np.ndarray  # (n_rows,) int64

    def add(self, cells, row, weight):
        steps = self.steps[row]
        cells[0] += np.int64(ROW) + weight
        cells[1] += weight * steps
        cells[2] += weight * steps * steps


@dispatch
def add(targets, cells, row, weight):
    """Add a row with its weight to the cells of a code."""


class OpenRows(NamedTuple):
    """The in-bag rows of a partition in the open nodes of all trees, segment after segment.

    The rows of a segment ascend.
    """

    rows: np.ndarray  # (n,) uint32: row numbers in the partition
    weight: np.ndarray  # (n,) uint8, uint16 or uint32: how often each is in bag
    start: np.ndarray  # (n_segments + 1,) int64: segment s has rows[start[s]:start[s + 1]]
    first_row: int  # the number of the partition's first row in the whole table


class Request(NamedTuple):
    """Which histograms are to be computed."""

    segments: np.ndarray  # (n,) int64
    features: np.ndarray  # (n, k) int32: features that each node considers, in its order
    shape: tuple  # most codes of a feature, including the missing one; numbers of a code
    keeps_first: bool  # whether the last of these numbers stands for the first row


def count(codes, targets, opened, request):
    """Compute histograms of a partition.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8, uint16 or uint32
        The highest number of the dtype is a missing value.
    targets : ClassTargets or NumberTargets
    opened : OpenRows
    request : Request

    Returns
    -------
    ndarray of shape (n, k, n_codes, n_numbers), int64
    """
    cells = np.zeros((*request.features.shape, *request.shape), np.int64)
    _count(codes, targets, opened, request, cells)
    return cells


@entry_kernel
def _count(codes, targets, opened, request, cells):
    """Add the rows of the requested segments to `cells`, by feature and code."""
    segments, features = request.segments, request.features
    missing, last = np.int64(cells.shape[2] - 1), cells.shape[3] - 1
    for i in range(segments.shape[0]):
        first, end = opened.start[segments[i]], opened.start[segments[i] + 1]
        for k in range(features.shape[1]):
            column, mine = codes[features[i, k]], cells[i, k]
            if request.keeps_first:
                for j in range(end - 1, first - 1, -1):
                    row = np.int64(opened.rows[j])
                    code = min(np.int64(column[row]), missing)
                    mine[code, last] = np.int64(FIRST) - (opened.first_row + row)
            for j in range(first, end):
                row = np.int64(opened.rows[j])
                code = min(np.int64(column[row]), missing)
                add(targets, mine[code], row, np.int64(opened.weight[j]))


def count_roots(targets, opened, n_numbers):
    """Add up all rows of every segment of a partition in one cell.

    Returns
    -------
    ndarray of shape (n_segments, n_numbers), int64
    """
    cells = np.zeros((len(opened.start) - 1, n_numbers), np.int64)
    _count_roots(targets, opened, cells)
    return cells


@entry_kernel
def _count_roots(targets, opened, cells):
    for s in range(cells.shape[0]):
        for j in range(opened.start[s], opened.start[s + 1]):
            add(targets, cells[s], opened.rows[j], np.int64(opened.weight[j]))


class SumsOfCells(SquaredError):
    """Squared error for cells: records are weights, sums of targets and sums of their squares."""

    __slots__ = ()

    def load(self, records, keys, n, keep_order):
        self.node[0] = 0.0
        self.weight[0] = 0.0
        self.squares[0] = 0.0
        for j in range(n):
            i = record_of(keys[j])
            self.weight[0] += records[i, 0]
            self.node[0] += records[i, 1]
            self.squares[0] += records[i, 2]

    def move(self, side, records, i, sign):
        return Side(side.weight + sign * records[i, 0], side.first + sign * records[i, 1], 0.0)

    def children_impurity(self, side, records, keys, n_left, n):
        weight_right = self.weight[0] - side.weight
        squares = 0.0
        for j in range(n_left):
            squares += records[record_of(keys[j]), 2]
        mean_left = side.first / side.weight
        mean_right = (self.node[0] - side.first) / weight_right
        variance_left = squares / side.weight - mean_left * mean_left
        variance_right = (self.squares[0] - squares) / weight_right - mean_right * mean_right
        return variance_left, variance_right


class ClassCells(NamedTuple):
    """Cells of class counts."""

    name: int = 0  # numba needs at least one field

    def write(self, numbers, first, node, rows):
        end = first
        for c in range(numbers.shape[0]):
            if numbers[c] != 0:
                node.records[end, 0] = numbers[c] & np.int64(WEIGHT)
                node.records[end, 1] = c
                rows[end] = numbers[c] // np.int64(ROW)
                end += 1
        return end


class SumCells(NamedTuple):
    """Cells of sums of targets in steps of a given length."""

    step: float

    def write(self, numbers, first, node, rows):
        if numbers[0] == 0:
            return first
        node.records[first, 0] = numbers[0] & np.int64(WEIGHT)
        node.records[first, 1] = numbers[1] * self.step
        node.records[first, 2] = numbers[2] * (self.step * self.step)
        rows[first] = numbers[0] // np.int64(ROW)
        return first + 1


@dispatch
def write(kind, numbers, first, node, rows):
    """Write the records of a code from `first` on, and the rows of each; return the end."""
