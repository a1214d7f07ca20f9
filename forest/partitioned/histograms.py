"""Histograms of open nodes: what a partition adds up, and what is added up over partitions.

A node looks at a few features. Of each, the rows of the node that have a code are added up in the
cells of that code, in whole numbers, which add up to the same in every order:

    classes    cells[code, c] = rows << 32 | weight         of class c
    numbers    cells[code]    = [ rows << 32 | weight, sum of w q, sum of w q * q ]

q are targets in whole steps, see `forest.partitioned.table.targets`. The last code is that of
missing values. Where there are categories, a cell has one number more, see
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

ROW = 1 << 32  # of a word of rows and weight
WEIGHT = ROW - 1
FIRST = 1 << 62  # less the number of a row: the first of several is the largest


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
    """Add a row with that weight to the cells of a code."""


class OpenRows(NamedTuple):
    """The in-bag rows of a partition, in the open nodes of all trees: segment after segment.

    A segment's rows ascend.
    """

    rows: np.ndarray  # (n,) uint32: of the partition
    weight: np.ndarray  # (n,) uint8, uint16 or uint32: how often each is in bag
    start: np.ndarray  # (n_segments + 1,) int64: segment s owns rows[start[s]:start[s + 1]]
    first_row: int  # of the partition in the whole table


class Request(NamedTuple):
    """Which histograms are asked for."""

    segments: np.ndarray  # (n,) int64
    features: np.ndarray  # (n, k) int32: that the node of each looks at, in its order
    shape: tuple  # codes of a feature at most, with the missing one; numbers of a code
    keeps_first: bool  # is the last of these numbers about the first row?


def count(codes, targets, opened, request):
    """Histograms of a partition.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8, uint16 or uint32
        The highest number of the type is a missing value.
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
    """Rows, weights and sums of every segment of a partition: a cell of each.

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
    """The squared error of cells: records are weights, sums of targets and of their squares."""

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

    name: int = 0  # numba wants a field

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
    """Cells of sums, in steps of that length."""

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
    """Write the records of a code from `first` on, and how many rows each is of; return the end."""
