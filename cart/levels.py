"""The distinct values of columns, in the precision they come in."""

from typing import NamedTuple

import numpy as np

from cart.jit import inline_kernel


class Levels(NamedTuple):
    """Values in single or double precision, one type for kernels: one of the arrays is empty."""

    single: np.ndarray  # (n,) float32
    double: np.ndarray  # (n,) float64

    @classmethod
    def of(cls, values):
        """Those of an array, which is not copied."""
        if values.dtype == np.float64:
            return cls(np.empty(0, np.float32), values)
        return cls(values, np.empty(0))

    @property
    def array(self):
        return self.double if len(self.double) else self.single


@inline_kernel
def level_at(levels, at):
    """Value number `at`, float64."""
    if levels.double.shape[0] > 0:
        return levels.double[at]
    return np.float64(levels.single[at])
