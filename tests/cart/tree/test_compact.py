"""Compact trees, in memory and pickles: every bit comes back, and they are small."""

import copy
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn.ensemble
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import is_classifier

from cart import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from cart.tree.compact import Compact
from cart.tree.nodes import Grown, Nodes
from forest import RandomForestClassifier, RandomForestRegressor
from importance import mdi
from tests.examples import examples

MODELS = {
    "gini": DecisionTreeClassifier(),
    "entropy": DecisionTreeClassifier(criterion="entropy"),
    "classes of fractional weight": DecisionTreeClassifier(class_weight={0: 0.3, 1: 2.1}),
    "best first": DecisionTreeClassifier(max_leaf_nodes=7),
    "pruned": DecisionTreeClassifier(ccp_alpha=0.01),
    "a leaf": DecisionTreeClassifier(max_depth=1, min_samples_leaf=0.6),
    "extra tree": ExtraTreeClassifier(),
    "means": DecisionTreeRegressor(),
    "medians": DecisionTreeRegressor(criterion="absolute_error", max_depth=4),
    "constrained": DecisionTreeRegressor(monotonic_cst=[1, 0, -1]),
    "categories": DecisionTreeClassifier(categorical_features=[1]),
}


def make_table(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 80)
    X = rng.normal(size=(n, 3))
    X[:, 1] = rng.integers(0, 12, n)
    y = rng.integers(0, 3, n)
    y[:2] = 0, 1  # the classes of `class_weight`
    return X, y, rng


def _in_64_bits(array):
    """Numbers of nodes have 64 bits where a user sees them."""
    return array.astype(np.int64) if array.dtype == np.int32 else array


def assert_every_bit_is_back(tree, nodes, names=Nodes._fields):
    for name in names:
        before, after = (_in_64_bits(getattr(each, name)) for each in (tree, nodes))
        assert (before.dtype, before.shape) == (after.dtype, after.shape), name
        assert before.tobytes() == after.tobytes(), name


@examples(30)
@given(seed=st.integers(0, 2**32 - 1), is_weighted=st.booleans(), has_gaps=st.booleans())
@pytest.mark.parametrize("model", MODELS)
def test_every_bit_comes_back(model, seed, is_weighted, has_gaps):
    X, y, rng = make_table(seed)
    if has_gaps and model not in ("constrained", "medians"):
        X[rng.random(len(X)) < 0.2, 0] = np.nan
    weight = rng.random(len(y)) * 10.0 ** rng.integers(-30, 30) if is_weighted else None
    tree = copy.deepcopy(MODELS[model]).set_params(random_state=seed % 1000)
    tree.fit(X, y, sample_weight=weight)
    assert_every_bit_is_back(tree.tree_, Compact.of(tree.tree_.nodes).expand())
    loaded = pickle.loads(pickle.dumps(tree))
    assert_every_bit_is_back(tree.tree_, loaded.tree_)
    np.testing.assert_array_equal(loaded.predict(X), tree.predict(X))


def test_several_outputs_come_back():
    X, y, rng = make_table(0)
    for kind, Y in (
        (DecisionTreeClassifier, np.column_stack((y, rng.integers(0, 2, len(y))))),
        (DecisionTreeRegressor, np.column_stack((y, rng.normal(size=len(y))))),
    ):
        tree = kind(random_state=0).fit(X, Y)
        assert_every_bit_is_back(tree.tree_, pickle.loads(pickle.dumps(tree)).tree_)


