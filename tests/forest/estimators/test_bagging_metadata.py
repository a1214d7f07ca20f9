"""Metadata of Bagging, which its estimators are handed, as scikit-learn routes it."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.svm import LinearSVC

from forest import BaggingClassifier
from tests.forest.estimators.bagging_pairs import (
    CLASSIFIERS,
    EACH_PAIR,
    LOGISTIC,
    PAIRS,
    REGRESSORS,
    both,
    fit_both,
    table,
)


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
