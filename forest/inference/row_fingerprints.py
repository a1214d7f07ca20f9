"""Fingerprints of single rows: which rows of one table stand in another, in any order.

bits of a value, folded     b_1  b_2 ..  b_p      0 of a value that is 0, so that sparse rows
odd numbers, one a column   a_1  a_2 ..  a_p      have those of dense ones
row                         b_1 a_1 + b_2 a_2 + .. + b_p a_p  mod 2**64   (multilinear hashing)
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse
from sklearn.utils import gen_batches

_VALUES_AT_ONCE = 1 << 16
_X, _Y = 1, 2  # seeds of the numbers of columns


def row_fingerprints(X: Any, codes: np.ndarray, precision: DTypeLike | None = None) -> np.ndarray:
    """The fingerprint of every row, (n_samples,) uint64; equal rows have equal ones.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64, or sparse matrix
    codes : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        Positions of the classes, or numbers.
    precision : dtype, optional
        In which X is taken; its own unless given.
    """
    precision = np.dtype(precision or X.dtype)
    codes = codes.reshape(len(codes), -1)
    prints = _bits(codes) @ _numbers(_Y, codes.shape[1])
    numbers = _numbers(_X, X.shape[1])
    if issparse(X):
        X = X.tocsr()
        terms = _bits(X.data.astype(precision)) * numbers[X.indices]
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))
        return prints + (sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    for some in gen_batches(len(X), max(1, _VALUES_AT_ONCE // X.shape[1])):
        prints[some] += _bits(X[some].astype(precision, order="C", copy=False)) @ numbers
    return prints


def _bits(values):
    """The bits of numbers, folded: round numbers differ in their upper half alone."""
    bits = (values + 0.0).view(f"u{values.itemsize}")  # -0.0 is 0.0
    bits ^= bits >> (4 * values.itemsize)
    return bits.astype(np.uint64)


@lru_cache(8)
def _numbers(seed, n):
    """Odd numbers, one for each column; to seed their stream takes longer than to draw them."""
    return np.frombuffer(np.random.RandomState(seed).bytes(8 * n), "<u8").astype(np.uint64) | 1
