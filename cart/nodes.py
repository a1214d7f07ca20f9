"""Node arrays of a tree under scikit-learn's names, root in row 0."""

from typing import NamedTuple

import numpy as np

LEAF = -1
UNDEFINED = -2


class Nodes(NamedTuple):
    """Node arrays as the kernels see them; a leaf has both children LEAF."""

    children_left: np.ndarray  # (n_nodes,) int32
    children_right: np.ndarray  # (n_nodes,) int32
    feature: np.ndarray  # (n_nodes,) int32; UNDEFINED in a leaf
    threshold: np.ndarray  # (n_nodes,) float64: x <= threshold goes left; UNDEFINED in a leaf
    impurity: np.ndarray  # (n_nodes,) float64
    n_node_samples: np.ndarray  # (n_nodes,) int32
    weighted_n_node_samples: np.ndarray  # (n_nodes,) float64
    missing_go_to_left: np.ndarray  # (n_nodes,) uint8
    value: np.ndarray  # (n_nodes, n_outputs, n_values) float64: class shares or means

    @classmethod
    def create(cls, capacity, n_outputs, n_values):
        return cls(
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.empty(capacity),
            np.empty(capacity),
            np.empty(capacity, np.int32),
            np.empty(capacity),
            np.empty(capacity, np.uint8),
            np.empty((capacity, n_outputs, n_values)),
        )
