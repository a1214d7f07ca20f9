"""Near copies: when they pay, and that trees grown on any tiers of them are the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.fast_paths import cache_copies as near
from cart.fast_paths.cache_copies import create_cache_copies
from cart.fast_paths.classification import path as class_counts_path
from cart.fast_paths.regression.histograms import path as histogram_path
from cart.growth.plan import make_plan
from cart.splitting.criteria import Gini, SquaredError
from cart.table.columns import Columns
from cart.table.encoding import encode
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples


@pytest.mark.parametrize(
    ("n_rows", "dtype", "max_features", "expected"),
    [
        (100_000, np.uint32, 4, [0, 16_384]),
        (600_000, np.uint32, 4, [131_072, 16_384]),
        (100_000, np.uint16, 4, [0, 32_768]),
        (100_000, np.uint32, 1, [0, 0]),  # of 30 columns: most copies would not be read
        (40_000, np.uint32, 30, [0, 16_384]),
        (30_000, np.uint32, 30, [0, 0]),  # a copy of half of the rows gains nothing
        (8_000, np.uint8, 30, [0, 0]),  # the second cache holds them anyway
    ],
)
def test_copies_are_made_where_they_pay(n_rows, dtype, max_features, expected):
    codes = np.empty((30, n_rows), dtype)
    room = create_cache_copies(codes, max_features, (2**19, 2**16))
    assert [n for n, _ in room] == expected
    for n, copies in room:
        assert copies.dtype == dtype
        assert len(copies) == 30
        assert copies.shape[1] >= n


@examples(60)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 300), min_size=2, max_size=2),
    path=st.sampled_from(["classes", "sums"]),
    min_samples_leaf=st.sampled_from([1, 5]),
)
def test_trees_are_the_same_on_any_tiers(seed, sizes, path, min_samples_leaf):
    """Also where a node skips a tier, or goes through several at once."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 50, (600, 6))
    y = np.rint(X[:, 0] + rng.normal(0, 20, 600)) + 100
    kind, criterion, fast_path, module = (
        (DecisionTreeClassifier, Gini, class_counts_path.ClassCountsPath, class_counts_path)
        if path == "classes"
        else (DecisionTreeRegressor, SquaredError, histogram_path.HistogramPath, histogram_path)
    )
    if path == "classes":
        y = y % 3
    else:
        sizes = [*sizes, 40]  # of which QuickSums has three
    plan = make_plan(
        kind(max_features=3, min_samples_leaf=min_samples_leaf), criterion, "best", *X.shape, 1,
        3 if path == "classes" else 1,
    )  # fmt: skip
    weights = rng.integers(0, 3, (2, 600)).astype(float)
    table = encode(Columns(X.astype(np.float32))).narrow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near, "_HELD_ANYWAY", 0)
        patch.setattr(module, "CACHE_COPY_BYTES", sorted((2 * n for n in sizes), reverse=True))
        fast, general = paths(table, y[:, None], plan, fast_path)
        both = fast.grow(weights, [1, 2]), general.grow(weights, [1, 2])
    for ours, theirs in zip(*both, strict=True):
        assert ours.node_count > 40
        assert_same_nodes(ours, theirs)
