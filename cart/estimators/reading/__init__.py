"""Trees in words: the path of one row, and the whole tree as text."""

from cart.estimators.reading.path import PathStep, TreePath, explain_path
from cart.estimators.reading.summary import summary

__all__ = ["PathStep", "TreePath", "explain_path", "summary"]
