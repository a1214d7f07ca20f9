"""Long work: progress is shown; Ctrl-C leaves the trees that were finished, and is raised."""

import os
import signal
import sys
import threading
import warnings
from itertools import count
from time import sleep

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.model_selection import GridSearchCV

from cart.primitives.progress import Progress, ProgressReporter, watched
from forest import RandomForestClassifier, RandomForestRegressor
from forest.estimators import growth
from forest.growing import thread_pool
from importance import drop_column


class Interrupt:
    """A callback that sends Ctrl-C when so many trees are grown.

    It comes in the thread that grows, as a system may choose: the main one is not woken by it.
    Later trees take their time, or all could be grown before the main thread has its turn.
    """

    def __init__(self, after):
        self.after = after

    def __call__(self, progress):
        if progress.n_done == self.after:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        elif progress.n_done > self.after:
            sleep(0.1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_tree_is_told(n_jobs, capsys):
    """To the callback alone: nothing is printed."""
    seen = []
    X, y = load_iris(return_X_y=True)
    RandomForestClassifier(11, callback=seen.append, n_jobs=n_jobs).fit(X, y)
    assert [progress.n_done for progress in seen] == list(range(1, 12))
    assert all(progress.n_total == 11 for progress in seen)
    assert seen[-1].seconds_left == 0
    assert capsys.readouterr() == ("", "")


def test_the_time_left_is_at_the_present_rate():
    progress = Progress(20, 80, 10.0)
    assert (progress.rate, progress.seconds_left) == (2.0, 30.0)


def test_a_bar_is_shown_on_request(capsys):
    X, y = load_iris(return_X_y=True)
    RandomForestClassifier(5).fit(X, y)
    assert capsys.readouterr() == ("", "")
    RandomForestClassifier(5, verbose=1).fit(X, y)
    assert "5/5" in capsys.readouterr().err


def test_without_tqdm_there_are_lines(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with ProgressReporter(40, "tree", verbose=1) as reporter:
        for _ in range(40):
            reporter.step()
    lines = capsys.readouterr().err.splitlines()
    left = [", about 0 s left"] * 9 + [""]
    assert lines == [f"{4 * i} of 40 trees{left[i - 1]}" for i in range(1, 11)]


def test_of_unknown_totals_every_hundred_steps_are_told(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with ProgressReporter(None, "tree", verbose=1) as reporter:
        for _ in range(250):
            reporter.step()
    assert capsys.readouterr().err.splitlines() == ["100 trees", "200 trees"]


def test_a_bar_is_all_that_is_shown_and_is_closed(capsys):
    """A line of its own would break the bar; one that was left open would be drawn over."""
    with ProgressReporter(3, "tree", verbose=1) as reporter:
        reporter.step()
        assert reporter._bar.n == 1
    assert reporter._bar.disable  # tqdm's own mark of a bar that is closed
    assert "of 3 trees" not in capsys.readouterr().err


def test_an_item_is_a_step_once_the_next_is_asked_for():
    seen = []
    items = watched("abc", 3, "letter", 0, seen.append)
    assert next(items) == "a"
    assert seen == []
    assert [*items] == ["b", "c"]
    assert [(progress.n_done, progress.n_total) for progress in seen] == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_the_trees_that_were_finished(n_jobs):
    X, y = make_classification(100_000, 20, random_state=0)
    forest = RandomForestClassifier(
        200, max_depth=8, random_state=0, n_jobs=n_jobs, callback=Interrupt(5), oob_score=True
    )
    with (
        pytest.warns(UserWarning, match="of 200 trees are finished") as caught,
        pytest.raises(KeyboardInterrupt),
    ):
        forest.fit(X, y)
    n = len(forest.estimators_)
    assert 5 <= n < 100
    assert f"Interrupted: {n} of 200" in str(caught[-1].message)
    assert forest.score(X, y) > 0.8
    assert forest.oob_score_ > 0.8
    assert len(forest.estimators_samples_) == n


@pytest.mark.parametrize(
    "in_bag",
    [None, np.random.default_rng(0).integers(0, 3, (40, 442))],
    ids=["drawn", "given"],
)
def test_a_warm_start_grows_what_an_interrupt_has_left_out(in_bag):
    """Of given rows only trees before the first gap are kept. One thread begins with the first 10
    trees, so after 31 there is one of these, whatever the other has done."""
    X, y = load_diabetes(return_X_y=True)
    whole = RandomForestRegressor(40, random_state=0).fit(X, y, in_bag=in_bag)
    forest = RandomForestRegressor(
        40, random_state=0, n_jobs=2, callback=Interrupt(31), warm_start=True
    )
    with (
        pytest.warns(UserWarning, match="trees are finished"),
        pytest.raises(KeyboardInterrupt),
    ):
        forest.fit(X, y, in_bag=in_bag)
    assert 0 < len(forest.estimators_) < 40
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        assert tree.tree_.weighted_n_node_samples[0] == len(drawn)
    forest.set_params(callback=None).fit(X, y, in_bag=in_bag)
    seeds = [tree.random_state for tree in forest.estimators_]
    assert sorted(seeds) == sorted(tree.random_state for tree in whole.estimators_)
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        assert tree.tree_.weighted_n_node_samples[0] == len(drawn)
    np.testing.assert_allclose(forest.predict(X), whole.predict(X))


def test_an_interrupt_before_the_first_tree_leaves_the_forest_as_it_was(monkeypatch):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    before = forest.predict_proba(X)

    def interrupt(i):
        raise KeyboardInterrupt

    monkeypatch.setattr(growth, "_weights_of_trees", lambda *args: interrupt)
    with pytest.raises(KeyboardInterrupt):
        forest.fit(X, y)
    np.testing.assert_array_equal(forest.predict_proba(X), before)


class Counted(RandomForestClassifier):
    """A forest that counts its fits."""

    fits = count(1)
    n_fits = 0

    def fit(self, X, y):
        Counted.n_fits = next(Counted.fits)
        return super().fit(X, y)


@pytest.mark.parametrize("action", ["default", "error"])
def test_an_interrupt_ends_a_search(action):
    """Also where the warning is an error: a search takes any other error for a bad score."""
    X, y = load_iris(return_X_y=True)
    Counted.fits, n_trees = count(1), count(1)

    def interrupt(progress):
        if next(n_trees) == 14:  # of the third fit
            os.kill(os.getpid(), signal.SIGINT)

    forest = Counted(6, random_state=0, callback=interrupt)
    search = GridSearchCV(forest, {"max_depth": [1, 2, 3]}, cv=3, error_score=0.0)
    with warnings.catch_warnings(record=action == "default") as caught:
        warnings.simplefilter(action)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, y)
    assert Counted.n_fits == 3
    assert action == "error" or "trees are finished" in str(caught[0].message)


def test_what_goes_wrong_after_an_interrupt_does_not_hide_it():
    """One tree has no say on many rows: the fit fails, but what ends it is the interrupt."""

    def interrupt(progress):
        raise KeyboardInterrupt

    def fail(*args):
        raise ValueError

    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0, callback=interrupt, oob_score=fail)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(KeyboardInterrupt):
            forest.fit(X, y)
    assert not hasattr(forest, "estimators_")


@pytest.mark.parametrize("in_bag", [None, np.ones((60, 150), int)], ids=["drawn", "given"])
@pytest.mark.parametrize(("n_jobs", "backend"), [(1, None), (2, None), (2, "loky")])
def test_a_callback_that_returns_False_ends_growth(n_jobs, backend, in_bag, monkeypatch):
    """Without any exception or warning; the trees are the first of the whole forest."""
    monkeypatch.setattr(thread_pool, "_WORK_PER_THREAD", 1)
    X, y = load_iris(return_X_y=True)
    seen = []

    def stop(progress):
        seen.append(progress)
        return progress.n_done < 5

    whole = RandomForestClassifier(60, random_state=0).fit(X, y, in_bag=in_bag)
    forest = RandomForestClassifier(
        60, random_state=0, n_jobs=n_jobs, callback=stop, warm_start=True
    )
    with warnings.catch_warnings(), parallel_config(backend or "threading", n_jobs=n_jobs):
        warnings.simplefilter("error")
        forest.fit(X, y, in_bag=in_bag)
    n = len(forest.estimators_)
    assert len(seen) == 5
    assert n == 5 if n_jobs == 1 else 5 <= n < 60
    forest.set_params(callback=None).fit(X, y, in_bag=in_bag)
    for a, b in zip(forest.estimators_, whole.estimators_, strict=True):
        assert a.random_state == b.random_state
        np.testing.assert_array_equal(a.tree_.threshold, b.tree_.threshold)


def test_numpys_False_is_False():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(9, callback=lambda progress: np.less(progress.n_done, 4))
    assert len(forest.fit(X, y).estimators_) == 4


def test_other_work_is_ended_by_an_interrupt():
    """A drop-column study has no use for half of its forests."""
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(300, random_state=0).fit(X, y)
    drop_column(forest, X, y)  # numba makes an error of its own of Ctrl-C while it compiles
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def study_on():
        timer.start()
        while True:
            drop_column(forest, X, y)

    with pytest.raises(KeyboardInterrupt):
        study_on()
