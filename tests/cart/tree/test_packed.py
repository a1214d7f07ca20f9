"""Packed trees send rows as a walk in plain NumPy does: whatever the nodes are kept as, in either
precision of the rows, and over the blocks that rows are prepared in."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import cart
from cart.primitives.row_keys import FINITE, INFINITE, MISSING, keys_of, keys_of_columns
from cart.tree.compact import Compact
from cart.tree.packed import Infinite, PackedRows, PackedSubsets, pack
from cart.tree.traversal import leaf_ids, paths_to, sum_of_values
from cart.tree.tree import Tree
from tests.examples import examples, fewer


def walk(tree, X):
    """The leaf of every row."""
    X, at, rows = X.astype(np.float32), np.zeros(len(X), int), np.arange(len(X))
    while np.any(is_split := tree.children_left[at] >= 0):
        x = X[rows, np.maximum(tree.feature[at], 0)]
        goes_left = np.where(np.isnan(x), tree.missing_go_to_left[at] == 1, x <= tree.threshold[at])
        following = np.where(goes_left, tree.children_left[at], tree.children_right[at])
        at = np.where(is_split, following, at)
    return at


def make(kind, missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = {"classes": X[:, 0] > 0, "numbers": X[:, 1], "whole": np.round(3 * X[:, 0])}[kind]
    y = y + (rng.integers(0, 2, 300) if kind != "numbers" else 0)
    Z = rng.normal(size=(20_000, 3))
    if missing:
        X[rng.random(X.shape) < 0.1], Z[rng.random(Z.shape) < 0.1] = np.nan, np.nan
    model = cart.DecisionTreeClassifier if kind == "classes" else cart.DecisionTreeRegressor
    return model(random_state=0).fit(X, y), Z


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers", "whole"])
def test_rows_go_where_a_plain_walk_sends_them(kind, missing):
    model, Z = make(kind, missing)
    nodes = model.tree_.nodes
    leaves = walk(model.tree_, Z)
    gaps = np.where(np.random.default_rng(1).random(Z.shape) < 0.1, np.nan, Z).astype(np.float32)
    for tree in (model.tree_, Tree(nodes, 3), Tree(Compact.of(nodes), 3)):
        np.testing.assert_array_equal(tree.apply(Z.astype(np.float32)), leaves)
        np.testing.assert_array_equal(tree.predict_all(Z.astype(np.float32)), nodes.value[leaves])
        np.testing.assert_array_equal(tree.apply(gaps), walk(model.tree_, gaps))
    expected = model.predict(Z)
    for same in (Z.astype(np.float32), np.asfortranarray(Z), Z[:, ::-1].copy()[:, ::-1]):
        np.testing.assert_array_equal(model.predict(same), expected)
    if kind != "classes":
        np.testing.assert_array_equal(expected, nodes.value[leaves, 0, 0])


def leaf_of(tree, row):
    """The leaf of a row, whose second value is the code of a category, -1 or nan."""
    node = 0
    while tree.children_left[node] >= 0:
        x = row[tree.feature[node]]
        if np.isnan(x):
            goes_left = tree.missing_go_to_left[node] == 1
        elif tree.is_subset[node]:
            listed, listed_left = tree.categories.of(node)
            goes_left = (x in listed) == listed_left
        else:
            goes_left = x <= tree.threshold[node]
        node = (tree.children_left if goes_left else tree.children_right)[node]
    return node


@pytest.mark.parametrize("missing", ["learned", "surrogate"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@examples(10)
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([2, 31, 32, 33, 700, 9000]))
def test_categories_go_where_their_lists_say(precision, missing, seed, size):
    """Lists kept as bits and as categories; categories that training had not, and missing ones."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(fewer(3000), 3)), rng.normal(size=(99, 3))
    for table in (X, Z):
        table[:, 1] = rng.integers(0, size, len(table))
    y = np.sin(X[:, 1]) + rng.normal(size=len(X))
    X[::9, 1], Z[::9, 1] = np.nan, np.nan
    model = cart.DecisionTreeRegressor(
        categorical_features=[1], min_category_ratio=0.0, precision=precision, missing=missing,
        surrogates=0 if missing == "learned" else 1, random_state=0,
    ).fit(X, y)  # fmt: skip
    tree, known = model.tree_, model.categories_[1]
    coded = np.array([Z[:, 0], [code_of(known, z) for z in Z[:, 1]], Z[:, 2]]).T
    packed = tree.packed_for(np.dtype(precision))
    by_keys = precision == "float32" and missing == "learned" and tree.categories is not None
    assert isinstance(packed, PackedSubsets) == by_keys
    if missing == "surrogate":  # they have tests of their own
        Z, coded = Z[~np.isnan(Z[:, 1])], coded[~np.isnan(Z[:, 1])]
    expected = [leaf_of(tree, row) for row in coded.astype(precision)]
    np.testing.assert_array_equal(model.apply(Z), expected)
    np.testing.assert_array_equal(model.predict(Z), tree.value[expected, 0, 0])


