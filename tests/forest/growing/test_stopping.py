"""n_estimators="auto": when trees are enough, and what ends the growth before."""

import os
import signal
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1

from forest import RandomForestClassifier, RandomForestRegressor
from forest.growing.stopping import (
    ERROR_TOLERANCE,
    IMPORTANCE_TOLERANCE,
    LOSS_TOLERANCE,
    MIN_TREES,
)


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(400, 8, noise=1.0, random_state=0)


@pytest.fixture(scope="module")
def grown(friedman):
    return RandomForestRegressor("auto", random_state=3, max_features=0.5).fit(*friedman)


def squared_error_out_of_bag(forest, X, y):
    return forest.out_of_bag(X, y).loss


def test_it_stops_where_more_trees_hardly_matter(grown, friedman):
    X, y = friedman
    stability = grown.stability_
    assert stability.is_stable
    assert stability.stopped_by == "stability"
    assert stability.n_trees == len(grown.estimators_) >= MIN_TREES
    low, high = stability.interval
    assert "float64" not in repr(stability)
    error_over_rows = grown.out_of_bag(X, y).row_losses.std() / np.sqrt(len(y))
    tolerance = max(LOSS_TOLERANCE * stability.loss, ERROR_TOLERANCE * error_over_rows)
    assert stability.loss - tolerance <= low <= high <= stability.loss + tolerance
    assert stability.loss == pytest.approx(squared_error_out_of_bag(grown, X, y), rel=1e-9)
    np.testing.assert_array_equal(
        stability.leaders, np.argsort(-grown.feature_importances_, kind="stable")[:5]
    )


def test_the_interval_holds_the_loss_of_very_many_trees():
    """In 12 forests, each stopped by itself; a 95 % interval misses more than 3 once in 500."""
    X, y = make_friedman1(150, 8, noise=1.0, random_state=0)
    many = RandomForestRegressor(6000, random_state=99, max_features=0.5).fit(X, y)
    truth = squared_error_out_of_bag(many, X, y)
    n_missed = 0
    for seed in range(12):
        forest = RandomForestRegressor("auto", random_state=seed, max_features=0.5).fit(X, y)
        low, high = forest.stability_.interval
        n_missed += not low <= truth <= high
    assert n_missed <= 3


def test_the_order_of_the_leaders_is_known_where_it_says_so(grown):
    per_tree = np.array([tree.feature_importances_ for tree in grown.estimators_])
    order = np.argsort(-per_tree.mean(axis=0), kind="stable")
    for a, b in pairwise(order[:6]):
        difference = per_tree[:, a] - per_tree[:, b]
        reach = 1.96 * difference.std() / np.sqrt(len(per_tree))
        assert difference.mean() > reach or reach <= IMPORTANCE_TOLERANCE


def test_the_trees_are_those_of_a_forest_of_that_size(grown, friedman):
    X, y = friedman
    n = len(grown.estimators_)
    plain = RandomForestRegressor(n, random_state=3, max_features=0.5).fit(X, y)
    np.testing.assert_array_equal(grown.predict(X), plain.predict(X))


