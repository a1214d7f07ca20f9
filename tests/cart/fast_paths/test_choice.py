"""Whichever path takes trees, to whatever plan and weights: they are those of the general path."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.grower import Grower
from cart.fast_paths.classification.path import ClassCountsPath
from cart.growth.plan import make_plan
from cart.splitting import criteria
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.table.float_table import FloatTable
from tests.agreement.same import assert_same_nodes, paths
from tests.examples import examples


def options_of(rng, is_bounded):
    """Parameters of a tree, most of them as they are by default."""
    options = {
        "max_features": [1, 0.5, 1.0],
        "min_samples_leaf": [1, 5],
        "min_weight_fraction_leaf": [0.0, 0.0, 0.02, 0.1],
        "max_leaf_nodes": [None, None, 2, 20],
        "monotonic_cst": [None, None, [-1, 0, 1, 1] if is_bounded else None],
    }
    return {name: values[rng.integers(len(values))] for name, values in options.items()}


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        *product(("gini", "entropy"), [(2, 1), (3, 1), (64, 1), (65, 1), (2, 2), (5, 3)]),
        *product(("squared_error",), [(1, 1), (1, 2)]), ("poisson", (1, 1)),
        ("absolute_error", (1, 1)),
    ],
)  # fmt: skip
@examples(100)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_a_path_cannot_grow_it_does_not_take(kind, shape, seed):
    """Trees to any plan, alone or at once, of weights that are whole or not, light or heavy."""
    rng = np.random.default_rng(seed)
    (n_classes, n_outputs), n = shape, rng.integers(1, 200)
    model = DecisionTreeClassifier(**options_of(rng, n_classes <= 2 and n_outputs == 1))
    X = np.argsort(rng.random((n, 4)), axis=0)
    signal = X[:, :1] > X.mean()
    X = np.where(rng.random(X.shape) < rng.choice([0.0, 0.2]), np.nan, X)
    y = (signal + rng.integers(0, n_classes, (n, n_outputs))) % n_classes
    if n_classes == 1:
        y = signal + rng.random((n, n_outputs)) * rng.choice([1.0, 2.0**18])
        y = np.ceil(y) if rng.random() < 0.5 else y
    n_trees = rng.choice([1, 3])
    weights = rng.integers(0, rng.choice([4, 4, 900, 2**25], (n_trees, 1)), (n_trees, n))
    weights = weights * rng.choice([1.0, 1.0, 1.0, 0.3], (n_trees, 1))
    weights[:, rng.integers(n)] = 1.0
    criterion = {**criteria.CLASSIFICATION, **criteria.REGRESSION}[kind]
    splitter = rng.choice(["best", "best", "random"])
    plan = make_plan(model, criterion, splitter, n, 4, n_outputs, n_classes)
    columns, codes = Columns(X.astype(np.float32)), y.astype(float)
    table = FloatTable.encode(columns)
    if splitter == "best":
        table = encode(columns).narrow() if rng.random() < 0.5 else encode(columns).wide()
    both = (
        Grower(table, codes, plan, is_fast=is_fast).grow(weights, range(n_trees))
        for is_fast in (True, False)
    )
    for ours, theirs in zip(*both, strict=True):
        assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_outputs_of_one_class_each_are_counted_as_others(n_outputs):
    X = np.arange(24.0, dtype=np.float32).reshape(12, 2)
    plan = make_plan(DecisionTreeClassifier(), criteria.Gini, "best", *X.shape, n_outputs, 1)
    fast, general = paths(encode(Columns(X)), np.zeros((12, n_outputs)), plan, ClassCountsPath)
    for weights in (np.ones((1, 12)), np.arange(24.0).reshape(2, 12)):
        both = (path.grow(weights, range(len(weights))) for path in (fast, general))
        for ours, theirs in zip(*both, strict=True):
            assert_same_nodes(ours, theirs)


@pytest.mark.parametrize("is_narrow", [True, False])
@pytest.mark.parametrize(("kind", "heavy"), [("squared_error", 2.0**25), ("poisson", 2.0**350)])
def test_a_tree_of_heavy_rows_beside_light_trees(kind, heavy, is_narrow):
    """The sums of light trees are exact in any order, or their products finite; not the other's."""
    rng = np.random.default_rng(0)
    X, y = np.argsort(rng.random((300, 4)), axis=0), rng.integers(1, 2**18, 300).astype(float)
    table = encode(Columns(X.astype(np.float32)))
    table = table.narrow() if is_narrow else table.wide()
    weights = rng.integers(0, 4, (3, 300)).astype(float)
    weights[1] = np.rint(weights[1] * heavy * rng.random(300))
    criterion, params = criteria.REGRESSION[kind], DecisionTreeRegressor()
    plan = make_plan(params, criterion, "best", *X.shape, 1, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        both = (
            Grower(table, y[:, None], plan, is_fast=is_fast).grow(weights, range(3))
            for is_fast in (True, False)
        )
        for ours, theirs in zip(*both, strict=True):
            assert_same_nodes(ours, theirs)