def code_of(known, z):
    """The code of a category, -1 if it is not known; nan if it is missing."""
    at = np.flatnonzero(known == z)
    return np.nan if np.isnan(z) else at[0] if len(at) else -1


@pytest.mark.parametrize("value", [1e39, -1e39, np.inf])
def test_rows_that_single_precision_does_not_have_are_refused(value):
    model, Z = make("numbers", missing=False)
    Z[-1, 1] = value
    for rows in (Z, np.asfortranarray(Z)):
        with (
            pytest.raises(ValueError, match="infinity or a value too large"),
            np.errstate(over="ignore"),
        ):
            model.predict(rows)


@examples(100)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), n_features=st.integers(1, 40),
    is_double=st.booleans(),
    special=st.sampled_from(
        [(), (np.nan,), (np.inf,), (np.inf, np.nan), (1e39, -0.0), (-np.nan, 3e38, 1e-45)]
    ),
)  # fmt: skip
def test_keys_are_in_the_order_of_values(seed, n, n_features, is_double, special):
    """Those of a table, one after the other, with a zero behind each row; nothing is read or
    written behind their ends."""
    rng = np.random.default_rng(seed)
    around = rng.normal(size=(n + 9, n_features))
    around[n:] = np.inf
    X = around[:n]
    for value in special:
        X[rng.integers(n), rng.integers(n_features)] = value
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    X = X if is_double else single
    bits = single.view(np.int32).astype(np.int64)
    keys = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) + 2**31
    expected = np.c_[np.where(np.isnan(single), MISSING, keys), np.zeros(n, int)]
    tree = cart.DecisionTreeRegressor().fit(np.zeros((n, n_features)), np.zeros(n)).tree_
    packed = pack([tree], np.float32)
    keys, may_miss, _ = keys_of(X)
    np.testing.assert_array_equal(keys.reshape(n, -1), expected)
    assert may_miss == np.isnan(single).any()
    if is_double and np.isinf(single).any():
        for refuses in (sum_of_values, PackedRows.of):
            with pytest.raises(Infinite):
                refuses(packed, X)
    else:
        sum_of_values(packed, X)
        np.testing.assert_array_equal(PackedRows.of(packed, X).values, keys)


AS_GIVEN = [
    np.ascontiguousarray,
    np.asfortranarray,
    lambda X: np.repeat(X, 2, axis=0)[::2],
    lambda X: np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
    lambda X: X[:, ::-1].copy()[:, ::-1],
]


