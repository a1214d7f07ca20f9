"""How bagged estimators of any kind vote: the rules of the forests, on the same out-of-bag rows."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import brier_score_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from cart import DecisionTreeClassifier
from forest import BaggingClassifier, BaggingRegressor
from forest.voting.rules import RULES
from forest.voting.stacking import Stack, cross_fit

EVERY_RULE = (*RULES, "stacked")


def out_of_bag(model, n):
    """(n, n_estimators) bool."""
    return np.array([~np.isin(np.arange(n), draws) for draws in model.estimators_samples_]).T


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("base", [KNeighborsClassifier(3), LinearSVC(random_state=0)], ids=str)
def test_votes_are_those_of_the_plain_loop(rule, base):
    X, y = load_iris(return_X_y=True)
    X, fresh, y, _ = train_test_split(X, y, random_state=0)
    model = BaggingClassifier(
        base, 12, max_features=0.6, random_state=0, voting=rule, oob_score=True
    ).fit(X, y)

    def shares(rows):
        """(n_rows, n_estimators, 3)"""
        said = []
        for estimator, features in zip(model.estimators_, model.estimators_features_, strict=True):
            if hasattr(estimator, "predict_proba"):
                said.append(estimator.predict_proba(rows[:, features]))
            else:
                said.append(np.eye(3)[estimator.predict(rows[:, features])])
        return np.stack(said, axis=1)

    cast = out_of_bag(model, len(y))
    is_hard, is_weighted = RULES[rule]
    outputs = shares(X)
    is_right = outputs.argmax(axis=2) == y[:, np.newaxis]
    ballots = np.eye(3)[outputs.argmax(axis=2)] if is_hard else outputs
    for i in np.flatnonzero(cast.any(axis=1)):
        voters, others = np.flatnonzero(cast[i]), np.arange(len(y)) != i
        weight = [is_right[cast[:, t] & others, t].mean() if is_weighted else 1.0 for t in voters]
        expected = np.average(ballots[i, voters], axis=0, weights=weight)
        np.testing.assert_allclose(model.oob_decision_function_[i], expected, atol=1e-12)
    weight = [is_right[cast[:, t], t].mean() if is_weighted else 1.0 for t in range(12)]
    outputs = shares(fresh)
    ballots = np.eye(3)[outputs.argmax(axis=2)] if is_hard else outputs
    expected = np.average(ballots, axis=1, weights=weight)
    np.testing.assert_allclose(model.predict_proba(fresh), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(fresh), model.predict_proba(fresh).argmax(axis=1))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            model.predict_log_proba(fresh), np.log(model.predict_proba(fresh)), atol=1e-12
        )


def test_a_stack_is_trained_on_out_of_bag_outputs_only():
    X, y = load_breast_cancer(return_X_y=True)
    X, fresh, y, _ = train_test_split(X, y, random_state=0)
    model = BaggingClassifier(
        DecisionTreeClassifier(max_depth=3), 25, random_state=0, voting="stacked", oob_score=True
    ).fit(X, y)
    has_output = out_of_bag(model, len(y))
    outputs, new = (
        np.stack([tree.predict_proba(rows) for tree in model.estimators_], axis=1)[:, :, None]
        for rows in (X, fresh)
    )
    outputs[~has_output] = np.nan  # what a tree says of its in-bag rows must not be used
    outputs = np.where(has_output[:, :, None, None], outputs, 0.0)
    truth = y[:, np.newaxis].astype(float)
    seed = model._draws[0][0].seeds[0]
    np.testing.assert_allclose(
        model.oob_decision_function_, cross_fit(None, [2], outputs, has_output, truth, seed)[:, 0]
    )
    stack = Stack(None, [2]).fit(outputs, has_output, truth)
    np.testing.assert_allclose(model.predict_proba(fresh), stack.predict(new)[:, 0])


@pytest.mark.parametrize("rule", ["oob_weighted", "stacked"])
def test_regression(rule):
    X, y = load_diabetes(return_X_y=True)
    both = np.column_stack((y, -y))
    X, fresh, both, _ = train_test_split(X, both, random_state=0)
    bag = BaggingRegressor(Ridge(1e-3), 15, max_samples=60, random_state=0, voting=rule)
    one = bag.fit(X, both[:, 0]).predict(fresh)
    two = bag.fit(X, both).predict(fresh)
    assert two.shape == (len(fresh), 2)
    np.testing.assert_allclose(two[:, 0], one, rtol=1e-9)
    np.testing.assert_allclose(two[:, 1], -one, rtol=1e-9)
    if rule == "oob_weighted":
        said = np.stack([ridge.predict(fresh)[:, 0] for ridge in bag.estimators_], axis=1)
        cast = out_of_bag(bag, len(X))
        weight = [
            max(0.0, r2_score(both[cast[:, t], 0], ridge.predict(X[cast[:, t]])[:, 0]))
            for t, ridge in enumerate(bag.estimators_)
        ]
        np.testing.assert_allclose(bag.estimator_weights_[:, 0], weight, rtol=1e-9)
        np.testing.assert_allclose(one, np.average(said, axis=1, weights=weight), rtol=1e-9)


@pytest.mark.parametrize("rule", EVERY_RULE)
def test_votes_do_not_depend_on_n_jobs(rule):
    X, y = load_iris(return_X_y=True)
    a, b = (
        BaggingClassifier(
            LogisticRegression(max_iter=300), 8, random_state=0, voting=rule, oob_score=True,
            n_jobs=n_jobs,
        ).fit(X, y)
        for n_jobs in (1, 2)
    )  # fmt: skip
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    np.testing.assert_array_equal(a.oob_decision_function_, b.oob_decision_function_)


def test_out_of_bag_as_an_object():
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["no", "yes"])[y]
    model = BaggingClassifier(n_estimators=30, random_state=0, oob_score=True).fit(X, labels)
    judged = model.out_of_bag(X, labels)
    np.testing.assert_array_equal(judged.counts, out_of_bag(model, len(y)).sum(axis=1))
    np.testing.assert_allclose(judged.probabilities, model.oob_decision_function_)
    assert 1 - judged.loss == pytest.approx(model.oob_score_)
    assert len(judged.curve) == len(judged.tree_scores) == 30
    brier = judged.score(brier_score_loss, "probabilities", pos_label="yes")
    known = judged.is_known
    assert brier == pytest.approx(np.mean((judged.probabilities[known, 1] - y[known]) ** 2))
    shallow = BaggingClassifier(DecisionTreeClassifier(max_depth=1), 30, random_state=0).fit(
        X, labels
    )
    assert judged.compare(shallow.out_of_bag(X, labels)).difference < 0
    with pytest.raises(ValueError, match="fitted on 569"):
        model.out_of_bag(X[:100], labels[:100])
    with pytest.raises(ValueError, match="not among the classes"):
        model.out_of_bag(X, y)


def test_refusals():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="set bootstrap=True"):
        BaggingClassifier(voting="oob_weighted", bootstrap=False, max_samples=0.5).fit(X, y)
    with pytest.raises(ValueError, match="which regression does not have"):
        BaggingRegressor(voting="majority").fit(X, y)
    with pytest.raises(ValueError, match="voting"):
        BaggingClassifier(voting="loud").fit(X, y)
    model = BaggingClassifier(LogisticRegression(max_iter=300), 5, voting="majority").fit(X, y)
    with pytest.raises(ValueError, match='voting="soft"'):
        model.decision_function(X)
