"""Packed trees in which rows go by surrogates: a form of nodes that wraps another one.

A row that has the value of a node's feature takes the step of the other form; if no values are
missing, there is no test for that. The surrogates of all trees are in one sequence:

    place          0     1   2       of a node of a packed tree
    begin, end     0 3   3 3 3 4     surrogates of the node, the best first
    feature      [ 4 1 7 | | 2 ]
"""

from typing import Any, NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, kernel
from cart.tree.nodes import side_of_category
from cart.tree.packed_protocol import (
    MISSING_LEFT,
    as_compared,
    fetch,
    is_missing,
    left_of,
    missing_goes_right,
    step,
    value_at,
    value_met,
    write_rows,
)


class SurrogateSteps(NamedTuple):
    """The surrogates of all trees, with thresholds as values of rows are compared with them."""

    begin: np.ndarray  # (n_places,) int64
    end: np.ndarray  # (n_places,) int64
    feature: np.ndarray  # (n,) uint32
    threshold: np.ndarray  # (n,) of the dtype of the rows' values
    low_left: np.ndarray  # (n,) uint8
    list_start: np.ndarray  # (n + 1,) int64: see `cart.tree.surrogates`
    listed: np.ndarray  # uint32


class PackedWithSurrogates(NamedTuple):
    """Packed trees with surrogates, for rows with missing values."""

    packed: Any  # Packed or PackedWide; the next fields are the same as its own
    number: np.ndarray
    start: np.ndarray
    value: np.ndarray
    value_start: np.ndarray
    n_features: int
    surrogates: SurrogateSteps

    def step(self, place, X, row, may_miss):
        if may_miss and is_missing(self.packed, value_met(self.packed, place, X, row)):
            left = left_of(self.packed, place)
            if left == place:
                return place
            return left + _goes_right(self.packed, self.surrogates, place, X, row)
        return step(self.packed, place, X, row, False)

    def left_of(self, place):
        return left_of(self.packed, place)

    def value_at(self, place):
        return value_at(self.packed, place)

    def fetch(self, tree, part, n_parts):
        fetch(self.packed, tree, part, n_parts)

    def write_rows(self, X, values):
        return write_rows(self.packed, X, values)


@kernel
def _goes_right(packed, surrogates, place, X, row):
    """1 if a row that lacks the value of a node's feature goes right, else 0."""
    for s in range(surrogates.begin[place], surrogates.end[place]):
        x = X[row + np.uint64(surrogates.feature[s])]
        if is_missing(packed, x):
            continue
        first, end = surrogates.list_start[s], surrogates.list_start[s + 1]
        if first == end:
            is_low = x <= surrogates.threshold[s]
            return np.uint64(is_low != (surrogates.low_left[s] == 1))
        side = side_of_category(surrogates.listed[first:end], end - first, x)
        if side >= 0:
            return np.uint64(1 - side)
    return missing_goes_right(packed, place)


def goes_by_surrogates(tree: Any) -> bool:
    """Whether rows that lack values go down a tree by surrogates."""
    surrogates = getattr(tree, "surrogates", None)
    return surrogates is not None and bool(surrogates.routes)


def add_surrogates(packed: Any, trees: list) -> Any:
    """Add the surrogates of trees to their packed form, if rows go by them.

    Parameters
    ----------
    packed : Packed or PackedWide
    trees : list of objects with scikit-learn's node arrays
        The trees in which rows go by surrogates have `surrogates`.

    Returns
    -------
    Packed, PackedWide or PackedWithSurrogates
    """
    kept = [tree.surrogates if goes_by_surrogates(tree) else None for tree in trees]
    known = [some for some in kept if some is not None]
    if not known:
        return packed
    number = packed.number & ~MISSING_LEFT
    begin, end = np.zeros((2, len(number)), np.int64)
    n_before = 0
    for t, some in enumerate(kept):
        mine = slice(packed.start[t], packed.start[t + 1])
        if some is not None:
            begin[mine] = some.start[number[mine]] + n_before
            end[mine] = some.start[number[mine] + 1] + n_before
            n_before += len(some.feature)
    joined = {
        name: np.concatenate([getattr(some, name) for some in known])
        for name in ("feature", "threshold", "low_left", "listed")
    }
    sizes = np.concatenate([np.diff(some.list_start) for some in known])
    compared = np.empty(n_before, packed.number.dtype if hasattr(packed, "feature_bits") else float)
    _fill_thresholds(packed, joined["threshold"], compared)
    return PackedWithSurrogates(
        packed, packed.number, packed.start, packed.value, packed.value_start, packed.n_features,
        SurrogateSteps(
            begin, end, joined["feature"].astype(np.uint32), compared,
            joined["low_left"], np.concatenate(([0], np.cumsum(sizes))), joined["listed"],
        ),
    )  # fmt: skip


@entry_kernel
def _fill_thresholds(packed, thresholds, compared):
    """Convert thresholds to what values of rows are compared with."""
    for s in range(thresholds.shape[0]):
        compared[s] = as_compared(packed, thresholds[s])
