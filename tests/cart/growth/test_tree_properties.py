"""What holds for every tree, whatever the table and the parameters."""

import copy
import pickle

import numpy as np
import pytest
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_matrix
from sklearn.base import clone

import cart
from benchmarks.oracles import splitter
from benchmarks.oracles.draw import FeatureDraw
from benchmarks.oracles.ties import Training, replay
from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.interop.bridge import counterpart
from cart.jit.decorators import entry_kernel
from cart.primitives.sort_keys import (
    N_COUNTS,
    sort_by_buckets,
    sort_by_digit,
    sort_by_insertion,
    sort_by_radix,
    sort_keys,
)
from cart.splitting.feature_draw import (
    Draw,
    begin_draw,
    end_draw,
    mark_constant,
    mark_searched,
    next_feature,
    restart,
)
from cart.table.columns import Columns
from cart.table.encoding import encode
from cart.tree.packed import Packed, PackedRows, PackedWide, pack
from cart.tree.traversal import leaf_ids, sum_of_values
from tests.agreement.same import assert_same_outputs, assert_same_tree
from tests.data import load
from tests.examples import examples
from tests.oracles import forests

CRITERIA = ("gini", "entropy", "squared_error")


def make_table(seed):
    """X with many equal values, some columns close to constant, and y of four whole numbers."""
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(1, 50), rng.integers(1, 6)
    n_levels, scale = rng.choice([1, 2, 3, 10, 1000]), rng.choice([1.0, 0.1, 3e-8, -1e6])
    return rng.integers(0, n_levels, (n, n_features)) * scale, rng.integers(0, 4, n)


seeds = st.integers(0, 2**32 - 1)
tables = seeds.map(make_table)
weights = seeds.map(np.random.default_rng)
parameters = st.fixed_dictionaries(
    {"random_state": st.integers(0, 1000)},
    optional={
        "max_depth": st.integers(1, 6),
        "min_samples_split": st.one_of(st.integers(2, 10), st.sampled_from([0.1, 0.5])),
        "min_samples_leaf": st.one_of(st.integers(1, 5), st.sampled_from([0.05, 0.3])),
        "min_weight_fraction_leaf": st.sampled_from([0.0, 0.1, 0.3]),
        "max_features": st.just(1),
        "min_impurity_decrease": st.sampled_from([0.0, 0.013, 0.11]),
    },
)
with_leaf_limit = st.tuples(parameters, st.none() | st.integers(2, 9)).map(
    lambda pair: {**pair[0], "max_leaf_nodes": pair[1]}
)


def rank(values):
    return np.unique(values, return_inverse=True)[1]


def make_tree(criterion, **params):
    kind = DecisionTreeRegressor if criterion == "squared_error" else DecisionTreeClassifier
    return kind(criterion=criterion, **params)


# ------------------------------------------------------------------------------ whole trees


@given(tables, weights, with_leaf_limit, st.sampled_from(CRITERIA))
def test_a_node_is_the_sum_of_its_children(table, rng, params, criterion):
    X, y = table
    weight = rng.random(len(y)) + 0.1
    model = make_tree(criterion, **params).fit(X, y, weight)
    tree = model.tree_
    split = np.flatnonzero(tree.children_left >= 0)
    left, right = tree.children_left[split], tree.children_right[split]
    n, w = tree.n_node_samples, tree.weighted_n_node_samples
    np.testing.assert_array_equal(n[split], n[left] + n[right])
    np.testing.assert_allclose(w[split], w[left] + w[right])
    value = tree.value * w[:, None, None]
    np.testing.assert_allclose(value[split], value[left] + value[right], atol=1e-9)
    assert n[0] == len(y)
    assert (n > 0).all()
    assert model.get_n_leaves() == len(split) + 1
    assert params["max_leaf_nodes"] is None or model.get_n_leaves() <= params["max_leaf_nodes"]
    assert model.get_depth() <= params.get("max_depth", len(y))
    total = model.feature_importances_.sum()
    assert total == pytest.approx(1) or total == 0
    leaves = tree.children_left < 0
    np.testing.assert_array_equal(np.bincount(model.apply(X), minlength=len(n))[leaves], n[leaves])


