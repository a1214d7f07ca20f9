"""The grown tree: its nodes, kept small, pruned, packed for prediction, and walked."""

from cart.tree.tree import Tree

__all__ = ["Tree"]
