"""The training table of random splitters: a value's code is its place among all float32 values.

Random splitters look at the lowest and the highest value of a node only, so values need no ranks.
"""

from typing import NamedTuple

import numpy as np

from cart.jit.decorators import entry_kernel, like
from cart.primitives.float_order import bits_of, ordinal_of
from cart.primitives.threads import in_parts
from cart.table.distinct_values import FEATURE_THRESHOLD
from cart.table.table import Table, value_of

# Values per thread, at least.
_MIN_VALUES = 1 << 17
_SIGN = np.uint32(1 << 31)


@like(Table)
class FloatTable(NamedTuple):
    """A Table in which a code is the bits of a float32, changed so that codes ascend as values."""

    codes: np.ndarray  # (n_columns, n_samples) uint32: 2**31 for 0; MISSING for nan
    columns: np.ndarray  # (n_features,) int64: the column of each feature

    is_complete = True  # it has the values of its codes

    @classmethod
    def encode(cls, columns, n_jobs=None):
        """Encode the values of columns, in single precision; see `cart.table.encoding.encode`."""
        codes = columns.take_all(n_jobs).view(np.uint32)

        def fill(first, end):
            part = codes[first:end].reshape(-1)
            _fill_codes(part.view(np.int32), part)

        in_parts(fill, len(codes), n_jobs, -(-_MIN_VALUES // codes.shape[1]))
        return cls(codes, np.arange(len(codes)))

    def value_of(self, column, code):
        return np.float64(np.int32(bits_of(np.int32(code ^ _SIGN))).view(np.float32))

    def same_value(self, column, low, high):
        if low == high:
            return True
        low_value = np.float32(value_of(self, column, low))
        return value_of(self, column, high) <= np.float32(low_value + FEATURE_THRESHOLD)

    def code_up_to(self, column, lowest, highest, threshold):
        nearest = np.float32(threshold)
        code = np.int64(np.uint32(ordinal_of(nearest.view(np.int32))) ^ _SIGN)
        return code - 1 if nearest > threshold else code


@entry_kernel
def _fill_codes(bits, codes):
    for i in range(bits.shape[0]):
        codes[i] = np.uint32(ordinal_of(bits[i])) ^ _SIGN
