"""Binned tables: their bins, and what holds for trees that are grown on them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.ensemble
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1

import cart
import forest
from cart.estimators.encoding import encode_columns
from cart.interop.bridge import counterpart
from cart.table.bins import bin_table
from cart.table.columns import Columns
from cart.table.encoding import encode
from forest.interop.bridge import from_sklearn, to_sklearn
from importance import drop_column
from importance.inference.refit import Refits
from tests.agreement.same import assert_same_tables, assert_same_tree, trees_of
from tests.examples import examples

seeds = st.integers(0, 2**32 - 1)
TREES = (cart.DecisionTreeClassifier, cart.DecisionTreeRegressor)
FORESTS = (forest.RandomForestClassifier, forest.RandomForestRegressor)


def make_data(n=600, n_features=5, seed=0):
    """Continuous columns and one of few values; classes and numbers that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    X[:, -1] = rng.integers(0, 6, n)
    signal = X[:, 0] + np.sin(3 * X[:, 1]) + X[:, -1] / 3
    return X, (signal + rng.normal(size=n) > 1).astype(int), np.rint(9 * signal + 5)


def target_for(kind, labels, numbers):
    return numbers if "Regressor" in kind.__name__ else labels


# ---------------------------------------------------------------------------------- the bins


def plain_bins(values, max_bins):
    """The bin of every value, by counting."""
    known = np.sort(values[~np.isnan(values)])
    if len(np.unique(known)) <= max_bins:
        ends = np.unique(known)
    else:
        n = len(known)
        places = [(n * i + max_bins - 1) // max_bins for i in range(1, max_bins + 1)]
        ends = np.unique(known[np.array(places) - 1])
    bins = (values[:, None] > ends).sum(axis=1).astype(float)
    return np.where(np.isnan(values), np.nan, bins)


@examples(50)
@given(
    seed=seeds, n=st.integers(1, 200), n_levels=st.sampled_from([1, 3, 20, 10**6]),
    max_bins=st.integers(2, 40), missing=st.sampled_from([0.0, 0.2, 1.0]),
)  # fmt: skip
def test_bins_are_those_of_a_plain_twin(seed, n, n_levels, max_bins, missing):
    rng = np.random.default_rng(seed)
    X = (rng.integers(0, n_levels, (n, 3)) * 0.1).astype(np.float32)
    X[:, 1] **= 4  # some values are frequent
    X[rng.random((n, 3)) < missing] = np.nan
    table = bin_table(encode(Columns(X)), max_bins)
    for column, values in enumerate(X.T):
        codes = table.codes[column].astype(float)
        codes[codes == 2**32 - 1] = np.nan
        expected = plain_bins(values, max_bins)
        np.testing.assert_array_equal(codes, expected)
        mine = slice(*table.level_start[column : column + 2])
        n_bins = len(np.unique(expected[~np.isnan(expected)]))
        assert len(table.levels.array[mine]) == len(table.tops.array[mine]) == n_bins <= max_bins
        for b in range(n_bins):
            assert table.levels.array[mine][b] == values[expected == b].min()
            assert table.tops.array[mine][b] == values[expected == b].max()


@pytest.mark.parametrize("max_bins", [2, 7, 64, 255])
def test_bins_are_those_of_histogram_gradient_boosting(max_bins):
    """Whose quantiles are NumPy's; a prime number of rows has none between two rows."""
    values = np.random.default_rng(0).exponential(size=1009).astype(np.float32)
    percentiles = np.linspace(0, 100, max_bins + 1)[1:-1]
    edges = np.percentile(values.astype(float), percentiles, method="averaged_inverted_cdf")
    codes = bin_table(encode(Columns(values[:, None])), max_bins).codes[0]
    np.testing.assert_array_equal(codes, np.searchsorted(edges, values))


# --------------------------------------------------------------------- scikit-learn's trees


@pytest.mark.parametrize("kind", [*TREES, *FORESTS])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("params", [{}, {"max_features": 2}, {"max_leaf_nodes": 40}], ids=str)
def test_trees_on_binned_data_are_scikit_learns(kind, missing, params):
    rng = np.random.default_rng(1)
    X, labels, numbers = make_data(3000)
    X = np.column_stack([plain_bins(x, 255) for x in X.T])
    X[rng.random(X.shape) < missing] = np.nan
    y = target_for(kind, labels, numbers)
    params = {**params, "random_state": 3}
    if kind in FORESTS:
        params["n_estimators"] = 3
    ours = kind(max_bins=255, **params).fit(X, y)
    source, target = (forest, sklearn.ensemble) if kind in FORESTS else (cart, sklearn.tree)
    theirs = counterpart(ours, source, target).fit(X, y)
    for a, b in zip(trees_of(ours), trees_of(theirs), strict=True):
        assert a.node_count > 30
        assert_same_tree(a, b)


# ------------------------------------------------------------------------------ any table


def assert_halfway(nodes, X, max_bins):
    """Every threshold lies between two bins, and others may lie there that a node has not."""
    table = bin_table(encode(Columns(X)), max_bins)
    for column in range(X.shape[1]):
        mine = slice(*table.level_start[column : column + 2])
        lows, tops = (np.float64(part.array[mine]) for part in (table.levels, table.tops))
        i, j = np.triu_indices(len(lows), 1)
        halfway = tops[i] / 2 + lows[j] / 2
        thresholds = nodes.threshold[nodes.feature == column]
        assert np.isin(thresholds, np.concatenate((halfway, tops, [np.inf]))).all()


@examples(60)
@given(
    seed=seeds, max_bins=st.sampled_from([2, 5, 30, 255]), missing=st.sampled_from([0.0, 0.1]),
    precision=st.sampled_from(["float32", "float64"]), scale=st.sampled_from([1.0, 1e-6, 3e30]),
    max_features=st.sampled_from([1, 1.0]), kind=st.sampled_from(TREES),
    max_leaf_nodes=st.sampled_from([None, 10]),
)  # fmt: skip
def test_rows_lie_in_the_leaves_that_growth_put_them_into(
    seed, max_bins, missing, precision, scale, max_features, kind, max_leaf_nodes
):
    """And thresholds are halfway between two bins, or just below the upper one."""
    rng = np.random.default_rng(seed)
    X, labels, numbers = make_data(int(rng.integers(2, 1500)), seed=seed)
    X = X.astype(np.float64) * scale
    X[rng.random(X.shape) < missing] = np.nan
    tree = kind(
        max_bins=max_bins, precision=precision, max_features=max_features, random_state=0,
        max_leaf_nodes=max_leaf_nodes,
    ).fit(X, target_for(kind, labels, numbers))  # fmt: skip
    nodes = tree.tree_
    is_leaf = nodes.children_left < 0
    n_rows = np.bincount(tree.apply(X), minlength=nodes.node_count)
    np.testing.assert_array_equal(n_rows[is_leaf], nodes.n_node_samples[is_leaf])
    np.testing.assert_array_equal(tree.decision_path(X).sum(axis=0), nodes.n_node_samples[None])
    assert_halfway(nodes, X.astype(precision), max_bins)


def test_a_threshold_is_halfway_between_two_bins():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [15.0]])
    tree = cart.DecisionTreeRegressor(max_bins=2).fit(X, X[:, 0] > 5)
    assert tree.tree_.threshold[0] == 6.0
    assert tree.get_n_leaves() == 2
    three = cart.DecisionTreeRegressor(max_bins=3).fit(X, np.arange(6.0))
    assert sorted(three.tree_.threshold[three.tree_.feature >= 0]) == [1.5, 10.5]


