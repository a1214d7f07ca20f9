"""Bagging out of bag: votes, predictions and scores are scikit-learn's, or differ on purpose."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier

from forest import BaggingRegressor
from tests.forest.estimators.bagging_pairs import (
    CLASSIFIERS,
    EACH_PAIR,
    PAIRS,
    PARAMS,
    REGRESSORS,
    X10,
    Y10,
    both,
    fit_both,
    fit_quietly,
    out_of_bag,
    table,
    table_with_a_rare_class,
)


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
def test_rows_that_draws_without_replacement_leave_out_are_out_of_bag(pair):
    X, y = table(pair)
    ours = pair[0](n_estimators=5, bootstrap=False, max_samples=0.5, random_state=0).fit(X, y)
    drawn = [np.isin(np.arange(len(y)), rows) for rows in ours.estimators_samples_]
    np.testing.assert_array_equal(ours.out_of_bag(X, y).counts, (~np.array(drawn)).sum(axis=0))
    with pytest.raises(ValueError, match="No row is out of bag"):
        ours.set_params(max_samples=None).fit(X, y).out_of_bag(X, y)


@EACH_PAIR
def test_a_fit_takes_the_out_of_bag_score_of_the_fit_before_away(pair):
    X, y = table(pair)
    ours, theirs = fit_both(pair, X, y, n_estimators=12, oob_score=True)
    for model in (ours, theirs):
        model.set_params(oob_score=False).fit(X[:50], y[:50])
    assert not hasattr(ours, "oob_score_")
    assert out_of_bag(ours) is None
    assert len(out_of_bag(theirs)) == 120  # of the table before
