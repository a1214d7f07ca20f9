"""Values that stay in X: thresholds are written when trees are grown, and are the same."""

import tracemalloc
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators import encoding
from cart.estimators import trees as tree_estimators
from cart.table import encoding as table_encoding
from cart.table import thresholds
from forest import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from forest.growing import thread_pool as grow
from tests.agreement.same import assert_same_nodes, trees_of
from tests.examples import examples

MODELS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "means": DecisionTreeRegressor(random_state=0, max_features=0.5),
    "pruned": DecisionTreeClassifier(random_state=0, ccp_alpha=0.01),
    "double": DecisionTreeRegressor(random_state=0, precision="float64"),
    "forest": RandomForestClassifier(5, random_state=0),
    "two threads": RandomForestClassifier(9, random_state=0, n_jobs=2),
    "forest of means": RandomForestRegressor(5, random_state=0, n_jobs=2, max_features=0.4),
    "out of bag": RandomForestClassifier(20, random_state=0, oob_score=True),
    "no fast path": RandomForestClassifier(3, random_state=0, criterion="twoing"),
    "auto": RandomForestClassifier("auto", random_state=0, max_time=0.1),
}


@contextmanager
def values_in_X():
    """Leave the values of every table in X; yields how many trees get their thresholds later."""
    settled = []

    def settle_and_count(trees, *args):
        settled.extend(tree for tree in trees if tree is not None and tree.has_cuts)
        fill_thresholds(trees, *args)

    fill_thresholds = grow.fill_thresholds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "FEW_VALUES", 0)
        patch.setattr(thresholds, "FEW_VALUES", 0)  # columns are looked up in several parts
        patch.setattr(table_encoding, "_FEW_LEVELS", np.inf)
        patch.setattr(thresholds, "BLOCK", 1)  # threads that small tables would not start
        patch.setattr(grow, "fill_thresholds", settle_and_count)
        patch.setattr(tree_estimators, "fill_thresholds", settle_and_count)
        yield settled


def assert_same_trees(ours, theirs):
    for a, b in zip(trees_of(ours), trees_of(theirs), strict=True):
        assert_same_nodes(a, b)


def make_X(rng, n, n_columns=5):
    """Distinct values, few, close ones, zeros of either sign."""
    X = rng.normal(size=(n, n_columns))
    X[:, 1] = rng.integers(0, 4, n)
    X[:, 2] *= 1e-6
    X[rng.random(n) < 0.5, 3] *= 0.0
    return X


@examples(15)
@given(
    seed=st.integers(0, 2**32 - 1),
    weights=st.sampled_from(["none", "whole", "fractional"]),
    dtype=st.sampled_from([np.float64, np.float32]),
    order=st.sampled_from("CF"),
)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "auto"])
def test_the_trees_are_the_same(name, seed, weights, dtype, order):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 200)
    X, y = make_X(rng, n).astype(dtype, order=order), rng.integers(0, 3, n)
    weight = {"none": None, "whole": rng.integers(1, 4, n), "fractional": rng.random(n) + 0.1}
    expected = deepcopy(MODELS[name]).fit(X, y, weight[weights])
    with values_in_X() as settled:
        found = deepcopy(MODELS[name]).fit(X, y, weight[weights])
    is_fast = name != "no fast path" and weights != "fractional"
    assert len(settled) == is_fast * len(trees_of(found))
    assert_same_trees(found, expected)


@pytest.mark.parametrize("name", ["tree", "forest", "forest of means"])
def test_the_trees_are_those_of_scikit_learn(name):
    rng = np.random.default_rng(0)
    X, y = make_X(rng, 3000), rng.integers(0, 2, 3000)
    kind = type(MODELS[name]).__name__
    theirs = getattr(sklearn.tree, kind, None) or getattr(sklearn.ensemble, kind)
    shared = set(theirs().get_params()) & set(MODELS[name].get_params())
    params = {key: MODELS[name].get_params()[key] for key in shared}
    with values_in_X() as settled:
        found = deepcopy(MODELS[name]).fit(X, y)
    assert len(settled) == len(trees_of(found))
    for a, b in zip(trees_of(found), trees_of(theirs(**params).fit(X, y)), strict=True):
        np.testing.assert_array_equal(a.feature, b.feature)
        np.testing.assert_array_equal(a.threshold, b.threshold)