@examples(300)
@given(tables, parameters, weights, st.sampled_from(CRITERIA))
def test_the_naive_grower_grows_the_same_tree(table, params, rng, criterion):
    X, y = table
    weight = rng.integers(0, 4, len(y))
    weight[0] += 1
    model = make_tree(criterion, **params).fit(X, y, weight)
    codes = y if criterion == "squared_error" else np.unique(y, return_inverse=True)[1]
    seed = np.random.RandomState(params.pop("random_state")).randint(2**31 - 1)
    naive = splitter.grow(X, codes, weight, criterion, seed, **params)
    feature, threshold, n_samples, impurity = map(list, zip(*naive, strict=True))
    tree = model.tree_
    assert tree.feature.tolist() == feature
    assert tree.threshold.tolist() == threshold
    assert tree.n_node_samples.tolist() == n_samples
    np.testing.assert_allclose(tree.impurity, impurity, atol=1e-9)


@examples(300)
@given(tables, with_leaf_limit, weights, st.sampled_from(CRITERIA))
def test_scikit_learn_grows_the_same_tree(table, params, rng, criterion):
    """Sums of whole numbers are exact, in regression too: nothing is left to rounding."""
    X, y = table
    weight = rng.integers(0, 4, len(y))
    weight[0] += 1
    ours = make_tree(criterion, **params).fit(X, y, weight)
    theirs = counterpart(ours, cart, sklearn.tree).fit(X, y, weight)
    assert_same_tree(ours.tree_, theirs.tree_)
    assert_same_outputs(ours, theirs, X + 0.1)


@given(tables, with_leaf_limit, weights, st.sampled_from(CRITERIA))
def test_every_split_is_the_best_of_the_features_drawn(table, params, rng, criterion):
    X, y = table
    y = y / 10 if criterion == "squared_error" else y
    weight = rng.integers(1, 100, len(y)) / 100
    model = make_tree(criterion, **params).fit(X, y, weight)
    judged = replay(model.tree_, Training(X, y, weight, model))
    assert not [node for node in judged if node.is_wrong]


@given(tables, weights, st.sampled_from(["gini", "entropy"]), st.integers(0, 100))
def test_whole_weights_repeat_rows(table, rng, criterion, seed):
    X, y = table
    weight = rng.integers(0, 4, len(y))
    weight[0] += 1
    model = DecisionTreeClassifier(criterion=criterion, random_state=seed)
    weighted = model.fit(X, y, weight).predict(X)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight)).predict(X)
    np.testing.assert_array_equal(weighted, repeated)


@given(tables, with_leaf_limit, weights, st.sampled_from(CRITERIA))
def test_order_of_the_rows_does_not_matter(table, params, rng, criterion):
    X, y = table
    order = rng.permutation(len(y))
    model = make_tree(criterion, **params).fit(X, y)
    again = clone(model).fit(X[order], y[order])
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


@given(tables, st.sampled_from(CRITERIA))
def test_monotone_transforms_leave_the_partition(table, criterion):
    X, y = table
    X = np.apply_along_axis(rank, 0, X)
    model = make_tree(criterion, random_state=0).fit(X, y)
    other = clone(model).fit(X**3 - 7, y)
    np.testing.assert_array_equal(model.apply(X), other.apply(X**3 - 7))


@given(tables, with_leaf_limit, st.sampled_from(CRITERIA))
def test_pickled_and_cloned_trees_predict_the_same(table, params, criterion):
    X, y = table
    model = make_tree(criterion, **params).fit(X, y)
    expected = model.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), expected)


# ------------------------------------------------------------------------------------- parts


@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 50), st.integers(1, 4)),
                     elements=st.floats(-1e6, 1e6, width=32)))  # fmt: skip
def test_codes_are_ranks(X):
    table = encode(Columns(X))
    for column, values in enumerate(X.T):
        np.testing.assert_array_equal(table.codes[column], rank(values))
        mine = slice(*table.level_start[column : column + 2])
        np.testing.assert_array_equal(table.levels.array[mine], np.unique(values))


SORTS = INSERTION, RADIX, BUCKETS, BY_NUMBER = range(4)


@entry_kernel
def _sort(how, keys, n, n_bits, counts, spare):
    if how == INSERTION:
        sort_by_insertion(keys, n, keys)
    elif how == RADIX:
        sort_by_radix(keys, n, n_bits, counts, spare)
    elif how == BUCKETS:
        return sort_by_buckets(keys, n, n_bits, counts, spare)
    else:
        sort_keys(keys, n, n_bits, counts, spare)
    return True


