"""How trees vote: the rules by definition, what they learn out of bag, and that nothing leaks."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier as PeerTree

from forest import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor, load
from forest.voting.rules import RULES, combine, scores_of, values_of_trees, weights_of
from forest.voting.stacking import Stack, cross_fit
from importance import drop_column

EVERY_RULE = (*RULES, "stacked")
ACCURACY = np.array([0.80, 0.75, 0.88, 0.91, 0.77, 0.65, 0.95, 0.82, 0.78, 0.83])
P_ONE = np.array([0.90, 0.92, 0.87, 0.34, 0.41, 0.84, 0.14, 0.32, 0.98, 0.57])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("majority", (0.4, 0.6)),
        ("oob_weighted", (0.424, 0.576)),
        ("soft", (0.371, 0.629)),
        ("oob_weighted_soft", (0.388, 0.612)),
    ],
)
def test_the_textbook_example(rule, expected):
    """Ten models with their validation accuracies and what they say of one row."""
    outputs = np.stack([1 - P_ONE, P_ONE], axis=-1)[np.newaxis, :, np.newaxis]
    said = combine(outputs, rule, ACCURACY[:, np.newaxis])
    np.testing.assert_allclose(said[0, 0], expected, atol=5e-4)


@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(0, 12),
    n_outputs=st.integers(1, 3),
    n_values=st.integers(1, 3),
    n_groups=st.integers(0, 5),
)
def test_a_score_without_a_row_is_the_score_of_the_others(
    seed, n_rows, n_outputs, n_values, n_groups
):
    """Of other groups, where rows go together."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n_rows) if n_groups else None
    outputs = rng.random((n_rows, n_outputs, n_values))
    truth = rng.integers(0, max(n_values, 2), (n_rows, n_outputs)).astype(float)

    def score(rows, k):
        if len(rows) == 0:
            return np.nan
        if n_values > 1:
            return accuracy_score(truth[rows, k], outputs[rows, k].argmax(axis=1))
        is_spread = np.ptp(truth[rows, k]) > 0
        return r2_score(truth[rows, k], outputs[rows, k, 0]) if is_spread else np.nan

    scores, without = scores_of(outputs, truth, groups)
    every = np.arange(n_rows)
    units = every if groups is None else groups
    for k in range(n_outputs):
        np.testing.assert_allclose(scores[k], score(every, k), atol=1e-9)
        for i in range(n_rows):
            expected = score(every[units != units[i]], k)
            if np.isnan(expected):
                assert weights_of(without)[i, k] == 0.0
            else:
                np.testing.assert_allclose(without[i, k], expected, atol=1e-9)


def shares_of_trees(forest, X):
    """(n_rows, n_trees, n_classes) by the trees' own estimators."""
    return np.stack([tree.predict_proba(X) for tree in forest.estimators_], axis=1)


@pytest.mark.parametrize("rule", RULES)
def test_out_of_bag_and_fresh_votes_are_those_of_the_plain_loop(rule):
    X, y = load_iris(return_X_y=True)
    X, fresh, y, _ = train_test_split(X, y, random_state=0)
    forest = RandomForestClassifier(
        25, max_depth=2, max_features=1, random_state=0, voting=rule, oob_score=True
    ).fit(X, y)
    outputs = shares_of_trees(forest, X)
    cast = np.array([~np.isin(np.arange(len(y)), d) for d in forest.estimators_samples_]).T
    is_hard, is_weighted = RULES[rule]
    is_right = outputs.argmax(axis=2) == y[:, np.newaxis]
    ballots = np.eye(3)[outputs.argmax(axis=2)] if is_hard else outputs
    for i in range(len(y)):
        trees = np.flatnonzero(cast[i])
        others = np.arange(len(y)) != i
        weight = [is_right[cast[:, t] & others, t].mean() if is_weighted else 1.0 for t in trees]
        expected = np.average(ballots[i, trees], axis=0, weights=weight)
        np.testing.assert_allclose(forest.oob_decision_function_[i], expected, rtol=1e-12)
    weight = [is_right[cast[:, t], t].mean() if is_weighted else 1.0 for t in range(25)]
    outputs = shares_of_trees(forest, fresh)
    ballots = np.eye(3)[outputs.argmax(axis=2)] if is_hard else outputs
    expected = np.einsum("t,rtc->rc", np.array(weight) / np.sum(weight), ballots)
    np.testing.assert_allclose(forest.predict_proba(fresh), expected, rtol=1e-12)


