"""What Bagging refuses, in which words, and what a fit that fails leaves."""

import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from forest import BaggingClassifier
from tests.forest.estimators.bagging_pairs import (
    EACH_PAIR,
    PAIRS,
    X10,
    Y10,
    both,
    fit_both,
    table,
    table_with_a_rare_class,
)


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
    "sparse y": (lambda m: m.fit(X10, csr_array(Y10[:, np.newaxis])), "[Ss]parse"),
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
        pytest.warns(UserWarning, match=f"Interrupted: {n} of 20 estimators are finished"),
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
