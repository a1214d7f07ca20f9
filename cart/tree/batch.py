"""Batches of small trees that were grown together and share their arrays.

The arrays are compact until the nodes of one tree are asked for; then those of all trees are
expanded. If each small tree had arrays of its own, these would take more memory than its nodes.
"""

from typing import NamedTuple

import numpy as np

from cart.tree.compact import Compact
from cart.tree.nodes import LEAF, Nodes


class Batch:
    """The nodes of several trees, tree after tree.

    Parameters
    ----------
    held : cart.tree.compact.Compact
        Of all nodes. Arrays that it leaves out can be recomputed in every tree.
    starts : ndarray of shape (n_trees + 1,), int64
        Where the nodes of each tree begin, and where the last end.

    Attributes
    ----------
    shape : tuple of int
        Number of outputs, and of values of each.
    bytes_per_node : int
        Once they are expanded.
    """

    def __init__(self, held, starts):
        self._starts = starts
        self.held = held
        self.shape = held.shape
        self.bytes_per_node = sum(array.nbytes for array in Nodes.create(1, *held.shape))

    def trees(self):
        """A list of OneOfBatch, one for each tree."""
        return [OneOfBatch(self, number) for number in range(len(self._starts) - 1)]

    def ends(self, number):
        """The first node of a tree, and the one after its last."""
        return self._starts[number : number + 2].tolist()

    def expand(self):
        """The node arrays of all trees, which stay expanded from now on."""
        held = self.held  # which another thread may expand at any time
        if isinstance(held, Compact):
            held = held.expand()
            first = np.repeat(self._starts[:-1].astype(np.int32), np.diff(self._starts))
            for children in (held.children_left, held.children_right):
                np.subtract(children, first, out=children, where=children != LEAF)
            self.held = held
        return held

    @property
    def splits(self):
        """Features and thresholds of the nodes (leaves have a negative feature) or of the splits
        alone; thresholds may be written to."""
        return self.held.splits


class OneOfBatch(NamedTuple):
    """A tree of a batch, as a Tree holds it."""

    batch: Batch
    number: int

    def expand(self):
        """The node arrays, as cart.tree.nodes.Nodes."""
        first, end = self.batch.ends(self.number)
        return Nodes._make([array[first:end] for array in self.batch.expand()])

    @property
    def splits(self):
        held, number, (first, end) = self.batch.held, self.number, self.batch.ends(self.number)
        if isinstance(held, Compact):  # without leaves, one more in each tree than its splits
            first, end = (first - number) // 2, (end - number - 1) // 2
        features, thresholds = held.splits
        return features[first:end], thresholds[first:end]

    @property
    def n_nodes(self):
        first, end = self.batch.ends(self.number)
        return end - first

    @property
    def shape(self):
        return self.batch.shape

    @property
    def nbytes(self):
        """Bytes of the nodes once they are expanded, as they soon are."""
        return self.n_nodes * self.batch.bytes_per_node
