"""With keyed draws, permuting the columns permutes the model and changes nothing else."""

from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import cart
import forest
from cart.jit.decorators import entry_kernel
from cart.splitting.feature_draw import (
    Draw,
    begin_draw,
    end_draw,
    hash_names,
    key_children,
    mark_constant,
    mark_searched,
    move_key,
    next_feature,
    restart,
)
from importance import drop_column, oob_permutation
from tests.agreement.same import assert_same_nodes
from tests.examples import examples

pd = pytest.importorskip("pandas")

NODE_ARRAYS = (
    *("children_left", "children_right", "threshold", "impurity", "n_node_samples"),
    *("weighted_n_node_samples", "missing_go_to_left", "value"),
)
MODELS = [
    forest.RandomForestClassifier,
    forest.RandomForestRegressor,
    forest.ExtraTreesClassifier,
    forest.ExtraTreesRegressor,
]
seeds = st.integers(0, 2**32 - 1)


def make_table(seed):
    """Few values, so that features tie, and are constant in many nodes; a column twice over."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(5, 80), rng.integers(2, 8)
    X = rng.integers(0, rng.choice([2, 3, 30]), (n, n_features)).astype(float)
    X[rng.random(X.shape) < rng.choice([0.0, 0.15])] = np.nan
    X[:, -1] = X[:, 0]
    names = [f"feature {j}" for j in rng.permutation(n_features)]
    return pd.DataFrame(X, columns=names), rng.integers(0, 3, n), rng


def assert_same_but_for_the_columns(ours, permuted, order):
    """`order[i]` is the column of ours that is column i of the permuted table."""
    for a, b in zip(ours, permuted, strict=True):
        for name in NODE_ARRAYS:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
        split = b.feature >= 0
        np.testing.assert_array_equal(a.feature[split], order[b.feature[split]])


@examples(200)
@given(
    seeds,
    st.sampled_from(["gini", "squared_error"]),
    st.sampled_from(["best", "random"]),
    st.sampled_from([None, 1, "sqrt"]),
    st.sampled_from([None, 7]),
)
def test_permuted_columns_permute_the_tree(seed, criterion, splitter, max_features, max_leaf_nodes):
    X, y, rng = make_table(seed)
    task = "Classifier" if criterion == "gini" else "Regressor"
    model = getattr(cart, f"DecisionTree{task}")(
        criterion=criterion, splitter=splitter, max_features=max_features, random_state=seed % 7,
        max_leaf_nodes=max_leaf_nodes, feature_draw="keyed",
    )  # fmt: skip
    order = rng.permutation(X.shape[1])
    other = X.iloc[:, order]
    weight = rng.random(len(y)) if seed % 2 else None
    tree, predicted = model.fit(X, y, weight).tree_, model.predict(X)
    importances = model.feature_importances_
    permuted = model.fit(other, y, weight).tree_
    assert_same_but_for_the_columns([tree], [permuted], order)
    np.testing.assert_array_equal(model.predict(other), predicted)
    np.testing.assert_allclose(model.feature_importances_, importances[order], atol=1e-14)


@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
@pytest.mark.parametrize(
    ("splitter", "max_leaf_nodes"), [("best", None), ("best", 7), ("random", None)]
)
@examples(60)
@given(seed=seeds, max_features=st.sampled_from([None, 1, "sqrt"]))
def test_fast_paths_grow_the_general_trees(task, splitter, max_leaf_nodes, seed, max_features):
    X, y, rng = make_table(seed)
    model = getattr(cart, f"DecisionTree{task}")(
        splitter=splitter, max_features=max_features, random_state=seed % 7,
        max_leaf_nodes=max_leaf_nodes, feature_draw="keyed",
    )  # fmt: skip
    weight = rng.integers(0, 3, len(y)) + (rng.permutation(len(y)) == 0)
    ours = model.fit(X, y, weight).tree_
    with patch("cart.estimators.grower.FAST_PATHS", ()):
        assert_same_nodes(ours, model.fit(X, y, weight).tree_)


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_permuted_columns_permute_the_forest(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 4, (150, 6)).astype(float), columns=list("fadbec"))
    y = (X["a"] + X["b"] + rng.normal(size=150) > 3).astype(int) + (X["c"] > 2)
    order = rng.permutation(6)
    params = {"n_estimators": 20, "max_features": 2, "random_state": 0, "feature_draw": "keyed"}
    params |= {"bootstrap": True, "oob_score": True, "max_depth": 5}
    model = kind(**params).fit(X, y)
    permuted = kind(n_jobs=2, **params).fit(X.iloc[:, order], y)
    assert_same_but_for_the_columns(
        [tree.tree_ for tree in model.estimators_],
        [tree.tree_ for tree in permuted.estimators_],
        order,
    )
    np.testing.assert_array_equal(model.predict(X), permuted.predict(X.iloc[:, order]))
    assert model.oob_score_ == permuted.oob_score_
    for importance in (oob_permutation, drop_column):
        a = importance(model, X, y).per_tree
        b = importance(permuted, X.iloc[:, order], y).per_tree
        np.testing.assert_allclose(b, a[:, order], atol=1e-12)


def test_drop_column_refits_as_a_fit_without_the_column():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(100, 4)), columns=list("abcd"))
    y = X["a"] * 2 + X["b"] + rng.normal(size=100)
    params = {"n_estimators": 30, "max_features": 2, "random_state": 0, "oob_score": True}
    params["feature_draw"] = "keyed"
    model = forest.RandomForestRegressor(**params).fit(X, y)
    expected = []
    for name in X:
        without = forest.RandomForestRegressor(**params).fit(X.drop(columns=name), y)
        loss = (without.oob_prediction_ - y) ** 2 - (model.oob_prediction_ - y) ** 2
        expected.append(loss.mean())
    np.testing.assert_allclose(drop_column(model, X, y).values, expected, atol=1e-12)


@given(seeds)
def test_where_nothing_ties_the_draw_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    model = cart.DecisionTreeRegressor(min_samples_leaf=4, random_state=0)
    expected = model.fit(X, y).predict(X)
    keyed = model.set_params(feature_draw="keyed").fit(X, y)
    np.testing.assert_allclose(keyed.predict(X), expected)


@pytest.mark.parametrize("splitter", ["best", "random"])
def test_sparse_tables(splitter):
    X = sp.random(600, 12, 0.05, "csr", random_state=np.random.RandomState(0))
    y = (np.asarray(X[:, :3].sum(axis=1)).ravel() > 0.1).astype(int)
    model = cart.DecisionTreeClassifier(
        splitter=splitter, max_features=3, random_state=0, feature_draw="keyed"
    )
    dense, sparse = model.fit(X.toarray(), y).tree_, model.fit(X, y).tree_
    assert_same_but_for_the_columns([dense], [sparse], np.arange(12))


def test_draws_go_by_the_path():
    """Grown best first without a limit, the same tree, though its nodes come in another order."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 2, 200)
    model = cart.ExtraTreeClassifier(max_features=1, random_state=0, feature_draw="keyed")
    deep = model.fit(X, y).tree_
    best = model.set_params(max_leaf_nodes=10**6).fit(X, y).tree_
    assert (deep.feature != best.feature).any()
    pairs = [(0, 0)]
    for a, b in pairs:
        assert deep.feature[a] == best.feature[b]
        assert deep.threshold[a] == best.threshold[b]
        if deep.children_left[a] >= 0:
            pairs.append((deep.children_left[a], best.children_left[b]))
            pairs.append((deep.children_right[a], best.children_right[b]))
    assert len(pairs) == deep.node_count == best.node_count > 50


