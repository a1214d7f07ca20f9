"""Permutation importance: the rise in loss when a column is permuted, by tree and by forest."""

from importance.permutation.forest_level import forest_permutation
from importance.permutation.oob import held_out_permutation, oob_permutation

__all__ = ["forest_permutation", "held_out_permutation", "oob_permutation"]