@entry_kernel
def _sort_by_digit(keys, n, shift, bits, counts, out):
    sort_by_digit(keys, n, shift, bits, counts, out)


@pytest.mark.parametrize("n_bits", [1, 3, 11, 12, 17, 23, 30])
@pytest.mark.parametrize("n", [1, 2, 20, 21, 300, 1024, 1025, 3000])
@pytest.mark.parametrize("how", SORTS, ids=["insertion", "radix", "buckets", "by number"])
def test_sorts_are_stable(how, n, n_bits):
    n = min(n, 1024) if how == BUCKETS else n  # what they are for
    rng = np.random.default_rng(n * n_bits)
    spread = rng.integers(0, 2**n_bits, n)
    for codes in (spread, np.minimum(rng.geometric(0.3, n), 2**n_bits) - 1):
        keys = codes.astype(np.uint64) << np.uint64(32) | np.arange(n, dtype=np.uint64)
        before = keys.copy()
        if not _sort(how, keys, n, n_bits, np.empty(N_COUNTS, np.int64), np.empty_like(keys)):
            assert how == BUCKETS  # one of them is too large
            assert codes is not spread
            np.testing.assert_array_equal(keys, before)
            continue
        position = keys & np.uint64(0xFFFFFFFF)
        np.testing.assert_array_equal(position, codes.argsort(kind="stable"))


def test_one_digit():
    keys = np.random.default_rng(0).integers(0, 2**20, 500).astype(np.uint64) << np.uint64(32)
    out = np.empty_like(keys)
    _sort_by_digit(keys, 500, 4, 6, np.empty(N_COUNTS, np.int64), out)
    digit = (keys >> np.uint64(36)) & np.uint64(63)
    np.testing.assert_array_equal(out, keys[digit.argsort(kind="stable")])


@entry_kernel
def _restart(draw, seed):
    restart(draw, seed)


@entry_kernel
def _draw_node(draw, is_constant, n_known, max_features, out):
    n = 0
    drawing = begin_draw(draw, 0, n_known)
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


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**31 - 2))
def test_draw(n_features, max_features, seed):
    """Depth first through a small tree; what is constant in a node is so in its children."""
    ours, out = Draw.create(n_features), np.empty(n_features, np.int64)
    _restart(ours, seed)
    theirs = FeatureDraw(n_features, max_features, seed)
    rng = np.random.default_rng(seed)

    def visit(is_constant, n_known, depth):
        expected, n_constant = theirs.draw(is_constant, n_known)
        n, our_constant = _draw_node(ours, is_constant, n_known, max_features, out)
        assert out[:n].tolist() == expected
        assert our_constant == n_constant
        assert sorted(ours.features) == list(range(n_features))
        for _ in range(2 if depth else 0):
            visit(is_constant | (rng.random(n_features) < 0.2), n_constant, depth - 1)

    visit(rng.random(n_features) < 0.1, 0, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 170, 171, 511, 512, 513, 1025, 16131, 16132])
