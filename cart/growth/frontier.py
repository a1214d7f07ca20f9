"""Nodes that wait to be grown."""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import kernel


class Frontier(NamedTuple):
    """Nodes that wait to be grown: a stack, or a heap by `improvement`. One row per node."""

    start: np.ndarray  # int64: first of the node's samples
    end: np.ndarray  # int64: behind the last
    end_left: np.ndarray  # int64: first that goes right (best first)
    depth: np.ndarray  # int64
    parent: np.ndarray  # int64: depth first: the parent; best first: the node itself
    side: np.ndarray  # int64: 1 is the left child; best first: 1 is a leaf
    n_constant: np.ndarray  # int64: features known to be constant
    impurity: np.ndarray  # float64
    lower: np.ndarray  # float64: bounds of the prediction, see Bounds
    upper: np.ndarray  # float64
    impurity_left: np.ndarray  # float64 (best first, like the rest)
    impurity_right: np.ndarray  # float64
    middle: np.ndarray  # float64: between the values of the children
    direction: np.ndarray  # float64: of the split's monotonic constraint
    improvement: np.ndarray  # float64
    key: np.ndarray  # uint64: of the node's draws

    @classmethod
    def create(cls, capacity):
        integers = (np.empty(capacity, np.int64) for _ in range(7))
        floats = (np.empty(capacity) for _ in range(8))
        return cls(*integers, *floats, np.empty(capacity, np.uint64))


@kernel
def push(
    frontier, height, start, end, depth, parent, side, n_constant, impurity, bounds, key
):  # fmt: skip
    frontier.start[height] = start
    frontier.end[height] = end
    frontier.depth[height] = depth
    frontier.parent[height] = parent
    frontier.side[height] = side
    frontier.n_constant[height] = n_constant
    frontier.impurity[height] = impurity
    frontier.lower[height] = bounds.lower
    frontier.upper[height] = bounds.upper
    frontier.key[height] = key
    return height + 1
