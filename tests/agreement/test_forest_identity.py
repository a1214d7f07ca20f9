"""Random forests are scikit-learn's, tree for tree."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.metrics import accuracy_score, r2_score

import forest
from tests.agreement.same import (
    CRITERIA,
    REGULARISERS,
    SEEDS,
    TOLERANCE,
    assert_same_tree,
    assert_same_up_to_ties,
    same_structure,
)
from tests.data import CALIFORNIA, LARGE_CLASSIFICATION, SMALL_CLASSIFICATION, load, unseen_rows

FOREST_PARAMETERS = {
    **REGULARISERS,
    "class_weight_balanced": {"class_weight": "balanced"},
    "max_samples": {"max_samples": 70},
    "max_samples_share": {"max_samples": 0.5, "class_weight": "balanced"},
    "no_bootstrap": {"bootstrap": False},
}


def fit_both(kind, X, y, sample_weight=None, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some rows are never out of bag
        ours = getattr(forest, kind)(**params).fit(X, y, sample_weight)
        theirs = getattr(sklearn.ensemble, kind)(**params).fit(X, y, sample_weight)
    for a, b in zip(ours.estimators_, theirs.estimators_, strict=True):
        assert a.random_state == b.random_state
    if theirs.bootstrap:
        np.testing.assert_array_equal(ours.estimators_samples_, theirs.estimators_samples_)
    return ours, theirs


def trees(ours, theirs):
    """Pairs of fitted trees, and the in-bag counts of each."""
    for a, b, draws in zip(
        ours.estimators_, theirs.estimators_, theirs.estimators_samples_, strict=True
    ):
        yield a, b, np.bincount(draws, minlength=theirs._n_samples)


def assert_same_forest(ours, theirs, X):
    """The same trees, and the same answers for rows X."""
    for a, b in zip(ours.estimators_, theirs.estimators_, strict=True):
        assert_same_tree(a.tree_, b.tree_)
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    paths, starts = ours.decision_path(X)
    their_paths, their_starts = theirs.decision_path(X)
    np.testing.assert_array_equal(starts, their_starts)
    assert (paths != their_paths).nnz == 0
    np.testing.assert_allclose(
        ours.feature_importances_, theirs.feature_importances_, rtol=0, atol=TOLERANCE
    )


def assert_same_out_of_bag(ours, theirs, y):
    """The same out-of-bag predictions; rows never out of bag are nan and are not scored."""
    n_in_bag = sum(counts > 0 for _, _, counts in trees(ours, theirs))
    known = n_in_bag < len(theirs.estimators_)
    if hasattr(theirs, "oob_decision_function_"):
        shares, their_shares = ours.oob_decision_function_, theirs.oob_decision_function_
        score = accuracy_score(y[known], theirs.classes_[their_shares[known].argmax(axis=1)])
    else:
        shares, their_shares = ours.oob_prediction_, theirs.oob_prediction_
        score = r2_score(y[known], their_shares[known])
    np.testing.assert_allclose(shares[known], their_shares[known], rtol=TOLERANCE, atol=TOLERANCE)
    assert np.isnan(shares[~known]).all()
    assert ours.oob_score_ == pytest.approx(score, abs=TOLERANCE)
    if known.all():
        assert ours.oob_score_ == pytest.approx(theirs.oob_score_, abs=TOLERANCE)


@pytest.mark.parametrize("parameters", FOREST_PARAMETERS)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_same_classifier(name, criterion, parameters):
    X, y = load(name)
    for seed in SEEDS:
        params = {"n_estimators": 6, "criterion": criterion, "random_state": seed}
        params |= FOREST_PARAMETERS[parameters]
        ours, theirs = fit_both("RandomForestClassifier", X, y, **params)
        assert_same_forest(ours, theirs, unseen_rows(X)[:50])


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", LARGE_CLASSIFICATION)
def test_same_large_classifier(name, criterion):
    X, y = load(name)
    for seed in SEEDS:
        params = {"n_estimators": 3, "criterion": criterion, "random_state": seed}
        ours, theirs = fit_both("RandomForestClassifier", X, y, oob_score=True, **params)
        assert_same_forest(ours, theirs, unseen_rows(X))
        assert_same_out_of_bag(ours, theirs, y)


@pytest.mark.parametrize("parameters", FOREST_PARAMETERS)
@pytest.mark.parametrize("name", LARGE_CLASSIFICATION)
def test_same_large_classifier_regularised(name, parameters):
    X, y = load(name)
    for seed in SEEDS:
        params = {"n_estimators": 2, "criterion": CRITERIA[seed % 2], "random_state": seed}
        params |= FOREST_PARAMETERS[parameters]
        ours, theirs = fit_both("RandomForestClassifier", X, y, **params)
        assert_same_forest(ours, theirs, unseen_rows(X))


@pytest.mark.parametrize("n_estimators", [5, 50])
@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_out_of_bag_classifier(name, n_estimators):
    X, y = load(name)
    ours, theirs = fit_both(
        "RandomForestClassifier", X, y,
        n_estimators=n_estimators, class_weight="balanced", oob_score=True, random_state=0,
    )  # fmt: skip
    assert_same_forest(ours, theirs, X)
    assert_same_out_of_bag(ours, theirs, y)


@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_sample_weight_is_how_likely_a_row_is_drawn(name):
    X, y = load(name)
    weight = np.random.default_rng(0).random(len(y))
    ours, theirs = fit_both("RandomForestClassifier", X, y, weight, n_estimators=10, random_state=0)
    assert_same_forest(ours, theirs, X)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_balanced_subsample(name, criterion):
    X, y = load(name)
    ours, theirs = fit_both(
        "RandomForestClassifier", X, y,
        n_estimators=10, criterion=criterion, class_weight="balanced_subsample", random_state=0,
    )  # fmt: skip
    for a, b, in_bag in trees(ours, theirs):
        per_class = np.bincount(y, in_bag).astype(int)
        n_present = np.count_nonzero(per_class)
        share = [Fraction(len(y), int(n_present * n)) if n else 0 for n in per_class]
        weight = [int(n) * share[c] for n, c in zip(in_bag, y, strict=True)]
        assert_same_up_to_ties(a, b, X, y, np.array(weight, object))


@pytest.mark.parametrize("name", SMALL_CLASSIFICATION)
def test_float_weights_without_bootstrap(name):
    X, y = load(name)
    weight = np.random.default_rng(0).random(len(y)).round(2)
    ours, theirs = fit_both(
        "RandomForestClassifier", X, y, weight, n_estimators=5, bootstrap=False, random_state=0
    )
    for a, b in zip(ours.estimators_, theirs.estimators_, strict=True):
        assert_same_up_to_ties(a, b, X, y, weight)


@pytest.mark.parametrize(
    ("name", "n_estimators", "max_features"),
    [
        ("diabetes", 30, 1.0),
        ("diabetes", 30, 0.33),
        pytest.param("california", 2, 1.0, marks=CALIFORNIA.marks),
        pytest.param("california", 2, 0.33, marks=CALIFORNIA.marks),
        ("friedman1", 4, 1.0),
        ("friedman1", 4, 0.33),
    ],
)
def test_same_regressor_up_to_ties(name, n_estimators, max_features):
    X, y = load(name)
    ours, theirs = fit_both(
        "RandomForestRegressor", X, y,
        n_estimators=n_estimators, max_features=max_features, oob_score=True, random_state=0,
    )  # fmt: skip
    for a, b, in_bag in trees(ours, theirs):
        assert_same_up_to_ties(a, b, X, y, in_bag)
    if all(same_structure(a.tree_, b.tree_) for a, b, _ in trees(ours, theirs)):
        assert_same_forest(ours, theirs, unseen_rows(X))
        assert_same_out_of_bag(ours, theirs, y)


def test_same_regressor_where_no_values_are_equal():
    X, y = load("friedman1_distinct")
    ours, theirs = fit_both("RandomForestRegressor", X, y, n_estimators=20, random_state=0)
    same = [same_structure(a.tree_, b.tree_) for a, b, _ in trees(ours, theirs)]
    assert np.mean(same) >= 0.99


def test_the_model_does_not_depend_on_n_jobs():
    X, y = load("digits")
    one, two = (
        forest.RandomForestClassifier(40, oob_score=True, n_jobs=n, random_state=0).fit(X, y)
        for n in (1, 2)
    )
    for a, b in zip(one.estimators_, two.estimators_, strict=True):
        assert_same_tree(a.tree_, b.tree_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.oob_decision_function_, two.oob_decision_function_)


def test_warm_start_grows_the_same_forest():
    X, y = load("wine")
    ours, theirs = (
        kind(4, warm_start=True, random_state=0).fit(X, y).set_params(n_estimators=9).fit(X, y)
        for kind in (forest.RandomForestClassifier, sklearn.ensemble.RandomForestClassifier)
    )
    assert_same_forest(ours, theirs, X)