def test_rows_in_flight(n, dtype):
    """As many rows as lanes, as walkers or as a block, and one more or less."""
    X, y = load("digits")
    models = [
        DecisionTreeClassifier(max_features=8, max_depth=depth, random_state=depth).fit(X, y)
        for depth in (1, 3, 9)
    ]
    X = np.resize(X, (n, 64)).astype(dtype)
    packed = pack([model.tree_ for model in models], X.dtype)
    values = np.zeros((n, 10))
    for t, model in enumerate(models):
        leaves = [forests.leaf(model.tree_, row) for row in X[:50]]
        np.testing.assert_array_equal(leaf_ids(packed, t, X)[:50], leaves)
        np.testing.assert_array_equal(leaf_ids(packed, t, X)[-50:], model.tree_.apply(X[-50:]))
        values += model.tree_.value[leaf_ids(packed, t, X), 0]
    np.testing.assert_array_equal(sum_of_values(packed, X), values)
    rows = np.random.default_rng(0).permutation(n)[: n // 2 + 1]
    np.testing.assert_array_equal(sum_of_values(packed, X, rows=rows)[rows], values[rows])


def test_more_trees_than_walkers():
    """One row, or three, down 600 trees: the sums are taken in the order of the trees."""
    X, y = load("iris")
    X = np.float32(X)
    models = [DecisionTreeRegressor(max_depth=t % 7 + 1).fit(X, y + t / 7) for t in range(600)]
    packed = pack([model.tree_ for model in models], X.dtype)
    values = np.zeros((len(X), 1))
    for model in models:
        values += model.tree_.predict(X)
    for n in (1, 3):
        np.testing.assert_array_equal(sum_of_values(packed, X[-n:]), values[-n:])


@pytest.mark.parametrize("with_missing", [False, True])
def test_a_tree_too_large_for_small_nodes(with_missing):
    """Places and features that do not fit into 32 bits: wider nodes, the same leaves."""
    X, y = load("iris")
    X = np.float32(X)
    if with_missing:
        X[::3, 2] = np.nan
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    wide_tree = copy.copy(model.tree_)
    wide_tree.n_features = 2**30
    wide, small = pack([wide_tree], X.dtype), pack([model.tree_], X.dtype)
    wide = wide._replace(n_features=X.shape[1])
    assert isinstance(wide, PackedWide)
    assert isinstance(small, Packed)
    leaves = [forests.leaf(model.tree_, row) for row in X]
    for packed in (wide, small):
        np.testing.assert_array_equal(leaf_ids(packed, 0, X), leaves)
        np.testing.assert_array_equal(sum_of_values(packed, X), model.tree_.value[leaves, 0])


@pytest.mark.parametrize("n_features", [2**26 - 1, 2**26])
def test_small_nodes_up_to_their_limit(n_features):
    """32 bits for the feature and the place of a child, which here is 34 places further on."""
    X = np.arange(19, dtype=np.float32)[:, np.newaxis]
    y = np.r_[-1e6, -2e6, np.arange(17)]  # two rows leave at the root; their node is split last
    models = [DecisionTreeRegressor(max_depth=depth).fit(X, y) for depth in (1, None)]
    assert [model.tree_.node_count for model in models] == [3, 37]
    trees = [copy.copy(model.tree_) for model in models]
    for tree in trees:
        tree.n_features = n_features
    packed = pack(trees, X.dtype)._replace(n_features=1)
    for t, model in enumerate(models):
        np.testing.assert_array_equal(leaf_ids(packed, t, X), model.apply(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_rows_of_another_width_are_refused(form, dtype):
    """They were read past their ends."""
    table, y = load("digits")
    table = table.astype(dtype)
    tree = DecisionTreeClassifier(random_state=0).fit(table, y).tree_
    packed = pack([tree, tree], table.dtype)
    walks = (
        tree.predict, tree.apply, tree.decision_path,
        lambda X: leaf_ids(packed, 1, X), lambda X: sum_of_values(packed, X),
    )  # fmt: skip
    for walk in walks:
        for rows in (table[:, :2], np.c_[table, table[:, 0]]):
            with pytest.raises(ValueError, match=r"n_features=64, but X .*, (2|65)\)"):
                walk(form(rows))
    with pytest.raises(ValueError, match=r"n_features=64"):
        tree.predict(table[0])


def test_order_of_keys():
    """Zeros are equal, infinities the ends, missing values above them."""
    values = np.float32([-np.inf, -1.5, -1e-45, -0.0, 0.0, 1e-45, 2.0, np.inf, np.nan, -np.nan])
    X, y = load("iris")
    packed = DecisionTreeClassifier().fit(X[:, :1], y).tree_.packed_for(np.float32)
    rows = PackedRows.of(packed, values[:, None])
    assert rows.may_miss
    assert not PackedRows.of(packed, values[:8, None]).may_miss
    keys, behind = np.int64(rows.values).reshape(-1, 2).T
    np.testing.assert_array_equal(np.sign(np.diff(keys)), [1, 1, 1, 0, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(behind, 0)
    assert keys.min() > 0


def test_thresholds_between_two_float32_values():
    """A packed threshold is rounded down to float32: no value changes its side."""
    X = np.float32(4 + 4 * np.arange(59) * np.finfo(np.float32).eps)[:, None]
    y = np.arange(59) % 2
    tree = DecisionTreeClassifier().fit(X, y)
    np.testing.assert_array_equal(tree.predict(X), y)
