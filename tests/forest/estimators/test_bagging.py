"""Bagging is scikit-learn's, draws, estimators and votes; and where it is not, on purpose."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR
from sklearn.utils import get_tags

import cart
from forest import BaggingClassifier, BaggingRegressor
from tests.forest.estimators.bagging_pairs import (
    CLASSIFIERS,
    EACH_PAIR,
    LOGISTIC,
    PAIRS,
    PARAMS,
    REGRESSORS,
    assert_same_draws,
    assert_same_models,
    both,
    fit_both,
    fit_quietly,
    out_of_bag,
    table,
    table_with_a_rare_class,
)


@pytest.mark.parametrize("params", PARAMS, ids=str)
@pytest.mark.parametrize("base", CLASSIFIERS)
def test_classifiers_are_scikit_learns(base, params):
    X, y = table()
    ours, theirs = fit_both(PAIRS[0], X, y, CLASSIFIERS[base], 6, **params)
    assert_same_models(ours, theirs, X)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.n_classes_ == theirs.n_classes_
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize("params", PARAMS, ids=str)
@pytest.mark.parametrize("base", REGRESSORS)
def test_regressors_are_scikit_learns(base, params):
    X, y = table(PAIRS[1])
    ours, theirs = fit_both(PAIRS[1], X, y, REGRESSORS[base], 6, **params)
    assert_same_models(ours, theirs, X)


@EACH_PAIR
def test_the_default_is_our_tree(pair):
    ours = pair[0](n_estimators=2, random_state=0).fit(*table(pair))
    kinds = {BaggingClassifier: cart.DecisionTreeClassifier}
    assert type(ours.estimator_) is kinds.get(pair[0], cart.DecisionTreeRegressor)
    assert ours.estimator is None


@given(data=st.data(), seed=st.integers(0, 2**31 - 1))
def test_draws_are_scikit_learns(data, seed):
    n, n_features = data.draw(st.integers(2, 60)), data.draw(st.integers(1, 150))
    params = {
        "bootstrap": data.draw(st.booleans()),
        "bootstrap_features": data.draw(st.booleans()),
        "max_samples": data.draw(
            st.one_of(st.none(), st.integers(1, n), st.floats(0.01, 1.0, exclude_min=True))
        ),
        "max_features": data.draw(
            st.one_of(st.integers(1, n_features), st.floats(0.01, 1.0, exclude_min=True))
        ),
        "random_state": seed,
    }
    rng = np.random.RandomState(seed)
    weight = rng.uniform(0.1, 1.0, n) if data.draw(st.booleans()) else None
    if weight is not None and data.draw(st.booleans()):
        weight = weight.astype(np.float32)
    X, y = rng.normal(size=(n, n_features)), rng.normal(size=n)
    ours, theirs = fit_both(PAIRS[1], X, y, DummyRegressor(), 3, sample_weight=weight, **params)
    assert_same_draws(ours, theirs)
    assert ours._draws[0][0].seeds.tolist() == theirs._seeds.tolist()


@EACH_PAIR
@pytest.mark.parametrize(
    "params", [{}, {"max_samples": 0.5}, {"max_samples": 30}, {"bootstrap": False}], ids=str
)
def test_weights_are_how_likely_a_row_is_drawn(pair, params):
    X, y = table(pair)
    weight = np.random.RandomState(1).uniform(0.1, 3, len(y))
    ours, theirs = fit_both(pair, X, y, None, 4, sample_weight=weight, **params)
    assert_same_models(ours, theirs, X)
    weight[:100] = 0
    ours = pair[0](n_estimators=4).fit(X, y, weight)
    assert min(draws.min() for draws in ours.estimators_samples_) >= 100


def test_weights_in_single_precision_are_summed_as_such():
    """Their sum decides on the number of draws: 29 here, 30 in double precision."""
    X, y = table(PAIRS[1], n=100)
    weight = np.full(100, 0.3, np.float32)
    ours, theirs = fit_both(
        PAIRS[1], X, y, DummyRegressor(), 2, sample_weight=weight, max_samples=1.0
    )
    assert_same_draws(ours, theirs)
    assert [len(draws) for draws in ours.estimators_samples_] == [29, 29]


def test_weights_without_a_bootstrap_are_warned_of():
    X, y = table()
    with pytest.warns(UserWarning, match="bootstrap=True") as caught:
        BaggingClassifier(GaussianNB(), bootstrap=False).fit(X, y, np.ones(len(y)))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("base", ["tree", "svc", "logistic", "knn"])
@pytest.mark.parametrize("labels", [["red", "green", "blue"], [7, -1, 3]], ids=str)
def test_labels_of_any_type(base, labels):
    X, y = table(n=60)
    y = np.array(labels)[y]
    ours, theirs = fit_both(PAIRS[0], X, y, CLASSIFIERS[base], 4, oob_score=True)
    assert_same_models(ours, theirs, X)
    assert ours.predict(X).dtype == y.dtype
    assert set(ours.predict(X)) <= set(labels)
    assert ours.oob_score_ > 0.4


@pytest.mark.parametrize("dtype", [bool, object, "datetime64[D]"])
def test_labels_that_are_no_numbers(dtype):
    X, y = table(n_classes=2)
    y = np.array(["a", "b"], object)[y] if dtype is object else y.astype(dtype)
    model = BaggingClassifier(n_estimators=5, random_state=0).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert (model.predict(X) == y).mean() > 0.9


@pytest.mark.parametrize("base", ["tree", "ridge", "knn"])
def test_several_outputs(base):
    X, y = table(PAIRS[1])
    y = np.c_[y, -2 * y + X[:, 0]]
    ours, theirs = fit_both(PAIRS[1], X, y, REGRESSORS[base], 5, max_features=4)
    assert_same_models(ours, theirs, X)
    assert ours.predict(X).shape == y.shape
    assert ours.n_outputs_ == 2


@EACH_PAIR
def test_a_column_of_y(pair):
    X, y = table(pair)
    flat = pair[0](n_estimators=3, random_state=0).fit(X, y)
    with pytest.warns(DataConversionWarning):
        column = pair[0](n_estimators=3, random_state=0).fit(X, y[:, None])
    np.testing.assert_array_equal(column.predict(X), flat.predict(X))


@pytest.mark.parametrize(
    ("base", "kind"),
    [
        ("tree", sparse.csr_matrix),
        ("tree", sparse.csc_array),
        ("svc", sparse.csr_array),
        ("knn", sparse.csc_matrix),
        ("logistic", sparse.csr_matrix),
    ],
)
def test_sparse_tables(base, kind):
    X, y = table()
    X = kind(np.where(np.abs(X) > 0.7, X, 0))
    for params in ({"oob_score": True}, PARAMS[3]):
        ours, theirs = fit_both(PAIRS[0], X, y, CLASSIFIERS[base], 12, **params)
        assert_same_models(ours, theirs, X)


@EACH_PAIR
def test_missing_values_are_for_the_base_estimator_to_judge(pair):
    X, y = table(pair)
    X[::7, 2] = np.nan
    assert_same_models(*fit_both(pair, X, y, None, 4, max_features=0.7), X)
    with pytest.raises(ValueError, match="NaN"):
        pair[0](SVR() if pair is PAIRS[1] else SVC()).fit(X, y)


@EACH_PAIR
def test_tags_are_those_of_the_base_estimator(pair):
    bases = CLASSIFIERS if pair is PAIRS[0] else REGRESSORS
    for base in bases.values():
        ours, theirs = (get_tags(model) for model in both(pair, base))
        assert ours.input_tags == theirs.input_tags
        assert (ours.estimator_type, ours.target_tags) == (
            theirs.estimator_type,
            theirs.target_tags,
        )


def test_what_a_draw_has_not_met_has_no_share():
    """Estimators that know some of the classes vote on those."""
    X, y = table_with_a_rare_class()
    ours, theirs = fit_both(PAIRS[0], X, y, KNeighborsClassifier(1), 5, max_samples=12)
    assert any(len(estimator.classes_) < 4 for estimator in ours.estimators_)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    ours, theirs = fit_both(PAIRS[0], X, y, GaussianNBOnRows(), 5, max_samples=12)
    assert any(len(estimator.classes_) < 4 for estimator in ours.estimators_)
    np.testing.assert_array_equal(ours.predict_log_proba(X), theirs.predict_log_proba(X))


class GaussianNBOnRows(GaussianNB):
    """Without sample_weight: it gets drawn rows only, and may miss a class."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.mark.parametrize(("backend", "n_jobs"), [("threading", 2), ("threading", 3), ("loky", 2)])
