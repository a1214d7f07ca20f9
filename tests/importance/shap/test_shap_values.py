"""SHAP values against the Shapley value over all subsets, and what they promise."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1
from sklearn.ensemble import BaggingRegressor as PeerBagging
from sklearn.ensemble import ExtraTreesRegressor as PeerExtraTrees
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor as PeerTree

import cart
import forest
from benchmarks.oracles import shapley as oracle
from importance import shap_values
from importance.shap import falls_out_of_bag, mean_absolute_shap
from tests.agreement.same import trees_of

ROWS = 3


def table(task, n=90, missing=0.0, seed=0):
    rng = np.random.RandomState(seed)
    X = np.round(rng.normal(size=(n, 5)), 1).astype(np.float32)
    signal = X[:, 0] * (X[:, 1] > 0) + X[:, 2] + 0.5 * rng.normal(size=n)
    X[rng.uniform(size=X.shape) < missing] = np.nan
    if task == "regression":
        return X, signal
    return X, np.digitize(signal, (0,) if task == "binary" else (-0.5, 0.5))


def with_categories(n=120):
    rng = np.random.RandomState(0)
    X = np.column_stack((rng.randint(6, size=n), rng.randint(4, size=n), rng.normal(size=n)))
    return X, (X[:, 0] % 3) * X[:, 2] + (X[:, 1] == 2)


def models():
    regression, binary, classes = (table(t) for t in ("regression", "binary", "classes"))
    missing = table("regression", missing=0.2)
    weight = np.random.RandomState(1).randint(0, 4, 90).astype(float)
    forest_of = forest.RandomForestRegressor
    yield "regression", forest_of(4, random_state=0), regression, {}
    yield "binary", forest.RandomForestClassifier(4, random_state=0), binary, {}
    yield "classes", forest.RandomForestClassifier(4, random_state=0), classes, {}
    yield "missing", forest_of(4, random_state=0), missing, {}
    yield "weights", forest_of(3, random_state=0), regression, {"sample_weight": weight}
    yield "float64", forest_of(3, random_state=0, precision="float64"), regression, {}
    yield "extra trees", forest.ExtraTreesRegressor(3, random_state=0), regression, {}
    yield (
        "categories",
        forest_of(3, random_state=0, categorical_features=[0, 1]),
        (with_categories()),
        {},
    )
    yield "absolute error", cart.DecisionTreeRegressor(criterion="absolute_error"), regression, {}
    yield "one tree", cart.DecisionTreeClassifier(max_depth=4), classes, {}
    yield "a leaf", cart.DecisionTreeRegressor(max_depth=1, min_samples_leaf=80), regression, {}
    yield "theirs", PeerClassifier(4, random_state=0), binary, {}
    yield "their tree", PeerTree(max_leaf_nodes=20), missing, {}
    yield "their extra trees", PeerExtraTrees(3, random_state=0), regression, {}


ALL = list(models())
EACH_MODEL = pytest.mark.parametrize(
    ("model", "data", "options"), [each[1:] for each in ALL], ids=[each[0] for each in ALL]
)


def said(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def as_seen(model, X):
    """Rows as the trees see them."""
    if getattr(model, "precision", "float32") == "float64":
        return np.asarray(X, np.float64)
    return np.asarray(X, np.float32).astype(np.float64)


def assert_close(found, expected, bar=1e-10):
    scale = max(np.abs(expected).max(), 1e-30)
    assert np.abs(found - expected).max() <= bar * scale


def drop_output(expected, model):
    return expected if hasattr(model, "classes_") else expected[..., 0]


@EACH_MODEL
def test_path_dependent_values_are_shapley_values(model, data, options):
    X, y = data
    model.fit(X, y, **options)
    found = shap_values(model, X)
    assert found.values.shape == (*X.shape, *said(model, X[:1]).shape[1:])
    assert_close(found.prediction, said(model, X), 1e-12)
    rows, trees = as_seen(model, X)[:ROWS], trees_of(model)
    expected = np.array([
        np.mean([oracle.shapley(oracle.path_dependent(t, x), X.shape[1]) for t in trees], 0)
        for x in rows
    ])  # fmt: skip
    assert_close(found.values[:ROWS], drop_output(expected, model))
    base = np.mean([oracle.path_dependent(t, rows[0])(frozenset()) for t in trees], axis=0)
    np.testing.assert_allclose(found.base_value, drop_output(base, model), rtol=1e-12)


@EACH_MODEL
def test_interventional_values_are_shapley_values(model, data, options):
    X, y = data
    model.fit(X, y, **options)
    found = shap_values(model, X[:40], background=X[50:60])
    assert_close(found.prediction, said(model, X[:40]), 1e-12)
    np.testing.assert_allclose(found.base_value, said(model, X[50:60]).mean(axis=0), rtol=1e-12)
    seen = as_seen(model, X)
    expected = np.array([
        np.mean([
            oracle.shapley(oracle.interventional(t, x, seen[50:60]), X.shape[1])
            for t in trees_of(model)
        ], 0)
        for x in seen[:ROWS]
    ])  # fmt: skip
    assert_close(found.values[:ROWS], drop_output(expected, model))


@EACH_MODEL
def test_interactions_are_shapley_interactions(model, data, options):
    X, y = data
    model.fit(X, y, **options)
    found = shap_values(model, X[:ROWS], interactions=True)
    expected = np.array([
        np.mean([
            oracle.interactions(oracle.path_dependent(t, x), X.shape[1]) for t in trees_of(model)
        ], 0)
        for x in as_seen(model, X)[:ROWS]
    ])  # fmt: skip
    assert_close(found.interactions, drop_output(expected, model))
    assert_close(found.interactions.sum(axis=2), found.values)
    diagonal = np.arange(X.shape[1])
    np.testing.assert_array_equal(found.main_effects, found.interactions[:, diagonal, diagonal])


def test_ten_features():
    X, y = make_friedman1(300, 10, noise=1.0, random_state=0)
    model = cart.DecisionTreeRegressor(max_features=3, random_state=0).fit(X, y)
    found = shap_values(model, X[:2])
    expected = [
        oracle.shapley(oracle.path_dependent(model.tree_, x), 10)[:, 0]
        for x in as_seen(model, X)[:2]
    ]
    assert_close(found.values, np.array(expected))


# -------------------------------------------------------------------------------- out of bag


@pytest.mark.parametrize("task", ["regression", "binary", "classes"])
@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("n_trees", [1, 6])
def test_out_of_bag_values_are_of_the_trees_that_have_not_seen_the_row(task, adopted, n_trees):
    X, y = table(task)
    package = __import__("sklearn.ensemble").ensemble if adopted else forest
    kind = "RandomForestRegressor" if task == "regression" else "RandomForestClassifier"
    model = getattr(package, kind)(n_trees, random_state=0).fit(X, y)
    found = shap_values(model, X, out_of_bag=True)
    total, n = np.zeros_like(found.values), np.zeros(len(X), int)
    base, squares = np.zeros_like(found.prediction), np.zeros_like(found.values)
    for tree, draws in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(len(X)), draws)
        of_tree = shap_values(tree, X[out])
        total[out] += of_tree.values
        squares[out] += of_tree.values**2
        base[out] += of_tree.base_value
        n[out] += 1
    np.testing.assert_array_equal(found.n_trees, n)
    assert 0 in n
    known = n > 0
    assert np.isnan(found.values[~known]).all()
    assert np.isnan(found.base_value[~known]).all()
    each = n[known].reshape(-1, *[1] * (total.ndim - 1))
    np.testing.assert_allclose(found.values[known], total[known] / each, atol=1e-12)
    each = n[known].reshape(-1, *[1] * (base.ndim - 1))
    np.testing.assert_allclose(found.base_value[known], base[known] / each, atol=1e-12)
    many = n > 1
    each = n[many].reshape(-1, *[1] * (total.ndim - 1))
    spread = np.maximum(squares[many] / each - (total[many] / each) ** 2, 0)
    error = np.sqrt(spread / (each - 1))
    np.testing.assert_allclose(found.standard_error[many], error, atol=1e-7)
    assert np.isnan(found.standard_error[~many]).all()
    if not adopted:
        expected = model.out_of_bag(X, y)
        expected = expected.predictions if task == "regression" else expected.probabilities
        np.testing.assert_allclose(found.prediction[known], expected[known], atol=1e-12)


# ---------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("p", [120, 150, 400])
def test_many_distinct_features_on_one_path(p):
    """Where products of hundreds of factors underflow."""
    k = np.random.RandomState(0).permutation(3 * p) % p
    X, y = np.eye(p)[k], 1.3**k
    model = cart.DecisionTreeRegressor(random_state=0).fit(X, y)
    found = shap_values(model, X)
    largest = model.predict(X).max()
    assert np.abs(found.prediction - model.predict(X)).max() <= 1e-9 * largest
    assert np.abs(found.values).max() <= largest


def test_a_symmetric_path_of_many_features_is_shared_equally():
    """A leaf behind 100 features that all have the same share: each gets the same."""
    p = 100
    X = np.vstack((np.zeros((1, p)), np.eye(p)))
    y = np.concatenate(([1.0], np.zeros(p)))
    model = cart.DecisionTreeRegressor(random_state=0).fit(X, y)
    found = shap_values(model, X[:1], background=np.ones((1, p)))
    np.testing.assert_allclose(found.values, 1 / p, rtol=1e-9)


def test_children_without_weight():
    """Shares of cover that are 0, and a row that goes there."""
    X, y = table("regression")
    model = PeerTree(max_depth=5, random_state=0).fit(X, y)
    state, tree = model.tree_.__getstate__(), model.tree_
    nodes, below = state["nodes"].copy(), [tree.children_left[tree.children_left[0]]]
    while below:
        node = below.pop()
        nodes["weighted_n_node_samples"][node] = 0.0
        if tree.children_left[node] >= 0:
            below += [tree.children_left[node], tree.children_right[node]]
    model.tree_.__setstate__({**state, "nodes": nodes})
    found = shap_values(model, X)
    assert np.isfinite(found.values).all()
    assert_close(found.prediction, model.predict(X), 1e-12)


def test_more_nodes_than_sixteen_bits_count():
    """Where shap's interventional path fails (its issue 3486)."""
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 3))
    y = rng.normal(size=len(X))
    model = cart.DecisionTreeRegressor(random_state=0).fit(X, y)
    assert model.tree_.node_count > 32_767
    for options in ({}, {"background": X[:5]}):
        found = shap_values(model, X[100:110], **options)
        np.testing.assert_allclose(found.prediction, model.predict(X[100:110]), atol=1e-10)