@examples(200)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), n_features=st.integers(64, 300),
    n_used=st.integers(0, 40), is_double=st.booleans(), form=st.sampled_from(AS_GIVEN),
    special=st.sampled_from([(), (np.nan,), (np.inf,), (-1e39, -0.0), (-np.nan, 3e38, 1e-45)]),
)  # fmt: skip
def test_of_wide_tables_the_columns_used_are_taken(
    seed, n, n_features, n_used, is_double, form, special
):
    """Rows reach the leaves that they reach with all columns, dense or sparse, in any order; what
    is infinite is found in other columns, too."""
    rng = np.random.default_rng(seed)
    used = rng.integers(0, n_features, n_used)
    grown = np.zeros((60, n_features))
    grown[:, used] = rng.normal(size=(60, n_used))
    trees = [cart.DecisionTreeRegressor(random_state=s, splitter="random") for s in range(3)]
    trees = [tree.fit(grown, rng.normal(size=60)).tree_ for tree in trees]
    narrow = pack(trees, np.float32)
    every = pack(trees, np.float32, every_column=True)
    met = np.unique(np.concatenate([[0], *(tree.feature for tree in trees)]))
    if 2 * (n_used + 1) <= n_features:
        np.testing.assert_array_equal(narrow.columns, met[met >= 0])
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.5)
    for value in special:
        X[rng.integers(n), rng.integers(n_features)] = value
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    given = form(X if is_double else single)
    if is_double and np.isinf(single).any():
        with pytest.raises(Infinite):
            leaf_ids(narrow, 0, given)
        with pytest.raises(Infinite):
            sum_of_values(narrow, given)
        return
    expected = [walk(tree, X) for tree in trees]
    for rows in (given, csr_matrix(single)):
        for packed in (narrow, every):
            leaves = [leaf_ids(packed, t, rows) for t in range(3)]
            np.testing.assert_array_equal(leaves, expected)
        np.testing.assert_array_equal(sum_of_values(narrow, rows), sum_of_values(every, rows))
    some = rng.integers(0, n, 5)
    np.testing.assert_array_equal(leaf_ids(narrow, 1, given, some), expected[1][some])


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("order", ["C", "F"])
def test_nothing_behind_a_wide_table_is_read(n, order):
    """In either order: of few rows in columns, lanes go beyond more than the next column."""
    around = np.full((64 + 9) * n, np.inf)
    around[: 64 * n] = 1.0
    X = around[: 64 * n].reshape(n, 64, order=order)
    keys, _, found = keys_of_columns(X, np.arange(20))
    assert found == FINITE
    np.testing.assert_array_equal(keys, keys_of(np.ascontiguousarray(X[:, :20]))[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_long_and_wide_tables_are_prepared_a_part_at_a_time(order):
    """What is infinite is found in every part."""
    X = np.random.default_rng(0).normal(size=(1000, 70)).astype(np.float32, order=order)
    columns = np.array([0, 3, 69])
    keys, _, found = keys_of_columns(X, columns)
    assert found == FINITE
    np.testing.assert_array_equal(keys, keys_of(X[:, columns])[0])
    for row in (0, 500, 999):
        other = X.copy(order="K")
        other[row, 1] = -np.inf
        assert keys_of_columns(other, columns)[2] == INFINITE


@pytest.mark.parametrize("n_trees", [1, 30])
def test_rows_in_double_precision_are_prepared_on_the_way(n_trees):
    """A part of them at a time, whatever their order, and whoever owns their memory."""
    model, Z = make("numbers", missing=False)
    packed = pack([model.tree_] * n_trees, np.float32)
    Z = np.concatenate([Z, Z + 0.5])
    expected = sum_of_values(packed, Z.astype(np.float32))
    read_only = Z.copy()
    read_only.flags.writeable = False
    for same in (Z, np.asfortranarray(Z), read_only, np.repeat(Z, 2, axis=0)[::2]):
        np.testing.assert_array_equal(sum_of_values(packed, same), expected)


DECIDING = [
    {},
    {"precision": "float64"},
    {"missing": "surrogate", "surrogates": 2},
    {"categorical_features": [3], "missing": "majority"},
    {"max_depth": 1},
    {"min_samples_split": 1000},
]
WITH_LOSS = {"loss": [[0, 1, 8], [1, 0, 1], [2, 1, 0]], "priors": [0.6, 0.2, 0.2]}


@pytest.mark.parametrize(
    ("params", "n_outputs"), [*product(DECIDING, (1, 2)), (WITH_LOSS, 1)], ids=str
)
def test_rows_that_are_more_than_leaves_get_the_class_of_each(params, n_outputs):
    """What one row after the other is given, and what the shares say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    X[:, 3] = rng.integers(0, 5, 500)
    if "missing" in params:
        X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.integers(0, 3, (500, n_outputs)) + np.array([10, 20])[:n_outputs]
    model = cart.DecisionTreeClassifier(random_state=0, min_samples_leaf=5, **params)
    model.fit(X, y[:, 0] if n_outputs == 1 else y)
    together = model.predict(X)
    assert len(X) > model.get_n_leaves()
    np.testing.assert_array_equal(together, [model.predict(X[i : i + 1])[0] for i in range(500)])
    if "loss" not in params:
        shares = model.predict_proba(X)
        shares, classes = (
            (shares, model.classes_) if n_outputs == 2 else ([shares], [model.classes_])
        )
        best = [c[s.argmax(axis=1)] for s, c in zip(shares, classes, strict=True)]
        np.testing.assert_array_equal(together.reshape(500, -1), np.array(best).T)
    assert together.dtype == model.predict(X[:1]).dtype


def test_paths_of_nodes_in_any_order():
    """Trees from elsewhere may have children before their parents, or be a lone root."""
    first = SimpleNamespace(  # 0 -> 2, 4; 4 -> 1, 3
        node_count=5,
        children_left=np.array([2, -1, -1, -1, 1], np.int32),
        children_right=np.array([4, -1, -1, -1, 3], np.int32),
    )
    root = SimpleNamespace(
        node_count=1, children_left=np.int32([-1]), children_right=np.int32([-1])
    )
    indicator, start = paths_to(np.array([[3, 2], [0, 0], [2, 1]]), [first, root, first])
    np.testing.assert_array_equal(start, [0, 5, 6, 11])
    expected = [[1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0], [1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1]]
    np.testing.assert_array_equal(indicator.toarray(), expected)