def test_results_do_not_depend_on_n_jobs(backend, n_jobs):
    """scikit-learn's sums are grouped by workers: the last bits vary."""
    X, y = table()
    for alone, target in (
        (BaggingClassifier(LOGISTIC, 15, oob_score=True, random_state=0), y),
        (BaggingRegressor(Ridge(), 15, oob_score=True, max_features=3, random_state=0), X[:, 0]),
    ):
        fit_quietly(alone, X, target)
        with joblib.parallel_config(backend):
            many = fit_quietly(clone(alone).set_params(n_jobs=n_jobs), X, target)
            assert_same_models(many, alone, X)
        np.testing.assert_array_equal(out_of_bag(many), out_of_bag(alone))


def test_verbose_announces_every_estimator(capsys):
    BaggingClassifier(GaussianNB(), 3, verbose=2).fit(*table())
    assert "fitting estimator 2 of 3" in capsys.readouterr().out


@EACH_PAIR
def test_predictions_are_means_over_the_estimators_at_hand(pair):
    """scikit-learn divides by the parameter, which may have been set since."""
    X, y = table(pair)
    ours, theirs = fit_both(pair, X, y, n_estimators=4)
    name = "predict_proba" if pair is PAIRS[0] else "predict"
    before = getattr(ours, name)(X)
    for model in (ours, theirs):
        model.set_params(n_estimators=8)
    np.testing.assert_array_equal(getattr(ours, name)(X), before)
    np.testing.assert_array_equal(getattr(theirs, name)(X), before / 2)


