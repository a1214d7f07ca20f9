"""Trees of wide tables, whose small nodes are sorted along the features that a node looks at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeRegressor
from cart.fast_paths.regression.small_nodes.rows_on_demand import SmallNodeOnDemand
from cart.fast_paths.regression.sorted_path import SortedPath
from cart.growth.plan import make_plan
from cart.splitting.criteria import SquaredError
from cart.table.columns import Columns
from cart.table.encoding import encode
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)


def both_paths(X, y, params):
    """Growers of the sorted path and of the general one, and the path."""
    plan = make_plan(DecisionTreeRegressor(**params), SquaredError, "best", *X.shape, 1, 1)
    fast, general = paths(encode(Columns(X.astype(np.float32))), y[:, None], plan, SortedPath)
    return fast, general, fast._fast[0]


@examples(200)
@given(
    seed=seeds,
    share=st.sampled_from([1, 3, 0.1, 0.3, 0.7, 1.0]),
    missing=st.sampled_from([0.0, 0.0, 0.1, 0.6]),
    step=st.sampled_from([None, 1.0, 3e-8]),
    leaf=st.sampled_from([1, 1, 3]),
    factor=st.sampled_from([1.0, 9.0, 0.5]),
)
def test_wide_trees_are_the_general_ones(seed, share, missing, step, leaf, factor):
    """To the bit, where sums are exact in every order; weights too large for words, too."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 150), rng.integers(64, 150)
    X = np.argsort(rng.random((n, n_features)), axis=0).astype(float)
    y = rng.integers(-50, 50, n) + 2.0**-4
    if step is not None:
        X = rng.integers(0, rng.choice([2, 10, 100]), X.shape) * step
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(0, 5, (3, n)) * factor
    weights[:, rng.integers(n)] = 1.0
    fast, general, _ = both_paths(X, y, {"max_features": share, "min_samples_leaf": leaf})
    trees = (grower.grow(weights, range(1, 4)) for grower in (fast, general))
    for ours, theirs in zip(*trees, strict=True):
        assert_same_nodes(ours, theirs)


@pytest.mark.parametrize(
    ("n_columns", "max_features", "step", "n_max"),
    [(64, 13, 1.0, 31), (64, 7, 1e-8, 0), (63, 13, 1.0, None)],
    ids=["wide", "ties in most columns", "narrow"],
)
def test_where_small_nodes_are_sorted_on_demand(n_columns, max_features, step, n_max):
    """Where nodes look at a fifth of many columns, and ties are in so few that each small node is
    looked at for them. Otherwise no node counts as small, or rows are presorted."""
    X = np.argsort(np.random.default_rng(0).random((50, n_columns)), axis=0) * step
    fast, _, path = both_paths(X, np.arange(50.0), {"max_features": max_features})
    fast.grow(np.ones((1, 50)), [1])
    *_, small, _ = path._scratch
    found = small.n_max if isinstance(small, SmallNodeOnDemand) else None
    assert found == n_max
