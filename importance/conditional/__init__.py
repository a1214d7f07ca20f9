"""Conditional permutation importance: values are permuted among rows alike in other features."""

from importance.conditional.conditional import conditional_permutation

__all__ = ["conditional_permutation"]
