"""Ranks of columns, against numpy."""

import tracemalloc

import numpy as np
import pytest

from cart import DecisionTreeClassifier
from cart.estimators.encoding import encode_columns
from cart.jit.decorators import entry_kernel
from cart.primitives.float_order import bits_in_order, ordered
from cart.table.columns import Columns
from cart.table.distinct_values import FEATURE_THRESHOLD, last_tied
from cart.table.encoding import encode
from cart.table.float_table import FloatTable
from cart.table.ranking import MISSING, Scratch, rank
from cart.table.repeated_codes import RepeatedCodes, Values
from cart.table.table import code_up_to, value_of
from tests.agreement.same import assert_same_tables

SPECIAL = (0.0, -0.0, np.nan, 1e38, -1e38, np.inf, -np.inf, 1e-45, -1e-45, 2.0**53, 2.0**53 - 1)
COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(-3, 4, n),
    "some missing": lambda rng, n: np.where(rng.random(n) < 0.3, -np.nan, rng.normal(size=n)),
    "all missing": lambda rng, n: np.full(n, np.nan),
    "whole numbers": lambda rng, n: rng.integers(-n // 3, n // 3, n) - 2**20,
    "whole numbers far apart": lambda rng, n: 1000.0 * rng.integers(-5, n, n),
    "all whole but the last": lambda rng, n: np.append(rng.integers(0, 9, n - 1), 0.5),
    "all whole, the last missing": lambda rng, n: np.append(rng.integers(0, 9, n - 1), np.nan),
    "whole, some missing": lambda rng, n: np.where(
        rng.random(n) < 0.3, np.nan, rng.integers(-n // 3, n // 3, n)
    ),
    "whole, the longest range": lambda rng, n: np.append(rng.permutation(n - 1), np.nan),
    "whole, one longer": lambda rng, n: np.where(np.arange(n) == 1, np.nan, np.arange(n)),
    "zeros of both signs, some missing": lambda rng, n: rng.choice([0.0, -0.0, np.nan], n),
    "whole, one infinite": lambda rng, n: np.append(rng.integers(0, 9, n - 1), np.inf),
    "special": lambda rng, n: rng.choice(SPECIAL, n),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("column", COLUMNS)
def test_ranks_are_numpys(column, dtype):
    rng = np.random.default_rng(0)
    for n in (1, 5, 21, 100, 1500, 5000):
        values = COLUMNS[column](rng, n).astype(dtype)
        known = ~np.isnan(values)
        levels, expected = np.unique(values[known], return_inverse=True)
        codes = np.empty((1, n), np.uint32)
        found = np.empty(n, dtype)
        none = np.zeros(1, np.int64)
        start = rank(values[np.newaxis], none, codes, found, Scratch.create(n))
        np.testing.assert_array_equal(found[: start[-1]], levels)
        np.testing.assert_array_equal(codes[0, known], expected)
        assert (codes[0, ~known] == MISSING).all()
        if dtype == np.float32:  # in the place of the values
            there = values.copy().view(np.uint32)[np.newaxis]
            start = rank(there.view(np.float32), none, there, found, Scratch.create(n))
            np.testing.assert_array_equal(found[: start[-1]], levels)
            np.testing.assert_array_equal(there, codes)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_a_table_is_its_columns_whatever_the_threads(n_jobs, dtype, order, monkeypatch):
    """Blocks of one column and of several, missing values, categories, values that count as one."""
    rng = np.random.default_rng(0)
    n = 200
    drawn = [draw(rng, n) for draw in COLUMNS.values()] * 2
    near = [scale * rng.random(n) for scale in (1e-8, 1e-6, 1e-5)]
    X = np.array([*drawn, *near], dtype, order="F").T.copy(order)
    X[~np.isfinite(X)] = np.nan
    n_categories = np.where(np.arange(X.shape[1]) % 5 == 1, 7, 0)
    categories = np.flatnonzero(n_categories)
    X[:, categories] = rng.integers(-1, 7, (n, len(categories)))
    alone = [encode(Columns(X[:, [j]]), n_categories[[j]]) for j in range(X.shape[1])]
    levels = np.concatenate([one.levels.array for one in alone])
    assert any(one.tie_span[0] > 0 for one in alone) == (dtype == np.float32)
    for block in (1, 2 * n, 5 * n, (len(alone) + 1) // 2 * n):  # the last: in two runs
        monkeypatch.setattr("cart.table.encoding.BLOCK", block)
        table = encode(Columns(X), n_categories, n_jobs)
        np.testing.assert_array_equal(table.codes, np.concatenate([one.codes for one in alone]))
        np.testing.assert_array_equal(table.levels.array, levels)
        np.testing.assert_array_equal(table.tops.array, levels)
        n_levels = [len(one.levels.array) for one in alone]
        np.testing.assert_array_equal(np.diff(table.level_start), n_levels)
        np.testing.assert_array_equal(table.tie_span, [one.tie_span[0] for one in alone])
        for name in ("code", "last"):
            ties = [getattr(one.ties, name) for one in alone]
            np.testing.assert_array_equal(getattr(table.ties, name), np.concatenate(ties))
        np.testing.assert_array_equal(np.diff(table.ties.start), list(map(len, ties)))
        np.testing.assert_array_equal(table.columns, np.arange(X.shape[1]))
    np.testing.assert_array_equal(table.codes[categories] == MISSING, X[:, categories].T < 0)
    if dtype == np.float32:
        expected = FloatTable.encode(Columns(X))
        monkeypatch.setattr("cart.table.float_table._MIN_VALUES", 1)
        np.testing.assert_array_equal(FloatTable.encode(Columns(X), n_jobs).codes, expected.codes)


@pytest.mark.parametrize("n_levels", [1, 2**8, 2**8 + 1, 2**16, 2**16 + 1])
def test_codes_are_as_wide_as_they_must_be(n_levels):
    """They stay the same codes, and a tree takes those of 16 bits where these are enough."""
    X = np.random.default_rng(0).permutation(np.arange(70_000) % n_levels)
    X = np.column_stack((X, X % 2))
    table = encode(Columns(X.astype(np.float32)))
    narrow = table.narrow()
    is_narrow = n_levels <= 2**16
    assert narrow.codes.dtype == (np.uint16 if is_narrow else np.uint32)
    np.testing.assert_array_equal(narrow.codes, table.codes)
    np.testing.assert_array_equal(narrow.codes[0], X[:, 0])
    assert narrow.wide().codes.dtype == np.uint32
    np.testing.assert_array_equal(narrow.wide().codes, table.codes)
    grown = encode_columns(DecisionTreeClassifier(), X.astype(np.float32), "best")
    assert grown.codes.dtype == narrow.codes.dtype
    of_a_byte = table.narrow(np.uint8).codes
    assert of_a_byte.dtype == (np.uint8 if n_levels <= 2**8 else np.uint32)
    np.testing.assert_array_equal(of_a_byte, table.codes)
    bins = encode_columns(DecisionTreeClassifier(max_bins=255), X.astype(np.float32), "best")
    assert bins.codes.dtype == np.uint8


def test_narrow_codes_know_no_missing_values():
    X = np.array([[0.0, 1.0], [1.0, np.nan]], np.float32)
    assert encode(Columns(X)).narrow().codes.dtype == np.uint32


def test_threads_write_to_memory_of_their_own():
    """Columns long enough for threads to meet while they rank them."""
    X = np.random.default_rng(0).random((100_000, 8))
    expected = encode(Columns(X))
    for n_jobs in (2, 4):
        assert_same_tables(encode(Columns(X), n_jobs=n_jobs), expected)


def test_the_memory_of_ranking_is_bounded_by_that_of_the_codes():
    X = np.random.default_rng(0).random((20_000, 40))
    columns = Columns(X, np.float32)
    encode(columns, keeps_values=False)  # what is made once
    tracemalloc.start()
    table = encode(columns, keeps_values=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.codes.nbytes < peak < 2.5 * table.codes.nbytes


def test_small_tables_start_no_threads(monkeypatch):
    monkeypatch.delattr("cart.primitives.threads.Thread")
    X = np.random.default_rng(0).random((1800, 64)).astype(np.float32)
    assert (
        encode(Columns(X), n_jobs=2).codes.shape
        == FloatTable.encode(Columns(X), n_jobs=2).codes.shape
    )


def test_bits_are_in_the_order_of_the_values():
    values = np.unique(np.array(SPECIAL, np.float32))[:-1]  # nan is last
    for dtype in (np.float32, np.float64):
        bits = values.astype(dtype).view(f"u{dtype().itemsize}").astype(np.uint64)
        n_bits = 8 * dtype().itemsize
        numbers = [ordered.py_func(b, n_bits) for b in bits]
        assert (np.diff(numbers) < 2**63).all()
        assert [bits_in_order.py_func(number, n_bits) for number in numbers] == bits.tolist()
        zeros = np.array([0.0, -0.0], dtype).view(f"u{dtype().itemsize}").astype(np.uint64)
        assert len({ordered.py_func(zero, n_bits) for zero in zeros}) == 1


@pytest.mark.parametrize("column", COLUMNS)
def test_bits_stand_for_the_values(column):
    """The table of random splitters: codes in the order of the values, and back."""
    rng = np.random.default_rng(0)
    values = COLUMNS[column](rng, 500).astype(np.float32)
    table = FloatTable.encode(Columns(values[:, None]))
    codes = table.codes[0]
    known = ~np.isnan(values)
    assert (codes[~known] == MISSING).all()
    levels, expected = np.unique(values[known], return_inverse=True)
    seen, ranks = np.unique(codes[known], return_inverse=True)
    np.testing.assert_array_equal(ranks, expected)
    found = np.empty(len(seen))
    _fill_values(table, seen, found)
    np.testing.assert_array_equal(found, levels)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.concatenate((levels.astype(float), levels[:-1] / 2.0 + levels[1:] / 2.0))
    thresholds = middle[np.isfinite(middle)]
    limits = np.empty(len(thresholds), np.int64)
    _fill_limits(table, thresholds, limits)
    for limit, threshold in zip(limits, thresholds, strict=True):
        np.testing.assert_array_equal(codes[known] <= limit, values[known] <= threshold)


@entry_kernel
def _fill_values(table, codes, out):
    for i in range(codes.shape[0]):
        out[i] = value_of(table, 0, codes[i])


@entry_kernel
def _fill_limits(table, thresholds, out):
    for i in range(thresholds.shape[0]):
        out[i] = code_up_to(table, 0, np.uint32(0), np.uint32(0), thresholds[i])


@pytest.mark.parametrize("n_levels", [1, 10, 400, 10**9])
def test_values_of_one_code_are_compared(n_levels):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_levels, (3, 500)).astype(np.uint32)
    codes[:, -2:] = codes[:, :2]  # some are met twice
    codes[1:, ::7] = MISSING
    values = 4 * codes.astype(np.int64) + rng.choice(2, codes.shape, p=[0.9, 0.1])
    codes, values = codes.ravel(), values.ravel()
    start = np.array([0, 500, 500, 507, 1000, 1500])  # columns differ in length
    numbers = Values.of(values[:, np.newaxis], np.zeros(5), start[:-1])
    differing, n_codes = RepeatedCodes.create(500).compare(numbers, codes, start)
    expected = []
    for column in range(5):
        first = {}
        for i in range(start[column], start[column + 1]):
            if codes[i] != MISSING and values[i] != first.setdefault(codes[i], values[i]):
                expected.append(i)
        assert n_codes[column] == len(first)
    np.testing.assert_array_equal(differing, expected)


@entry_kernel
def last_tied_here(table, column, code):
    return last_tied(table.ties, column, code)


@pytest.mark.parametrize("scale", [1e-8, 1e-7, 1e-6, 1e-5, 1.0])
def test_which_levels_count_as_one(scale):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 20, 300):
        X = (rng.uniform(size=(n, 5)) * scale).astype(np.float32)
        table = encode(Columns(X))
        for column, tie_span in enumerate(table.tie_span):
            levels = np.unique(X[:, column])
            within = levels <= (levels + FEATURE_THRESHOLD)[:, None]
            last = within.sum(axis=1) - 1
            assert tie_span == (last - np.arange(len(levels))).max()
            found = [last_tied_here(table, column, code) for code in range(len(levels))]
            np.testing.assert_array_equal(found, last)
