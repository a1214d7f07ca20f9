"""Out-of-bag as an object: every figure against the plain loop over trees."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, roc_auc_score
from sklearn.neighbors import KNeighborsRegressor

from forest import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

CASES = [(RandomForestClassifier, load_iris), (RandomForestRegressor, load_diabetes)]
EACH_TASK = pytest.mark.parametrize(("ours", "load"), CASES, ids=["classifier", "regressor"])


def plain_loop(forest, X, y):
    """Values of the first 1, 2, ... trees out of bag, nan where there are none; and the counts."""
    total, count = 0.0, np.zeros(len(y), int)
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        is_out = ~np.isin(np.arange(len(y)), drawn)
        said = tree.predict_proba(X) if hasattr(tree, "classes_") else tree.predict(X)[:, None]
        total = total + said * is_out[:, np.newaxis]
        count = count + is_out
        with np.errstate(invalid="ignore"):
            yield total / count[:, np.newaxis], count


def losses(values, y):
    if values.shape[1] == 1:
        return (values[:, 0] - y) ** 2
    return (values.argmax(axis=1) != y).astype(float)


@pytest.mark.parametrize("voting", ["soft", "majority"])
@pytest.mark.parametrize("kind", ["one", "several", "sparse", "few trees"])
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
def test_what_a_fit_finds_out_of_bag_is_what_is_found_later(kind, voting):
    """A fit that needs no scores of its trees adds up their votes on the way."""
    X, y = load_iris(return_X_y=True)
    Y = np.c_[y == 1, y > 0].astype(int) if kind == "several" else y
    X = csr_matrix(X) if kind == "sparse" else X
    model = RandomForestClassifier(2 if kind == "few trees" else 20, random_state=0, max_depth=2)
    model.set_params(oob_score=True, voting=voting).fit(X, Y)
    found = model.oob_decision_function_.reshape(len(y), -1, Y.ndim)  # outputs come last
    oob = model.out_of_bag(X, Y)
    np.testing.assert_array_equal(np.moveaxis(found, 2, 1), oob.values)
    numbers = RandomForestRegressor(20, random_state=0, max_depth=2, oob_score=True).fit(X, Y)
    found = numbers.oob_prediction_.reshape(len(y), -1)
    np.testing.assert_array_equal(found, numbers.out_of_bag(X, Y).values[:, :, 0])


def test_a_single_row_out_of_bag_has_no_standard_error():
    X = np.arange(6.0).reshape(3, 2)
    found = RandomForestRegressor(1, random_state=0).fit(X, X[:, 0]).out_of_bag(X, X[:, 0])
    assert found.is_known.sum() == 1
    assert np.isfinite(found.loss)
    assert np.isnan(found.standard_error)


@EACH_TASK
def test_curve_loss_and_scores_are_those_of_the_plain_loop(ours, load):
    X, y = load(return_X_y=True)
    forest = ours(25, random_state=0, max_depth=4).fit(X, y)
    oob = forest.out_of_bag(X, y)
    for t, (values, count) in enumerate(plain_loop(forest, X, y)):
        known = count > 0
        np.testing.assert_allclose(oob.curve[t], losses(values[known], y[known]).mean())
    np.testing.assert_array_equal(oob.counts, count)
    np.testing.assert_allclose(oob.values[:, 0], values)
    assert oob.loss == pytest.approx(oob.curve[-1])
    expected = losses(values, y)[known].std(ddof=1) / np.sqrt(known.sum())
    assert oob.standard_error == pytest.approx(expected)
    for t in (0, 7):
        out = np.setdiff1d(np.arange(len(y)), forest.estimators_samples_[t])
        assert oob.tree_scores[t] == pytest.approx(forest.estimators_[t].score(X[out], y[out]))


def test_any_metric_needs_no_other_fit():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    forest = RandomForestClassifier(40, random_state=0, oob_score=True).fit(X, names)
    oob = forest.out_of_bag(X, names)
    said = forest.oob_decision_function_
    assert oob.score(accuracy_score) == pytest.approx(forest.oob_score_)
    assert oob.score(accuracy_score) == pytest.approx(1 - oob.loss)
    assert oob.score(roc_auc_score, "probabilities") == roc_auc_score(names, said[:, 1])
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(40, random_state=0, oob_score=True).fit(X, y)
    oob, said = forest.out_of_bag(X, y), forest.oob_decision_function_
    assert oob.score(log_loss, "probabilities", labels=[0, 1, 2]) == log_loss(y, said)
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(40, random_state=0, oob_score=True).fit(X, y)
    oob = forest.out_of_bag(X, y)
    assert repr(oob) == "<OutOfBag: 442 of 442 rows, 40 trees>"
    assert oob.score(mean_absolute_error) == mean_absolute_error(y, forest.oob_prediction_)
    assert oob.score(r2_score) == pytest.approx(forest.oob_score_)


def test_a_loss_counts_out_of_bag_as_it_does_in_predictions():
    """True shares, and the class of least expected loss: of a tree, of some, of all."""
    X, y = load_iris(return_X_y=True)
    X = X + 3.0 * np.random.RandomState(0).normal(size=X.shape)
    forest = RandomForestClassifier(
        40, loss=[[0, 1, 9], [2, 0, 1], [1, 5, 0]], min_samples_leaf=5, oob_score=True,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    oob = forest.out_of_bag(X, y)
    np.testing.assert_array_equal(oob.probabilities, forest.oob_decision_function_)
    assert (oob.predictions != oob.probabilities.argmax(axis=1)).any()
    assert 1 - oob.loss == pytest.approx(forest.oob_score_)
    assert oob.curve[-1] == pytest.approx(oob.loss)
    assert oob.score(accuracy_score) == pytest.approx(forest.oob_score_)
    for score, tree, drawn in zip(
        oob.tree_scores, forest.estimators_, forest.estimators_samples_, strict=True
    ):
        is_out = ~np.isin(np.arange(len(y)), drawn)
        assert score == pytest.approx(tree.score(X[is_out], y[is_out]))


def test_rows_never_out_of_bag_are_nan():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    oob = RandomForestClassifier(2, random_state=0).fit(X, names).out_of_bag(X, names)
    never = oob.counts == 0
    assert 0 < never.sum() < len(y)
    assert np.isnan(oob.probabilities[never]).all()
    assert not np.isnan(oob.probabilities[~never]).any()
    assert all(label != label for label in oob.predictions[never])
    assert set(oob.predictions[~never]) <= {"a", "b", "c"}
    assert np.isnan(oob.row_losses[never]).all()
    assert oob.score(accuracy_score) == (oob.predictions[~never] == names[~never]).mean()


def test_two_forests_are_compared_row_by_row():
    X, y = make_friedman1(400, random_state=0)
    deep = RandomForestRegressor(30, random_state=0).fit(X, y).out_of_bag(X, y)
    flat = RandomForestRegressor(30, random_state=1, max_depth=1).fit(X, y).out_of_bag(X, y)
    found = flat.compare(deep)
    difference = flat.row_losses - deep.row_losses
    assert found.difference == pytest.approx(flat.loss - deep.loss)
    assert found.standard_error == pytest.approx(difference.std(ddof=1) / np.sqrt(len(y)))
    assert found.n_rows == len(y)
    assert found.difference > 2 * found.standard_error  # shallower trees are worse here
    with pytest.raises(ValueError, match="same rows"):
        flat.compare(RandomForestRegressor(3).fit(X, -y).out_of_bag(X, -y))


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_forests_are_compared_on_rows_that_were_out_of_bag_in_both():
    X, y = make_friedman1(40, random_state=0)
    one, other = (
        RandomForestRegressor(2, random_state=seed).fit(X, y).out_of_bag(X, y) for seed in (0, 1)
    )
    both = (one.counts > 0) & (other.counts > 0)
    assert 1 < both.sum() < 40
    losses_of_one, losses_of_other = (
        (oob.values[both, 0, 0] - y[both]) ** 2 for oob in (one, other)
    )
    found = one.compare(other)
    assert found.n_rows == both.sum()
    assert found.difference == pytest.approx(losses_of_one.mean() - losses_of_other.mean())


def test_rows_of_a_group_count_as_one_in_errors():
    """A row that stands in the table four times says no more of other rows than once."""
    X, y = make_friedman1(60, random_state=0)
    X, y, groups = np.repeat(X, 4, axis=0), np.repeat(y, 4), np.repeat(np.arange(60), 4)
    deep, flat = (
        RandomForestRegressor(40, max_depth=depth, random_state=0)
        .fit(X, y, groups=groups)
        .out_of_bag(X, y)
        for depth in (None, 1)
    )
    of_groups = flat.row_losses[::4]
    assert flat.standard_error == pytest.approx(of_groups.std(ddof=1) / np.sqrt(60))
    difference = of_groups - deep.row_losses[::4]
    found = flat.compare(deep)
    assert found.standard_error == pytest.approx(difference.std(ddof=1) / np.sqrt(60))
    assert found.n_rows == 240


def test_several_outputs():
    X, y = load_iris(return_X_y=True)
    both = np.c_[y, y == 1]
    oob = RandomForestClassifier(30, random_state=0).fit(X, both).out_of_bag(X, both)
    first, second = oob.probabilities
    assert first.shape == (150, 3)
    assert second.shape == (150, 2)
    assert oob.predictions.shape == both.shape
    assert oob.loss == pytest.approx((oob.predictions != both).mean())


def test_refusals():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="bootstrap=True"):
        ExtraTreesClassifier(3).fit(X, y).out_of_bag(X, y)
    in_bag = np.ones((3, len(y)), int)
    with pytest.raises(ValueError, match="bootstrap=True, or draw fewer rows"):
        RandomForestClassifier(3).fit(X, y, in_bag=in_bag).out_of_bag(X, y)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="training table of 150 rows"):
        forest.out_of_bag(X[:100], y[:100])
    with pytest.raises(ValueError, match="not among the classes"):
        forest.out_of_bag(X, y + 5)
    with pytest.raises(ValueError, match="150 and 0"):
        forest.out_of_bag(X, None)
    with pytest.raises(ValueError, match=r"1 output\(s\), as in the fit, but has 2"):
        forest.out_of_bag(X, np.column_stack([y, y]))
    with pytest.raises(TypeError, match="metric='accuracy' must be callable"):
        forest.out_of_bag(X, y).score("accuracy")
    with pytest.raises(TypeError, match="but got RandomForestClassifier; pass"):
        forest.out_of_bag(X, y).compare(forest)
    numbers = RandomForestRegressor(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="y contains NaN"):
        numbers.out_of_bag(X, np.where(y == 1, np.nan, y))
    with pytest.raises(ValueError, match="response must be"):
        forest.out_of_bag(X, y).score(accuracy_score, "predict")
    with pytest.raises(AttributeError, match="classification"):
        _ = RandomForestRegressor(3).fit(X, y).out_of_bag(X, y).probabilities


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(20, random_state=0),
        RandomForestRegressor(20, random_state=0),
        BaggingClassifier(n_estimators=20, random_state=0),
        BaggingRegressor(KNeighborsRegressor(1), 20, random_state=0),
    ],
    ids=str,
)
def test_rows_in_another_order_are_refused(model):
    """Rows that trees have learnt would be judged as if they were out of bag."""
    X, y = load_iris(return_X_y=True)
    model = clone(model).fit(X, y)
    loss = model.out_of_bag(X, y).loss
    order = np.random.default_rng(0).permutation(len(y))
    for other in ((X[order], y[order]), (X, y[order]), (X + 0.1, y)):
        with pytest.raises(ValueError, match=r"not the table that the \w+ was fitted on"):
            model.out_of_bag(*other)
    assert pickle.loads(pickle.dumps(model)).out_of_bag(X.tolist(), y).loss == loss
    model.set_params(warm_start=True, n_estimators=25).fit(X[order], y[order])
    with pytest.raises(ValueError, match="several tables"):
        model.out_of_bag(X[order], y[order])


def test_rows_of_anything_in_another_order_are_refused():
    """Text, dates, numbers beyond doubles and what has no name, in one table."""
    rng = np.random.default_rng(0)
    y, days = rng.permutation(60) % 2, np.datetime64("2020-01-01") + np.arange(60)
    X = np.empty((60, 5), object)
    X[:, 0], X[:, 1], X[:, 2] = rng.choice(["a", "é", "\ud800"], 60), days.astype(object), y
    X[:, 3], X[:, 4] = rng.choice([10**400, 2, None, np.nan], 60), [{} for _ in range(60)]
    model = BaggingClassifier(DummyClassifier(), 20, warm_start=True, random_state=0).fit(X, y)
    loss = model.out_of_bag(X, y).loss
    assert pickle.loads(pickle.dumps(model)).out_of_bag(X.copy(), y).loss == loss
    order = rng.permutation(60)
    with pytest.raises(ValueError, match="not the table"):
        model.out_of_bag(X[order], y[order])
    numbers = BaggingClassifier(n_estimators=20, random_state=0).fit(X[:, 2:3].astype(float), y)
    numbers.out_of_bag(X[:, 2:3].astype(str), y)  # the same numbers, as text and as objects
    numbers.out_of_bag(X[:, 2:3], y)
    with pytest.raises(ValueError, match="out-of-bag rows are unknown"):
        model.set_params(oob_score=True, n_estimators=25).fit(X[order], y[order])
    assert model.fit(X, y).oob_score_ == 1 - model.out_of_bag(X, y).loss