@pytest.mark.parametrize("params", [{}, {"missing": "surrogate", "surrogates": 1}], ids=str)
def test_every_output_has_a_majority_of_its_own(params):
    """Also where the rule changes after the fit, and after more trees."""
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    targets = np.column_stack([y, y % 2])
    forest = RandomForestClassifier(max_depth=2, random_state=0, warm_start=True, **params)
    for n_trees in (4, 15):
        soft = forest.set_params(n_estimators=n_trees).fit(X, targets).predict_proba(X)
        hard = forest.set_params(voting="majority").predict_proba(X)
        for k, (of_output, classes) in enumerate(zip(hard, forest.classes_, strict=True)):
            said = [tree.predict_proba(X)[k].argmax(axis=1) for tree in forest.estimators_]
            expected = np.mean(np.eye(len(classes))[np.array(said)], axis=0)
            np.testing.assert_allclose(of_output, expected, rtol=1e-12)
            assert (of_output != soft[k]).any()
        np.testing.assert_equal(forest.set_params(voting="soft").predict_proba(X), soft)


@pytest.mark.parametrize("rule", ["oob_weighted", "oob_weighted_soft"])
@pytest.mark.parametrize(
    "params", [{}, {"missing": "surrogate", "surrogates": 1}, {"precision": "float64"}], ids=str
)
def test_weighed_leaves_vote_as_trees_that_are_asked_apart(rule, params):
    """Of one output and of several, with weights learnt and given, also none at all."""
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    for kind, target in (
        (RandomForestClassifier, y), (RandomForestClassifier, np.column_stack([y, y % 2])),
        (RandomForestRegressor, np.column_stack([y, -y])),
    ):  # fmt: skip
        forest = kind(15, max_depth=3, max_features=1, random_state=0, voting=rule, **params)
        forest.fit(X, target)
        outputs = values_of_trees(forest._packed(), X.astype(forest.precision))
        outputs = outputs.transpose(1, 0, 2).reshape(len(X), 15, forest.n_outputs_, -1)
        learnt = forest.estimator_weights_
        for weight in (learnt, learnt[::-1], np.zeros_like(learnt)):
            forest.estimator_weights_ = weight
            expected = combine(outputs, rule, weight)
            if kind is RandomForestRegressor:
                np.testing.assert_allclose(forest.predict(X), expected[:, :, 0], rtol=1e-12)
                continue
            shares = forest.predict_proba(X)
            for k, share in enumerate(shares if target.ndim == 2 else [shares]):
                of_output = expected[:, k, : share.shape[1]]
                np.testing.assert_allclose(share, of_output, rtol=1e-12, atol=1e-15)


def test_regression_weighs_trees_by_their_r2_out_of_bag():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(20, random_state=0, voting="oob_weighted", max_depth=4)
    forest.fit(X, y)
    said = np.stack([tree.predict(X) for tree in forest.estimators_], axis=1)
    weight = []
    for t, drawn in enumerate(forest.estimators_samples_):
        out = np.setdiff1d(np.arange(len(y)), drawn)
        weight.append(max(r2_score(y[out], said[out, t]), 0.0))
    np.testing.assert_allclose(forest.estimator_weights_[:, 0], weight, rtol=1e-9)
    np.testing.assert_allclose(forest.predict(X), np.average(said, axis=1, weights=weight))


