"""Permutation among rows that are alike in the other features."""

from importance.conditional.conditional import conditional_permutation

__all__ = ["conditional_permutation"]
