"""Parameters set after a fit: a fitted model says what it said, until it is fitted again."""

import pickle

import numpy as np
import pytest

import cart
import forest
from cart.interop.bridge import from_sklearn
from importance import oob_permutation

EACH = pytest.mark.parametrize(
    "kind",
    [
        cart.DecisionTreeClassifier, cart.DecisionTreeRegressor, forest.RandomForestClassifier,
        forest.ExtraTreesRegressor,
    ],
)  # fmt: skip


def close_numbers():
    """Numbers that are one in single precision where the target parts them."""
    rng = np.random.default_rng(0)
    X = 2.0**24 + rng.integers(0, 50, (200, 2))
    return X, X[:, 0] % 2


def small(kind, **params):
    """A model of few trees."""
    n_trees = {"n_estimators": 4} if hasattr(kind, "estimators_samples_") else {}
    return kind(random_state=0, **n_trees, **params)


@EACH
@pytest.mark.filterwarnings("ignore:.*become equal")
@pytest.mark.parametrize(("fitted", "then"), [("float32", "float64"), ("float64", "float32")])
def test_a_model_predicts_in_the_precision_of_its_trees(kind, fitted, then):
    X, y = close_numbers()
    model = small(kind, precision=fitted).fit(X, y)
    said, leaves = model.predict(X), model.apply(X)
    model.set_params(precision=then)
    for same in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict(X), said)
        np.testing.assert_array_equal(same.apply(X), leaves)
    expected = small(kind, precision=then).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected.predict(X))


@pytest.mark.filterwarnings("ignore:.*become equal")
def test_trees_of_scikit_learn_stay_in_single_precision():
    from sklearn.tree import DecisionTreeClassifier

    X, y = close_numbers()
    model = from_sklearn(DecisionTreeClassifier().fit(X, y))
    said = model.predict_proba(X)
    np.testing.assert_array_equal(model.set_params(precision="float64").predict_proba(X), said)


def test_measures_and_intervals_are_in_the_precision_of_the_trees():
    X, y = close_numbers()
    model = forest.RandomForestRegressor(20, precision="float64", random_state=0).fit(X, y)
    other = forest.RandomForestRegressor(20, precision="float64", random_state=0).fit(X, y)
    other.set_params(precision="float32")
    np.testing.assert_array_equal(model.predict_interval(X), other.predict_interval(X))
    expected, found = oob_permutation(model, X, y), oob_permutation(other, X, y)
    np.testing.assert_array_equal(expected.values, found.values)


@pytest.mark.filterwarnings("ignore:.*become equal")
def test_a_warm_start_in_another_precision_is_refused():
    X, y = close_numbers()
    model = forest.RandomForestClassifier(2, warm_start=True, random_state=0).fit(X, y)
    said = model.predict_proba(X)
    model.set_params(precision="float64", n_estimators=4)
    with pytest.raises(
        ValueError, match="precision='float32', but now precision='float64'; set it"
    ):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), said)
    assert len(model.set_params(precision="float32").fit(X, y)) == 4
    assert len(model.set_params(precision="float64", warm_start=False).fit(X, y)) == 4


@EACH
def test_a_model_knows_the_categories_of_its_trees(kind):
    rng = np.random.default_rng(0)
    X = np.c_[10.0 * rng.integers(0, 8, 200), rng.normal(size=200)]
    y = (X[:, 0] % 20 == 0).astype(float)
    model = small(kind, categorical_features=[0]).fit(X, y)
    said = model.predict(X)
    np.testing.assert_array_equal(model.set_params(categorical_features=None).predict(X), said)
    plain = small(kind).fit(X, y)
    said = plain.predict(X)
    np.testing.assert_array_equal(plain.set_params(categorical_features=[0]).predict(X), said)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_in_bag_quantiles_are_those_of_the_draws(bootstrap):
    X, y = np.arange(200.0)[:, np.newaxis], np.arange(200.0)
    weight = np.arange(200) % 3 + 0.5
    model = small(forest.RandomForestRegressor, bootstrap=bootstrap, min_samples_leaf=40)
    model.fit(X, y, weight)
    said = model.predict_quantiles(X, [0.3, 0.5, 0.7], in_bag=True)
    model.set_params(bootstrap=not bootstrap)
    now = model.predict_quantiles(X, [0.3, 0.5, 0.7], in_bag=True)
    np.testing.assert_array_equal(now, said)


def test_proximities_and_standard_errors_are_those_of_the_draws():
    X, y = np.arange(30.0)[:, np.newaxis], np.arange(30.0)
    model = forest.RandomForestRegressor(40, random_state=0).fit(X, y)
    gap, (_, error) = forest.proximity(model, X, pairs="gap"), model.predict(X, return_std=True)
    model.set_params(bootstrap=False)
    assert (forest.proximity(model, X, pairs="gap") != gap).nnz == 0
    np.testing.assert_array_equal(model.predict(X, return_std=True)[1], error)
    whole = forest.RandomForestRegressor(4, bootstrap=False).fit(X, y).set_params(bootstrap=True)
    with pytest.raises(ValueError, match="fitted with bootstrap=False"):
        forest.proximity(whole, X, pairs="gap")
    with pytest.raises(ValueError, match="needs a bootstrap"):
        whole.predict(X, return_std=True)


def test_standard_errors_go_by_the_class_weight_of_the_fit():
    X, y = np.arange(30.0)[:, np.newaxis], np.arange(30) % 2
    model = forest.RandomForestClassifier(40, random_state=0).fit(X, y)
    error = model.predict_proba_std(X)
    model.set_params(class_weight="balanced")
    np.testing.assert_array_equal(model.predict_proba_std(X), error)
    weighted = forest.RandomForestClassifier(4, class_weight="balanced_subsample").fit(X, y)
    with pytest.raises(ValueError, match="class_weight or priors were given"):
        weighted.set_params(class_weight=None).predict_proba_std(X)
