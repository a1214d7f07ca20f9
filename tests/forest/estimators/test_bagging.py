"""Bagging is scikit-learn's, draws, estimators and votes; and where it is not, on purpose."""

import pickle
import re
import warnings

import joblib
import numpy as np
import pytest
import sklearn.ensemble as peers
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.utils import get_tags

import cart
from forest import BaggingClassifier, BaggingRegressor
from tests.agreement.same import assert_same_tree

PAIRS = [
    (BaggingClassifier, peers.BaggingClassifier),
    (BaggingRegressor, peers.BaggingRegressor),
]
EACH_PAIR = pytest.mark.parametrize("pair", PAIRS, ids=["classifier", "regressor"])
OUTPUTS = ("predict", "predict_proba", "predict_log_proba", "decision_function")

LOGISTIC = LogisticRegression(solver="newton-cholesky")

# None is the default: our tree here, theirs there.
CLASSIFIERS = {
    "tree": None,
    "svc": SVC(),  # no probabilities: it votes
    "logistic": LOGISTIC,
    "mlp": MLPClassifier((4,), max_iter=10),
    "knn": KNeighborsClassifier(3),  # takes no weights: it gets the drawn rows
    "pipeline": make_pipeline(PCA(2), MLPClassifier((3,), max_iter=5)),  # nested random states
}
REGRESSORS = {"tree": None, "svr": SVR(), "ridge": Ridge(), "knn": KNeighborsRegressor(3)}

PARAMS = [
    {},
    {"max_samples": 45},
    {"max_samples": 0.6, "max_features": 0.5},
    {"bootstrap_features": True},
    {"bootstrap": False, "max_samples": 0.7, "max_features": 3},
]

X10 = np.arange(20.0).reshape(10, 2)
Y10 = np.arange(10) % 2


def table(pair=PAIRS[0], n=120, n_classes=3):
    if pair is PAIRS[0]:
        return make_classification(
            n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=0
        )
    return make_regression(n, 6, n_informative=5, noise=3.0, random_state=0)


def table_with_a_rare_class():
    """One of 40 rows is of class 3: most draws of a few rows miss it."""
    X, y = table(n=40)
    y[0] = 3
    return X, y


def both(pair, *args, **params):
    return [kind(*args, **{"random_state": 3, **params}) for kind in pair]


