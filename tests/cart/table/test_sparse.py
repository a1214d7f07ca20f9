"""Sparse tables: the models of the same table made dense.

Targets are whole numbers, so that no order of summation matters.
"""

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.ensemble
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import cart
import forest
from cart.tree.traversal import leaf_ids
from tests.agreement.same import trees_of

RNG = np.random.RandomState(0)
X = sp.random(300, 20, 0.2, "csr", random_state=RNG, data_rvs=lambda k: RNG.normal(size=k))
X = sp.hstack((X, sp.csr_matrix(RNG.normal(size=(300, 1)))), "csr")  # a column without zeros
Y = np.rint(10 * np.asarray(X[:, :4].sum(axis=1)).ravel())
LABELS = (Y > 0).astype(int) + (Y > 5)
MODELS = [
    (cart.DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier, LABELS),
    (cart.ExtraTreeClassifier, sklearn.tree.ExtraTreeClassifier, LABELS),
    (cart.DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor, Y),
    (cart.ExtraTreeRegressor, sklearn.tree.ExtraTreeRegressor, Y),
    (forest.RandomForestClassifier, sklearn.ensemble.RandomForestClassifier, LABELS),
    (forest.RandomForestRegressor, sklearn.ensemble.RandomForestRegressor, Y),
]
EACH_MODEL = pytest.mark.parametrize(
    ("ours", "peer", "y"), MODELS, ids=[ours.__name__ for ours, _, _ in MODELS]
)


@pytest.fixture(scope="module", params=[2.0, 0.0], ids=["lists", "dense"], autouse=True)
def dense_from(request):
    """A table has more zeros than that it is made dense for growth, and fewer."""
    shares = dict.fromkeys(("best", "random"), request.param)
    with mock.patch("cart.estimators.encoding._DENSE_FROM", shares):
        yield


def assert_same_nodes(a, b):
    for mine, theirs in zip(trees_of(a), trees_of(b), strict=True):
        for name in ("children_left", "feature", "threshold", "n_node_samples"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


@EACH_MODEL
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_the_model_of_the_dense_table(ours, peer, y, form):
    sparse, dense = ours(random_state=0), ours(random_state=0)
    sparse.fit(X.asformat(form), y)
    dense.fit(X.toarray(), y)
    assert_same_nodes(sparse, dense)
    for rows in (X.asformat(form), X.toarray()):
        np.testing.assert_array_equal(sparse.predict(rows), dense.predict(X.toarray()))
        np.testing.assert_array_equal(sparse.apply(rows), dense.apply(X.toarray()))
    path = sparse.decision_path(X)
    path = path[0] if isinstance(path, tuple) else path
    assert (path[:, 0].toarray() == 1).all()
    assert_same_nodes(sparse, peer(random_state=0).fit(X, y))


@given(seed=st.integers(0, 1000), density=st.floats(0.0, 1.0))
def test_any_sparse_table(seed, density):
    """Stored zeros or none, duplicate entries or their sums, empty columns, few values."""
    rng = np.random.RandomState(seed)
    n = int(density * 160)
    values, rows, columns = rng.randint(-2, 3, n), rng.randint(0, 40, n), rng.randint(0, 4, n)
    if rng.rand() < 0.5:
        values[values == 0] = 1
    kind = np.float32 if rng.rand() < 0.5 else np.float64  # of which fit makes a copy
    starts = np.append(0, np.bincount(columns, minlength=4).cumsum())
    table = sp.csc_matrix((values, rows[np.argsort(columns)], starts), (40, 4), dtype=kind)
    if rng.rand() < 0.5:
        table.sum_duplicates()
    y = rng.randint(0, 3, 40)
    a = cart.DecisionTreeClassifier(random_state=0).fit(table, y)
    b = cart.DecisionTreeClassifier(random_state=0).fit(table.toarray(), y)
    assert_same_nodes(a, b)


def test_out_of_bag():
    params = {"n_estimators": 40, "oob_score": True, "random_state": 0}
    a = forest.RandomForestClassifier(n_jobs=2, **params).fit(X, LABELS)
    b = forest.RandomForestClassifier(**params).fit(X.toarray(), LABELS)
    np.testing.assert_array_equal(a.oob_decision_function_, b.oob_decision_function_)
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X.toarray()))


@given(
    seed=st.integers(0, 1000),
    density=st.sampled_from([0.0, 0.001, 0.3]),
    n_features=st.sampled_from([1, 7, 60_000]),
    model=st.sampled_from([cart.DecisionTreeClassifier(), forest.RandomForestRegressor(10)]),
    precision=st.sampled_from(["float32", "float64"]),
)
def test_rows_of_any_width_go_where_dense_ones_go(seed, density, n_features, model, precision):
    """Rows are written a few at a time, and taken away again; some are met twice, some not."""
    rng = np.random.default_rng(seed)
    table = sp.random(30, n_features, density, "csr", random_state=rng)
    table.data *= rng.choice([-1.0, 0.0, 1.0], table.nnz)
    y = rng.integers(0, 2, 30)
    model = clone(model).set_params(max_depth=4, precision=precision, random_state=0).fit(table, y)
    halves = np.repeat(table.data / 2, 2), np.repeat(table.indices, 2), 2 * table.indptr
    dense = table.toarray()
    for rows in (table, sp.csr_matrix(halves, table.shape)):
        np.testing.assert_array_equal(model.predict(rows), model.predict(dense))
        np.testing.assert_array_equal(model.apply(rows), model.apply(dense))
    tree, some = getattr(model, "estimators_", [model])[0].tree_, rng.integers(0, 30, 20)
    packed = tree.packed_for(table.dtype)
    for rows in (some, some[:0]):
        leaves = leaf_ids(packed, 0, table, rows)
        np.testing.assert_array_equal(leaves, leaf_ids(packed, 0, dense, rows))


def test_the_table_is_left_as_it_was():
    table = sp.csc_matrix(X, copy=True)
    table.data[:5] = 0.0
    before = table.copy()
    cart.DecisionTreeClassifier().fit(table, LABELS)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(table, name), getattr(before, name))


def test_refusals():
    gaps = X.copy()
    gaps.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN: missing values are supported in dense"):
        cart.DecisionTreeClassifier().fit(gaps, LABELS)
    with pytest.raises(ValueError, match="NaN: missing values are supported in dense"):
        cart.DecisionTreeClassifier().fit(X, LABELS).predict(gaps)
