"""Sums of words are those of NumPy, modulo 2**64."""

import numpy as np
import pytest

from cart.primitives.word_sums import add_columns_and_rows


@pytest.mark.parametrize(("n_rows", "n_columns"), [(0, 8), (1, 1), (3, 8), (5, 67)])
def test_words_are_added_by_row_and_by_column(n_rows, n_columns):
    words = np.random.default_rng(0).integers(0, 2**64, n_rows * n_columns, np.uint64)
    table, columns = words.reshape(n_rows, n_columns), np.arange(n_columns, dtype=np.uint64)
    expected = columns + table.sum(axis=0)
    rows = np.empty(n_rows, np.uint64)
    add_columns_and_rows(words, columns, rows)
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(rows, table.sum(axis=1))
