"""The loss of predictions whose columns are permuted: out of bag, by tree and by forest."""

from importance.permutation.forest_level import forest_permutation
from importance.permutation.oob import held_out_permutation, oob_permutation

__all__ = ["forest_permutation", "held_out_permutation", "oob_permutation"]
