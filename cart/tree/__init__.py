"""The grown tree: its nodes, compact storage, pruning, packing for prediction, and walks."""

from cart.tree.tree import Tree

__all__ = ["Tree"]