def fit_quietly(model, *args):
    """Fit without warnings of few rows, of rows never out of bag, of optimisers that stop early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args)


def fit_both(pair, X, y, *args, **params):
    weight = [params.pop("sample_weight")] if "sample_weight" in params else []
    return [fit_quietly(model, X, y, *weight) for model in both(pair, *args, **params)]


def assert_same_draws(ours, theirs):
    for name in ("estimators_samples_", "estimators_features_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b, name)


def assert_same_models(ours, theirs, X):
    """The same draws, estimators and outputs, bit for bit."""
    assert_same_draws(ours, theirs)
    assert len(ours.estimators_) == len(theirs.estimators_)
    for a, b in zip(ours.estimators_, theirs.estimators_, strict=True):
        mine = a.get_params()
        assert {name: str(mine[name]) for name in b.get_params()} == {
            name: str(value) for name, value in b.get_params().items()
        }
        if hasattr(a, "tree_"):
            assert_same_tree(a.tree_, b.tree_)
    for name in OUTPUTS:
        assert hasattr(ours, name) == hasattr(theirs, name), name
        if hasattr(ours, name):
            with np.errstate(divide="ignore"):  # scikit-learn takes the logarithm of 0
                a, b = getattr(ours, name)(X), getattr(theirs, name)(X)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, name)


# ------------------------------------------------------------------- the same as scikit-learn


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


# ------------------------------------------------------------------------------------ out of bag


def out_of_bag(model):
    return getattr(model, "oob_decision_function_", getattr(model, "oob_prediction_", None))


@pytest.mark.parametrize("params", [PARAMS[i] for i in (0, 2, 3)], ids=str)
@pytest.mark.parametrize("base", ["tree", "svc", "logistic", "knn"])
def test_out_of_bag_votes_of_classifiers(base, params):
    X, y = table()
    ours, theirs = fit_both(PAIRS[0], X, y, CLASSIFIERS[base], 40, oob_score=True, **params)
    np.testing.assert_array_equal(out_of_bag(ours), out_of_bag(theirs))
    assert ours.oob_score_ == theirs.oob_score_


@pytest.mark.parametrize("params", [PARAMS[i] for i in (0, 2, 3)], ids=str)
@pytest.mark.parametrize("base", REGRESSORS)
def test_out_of_bag_predictions_of_regressors(base, params):
    X, y = table(PAIRS[1])
    ours, theirs = fit_both(PAIRS[1], X, y, REGRESSORS[base], 40, oob_score=True, **params)
    np.testing.assert_array_equal(out_of_bag(ours), out_of_bag(theirs))
    assert ours.oob_score_ == theirs.oob_score_


@given(seed=st.integers(0, 1000), n=st.integers(2, 40), share=st.floats(0.1, 1.0))
def test_every_row_is_in_bag_or_out_of_bag(seed, n, share):
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    model = BaggingRegressor(
        DummyRegressor(), 4, max_samples=share, random_state=seed, oob_score=True
    )
    fit_quietly(model, X, y)
    judges = np.zeros(n)
    for (patches, i), draws in zip(model._draws, model.estimators_samples_, strict=True):
        counts, left_out = patches.counts(i), patches.out_of_bag(i)
        np.testing.assert_array_equal(counts, [np.count_nonzero(draws == row) for row in range(n)])
        assert sorted([*np.unique(draws), *left_out]) == list(range(n))
        # weighted rows: the mean of a dummy is that of its draws
        assert model.estimators_[i].constant_.item() == pytest.approx(y[draws].mean())
        judges[left_out] += 1
    np.testing.assert_array_equal(np.isnan(model.oob_prediction_), judges == 0)


@EACH_PAIR
def test_rows_never_out_of_bag_are_nan_and_not_scored(pair):
    X, y = table(pair)
    model = pair[0](n_estimators=2, random_state=0, oob_score=True)
    with pytest.warns(UserWarning, match="never out of bag") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    in_bag = [set(draws) for draws in model.estimators_samples_]
    never = np.array([all(row in drawn for drawn in in_bag) for row in range(len(y))])
    assert 0 < never.sum() < len(y)
    assert f"{never.sum()} of {len(y)} rows" in str(caught[0].message)
    votes = out_of_bag(model)
    np.testing.assert_array_equal(np.isnan(votes.reshape(len(y), -1)).all(axis=1), never)
    if pair is PAIRS[0]:
        expected = accuracy_score(y[~never], model.classes_[votes[~never].argmax(axis=1)])
    else:
        expected = r2_score(y[~never], votes[~never])
    assert model.oob_score_ == expected


@EACH_PAIR
def test_an_estimator_may_have_no_row_out_of_bag(pair):
    """scikit-learn has it predict an empty table, which fails."""
    X, y = X10[:3], Y10[:3]
    ours, theirs = both(pair, n_estimators=3, max_samples=40, oob_score=True)
    fit_quietly(ours, X, y)
    assert np.isnan(out_of_bag(ours)).all()
    assert np.isnan(ours.oob_score_)
    with pytest.raises(ValueError, match="0 sample"):
        fit_quietly(theirs, X, y)


def test_out_of_bag_votes_of_estimators_that_missed_a_class():
    X, y = table_with_a_rare_class()
    ours, theirs = both(PAIRS[0], KNeighborsClassifier(1), 60, max_samples=12, oob_score=True)
    ours.fit(X, y)
    assert any(len(estimator.classes_) < 4 for estimator in ours.estimators_)
    expected, n_judges = np.zeros((len(y), 4)), np.zeros((len(y), 1))
    for estimator, draws in zip(ours.estimators_, ours.estimators_samples_, strict=True):
        rows = np.setdiff1d(np.arange(len(y)), draws)
        expected[rows[:, None], estimator.classes_] += estimator.predict_proba(X[rows])
        n_judges[rows] += 1
    np.testing.assert_allclose(ours.oob_decision_function_, expected / n_judges, rtol=1e-12)
    with pytest.raises(ValueError, match="broadcast"):
        theirs.fit(X, y)


def test_out_of_bag_predictions_of_several_outputs():
    X, y = table(PAIRS[1])
    both_outputs = np.c_[y, 3 * y]
    ours, theirs = both(PAIRS[1], LinearRegression(), 30, oob_score=True)
    ours.fit(X, both_outputs)
    alone = clone(ours).fit(X, y)
    np.testing.assert_allclose(ours.oob_prediction_[:, 0], alone.oob_prediction_, rtol=1e-9)
    np.testing.assert_allclose(ours.oob_prediction_[:, 1], 3 * alone.oob_prediction_, rtol=1e-9)
    assert ours.oob_score_ == r2_score(both_outputs, ours.oob_prediction_)
    with pytest.raises(ValueError, match="broadcast"):
        theirs.fit(X, both_outputs)


@EACH_PAIR
def test_a_fit_takes_the_out_of_bag_score_of_the_fit_before_away(pair):
    X, y = table(pair)
    ours, theirs = fit_both(pair, X, y, n_estimators=12, oob_score=True)
    for model in (ours, theirs):
        model.set_params(oob_score=False).fit(X[:50], y[:50])
    assert not hasattr(ours, "oob_score_")
    assert out_of_bag(ours) is None
    assert len(out_of_bag(theirs)) == 120  # of the table before


# ------------------------------------------------------------------------------------ warm start


@EACH_PAIR
@pytest.mark.parametrize("params", [PARAMS[i] for i in (0, 3, 4)], ids=str)
def test_a_warm_start_is_one_fit(pair, params):
    X, y = table(pair)
    once, peer = fit_both(pair, X, y, n_estimators=10, **params)
    grown, peer_grown = fit_both(pair, X, y, n_estimators=4, warm_start=True, **params)
    first = grown.estimators_[0]
    for model in (grown, peer_grown):
        model.set_params(n_estimators=10).fit(X, y)
    assert grown.estimators_[0] is first
    assert_same_models(grown, peer, X)
    assert_same_models(grown, once, X)
    np.testing.assert_array_equal(grown.predict(X), peer_grown.predict(X))
    # Deliberate: scikit-learn forgets what the estimators that it keeps have drawn.
    assert len(grown.estimators_samples_) == 10
    assert len(peer_grown.estimators_samples_) == 6


@EACH_PAIR
def test_a_warm_start_goes_on_in_a_given_stream(pair):
    X, y = table(pair)
    ours, theirs = (
        kind(n_estimators=3, warm_start=True, random_state=np.random.RandomState(0)).fit(X, y)
        for kind in pair
    )
    for model in (ours, theirs):
        model.set_params(n_estimators=7).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert [e.random_state for e in ours.estimators_] == [
        e.random_state for e in theirs.estimators_
    ]


@EACH_PAIR
def test_a_warm_start_with_an_out_of_bag_score(pair):
    X, y = table(pair)
    once = fit_quietly(pair[0](n_estimators=25, random_state=3, oob_score=True), X, y)
    ours, theirs = both(pair, n_estimators=5, warm_start=True, oob_score=True)
    fit_quietly(ours, X, y)
    assert ours.oob_score_ != once.oob_score_
    fit_quietly(ours.set_params(n_estimators=25), X, y)
    np.testing.assert_array_equal(out_of_bag(ours), out_of_bag(once))
    assert ours.oob_score_ == once.oob_score_
    with pytest.raises(ValueError, match="warm_start=False"):
        theirs.fit(X, y)


@EACH_PAIR
def test_a_warm_start_without_new_estimators(pair):
    X, y = table(pair)
    model = pair[0](n_estimators=20, warm_start=True, random_state=0).fit(X, y)
    kept = list(model.estimators_)
    model.set_params(oob_score=True)
    with pytest.warns(UserWarning, match="does not fit new ones") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert all(a is b for a, b in zip(model.estimators_, kept, strict=True))
    expected = fit_quietly(clone(model), X, y)
    assert model.oob_score_ == expected.oob_score_


@EACH_PAIR
def test_a_warm_start_on_other_rows_keeps_who_saw_which(pair):
    X, y = table(pair)
    params = {"warm_start": True, "random_state": 0}
    model = pair[0](n_estimators=3, max_samples=30, **params).fit(X, y)
    before = model.estimators_samples_
    model.set_params(n_estimators=5, max_samples=10).fit(X[:60], y[:60])
    for mine, kept in zip(model.estimators_samples_, before, strict=False):
        np.testing.assert_array_equal(mine, kept)
    assert [len(draws) for draws in model.estimators_samples_] == [30, 30, 30, 10, 10]
    model.set_params(n_estimators=6, oob_score=True)
    with pytest.raises(ValueError, match=r"60 rows.*120"):
        model.fit(X[:60], y[:60])


@EACH_PAIR
def test_a_warm_start_refuses_another_table(pair):
    X, y = table(pair)
    model = pair[0](n_estimators=2, warm_start=True, random_state=0).fit(X, y)
    before = model.predict(X)
    model.set_params(n_estimators=4)
    with pytest.raises(ValueError, match="6 features"):
        model.fit(X[:, :2], y)
    other, says = (y % 2, "classes") if pair is PAIRS[0] else (np.c_[y, y], r"2 output\(s\)")
    with pytest.raises(ValueError, match=says):
        model.fit(X, other)
    np.testing.assert_array_equal(model.predict(X), before)


# ------------------------------------------------------------------------------------- threads


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


# ------------------------------------------------------------------------------------ metadata


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps the metadata that it is given; always says the first class."""

    def fit(self, X, y, mark=None, scale=None):
        self.classes_, self.mark_, self.scale_ = np.unique(y), mark, scale
        return self

    def predict_proba(self, X, shift=0.0):
        return np.tile([1.0 + shift, *np.zeros(len(self.classes_) - 1)], (len(X), 1))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_metadata_reaches_the_base_estimator():
    X, y = table(n_classes=2)
    mark = np.arange(len(y))
    with config_context(enable_metadata_routing=True):
        base = Recorder().set_fit_request(mark=True, scale=True)
        base.set_predict_proba_request(shift=True)
        model = BaggingClassifier(base, 3, max_samples=50, random_state=0)
        model.fit(X, y, mark=mark, scale=2.5)
        for estimator, draws in zip(model.estimators_, model.estimators_samples_, strict=True):
            np.testing.assert_array_equal(estimator.mark_, draws)
            assert estimator.scale_ == 2.5
        assert model.predict_proba(X, shift=0.5)[0, 0] == 1.5
        assert model.predict_proba(X)[0, 0] == 1.0
        assert (model.predict(X, shift=-2.0) == 1).all()
        with pytest.raises(TypeError, match="other"):
            model.fit(X, y, other=1)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        model.fit(X, y, mark=mark)
    for method in ("predict", "predict_proba", "predict_log_proba"):
        with pytest.raises(ValueError, match=rf"\.{method} is only .*enable_metadata_routing"):
            getattr(model, method)(X, shift=0.5)