@pytest.mark.parametrize(
    ("kind", "is_whole", "share"),
    [
        (RandomForestClassifier, False, 1 / 4),
        (RandomForestRegressor, False, 1 / 2),
        (RandomForestRegressor, True, 1 / 6),
    ],
)
@pytest.mark.parametrize("n", [100, 3000])
def test_pickles_are_small(kind, is_whole, share, n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    y = X[:, 0] + rng.normal(size=n)
    y = np.round(10.0 * y) if is_whole else y
    if kind is RandomForestClassifier:
        y = y > 0
    theirs = getattr(sklearn.ensemble, kind.__name__)(10, random_state=0).fit(X, y)
    ours = kind(10, random_state=0).fit(X, y)
    assert len(pickle.dumps(ours)) < share * len(pickle.dumps(theirs))


@examples(30)
@given(
    seed=st.integers(0, 2**32 - 1), leaf=st.sampled_from([1, 1, 4]), digits=st.integers(0, 3),
    scale=st.sampled_from([1.0, 1e7, 1e12]),
)  # fmt: skip
@pytest.mark.parametrize("model", ["gini", "entropy", "means"])
@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
def test_what_growth_says_to_follow_does(model, weights, seed, leaf, digits, scale):
    """What a fast path has written comes back, though it was not all kept."""
    X, y, rng = make_table(seed)
    n = len(y)
    weight = {
        "none": None,
        "whole": rng.integers(0, 3, n) + (np.arange(n) == 0.0),
        "fractional": rng.random(n),
    }[weights]
    y = np.round(scale * rng.normal(size=n), digits) if model == "means" else y
    tree = copy.deepcopy(MODELS[model]).set_params(min_samples_leaf=leaf, random_state=0)
    written, of_grown = [], Compact.of_grown

    def write_down(grown, follows):
        written.append(Grown._make(array.copy() for array in grown))
        return of_grown(grown, follows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compact, "of_grown", write_down)
        nodes = tree.fit(X, y, weight).tree_.nodes
    assert len(written) == 1
    for grown in written:
        # Words of cuts stand in the thresholds' place; without missing values no side is written.
        plain = {name for name, array in grown._asdict().items() if len(array)} - {"threshold"}
        assert_every_bit_is_back(grown, nodes, plain)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_small_trees_have_arrays_when_asked(kind):
    X, y, _ = make_table(1)
    kind(2, random_state=0).fit(X, y)  # what is made once
    tracemalloc.start()
    forest = kind(300, random_state=0).fit(X, y)
    before, _ = tracemalloc.get_traced_memory()
    assert forest.feature_importances_.any()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    held = sum(estimator.tree_.nbytes for estimator in forest.estimators_)
    assert after - before > held / 2  # what they took before is free


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_small_trees_share_arrays(kind):
    """They are grown together, and what they tell is the same before and after they have arrays."""
    X, y, _ = make_table(1)
    forest = kind(30, random_state=0).fit(X, y)
    trees = [estimator.tree_ for estimator in forest.estimators_]
    assert not any(set(Nodes._fields) & set(vars(tree)) for tree in trees)
    known = [(tree.node_count, tree.nbytes, tree.max_n_classes) for tree in trees]
    nodes = [tree.nodes for tree in trees]
    for tree, known_of_it, before in zip(trees, known, nodes, strict=True):
        n_nodes, nbytes, n_values = known_of_it
        assert tree.value.shape == (n_nodes, 1, n_values)
        assert sum(array.nbytes for array in tree.nodes) == nbytes == tree.nbytes
        assert_every_bit_is_back(before, tree)
        for feature, threshold in (tree.splits, before.splits):
            np.testing.assert_array_equal(feature, tree.feature)
            np.testing.assert_array_equal(threshold, tree.threshold)
        with pytest.raises(ValueError, match="read-only"):
            tree.value[0] = 7.0
        tree.nodes.value[0] = 7.0
        assert_every_bit_is_back(before, tree)  # it is the same memory
    assert [tree.value[0, 0, 0] for tree in trees] == [7.0] * 30  # and nobody else's


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_a_small_tree_of_its_own_has_arrays_when_asked(kind):
    X, y, _ = make_table(1)
    tree = kind(random_state=0).fit(X, y).tree_
    assert not set(Nodes._fields) & set(vars(tree))
    assert_every_bit_is_back(tree.nodes, tree)
    assert set(Nodes._fields) <= set(vars(tree))


def test_large_trees_stay_small(large):
    X, forest = large
    held = sum(tree.tree_.nbytes for tree in forest.estimators_)
    n_nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
    assert n_nodes > len(forest.estimators_) * 1_000
    assert held <= (10 if is_classifier(forest) else 20) * n_nodes
    forest.predict(X)
    pickle.dumps(forest)
    mdi(forest)
    assert sum(tree.tree_.nbytes for tree in forest.estimators_) == held


def test_large_trees_are_plain_arrays_when_asked(large):
    _, forest = large
    tree = forest.estimators_[0].tree_
    kept = tree.nodes
    tree.expanded.threshold[0] += 1.0
    assert tree.threshold[0] == kept.threshold[0] + 1.0
    assert pickle.loads(pickle.dumps(tree)).threshold[0] == tree.threshold[0]
    with pytest.raises(AttributeError, match="has no attribute 'treshold'"):
        tree.treshold  # noqa: B018


def test_threads_may_ask_at_the_same_time(large):
    _, forest = large
    tree = pickle.loads(pickle.dumps(forest.estimators_[0].tree_))
    with ThreadPoolExecutor(8) as threads:
        sums = set(threads.map(lambda _: tree.threshold.sum(), range(64)))
    assert sums == {forest.estimators_[0].tree_.nodes.threshold.sum()}


@pytest.fixture(params=[RandomForestClassifier, RandomForestRegressor])
def large(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    y = X[:, 0] + rng.normal(size=20_000)
    y = y > 0 if request.param is RandomForestClassifier else y
    return X, request.param(3, random_state=0).fit(X, y)
