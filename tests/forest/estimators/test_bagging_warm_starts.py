"""Warm starts of Bagging: estimators that are added to those of the fit before."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Perceptron

from tests.forest.estimators.bagging_pairs import (
    EACH_PAIR,
    PAIRS,
    PARAMS,
    assert_same_models,
    both,
    fit_both,
    fit_quietly,
    out_of_bag,
    table,
)


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


def test_logarithms_of_kept_estimators_that_have_none():
    X, y = table(PAIRS[0])
    model = PAIRS[0][0](Perceptron(), n_estimators=2, warm_start=True, random_state=0).fit(X, y)
    model.set_params(estimator=None, n_estimators=4).fit(X, y)
    with np.errstate(divide="ignore"):
        expected = np.log(model.predict_proba(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), expected)


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
