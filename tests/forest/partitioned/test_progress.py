"""Progress and Ctrl-C of forests of partitions: groups of trees are told, and kept."""

import signal
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from forest import RandomForestClassifier
from forest.partitioned import fit as fit_module
from forest.partitioned.dask import fit
from forest.partitioned.growth import Size
from forest.partitioned.pace import Pace
from tests.forest.partitioned.same import assert_same_forest

random = np.random.RandomState(0)
X, y = random.randn(400, 4), random.randint(2, size=400)
PARTS = np.split(X, [150, 300]), np.split(y, [150, 300])
PARAMS = {"n_estimators": 5, "max_bins": 255, "feature_draw": "keyed", "random_state": 0}
SIZE = Size(rows_at_once=150, small_rows=50, trees_at_once=2)


def interrupted(function, *args, **named):
    """The words of the warning, and the KeyboardInterrupt, which has to be raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt) as error:
            function(*args, **named)
    words = " ".join(str(w.message) for w in caught if "Interrupted" in str(w.message))
    return words, error


def first_trees(forest, n, *table):
    """The local forest, with its first trees alone."""
    whole = clone(forest).fit(*table)
    whole.estimators_ = whole.estimators_[:n]
    return whole


class Teller:
    """Hears of trees, and ends growth at one."""

    def __init__(self, end=None):
        self.heard = []
        self.end = end

    def hear(self, progress):
        self.heard.append((progress.n_done, progress.n_total))
        return progress.n_done != self.end


@pytest.fixture(params=["threads", "one thread", "files"])
def table(request, tmp_path):
    """A table, and how many threads work on it."""
    if request.param == "files":
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        return (tmp_path / "X.npy", tmp_path / "y.npy"), 2
    return PARTS, 1 if request.param == "one thread" else 2


def test_the_callback_hears_of_every_tree(table, capsys, monkeypatch):
    monkeypatch.setattr("cart.primitives.progress._open_bar", lambda *args: None)  # tqdm's
    tables, n_jobs = table
    teller = Teller()
    forest = RandomForestClassifier(**PARAMS, n_jobs=n_jobs, verbose=1, callback=teller.hear)
    model = fit(forest, *tables, size=SIZE)
    assert teller.heard == [(n, 5) for n in range(1, 6)]
    assert "5 of 5 trees" in capsys.readouterr().err
    assert_same_forest(model, first_trees(forest, 5, X, y))


def test_the_callback_ends_growth(table):
    """With the trees of the groups that are done."""
    tables, n_jobs = table
    teller = Teller(end=3)
    forest = RandomForestClassifier(**PARAMS, n_jobs=n_jobs, callback=teller.hear)
    model = fit(forest, *tables, size=SIZE)
    assert [n for n, _ in teller.heard] == [1, 2, 3]
    assert_same_forest(model, first_trees(RandomForestClassifier(**PARAMS), 4, X, y))
    assert model.out_of_bag(X, y).loss > 0.0  # it is a whole forest


def interrupt_group(number, monkeypatch):
    """Ctrl-C in the middle of a group of trees, the first is 1."""
    groups = []
    grow_together = fit_module.grow_together

    def grow_and_interrupt(data, *args):
        groups.append(1)
        if len(groups) == number:
            reduce = data.engine.reduce

            def interrupt(*args, **common):
                signal.raise_signal(signal.SIGINT)
                return reduce(*args, **common)

            monkeypatch.setattr(data.engine, "reduce", interrupt)
        try:
            return grow_together(data, *args)
        finally:
            if len(groups) == number:
                monkeypatch.setattr(data.engine, "reduce", reduce)

    monkeypatch.setattr(fit_module, "grow_together", grow_and_interrupt)


@pytest.mark.parametrize("oob_score", [False, True])
def test_an_interrupt_keeps_finished_trees(table, oob_score, monkeypatch):
    tables, n_jobs = table
    forest = RandomForestClassifier(**PARAMS, n_jobs=n_jobs, oob_score=oob_score)
    before, n_threads = forest.get_params(), threading.active_count()
    interrupt_group(3, monkeypatch)
    words, _ = interrupted(fit, forest, *tables, size=SIZE)
    assert "4 of 5 trees are finished and kept in the forest that was passed" in words
    assert forest.get_params() == before
    assert threading.active_count() == n_threads
    expected = first_trees(RandomForestClassifier(**PARAMS), 4, X, y)
    assert_same_forest(forest, expected)
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(X))
    assert not hasattr(forest, "oob_score_")  # which would ask workers that may be gone as well
    assert ("its out-of-bag score is not known" in words) == oob_score
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_of_the_first_trees_keeps_nothing(table, monkeypatch):
    tables, n_jobs = table
    forest = RandomForestClassifier(**PARAMS, n_jobs=n_jobs)
    interrupt_group(1, monkeypatch)
    assert interrupted(fit, forest, *tables, size=SIZE)[0] == ""
    assert not hasattr(forest, "estimators_")
    forest.fit(X[:50], y[:50])
    kept = forest.estimators_
    interrupt_group(1, monkeypatch)
    interrupted(fit, forest, *tables, size=SIZE)
    assert forest.estimators_ is kept  # the fit before


def test_an_interrupt_of_scoring_keeps_the_trees(monkeypatch):
    forest = RandomForestClassifier(**PARAMS, oob_score=True)
    monkeypatch.setattr(fit_module, "judge", lambda *args: signal.raise_signal(signal.SIGINT))
    words, _ = interrupted(fit, forest, *PARTS, size=SIZE)
    assert "its out-of-bag score is not known" in words
    assert not hasattr(forest, "oob_score_")
    assert_same_forest(forest, first_trees(RandomForestClassifier(**PARAMS), 5, X, y))


def test_an_interrupt_between_two_groups():
    """While the callback is told: held back until what is told is whole."""
    forest = RandomForestClassifier(
        **PARAMS, callback=lambda progress: progress.n_done != 2 or signal.raise_signal(2)
    )
    assert "2 of 5 trees" in interrupted(fit, forest, *PARTS, size=SIZE)[0]
    assert len(forest.estimators_) == 2


def test_groups_take_ten_seconds():
    pace = Pace(1 << 19, 100)
    assert pace.next(50) == 4  # the first follows from the rows
    pace.note(4, 2.0)
    assert pace.next(46) == 16  # not 20: at most four times as many
    assert pace.next(20) == 10  # two groups are alike
    pace.note(16, 8.0)
    assert pace.next(160) == 16  # it is as fast by the tree, and long enough
    assert Pace(1 << 30, 100).next(5) == Pace(1, 0).next(5) == 1
    given = Pace(1 << 19, 100, 7)
    given.note(7, 0.1)
    assert given.next(14) == 7


def test_groups_are_longer_where_trees_together_are_faster():
    """Where most of the time is spent on the way to the workers and back."""
    pace, sizes = Pace(1 << 21, 100), []
    for _ in range(6):
        sizes.append(pace.next(1000))
        pace.note(sizes[-1], 36.0 + 0.5 * sizes[-1])
    assert sizes == [1, 2, 4, 8, 16, 32]
    for _ in range(6):
        sizes.append(pace.next(1000))
        pace.note(sizes[-1], 36.0 + 0.5 * sizes[-1])
    assert max(sizes) == 100  # as many as memory allows
    slow = Pace(1 << 21, 100)
    slow.note(1, 30.0)
    slow.note(2, 60.0)
    assert slow.next(1000) == 2