# ----------------------------------------------------------------------------------- promises


@pytest.mark.parametrize("options", [{}, {"out_of_bag": True}, {"interactions": True}])
def test_n_jobs_and_blocks_are_irrelevant_bit_for_bit(options, monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:300], y[:300]
    model = forest.RandomForestClassifier(10, random_state=0).fit(X, y)
    expected = shap_values(model, X, **options)
    for n_jobs in (1, 2, 4):
        found = shap_values(model, X, n_jobs=n_jobs, **options)
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.interactions, expected.interactions)
    monkeypatch.setattr("importance.shap.over_trees._BLOCK", 24)
    np.testing.assert_array_equal(shap_values(model, X, **options).values, expected.values)


def test_sparse_and_frames():
    pd = pytest.importorskip("pandas")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = forest.RandomForestRegressor(3, random_state=0).fit(X, y)
    found = shap_values(model, X)
    assert list(found.feature_names) == list(X.columns)
    frame = shap_values(model, X[::-1]).to_frame()
    assert list(frame.columns) == list(X.columns)
    np.testing.assert_array_equal(frame.loc[X.index], found.values)  # rows by their names
    sparse = csr_matrix(X.to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that names are missing
        np.testing.assert_array_equal(shap_values(model, sparse).values, found.values)
    X, y = load_iris(return_X_y=True)
    frame = shap_values(forest.RandomForestClassifier(3).fit(X, y), X).to_frame()
    assert isinstance(frame.columns, pd.MultiIndex)
    assert frame.shape == (150, 12)


def test_callback_counts_the_parts():
    X, y = table("regression")
    model = forest.RandomForestRegressor(3, random_state=0).fit(X, y)
    told = []
    shap_values(model, X, callback=told.append)
    assert told[-1].n_done == told[-1].n_total == len(told)


def test_mean_abs():
    X, y = table("classes")
    found = shap_values(forest.RandomForestClassifier(5, random_state=0).fit(X, y), X)
    size = np.abs(found.values).sum(axis=2)
    whole = found.mean_abs()
    np.testing.assert_allclose(whole.values, size.mean(axis=0))
    np.testing.assert_allclose(whole.standard_error, size.std(axis=0) / np.sqrt(len(X)))
    np.testing.assert_array_equal(found.mean_abs(per_row=True).per_row, size)


@pytest.mark.parametrize("out_of_bag", [False, True])
def test_mean_absolute_shap_is_that_of_the_values(out_of_bag):
    X, y = table("regression")
    model = forest.RandomForestRegressor(30, random_state=0).fit(X, y)
    expected = shap_values(model, X, out_of_bag=out_of_bag).mean_abs()
    found = mean_absolute_shap(model, X, out_of_bag=out_of_bag)
    assert found.measure == "mean_absolute_shap" + "_oob" * out_of_bag
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.standard_error, expected.standard_error)


