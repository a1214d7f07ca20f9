"""Cells of histograms as the records that criteria read.

classes    a record of each class: weight, class
numbers    one record: weight, sum of targets, sum of their squares
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import dispatch
from cart.primitives.sort_keys import record_of
from cart.splitting.criterion import Side
from cart.splitting.mean_criteria import SquaredError
from forest.partitioned.histograms import ROW, WEIGHT


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
    return kind.write(numbers, first, node, rows)