def test_neighbouring_bins_are_cut_however_near_their_values():
    """Of three bins of two values each, the first two are 6e-8 apart. scikit-learn's threshold is
    kept where every value has a bin of its own."""
    values = np.float32([0.0, 0.5, 0.5 + 2.0**-24, 2.0, 9.0, 9.5])
    X, y = values[:, None], [0, 0, 1, 1, 2, 2]
    nodes = cart.DecisionTreeClassifier(max_bins=3).fit(X, y).tree_
    assert nodes.node_count == 5
    assert values[1] <= nodes.threshold.min(where=nodes.feature == 0, initial=9) < values[2]
    y = [0, 0, 1, 0, 2, 2]
    ours, theirs = (
        kind.fit(X, y).tree_
        for kind in (cart.DecisionTreeClassifier(max_bins=6), sklearn.tree.DecisionTreeClassifier())
    )
    assert_same_tree(ours, theirs)


@pytest.mark.parametrize("kind", FORESTS)
def test_a_forest_bins_its_table_once_whatever_the_threads(kind):
    X, labels, numbers = make_data()
    y = target_for(kind, labels, numbers)
    models = [kind(8, max_bins=16, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)]
    for a, b in zip(*(model.estimators_ for model in models), strict=True):
        assert_same_tree(a.tree_, b.tree_)
        assert a.max_bins == 16
        assert_halfway(a.tree_, X, 16)  # of bins of all rows, not of the tree's own


@pytest.mark.parametrize("kind", [*TREES, *FORESTS])
def test_columns_of_few_values_grow_the_trees_without_bins(kind):
    X, labels, numbers = make_data()
    X, y = np.round(X, 1), target_for(kind, labels, numbers)
    params = {"random_state": 0} | ({"n_estimators": 3} if kind in FORESTS else {})
    ours = kind(max_bins=255, **params).fit(X, y)
    exact = kind(**params).fit(X, y)
    for a, b in zip(trees_of(ours), trees_of(exact), strict=True):
        assert_same_tree(a, b)