def test_weights_that_the_fast_path_does_not_take():
    """Known only when trees are grown: each thread looks values up for itself."""
    rng = np.random.default_rng(0)
    X, y = make_X(rng, 90), rng.integers(0, 2, 90)
    weight = rng.integers(1, 2**27, 90)
    for name in ("tree", "two threads"):
        model = deepcopy(MODELS[name])
        if name != "tree":
            model.set_params(bootstrap=False)
        expected = deepcopy(model).fit(X, y, weight)
        with values_in_X() as settled:
            found = model.fit(X, y, weight)
        assert not settled
        assert_same_trees(found, expected)


@pytest.mark.filterwarnings("ignore:Growth was stopped")
def test_enough_trees_are_grown_on_a_complete_table():
    rng = np.random.default_rng(0)
    X, y = make_X(rng, 90), rng.integers(0, 2, 90)
    with values_in_X() as settled:
        found = deepcopy(MODELS["auto"]).fit(X, y)
    assert not settled
    assert np.isfinite(found.estimators_[0].tree_.threshold).all()


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_workers_elsewhere_get_a_complete_table(kind):
    rng = np.random.default_rng(0)
    X, y = make_X(rng, 90), rng.integers(0, 2, 90)
    expected = kind(9, random_state=0).fit(X, y)
    with values_in_X() as settled, parallel_config("loky"):
        found = kind(9, random_state=0, n_jobs=2).fit(X, y)
    assert not settled
    assert_same_trees(found, expected)


def test_trees_of_an_interrupted_fit_have_thresholds():
    rng = np.random.default_rng(0)
    X, y = make_X(rng, 20_000), rng.integers(0, 2, 20_000)
    expected = RandomForestClassifier(9, random_state=0).fit(X, y)
    calls = []

    def interrupt(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt

    forest = RandomForestClassifier(9, random_state=0, callback=interrupt)
    with (
        values_in_X() as settled,
        pytest.warns(UserWarning, match="Interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        forest.fit(X, y)
    assert 0 < len(settled) == len(forest.estimators_) < 9
    for a, b in zip(trees_of(forest), trees_of(expected), strict=False):
        assert_same_nodes(a, b)


@pytest.mark.parametrize("name", ["tree", "forest"])
def test_doubles_are_not_copied(name):
    """A fit holds a rank for every value, of two bytes here, and never its float32 number."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4_000, 500)), rng.integers(0, 2, 4_000)
    model = deepcopy(MODELS[name]).set_params(max_depth=3, max_features=5)
    model.fit(X[:9], y[:9])
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 2 * X.size < peak < 4 * X.size


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["tree", "forest"])
@pytest.mark.parametrize("values", [[3e38, 2e38], [3e38, np.nan]])
def test_sums_of_large_numbers_overflow_without_a_word(name, values):
    X = np.resize(np.array(values, np.float32), (66, 2001))
    with values_in_X():
        model = deepcopy(MODELS[name]).fit(X, np.arange(66) % 2)
    assert_same_trees(model, deepcopy(MODELS[name]).fit(X, np.arange(66) % 2))


@pytest.mark.parametrize("kind", ["DecisionTreeClassifier", "RandomForestRegressor"])
@pytest.mark.parametrize("value", [1e39, -1e39, np.inf, -np.inf])
@pytest.mark.parametrize("has_gap", [False, True])
def test_doubles_that_single_precision_does_not_have(kind, value, has_gap):
    X = np.ones((9, 2))
    X[4, 1] = value
    X[5, 0] = np.nan if has_gap else 1.0
    ours = {
        "DecisionTreeClassifier": DecisionTreeClassifier,
        "RandomForestRegressor": RandomForestRegressor,
    }
    theirs = getattr(sklearn.tree, kind, None) or getattr(sklearn.ensemble, kind)
    for estimator in (ours[kind](), theirs()):
        with pytest.raises(ValueError, match="Input X contains infinity or a value too large"):
            estimator.fit(X, np.arange(9) % 2)
