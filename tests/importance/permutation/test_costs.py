"""Importances of forests that were fitted with a loss matrix judge what these predict."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, brier_score_loss

from forest import RandomForestClassifier
from importance import drop_column, forest_permutation, oob_permutation, shap_values
from importance.core.losses import choose_loss, of_rows

pytestmark = pytest.mark.filterwarnings("ignore:Rows of class 2 are out of bag")  # costly, so drawn
COSTS = [[0.0, 1.0, 6.0], [1.0, 0.0, 1.0], [1.0, 9.0, 0.0]]


@pytest.fixture(scope="module")
def table():
    X, y = load_iris(return_X_y=True)
    return X + np.random.default_rng(0).normal(0.0, 1.0, X.shape), y


@pytest.fixture(scope="module")
def model(table):
    params = {"min_samples_leaf": 5, "loss": COSTS, "oob_score": True, "random_state": 0}
    return RandomForestClassifier(30, **params).fit(*table)


def test_a_tree_is_judged_by_the_class_that_it_predicts(model, table):
    X, y = table
    make_loss = choose_loss("zero_one", model)[1]
    differ = 0
    for tree in model.estimators_:
        values = tree.tree_.value[:, 0]
        lost = of_rows(make_loss(values, y), tree.apply(X))
        np.testing.assert_array_equal(lost, tree.predict(X) != y)
        differ += np.sum(values[tree.apply(X)].argmax(axis=1) != tree.predict(X))
    assert differ > 0  # the largest of the altered shares is another class


def test_a_tree_is_judged_by_the_shares_that_it_predicts(model, table):
    X, y = table
    make_loss = choose_loss("brier", model)[1]
    for tree in model.estimators_[:5]:
        lost = of_rows(make_loss(tree.tree_.value[:, 0], y), tree.apply(X))
        expected = np.square(tree.predict_proba(X) - np.eye(3)[y]).sum(axis=1)
        np.testing.assert_allclose(lost, expected, rtol=1e-12, atol=1e-14)


def test_the_forest_is_judged_by_what_it_predicts(model, table):
    by_loss = forest_permutation(model, *table, loss="zero_one", random_state=0)
    by_metric = forest_permutation(model, *table, metric=accuracy_score, random_state=0)
    np.testing.assert_allclose(by_loss.values, by_metric.values, atol=1e-12)
    assert by_loss.values.max() > 0.0

    seen = []

    def keep(y_true, y_said):
        seen.append(y_said)
        return accuracy_score(y_true, y_said)

    forest_permutation(model, *table, metric=keep, random_state=0)
    assert accuracy_score(table[1], seen[0]) == pytest.approx(model.oob_score_)


def test_a_metric_gets_the_shares_that_are_predicted(model, table):
    seen = []

    def keep(y_true, shares):
        seen.append(shares)
        return brier_score_loss(y_true == 0, shares[:, 0])

    forest_permutation(
        model, *table, metric=keep, response="probabilities", greater_is_better=False,
        random_state=0,
    )  # fmt: skip
    np.testing.assert_allclose(seen[0], model.oob_decision_function_, rtol=1e-12)


@pytest.mark.parametrize("measure", [oob_permutation, drop_column])
def test_the_default_loss_is_of_the_predicted_shares(model, table, measure):
    assert np.isfinite(measure(model, *table).values).all()


def test_what_has_no_meaning_with_costs_is_refused(model, table):
    with pytest.raises(ValueError, match="fitted with loss="):
        oob_permutation(model, *table, definition="breiman2001")
    with pytest.raises(ValueError, match="fit without loss"):
        shap_values(model, table[0])