def test_categories_are_left_as_they_are():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(0, 30, 500), rng.normal(size=500)))
    y = np.isin(X[:, 0], (3, 8, 17, 25)) + X[:, 1]
    params = {"categorical_features": [0], "min_category_ratio": 0.0, "random_state": 0}
    tree = cart.DecisionTreeRegressor(max_bins=4, **params).fit(X, y)
    assert len(np.unique(tree.tree_.threshold[tree.tree_.feature == 1])) <= 6
    X[:, 1] = plain_bins(X[:, 1], 4)
    exact = cart.DecisionTreeRegressor(**params).fit(X, y)
    for name in ("children_left", "feature", "n_node_samples", "value"):
        np.testing.assert_array_equal(getattr(tree.tree_, name), getattr(exact.tree_, name))


def test_monotonic_constraints_hold():
    X, labels, _ = make_data()
    tree = cart.DecisionTreeClassifier(max_bins=20, monotonic_cst=[1, 0, 0, 0, 0]).fit(X, labels)
    rows = np.repeat(X[:20], 50, axis=0)
    rows[:, 0] = np.tile(np.linspace(-3, 3, 50), 20)
    shares = tree.predict_proba(rows)[:, 1].reshape(20, 50)
    assert (np.diff(shares) >= 0.0).all()


def test_merged_values_are_counted_before_there_are_bins():
    X = np.arange(2.0**24, 2.0**24 + 400)[:, None]
    with pytest.warns(UserWarning, match="become equal"):
        binned = cart.DecisionTreeRegressor(max_bins=8).fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="become equal"):
        exact = cart.DecisionTreeRegressor().fit(X, X[:, 0])
    np.testing.assert_array_equal(binned.n_merged_values_, exact.n_merged_values_)
    assert binned.n_merged_values_[0] > 100


# ------------------------------------------------------------------------------ estimators


@pytest.mark.parametrize("kind", [*TREES, *FORESTS])
@pytest.mark.parametrize("max_bins", [0, 1, 256, 2.5, "a", -1])
def test_bad_numbers_of_bins(kind, max_bins):
    X, labels, numbers = make_data(50)
    with pytest.raises(ValueError, match="'max_bins' parameter of"):
        kind(max_bins=max_bins).fit(X, target_for(kind, labels, numbers))


@pytest.mark.parametrize("kind", [*TREES, *FORESTS])
def test_sparse_tables_are_refused(kind):
    X, labels, numbers = make_data(50)
    with pytest.raises(ValueError, match="max_bins=9 needs a dense table"):
        kind(max_bins=9).fit(sp.csr_matrix(X), target_for(kind, labels, numbers))


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_random_splitters_are_refused(kind, precision):
    X, labels, numbers = make_data(50)
    with pytest.raises(ValueError, match='use splitter="best" or max_bins=None'):
        kind(max_bins=9, splitter="random", precision=precision).fit(
            X, target_for(kind, labels, numbers)
        )


@pytest.mark.parametrize("kind", FORESTS)
def test_clones_pickles_and_bridges(kind):
    X, labels, numbers = make_data()
    y = target_for(kind, labels, numbers)
    model = kind(4, max_bins=12, random_state=0).fit(X, y)
    expected = model.predict(X)
    assert clone(model).max_bins == 12
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    there = to_sklearn(model)
    np.testing.assert_array_equal(there.predict(X), expected)
    back = from_sklearn(there)
    np.testing.assert_array_equal(back.predict(X), expected)
    assert back.max_bins is None  # scikit-learn has no such parameter


def test_extra_trees_have_no_bins():
    for kind in (cart.ExtraTreeClassifier, forest.ExtraTreesRegressor):
        assert "max_bins" not in kind().get_params()


@pytest.mark.parametrize("kind", FORESTS)
def test_refits_have_the_same_bins(kind):
    X, labels, numbers = make_data(300, 4)
    y = target_for(kind, labels, numbers)
    model = kind(6, max_bins=5, random_state=0).fit(X, y)
    assert_same_tables(encode_columns(model, X, "best"), bin_table(encode(Columns(X)), 5))
    dropped = drop_column(model, X, y).values
    assert dropped[0] > dropped[2]
    model, X, _ = Refits.of(model, X, y).fit(1, rows=np.arange(200))
    for tree in model.estimators_:
        assert_halfway(tree.tree_, X, 5)


@pytest.mark.parametrize("make", [make_classification, make_friedman1])
def test_bins_cost_little(make):
    """On continuous tables a forest of 255 bins is about as good as an exact one."""
    X, y = make(3000, n_features=10, random_state=0)
    kind = FORESTS[make is make_friedman1]
    scores = [
        kind(30, max_bins=max_bins, oob_score=True, random_state=0).fit(X, y).oob_score_
        for max_bins in (None, 255)
    ]
    assert scores[1] > scores[0] - 0.015