@EACH_PAIR
def test_pickle_and_clone(pair):
    X, y = table(pair)
    model = pair[0](n_estimators=5, random_state=0, max_features=0.5).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_same_models(again, model, X)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@EACH_PAIR
def test_estimators_taken_away_do_not_vote(pair):
    X, y = table(pair)
    model = pair[0](n_estimators=6, warm_start=True, random_state=0, max_features=3).fit(X, y)
    two = clone(model).set_params(n_estimators=2).fit(X, y)
    model.estimators_ = model.estimators_[:2]
    np.testing.assert_array_equal(model.predict(X), two.predict(X))
    fit_quietly(model.set_params(n_estimators=2, oob_score=True), X, y)
    assert np.isnan(out_of_bag(model)).any()  # judged by two: some rows were in both bags
    model.set_params(oob_score=False)
    model.set_params(n_estimators=4).fit(X, y)
    assert_same_models(model, clone(model).fit(X, y), X)


def test_it_holds_its_estimators():
    model = BaggingClassifier(GaussianNB(), 4).fit(*table())
    assert len(model) == 4
    assert model.estimator_ is model.estimator
    assert list(model) == model.estimators_
    assert model[-1] is model.estimators_[3]


def test_grid_search_reaches_the_base_estimator():
    X, y = table()
    search = GridSearchCV(
        BaggingClassifier(SVC(), 3, random_state=0), {"estimator__C": [0.01, 1.0]}, cv=2
    ).fit(X, y)
    assert search.best_estimator_.estimators_[0].C == search.best_params_["estimator__C"] == 1.0


def test_our_trees_in_theirs_and_theirs_in_ours():
    X, y = table()
    for base in (cart.DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier):
        assert_same_models(*fit_both(PAIRS[0], X, y, base(max_depth=3), 4), X)


@pytest.mark.parametrize("params", [{}, {"max_features": 2}, {"bootstrap_features": True}], ids=str)
def test_categories_of_a_frame(params):
    """By their names, whichever columns an estimator draws; with dates and missing values."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, 60), unit="D"),
        "size": np.where(np.arange(60) == 7, np.nan, rng.random(60)),
        "city": pd.array([None, *rng.choice([*"abc"], 59)], dtype="string"),
    })  # fmt: skip
    y = rng.random(60) + (frame["city"] == "a").fillna(False).to_numpy(float)
    codes = frame.assign(city=frame["city"].map({"a": 0.0, "b": 1.0, "c": 2.0}))
    codes = codes.assign(when=frame["when"].to_numpy("M8[s]").astype(float))
    codes = codes.to_numpy(np.float64, na_value=np.nan)
    plain = BaggingRegressor(cart.DecisionTreeRegressor(), 5, random_state=0, **params)
    plain.set_params(estimator__categorical_features=[False, False, True])
    expected = plain.fit(codes, y).predict(codes)
    for chosen in (["city"], [2], "from_dtype"):
        model = clone(plain).set_params(estimator__categorical_features=chosen).fit(frame, y)
        np.testing.assert_array_equal(model.predict(frame), expected)
        for tree, drawn in zip(model.estimators_, model.estimators_features_, strict=True):
            np.testing.assert_array_equal(tree.is_categorical_, drawn == 2)
        assert model.estimator.categorical_features == chosen
    with pytest.raises(ValueError, match="column numbers or a mask"):
        model.set_params(estimator__categorical_features=["city"]).fit(codes, y)


def test_columns_of_pandas_types_beside_each_other():
    """Categories of text, booleans and nullable numbers; as their plain values."""
    rng = np.random.default_rng(0)
    flag, city, count = rng.random(60) > 0.5, rng.choice([*"abc"], 60), rng.integers(0, 9, 60)
    frame = pd.DataFrame({"flag": flag, "city": pd.Categorical(city)})
    frame["count"] = pd.array([None, *count[1:]], dtype="Int64")
    y = flag + (city == "a") * 2.0 + count
    plain = np.column_stack([flag, city == "b", [np.nan, *count[1:]]]).astype(float)
    plain[:, 1] += 2.0 * (city == "c")
    tree = cart.DecisionTreeRegressor(categorical_features=[1])
    model = BaggingRegressor(tree, 5, random_state=0)
    expected = model.fit(plain, y).predict(plain)
    np.testing.assert_array_equal(model.fit(frame, y).predict(frame), expected)


def test_feature_names():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = BaggingClassifier(n_estimators=3, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    plain = BaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abcdfe")])