def test_trees_of_weight_zero_count_the_same_where_no_other_votes():
    outputs = np.array([[[[3.0]], [[5.0]]]])
    assert combine(outputs, "oob_weighted", np.zeros((2, 1)))[0, 0, 0] == 4.0
    assert combine(outputs, "oob_weighted", np.array([[0.0], [0.1]]))[0, 0, 0] == 5.0


@pytest.mark.parametrize("rule", EVERY_RULE)
def test_votes_do_not_depend_on_n_jobs_and_survive_pickling(rule):
    X, y = make_classification(3000, 8, n_informative=5, n_classes=3, random_state=0)
    forest = RandomForestClassifier(12, random_state=0, voting=rule, n_jobs=1, max_depth=6)
    forest.fit(X, y)
    expected = forest.predict_proba(X)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(forest)).predict_proba(X), expected)
    again = clone(forest).set_params(n_jobs=4).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), expected)


@pytest.mark.parametrize("rule", EVERY_RULE)
def test_outputs_are_decided_one_by_one(rule):
    """Two columns of y with the same classes are predicted as one is."""
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(15, random_state=0, voting=rule).fit(X, np.c_[y, y])
    first, second = forest.predict_proba(X)
    np.testing.assert_array_equal(first, second)
    alone = RandomForestClassifier(15, random_state=0, voting=rule).fit(X, y)
    np.testing.assert_allclose(first, alone.predict_proba(X), rtol=1e-9)


# -------------------------------------------------------------------------------- stacking


def noise_table(seed, n=150, n_models=60):
    """What models say that know nothing, of classes that nothing is known of."""
    rng = np.random.default_rng(seed)
    outputs = rng.random((n, n_models, 1, 2))
    outputs /= outputs.sum(axis=3, keepdims=True)
    return outputs, rng.random((n, n_models)) < 0.37, rng.integers(0, 2, (n, 1)).astype(float)


def test_the_out_of_bag_estimate_of_a_stack_is_cross_fitted():
    """Of noise it finds nothing; a stack that judges its own training rows finds much."""

    class Scores(DummyClassifier):
        """Classes by the sign of a regression, which fits whatever it can."""

        def fit(self, X, y):
            self.ridge = Ridge(1e-3).fit(X, y - 0.5)
            return super().fit(X, y)

        def predict_proba(self, X):
            one = (self.ridge.predict(X) > 0).astype(float)
            return np.c_[1 - one, one]

    honest, leaking = [], []
    for seed in range(20):
        table = noise_table(seed)
        codes = table[2][:, 0]
        said = cross_fit(Scores(), [2], *table, seed=0)
        honest.append((said[:, 0].argmax(axis=1) == codes).mean())
        stack = Stack(Scores(), [2]).fit(*table)
        leaking.append((stack.predict(*table[:2])[:, 0].argmax(axis=1) == codes).mean())
    error = np.std(honest, ddof=1) / np.sqrt(len(honest))
    assert abs(np.mean(honest) - 0.5) < 3 * error + 0.01
    assert np.mean(leaking) > 0.6


@pytest.mark.parametrize("rule", ["oob_weighted", "stacked"])
def test_rows_of_a_group_learn_no_vote_from_each_other(rule):
    """Of groups that have nothing in common nothing is known out of bag."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(30), 10)
    X, y = rng.normal(size=(30, 4))[groups], rng.normal(size=30)[groups]
    forest = RandomForestRegressor(100, voting=rule, oob_score=True, random_state=0)
    assert forest.fit(X, y, groups=groups).oob_score_ < -0.2
    if rule == "stacked":  # rows of a group would ask for the least penalty, 0.01
        assert forest.final_estimator_[0].alpha_ > 1.0
    with pytest.raises(
        ValueError, match=r"only 4 were ever out of bag, and 5 are needed.*fewer groups of rows"
    ):
        forest.set_params(voting="stacked").fit(X, y, groups=groups % 4)


def test_a_stack_takes_a_class_of_one_row():
    """The fold of that row leaves a single class to learn from."""
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.eye(50, dtype=int)[0]
    forest = RandomForestClassifier(50, voting="stacked", oob_score=True, random_state=0)
    assert forest.fit(X, y).oob_score_ > 0.9


def test_without_departures_a_stack_is_the_soft_vote():
    """Models that agree leave the meta-learner nothing but their mean, and truth is what it is."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 1))
    outputs = np.repeat(truth[:, np.newaxis, :, np.newaxis], 7, axis=1)
    has_output = rng.random((200, 7)) < 0.5
    has_output[:, 0] = True
    stack = Stack(None, [0]).fit(outputs, has_output, truth)
    np.testing.assert_allclose(stack.predict(outputs)[:, :, 0], truth, atol=1e-3)