def test_rows_of_one_group_count_as_one_for_errors():
    X, y = table("regression", n=40)
    person = np.repeat(np.arange(40), 10)  # each stands there ten times
    many = forest.RandomForestRegressor(20, random_state=0).fit(X[person], y[person], groups=person)
    found = mean_absolute_shap(many, X[person])
    alone = mean_absolute_shap(many, X)  # the same trees, of each person one row
    np.testing.assert_allclose(found.values, alone.values)
    of_rows = np.abs(shap_values(many, X).values).std(axis=0) / np.sqrt(40)
    np.testing.assert_allclose(found.standard_error, of_rows)
    step = mean_absolute_shap(many, X[person], max_rows=80)  # two of each person
    np.testing.assert_allclose(step.standard_error, of_rows)
    fall, error = np.full((400, 5), 0.5), np.repeat(np.linspace(-3.0, 3.0, 40), 10)[:, np.newaxis]
    inside = replace(found, values=np.ones(5), per_row=fall + error + 1.0)
    outside = replace(found, values=np.full(5, 0.5), per_row=np.ones((400, 5)))
    assert falls_out_of_bag(inside, outside).all()
    assert not falls_out_of_bag(inside, outside, person).any()


def test_one_row_has_no_error_and_tells_no_fall():
    X, y = table("classes")
    model = forest.RandomForestClassifier(5, random_state=0).fit(X, y)
    inside = shap_values(model, X[:1]).mean_abs(per_row=True)
    assert np.isnan(inside.standard_error).all()
    outside = replace(inside, values=0.5 * inside.values, per_row=0.5 * inside.per_row)
    assert not falls_out_of_bag(inside, outside).any()