def test_it_does_not_depend_on_n_jobs(grown, friedman):
    X, y = friedman
    other = RandomForestRegressor("auto", random_state=3, max_features=0.5, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(grown.predict(X), other.predict(X))
    assert str(grown.stability_) == str(other.stability_)


@pytest.mark.parametrize("loss", [None, [[0, 20], [1, 0]]])
def test_the_loss_of_classes_is_that_of_their_probabilities(loss):
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier("auto", loss=loss, random_state=0).fit(X, y)
    shares = forest.out_of_bag(X, y).probabilities
    brier = ((shares - np.eye(2)[y]) ** 2).sum(axis=1)
    assert forest.stability_.loss == pytest.approx(np.nanmean(brier), rel=1e-9)


def test_a_loss_that_is_rounding_is_settled():
    """Sums of 2.3 are rounded, so that trees of a constant target differ in their last digits."""
    X = np.random.RandomState(0).normal(size=(60, 2))
    forest = RandomForestRegressor("auto", random_state=0).fit(X, np.full(60, 2.3))
    assert forest.stability_.is_loss_settled
    assert forest.stability_.stopped_by == "stability"


def test_time_and_memory_end_it(friedman):
    X, y = friedman
    with pytest.warns(UserWarning, match="stopped by max_time .* before the out-of-bag loss"):
        forest = RandomForestRegressor("auto", max_time=1e-3, max_memory=2**30, random_state=0).fit(
            X, y
        )
    assert forest.stability_.stopped_by == "max_time"
    n = len(forest.estimators_)
    with pytest.warns(UserWarning, match="stopped by callback at 1 tree, before"):
        RandomForestRegressor("auto", callback=lambda _: False, n_jobs=1, random_state=0).fit(X, y)
    limit = sum(tree.tree_.nbytes for tree in forest.estimators_) + 20_000
    with pytest.warns(UserWarning, match="max_memory"):
        forest = RandomForestRegressor("auto", max_memory=limit, random_state=0).fit(X, y)
    assert forest.stability_.stopped_by == "max_memory"
    assert len(forest.estimators_) >= n
    assert sum(tree.tree_.nbytes for tree in forest.estimators_) <= 1.1 * limit


def test_a_warm_start_goes_on(friedman, grown):
    X, y = friedman
    forest = RandomForestRegressor(
        "auto", max_time=1e-3, random_state=3, warm_start=True, max_features=0.5
    )
    with pytest.warns(UserWarning, match="warm_start=True"):
        forest.fit(X, y)
    forest.set_params(max_time=None).fit(X, y)
    assert forest.stability_.is_stable
    n = min(len(forest.estimators_), len(grown.estimators_))
    for a, b in zip(forest.estimators_[:n], grown.estimators_[:n], strict=True):
        np.testing.assert_array_equal(a.tree_.threshold, b.tree_.threshold)
    forest.set_params(n_estimators=len(forest.estimators_) + 1).fit(X, y)
    assert not hasattr(forest, "stability_")  # it was that of fewer trees


def test_an_interrupt_leaves_the_trees_that_were_finished(friedman):
    def interrupt(progress):
        assert progress.n_total is None
        assert progress.seconds_left is None
        if progress.n_done == 20:
            os.kill(os.getpid(), signal.SIGINT)

    X, y = friedman
    forest = RandomForestRegressor("auto", random_state=0, callback=interrupt)
    with (
        pytest.warns(
            UserWarning, match=r"Interrupted: \d+ trees are finished and kept, see stability_"
        ),
        pytest.raises(KeyboardInterrupt),
    ):
        forest.fit(X, y)
    assert forest.stability_.stopped_by == "interrupt"
    assert forest.stability_.n_trees == len(forest.estimators_) >= 16
    assert np.isfinite(forest.predict(X)).all()


def test_a_callback_that_returns_False_ends_growth(friedman):
    X, y = friedman
    forest = RandomForestRegressor("auto", random_state=0, callback=lambda p: p.n_done < 20)
    with pytest.warns(UserWarning, match="stopped by callback at 20 trees"):
        forest.fit(X, y)
    assert forest.stability_.stopped_by == "callback"
    assert forest.stability_.n_trees == len(forest.estimators_) == 20


def test_a_bar_without_an_end(friedman, capsys):
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        RandomForestRegressor("auto", max_time=0.01, verbose=1, max_depth=2).fit(X, y)
    assert "trees" in capsys.readouterr().err


def test_refusals(friedman):
    X, y = friedman
    with pytest.raises(ValueError, match="bootstrap=False"):
        RandomForestRegressor("auto", bootstrap=False).fit(X, y)
    for limit in ({"max_time": 1.0}, {"max_memory": 10**9}):
        with pytest.raises(ValueError, match='n_estimators="auto"'):
            RandomForestRegressor(10, **limit).fit(X, y)
    with pytest.raises(ValueError, match="in_bag, which sets the number of trees"):
        RandomForestRegressor("auto").fit(X, y, in_bag=np.ones((3, len(y)), int))
    with pytest.raises(ValueError, match="n_estimators"):
        RandomForestRegressor("many").fit(X, y)


@pytest.mark.parametrize(
    ("params", "given"),
    [
        ({}, {"groups": ["one"] * 400}),
        ({"replace": False, "max_samples": 1.0}, {}),
        ({"replace": False, "max_samples": 2}, {"groups": [0, 1] * 200}),
    ],
    ids=["one group", "all rows", "all groups"],
)
def test_draws_that_leave_no_row_out_are_refused_before_growth(friedman, params, given):
    forest = RandomForestRegressor("auto", max_time=0.5, callback=pytest.fail, **params)
    with pytest.raises(ValueError, match="every draw has all rows or all groups"):
        forest.fit(*friedman, **given)