def test_a_stack_finds_the_model_that_knows():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(400, 1))
    outputs = truth[:, np.newaxis, :, np.newaxis] + rng.normal(0, 3, (400, 9, 1, 1))
    outputs[:, 4] = truth[:, :, np.newaxis] + rng.normal(0, 0.1, (400, 1, 1))
    has_output = rng.random((400, 9)) < 0.6
    has_output[:, 4] = True
    known = slice(0, 300)
    stack = Stack(None, [0]).fit(outputs[known], has_output[known], truth[known])
    error = np.std(stack.predict(outputs[300:], has_output[300:])[:, :, 0] - truth[300:])
    assert error < 0.5 * np.std(outputs[300:].mean(axis=1)[:, :, 0] - truth[300:])


@pytest.mark.parametrize(
    ("ours", "learner"),
    [(RandomForestClassifier, PeerTree(max_depth=2)), (RandomForestRegressor, Ridge(10.0))],
)
def test_any_estimator_may_learn_the_votes(ours, learner):
    X, y = load_breast_cancer(return_X_y=True)
    forest = ours(20, random_state=0, voting="stacked", final_estimator=learner).fit(X, y)
    assert isinstance(forest.final_estimator_[0], type(learner))
    assert forest.score(X, y) > 0.8


def test_the_only_class_has_the_whole_share(tmp_path):
    X, y = load_iris(return_X_y=True)
    Y = np.column_stack([np.zeros(len(y)), y])
    forest = RandomForestClassifier(5, random_state=0, voting="stacked").fit(X, Y)
    forest.save(tmp_path / "forest")
    for model in (forest, load(tmp_path / "forest")):
        shares = model.predict_proba(X)
        assert np.array_equal(shares[0], np.ones((len(X), 1)))
        assert np.allclose(shares[1].sum(axis=1), 1.0)


# ---------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("rule", ["oob_weighted", "oob_weighted_soft", "stacked"])
def test_what_learns_out_of_bag_needs_a_bootstrap(rule):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="set bootstrap=True"):
        ExtraTreesClassifier(5, voting=rule).fit(X, y)


def test_numbers_have_no_majority():
    with pytest.raises(ValueError, match="counts votes for classes"):
        RandomForestRegressor(5, voting="majority").fit(*load_diabetes(return_X_y=True))


def test_a_rule_that_was_set_after_the_fit_asks_for_another_fit():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    forest.set_params(voting="majority").predict(X)
    for rule in ("oob_weighted", "stacked"):
        with pytest.raises(NotFittedError, match="call fit again"):
            forest.set_params(voting=rule).predict(X)


@pytest.mark.parametrize("rule", ["oob_weighted", "oob_weighted_soft", "stacked"])
def test_drop_column_knows_no_weighted_votes(rule):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0, voting=rule).fit(X, y)
    with pytest.raises(ValueError, match="drop_column does not support voting="):
        drop_column(forest, X, y)


def test_a_stack_needs_rows_out_of_bag():
    X, y = load_iris(return_X_y=True)
    in_bag = np.ones((3, len(y)), int)
    with pytest.raises(ValueError, match="Fit more estimators"):
        RandomForestClassifier(3, voting="stacked").fit(X, y, in_bag=in_bag)