@pytest.mark.parametrize(
    ("model", "options", "error", "words"),
    [
        (GradientBoostingRegressor(n_estimators=2), {}, TypeError, "not a random forest"),
        (
            forest.RandomForestRegressor(3, voting="oob_weighted"), {}, ValueError, "voting=",
        ),
        (forest.RandomForestRegressor(2, bootstrap=False), {"out_of_bag": True}, ValueError,
         "no row is out of bag"),
        (cart.DecisionTreeRegressor(), {"out_of_bag": True}, ValueError, "True needs a forest"),
        (forest.RandomForestRegressor(2), {"interactions": True, "background": np.zeros((1, 5))},
         ValueError, "leave out background"),
        (forest.RandomForestRegressor(2), {"interactions": "all"}, TypeError, "True or False"),
        (forest.RandomForestRegressor(2), {"out_of_bag": "yes"}, TypeError, "True or False"),
    ],
)  # fmt: skip
def test_refusals(model, options, error, words):
    X, y = table("regression")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    with pytest.raises(error, match=words):
        shap_values(model, X, **options)


def test_columns_that_bagging_draws_are_those_of_the_table():
    X, y = table("regression")
    model = PeerBagging(n_estimators=4, max_features=0.6, bootstrap_features=True, random_state=0)
    found = shap_values(model.fit(X, y), X)
    np.testing.assert_allclose(
        found.base_value + found.values.sum(axis=1), model.predict(X), rtol=1e-9
    )


def test_more_refusals():
    X, y = table("regression")
    several = np.column_stack((y, y))
    for kind in (forest.RandomForestRegressor(2), cart.DecisionTreeRegressor()):
        with pytest.raises(TypeError, match="output"):
            shap_values(kind.fit(X, several), X)
    for model in (cart.DecisionTreeRegressor(), PeerTree(), forest.RandomForestRegressor()):
        with pytest.raises(NotFittedError):
            shap_values(model, X)
    model = forest.RandomForestRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="training table"):
        shap_values(model, X[:10], out_of_bag=True)
    with pytest.raises(ValueError, match="not the table"):
        shap_values(model, X[::-1], out_of_bag=True)
    everyone = np.ones((2, len(y)), int)
    with pytest.raises(ValueError, match="No row is out of bag"):
        shap_values(forest.RandomForestRegressor(2).fit(X, y, in_bag=everyone), X, out_of_bag=True)
    with pytest.raises(ValueError, match="features"):
        shap_values(model, X[:, :3])
    with pytest.raises(ValueError, match="interactions=True"):
        shap_values(model, X).main_effects  # noqa: B018


@pytest.mark.parametrize("out_of_bag", [False, True])
def test_the_steps_of_a_pipeline_run_once(out_of_bag):
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    frame = frame.set_axis(frame.index + 7)
    seen = []
    steps = FunctionTransformer(lambda X: seen.append(len(X)) or X.to_numpy())
    model = make_pipeline(steps, forest.RandomForestRegressor(5, random_state=0)).fit(frame, y)
    seen.clear()
    background = None if out_of_bag else frame[:9]
    found = shap_values(model, frame, out_of_bag=out_of_bag, background=background)
    assert seen == ([442] if out_of_bag else [442, 9])
    assert found.index.equals(frame.index)
    np.testing.assert_array_equal(found.data, frame)
    seen.clear()
    mean_absolute_shap(model, frame, out_of_bag=out_of_bag)
    assert seen == [442]
