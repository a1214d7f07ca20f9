"""Class counts on sparse tables: against the general path's trees, to the bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier
from cart.fast_paths.classification.sparse_cut import SparseClassCountsPath
from cart.growth.plan import make_plan
from cart.splitting import criteria
from cart.table.columns import Columns
from cart.table.encoding import encode
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples


def plan_of(model, criterion, shape, n_classes):
    return make_plan(model, criterion, "best", *shape, 1, n_classes)


@examples(150)
@given(
    seed=st.integers(0, 2**32 - 1),
    params=st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.integers(1, 6),
            "min_samples_split": st.integers(2, 20),
            "max_features": st.sampled_from([1, 0.5]),
            "min_impurity_decrease": st.just(0.01),
            "max_leaf_nodes": st.integers(2, 40),
            "min_weight_fraction_leaf": st.just(0.05),
        },
    ),
    n_classes=st.sampled_from([1, 2, 3, 5]),
    density=st.sampled_from([0.0, 0.02, 0.2, 0.7, 1.0]),
    n_levels=st.sampled_from([2, 10, 100_000]),
    is_constrained=st.booleans(),
    n_max=st.sampled_from([8, 60, 900]),
)
def test_trees_are_the_general_ones(
    seed, params, n_classes, density, n_levels, is_constrained, n_max
):
    """Codes below and above that of 0, ties, columns without zeros, classes that stay out."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(2, n_max), rng.integers(1, 20)
    values = rng.integers(-n_levels, n_levels, (n, n_features)) * rng.choice([1.0, 3e-8])
    X = np.where(rng.random(values.shape) < density, values, 0.0)
    y = rng.integers(0, n_classes, n) * (rng.random(n) < 0.5)
    y = np.where(X[:, 0] > 0, n_classes - 1, y).astype(float)
    weights = rng.integers(0, 4, (2, n)).astype(float)
    weights[:, rng.integers(n)] = 1.0
    model = DecisionTreeClassifier(**params)
    if is_constrained and n_classes == 2:
        model.monotonic_cst = rng.integers(-1, 2, n_features)
    plan = plan_of(model, criteria.Gini, X.shape, n_classes)
    table = encode(Columns(sp.csc_matrix(X.astype(np.float32))))
    fast, general = paths(table, y[:, None], plan, SparseClassCountsPath)
    for weight, number in zip(weights, range(1, 3), strict=True):
        both = (grower.grow([weight], [number])[0] for grower in (fast, general))
        assert_same_nodes(*both)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_is_left_to_the_general_path(n_classes):
    """Entropy counts samples again where there are more classes, and so do limits of samples."""
    table = encode(Columns(sp.csc_matrix(np.eye(4, dtype=np.float32))))
    entropy, large = DecisionTreeClassifier(), DecisionTreeClassifier(min_samples_leaf=2)
    plans = [plan_of(entropy, criteria.Entropy, (4, 4), n_classes)]
    plans += [plan_of(large, criteria.Gini, (4, 4), n_classes)]
    fits = [SparseClassCountsPath.fits(table, plan) for plan in plans]
    assert fits == [n_classes == 2, False]