@EACH_PAIR
def test_routes_are_scikit_learns(pair):
    bases = CLASSIFIERS if pair is PAIRS[0] else REGRESSORS
    with config_context(enable_metadata_routing=True):
        for base in (*bases.values(), LinearSVC()):
            if base is not None:
                ours, theirs = (str(m.get_metadata_routing()) for m in both(pair, base))
                assert ours == theirs


def test_with_routing_the_request_decides_how_rows_are_drawn():
    """Whether by weights or by taking rows: LogisticRegression can do both."""
    X, y = table()
    with config_context(enable_metadata_routing=True):
        coefficients = []
        for asks in (True, False):
            base = clone(LOGISTIC).set_fit_request(sample_weight=asks)
            ours, theirs = fit_both(PAIRS[0], X, y, base, 3)
            for a, b in zip(ours.estimators_, theirs.estimators_, strict=True):
                np.testing.assert_array_equal(a.coef_, b.coef_)
            coefficients.append(ours.estimators_[0].coef_)
    assert (coefficients[0] != coefficients[1]).any()


# -------------------------------------------------------------------------------------- errors


def shrink(model):
    model.set_params(n_estimators=3, warm_start=True).fit(X10, Y10)
    model.set_params(n_estimators=2).fit(X10, Y10)


REFUSED = {
    "oob_score": (lambda m: m.set_params(oob_score=True, bootstrap=False).fit(X10, Y10), "oob_sco"),
    "fewer": (shrink, "n_estimators=2 must be at least.*3"),
    "rows": (
        lambda m: m.set_params(max_samples=11, bootstrap=False).fit(X10, Y10),
        "max_samples=11",
    ),
    "features": (lambda m: m.set_params(max_features=3).fit(X10, Y10), "max_features=3 .*2 feat"),
    "no estimators": (lambda m: m.set_params(n_estimators=0).fit(X10, Y10), "n_estimators"),
    "max_samples 0": (lambda m: m.set_params(max_samples=0).fit(X10, Y10), "max_samples"),
    "max_samples 1.5": (lambda m: m.set_params(max_samples=1.5).fit(X10, Y10), "max_samples"),
    "max_features 0.0": (lambda m: m.set_params(max_features=0.0).fit(X10, Y10), "max_features"),
    "bootstrap": (lambda m: m.set_params(bootstrap="yes").fit(X10, Y10), "bootstrap"),
    "not an estimator": (lambda m: m.set_params(estimator=object()).fit(X10, Y10), "estimator"),
    "lengths": (lambda m: m.fit(X10, Y10[:-1]), "samples"),
    "nan in y": (lambda m: m.fit(X10, np.where(Y10, np.nan, 0)), "NaN"),
    "weights": (lambda m: m.fit(X10, Y10, np.ones(9)), "sample_weight"),
    "negative weights": (lambda m: m.fit(X10, Y10, 0.5 - Y10), "[Nn]egative"),
    "weights of 0": (lambda m: m.fit(X10, Y10, np.zeros(10)), "non-zero"),
    "few weights": (
        lambda m: m.set_params(bootstrap=False).fit(X10, Y10, Y10),
        "n_samples=5 .*positive weight",
    ),
    "unfitted": (lambda m: m.predict(X10), "not fitted"),
    "unfitted draws": (lambda m: m.estimators_samples_, "not fitted"),
    "width": (lambda m: m.fit(X10, Y10).predict(X10[:, :1]), "1 feature.*2 feature"),
}