def test_nodes_and_trees_draw_apart():
    """Every feature is as likely as another, in every node, whatever its parent drew."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.normal(size=300)
    model = forest.ExtraTreesRegressor(
        600, max_features=1, max_depth=2, feature_draw="keyed", random_state=0
    ).fit(X, y)
    trees = [tree.tree_ for tree in model.estimators_]
    trees = [tree for tree in trees if (tree.feature >= 0).sum() == 3]
    assert len(trees) > 200
    features = np.array([tree.feature[tree.feature >= 0] for tree in trees])
    expected = len(trees) / 25
    for one, other in ((0, 1), (0, 2), (1, 2)):
        pairs = np.bincount(5 * features[:, one] + features[:, other], minlength=25)
        assert ((pairs - expected) ** 2 / expected).sum() < 52.6  # chi square of 24, p = 0.0006
    cuts = np.array([tree.threshold[0] for tree in trees])
    assert len(np.unique(cuts)) == len(cuts)


# ------------------------------------------------------------------------------- a plain twin


def mix(x):
    """One step of splitmix64, as published."""
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & mask
    return x ^ (x >> 31)


@entry_kernel
def _draw_node(draw, seed, path, is_constant, max_features, out):
    restart(draw, seed)
    for is_left in path:
        key_children(draw, 0)
        if is_left:
            move_key(draw, 1, 0)
    n = 0
    drawing = begin_draw(draw, 0, 0)
    j, drawing = next_feature(draw, drawing, max_features)
    while j >= 0:
        feature = draw.features[j]
        if is_constant[feature]:
            drawing = mark_constant(draw, drawing, j)
        else:
            drawing = mark_searched(draw, drawing, j)
        out[n] = feature
        n += 1
        j, drawing = next_feature(draw, drawing, max_features)
    return n, end_draw(draw, drawing)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**31 - 2), seeds)
def test_features_come_in_the_order_of_their_keys(n_features, max_features, seed, data):
    """`max_features` of them, and on until one varies; whatever nodes were drawn before."""
    rng = np.random.default_rng(data)
    names = hash_names([f"x{j}" for j in rng.permutation(n_features)])
    draw, out = Draw.create(n_features, names, 2), np.empty(n_features, np.int64)
    for _ in range(5):
        path = rng.random(rng.integers(0, 5)) < 0.5
        is_constant = rng.random(n_features) < rng.choice([0.0, 0.5, 1.0])
        key = mix(seed)
        for is_left in path:
            key = mix(key ^ (1 if is_left else 2))
        expected = sorted(range(n_features), key=lambda j, key=key: mix(key ^ int(names[j])))
        varies = [i for i, j in enumerate(expected) if not is_constant[j]]
        n_expected = max(max_features, (varies[0] if varies else n_features) + 1)
        n, n_known = _draw_node(draw, seed, path, is_constant, max_features, out)
        assert out[:n].tolist() == expected[:n_expected]
        assert n_known == 0


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("kind", [cart.DecisionTreeClassifier, forest.RandomForestRegressor])
def test_refusals(kind):
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
    with pytest.raises(ValueError, match="'feature_draw' parameter"):
        kind(feature_draw="hashed").fit(X, y)
    twice = pd.DataFrame(X, columns=["age", "age"])  # refused by scikit-learn's validation
    with pytest.raises(ValueError, match="unique column names"):
        kind(feature_draw="keyed").fit(twice, y)


@pytest.mark.parametrize("surrogate_features", ["all", "drawn"])
def test_surrogates_do_not_depend_on_the_order_of_the_columns(surrogate_features):
    """Of equals, which a few rows have many, the keys decide which comes first."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((60, 6)).round(1), columns=list("abcdef"))
    y = frame["a"] + frame["b"] > 1.0
    frame = frame.mask(rng.random((60, 6)) < 0.3)
    model = cart.DecisionTreeClassifier(
        missing="surrogate", surrogates=2, surrogate_features=surrogate_features, max_features=3,
        feature_draw="keyed", random_state=0,
    )  # fmt: skip
    expected = model.fit(frame, y).predict_proba(frame)
    for order in ("fedcba", "cafebd"):
        other = frame[list(order)]
        np.testing.assert_array_equal(model.fit(other, y).predict_proba(other), expected)