@pytest.mark.filterwarnings("ignore")  # few rows, no bootstrap
@pytest.mark.parametrize("case", REFUSED)
@EACH_PAIR
def test_errors_name_the_problem(pair, case):
    act, says = REFUSED[case]
    raised = []
    for kind in pair:
        with pytest.raises(Exception) as caught:  # noqa: PT011 (compared with theirs below)
            act(kind())
        raised.append(caught.value)
    ours, theirs = raised
    assert re.search(says, str(ours)), ours
    if case != "unfitted draws":  # a plain AttributeError there
        assert isinstance(ours, type(theirs))


def test_contradictions_are_refused_before_any_work():
    class Untouchable(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("fitted")

    for params in (
        {"oob_score": True, "bootstrap": False},
        {"max_samples": 11, "bootstrap": False},
        {"max_features": 3},
    ):
        with pytest.raises(ValueError, match="set"):
            BaggingClassifier(Untouchable(), **params).fit(X10, Y10)


def test_a_classifier_of_regressors_is_refused():
    """In scikit-learn the fit succeeds, and predicting fails."""
    ours, theirs = both(PAIRS[0], LinearRegression())
    with pytest.raises(ValueError, match="use BaggingRegressor"):
        ours.fit(X10, Y10)
    with pytest.raises(IndexError):
        theirs.fit(X10, Y10).predict(X10)


def test_classes_are_not_numbers():
    with pytest.raises(ValueError, match="continuous"):
        BaggingClassifier().fit(X10, X10[:, 0] + 0.5)
    with pytest.raises(ValueError, match="1d array"):
        BaggingClassifier().fit(X10, np.c_[Y10, Y10])


def test_decisions_on_different_classes_are_not_added():
    X, y = table_with_a_rare_class()
    base = make_pipeline(LinearSVC())  # a pipeline takes no weights
    ours, theirs = fit_both(PAIRS[0], X, y, base, 5, max_samples=12)
    with pytest.raises(ValueError, match=r"3 of 4 classes.*max_samples"):
        ours.decision_function(X)
    with pytest.raises(ValueError, match="broadcast"):
        theirs.decision_function(X)
    assert ours.predict_proba(X).shape == (40, 4)
    # Two estimators that miss one class each, not the same: scikit-learn adds their columns.
    y = np.arange(40) % 4
    ours, theirs = fit_both(PAIRS[0], X, y, base, 2, max_samples=6, random_state=1)
    assert [e.classes_.tolist() for e in theirs.estimators_] == [[0, 2, 3], [0, 1, 3]]
    assert theirs.decision_function(X).shape == (40, 3)
    with pytest.raises(ValueError, match="3 of 4 classes"):
        ours.decision_function(X)


def test_decision_functions_are_there_where_the_base_estimator_has_one():
    assert not hasattr(BaggingClassifier(), "decision_function")
    assert hasattr(BaggingClassifier(SVC()), "decision_function")


def test_votes_that_are_none_are_minus_infinity():
    X, y = table()
    model = BaggingClassifier(SVC(), 3, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = model.predict_log_proba(X)
    np.testing.assert_array_equal(np.isneginf(logs), model.predict_proba(X) == 0)
    np.testing.assert_allclose(np.exp(logs), model.predict_proba(X))


class Failing(GaussianNB):
    """Fails after the first fits of a table of two columns."""

    def fit(self, X, y, sample_weight=None):
        if X.shape[1] == 2 and self.failure is not None:
            Failing.n_fits += 1
            if Failing.n_fits > Failing.n_good:
                raise self.failure
        return super().fit(X, y, sample_weight)

    n_fits = 0
    n_good = 2
    failure = None


@pytest.mark.parametrize(("failure", "n_good"), [(KeyboardInterrupt, 0), (MemoryError, 2)])
@pytest.mark.parametrize("warm_start", [False, True])
def test_a_failed_fit_leaves_the_old_model(failure, n_good, warm_start, monkeypatch):
    X, y = table()
    model = BaggingClassifier(
        Failing(), 20, warm_start=warm_start, oob_score=True, random_state=0, max_features=2
    ).fit(X, y)
    before = {name: getattr(model, name) for name in vars(model)}
    said = model.predict_proba(X)
    monkeypatch.setattr(Failing, "failure", failure)
    monkeypatch.setattr(Failing, "n_fits", 0)
    monkeypatch.setattr(Failing, "n_good", n_good)
    model.set_params(n_estimators=30)
    with pytest.raises(failure):
        model.fit(*((X, y) if warm_start else (X[:, :2], y == 1)))
    monkeypatch.undo()
    model.set_params(n_estimators=20)
    assert {name: getattr(model, name) for name in vars(model)} == before
    np.testing.assert_array_equal(model.predict_proba(X), said)
    assert model.set_params(warm_start=False).fit(X[:, :2], y == 1).n_features_in_ == 2


@pytest.mark.parametrize("n_kept", [0, 4])
def test_an_interrupted_fit_has_the_estimators_that_were_finished(n_kept, monkeypatch):
    X, y = table()
    params = {"oob_score": True, "random_state": 0, "max_features": 2}
    whole = BaggingClassifier(GaussianNB(), 20, **params).fit(X, y)
    model = BaggingClassifier(Failing(), 20, warm_start=True, **params)
    if n_kept:
        model.set_params(n_estimators=n_kept).fit(X, y).set_params(n_estimators=20)
    monkeypatch.setattr(Failing, "failure", KeyboardInterrupt)
    monkeypatch.setattr(Failing, "n_fits", 0)
    monkeypatch.setattr(Failing, "n_good", 9)
    n = n_kept + 9
    with (
        pytest.warns(UserWarning, match=f"Bagging has the {n} of 20 estimators"),
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(X, y)
    monkeypatch.undo()
    assert len(model.estimators_) == len(model.estimators_samples_) == n
    assert len(model.estimators_features_) == n
    assert 0 < model.oob_score_ <= 1
    model.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    assert model.oob_score_ == whole.oob_score_


# ---------------------------------------------------------------------------- around the models


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


def test_feature_names():
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = BaggingClassifier(n_estimators=3, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    plain = BaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abcdfe")])
