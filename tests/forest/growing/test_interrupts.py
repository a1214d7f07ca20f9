"""Ctrl-C at awkward moments: what was finished is kept whole, and no thread outlives it."""

import os
import signal
import threading
import time
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.datasets import load_iris

from benchmarks.faults.interrupts import is_usable
from cart.jit.interrupts import HeldInterrupts, uninterrupted
from cart.primitives.threads import in_parts, in_threads
from forest import BaggingClassifier, RandomForestClassifier
from forest.growing import thread_pool
from forest.growing.workers import go_on, results_of
from forest.voting import mixin


def send_interrupt(*args):
    os.kill(os.getpid(), signal.SIGINT)


def interrupted_fit(model, X, y):
    """The words of the warning; the fit has to raise KeyboardInterrupt."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    return [str(w.message) for w in caught if "Interrupted" in str(w.message)]


def test_held_interrupts_are_handled_at_the_end():
    done = []

    def hold():
        with HeldInterrupts() as interrupts:
            send_interrupt()
            done.append(interrupts.came)

    with pytest.raises(KeyboardInterrupt):
        hold()
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_not_to_be_interrupted_returns_first():
    done = []

    @uninterrupted
    def work():
        send_interrupt()
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]


def test_other_threads_hold_nothing():
    """They may not set handlers, and no signal comes to them."""
    failed = []

    def hold():
        try:
            with HeldInterrupts():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert failed == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_while_thresholds_are_written_loses_no_tree(n_jobs, monkeypatch):
    """Written half, cuts would be taken for thresholds."""
    X, y = load_iris(return_X_y=True)
    whole = RandomForestClassifier(8, random_state=0).fit(X, y)
    write = thread_pool.fill_thresholds

    def interrupt_and_write(*args):
        send_interrupt()
        write(*args)

    monkeypatch.setattr(thread_pool, "fill_thresholds", interrupt_and_write)
    monkeypatch.setattr(thread_pool, "_WORK_PER_THREAD", 1)
    forest = RandomForestClassifier(8, random_state=0, n_jobs=n_jobs)
    assert interrupted_fit(forest, X, y) == [
        "Interrupted: the fit was finished, so nothing is missing."
    ]
    np.testing.assert_array_equal(forest.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(30), BaggingClassifier(n_estimators=30)],
    ids=["forest", "bagging"],
)
def test_an_interrupt_of_scoring_keeps_the_trees(model, monkeypatch):
    X, y = load_iris(return_X_y=True)
    model.set_params(random_state=0, warm_start=True)
    whole = model.fit(X, y).predict_proba(X)
    with monkeypatch.context() as patch:
        patch.setattr(mixin, "score_out_of_bag", lambda *args, **named: send_interrupt())
        (words,) = interrupted_fit(model.set_params(oob_score=True), X, y)
    assert "are not known, so there is no score" in words
    np.testing.assert_array_equal(model.predict_proba(X), whole)
    assert not hasattr(model, "oob_score_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no estimator is new
        assert model.fit(X, y).oob_score_ > 0.8


def test_an_old_score_does_not_outlive_an_interrupt_of_the_new_one():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(30, random_state=0, oob_score=True).fit(X, y)
    interrupted_fit(model.set_params(oob_score=send_interrupt), X[:, :2], y)
    assert model.predict(X[:, :2]).shape == y.shape
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_decision_function_")


class Stopped(Exception):
    """What a handler of the user's own raises."""


@pytest.mark.parametrize("is_raised", [False, True])
@pytest.mark.parametrize("place", ["fill_thresholds", "score_out_of_bag"])
def test_a_signal_that_was_held_goes_to_the_handler_of_the_user(place, is_raised, monkeypatch):
    """It may return, as servers' do that stop at the next opportunity."""
    X, y = load_iris(return_X_y=True)
    module, heard = thread_pool if place == "fill_thresholds" else mixin, []
    work = getattr(module, place)

    def handle(number, frame):
        heard.append(number)
        if is_raised:
            raise Stopped

    def interrupt_and_work(*args, **named):
        send_interrupt()
        return work(*args, **named)

    monkeypatch.setattr(module, place, interrupt_and_work)
    forest = RandomForestClassifier(30, random_state=0, oob_score=True)
    before = signal.signal(signal.SIGINT, handle)
    try:
        with pytest.raises(Stopped) if is_raised else nullcontext():
            forest.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    assert is_raised or forest.oob_score_ > 0.8


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_thread_outlives_an_interrupt_of_growth(n_jobs, monkeypatch):
    monkeypatch.setattr(thread_pool, "_WORK_PER_THREAD", 1)
    monkeypatch.setattr(thread_pool, "_MANY_ROWS", 1)
    X, y = load_iris(return_X_y=True)

    def interrupt(progress):
        if progress.n_done == 3:
            send_interrupt()
        time.sleep(0.05)

    before = set(threading.enumerate())
    forest = RandomForestClassifier(300, random_state=0, n_jobs=n_jobs, callback=interrupt)
    (words,) = interrupted_fit(forest, X, y)
    assert set(threading.enumerate()) <= before
    assert f"Interrupted: {len(forest)} of 300 trees are finished" in words


def interrupt_after(n_trees):
    """A callback that interrupts growth once so many trees are finished."""
    return lambda progress: send_interrupt() if progress.n_done == n_trees else None


def test_after_the_last_tree_nothing_is_missing():
    X, y = load_iris(return_X_y=True)
    last = interrupt_after(30)
    forest = RandomForestClassifier(30, random_state=0, oob_score=True, callback=last)
    (words,) = interrupted_fit(forest, X, y)
    assert words == "Interrupted: the fit was finished, so nothing is missing."
    assert forest.oob_score_ > 0.8


def test_the_benchmark_of_interrupts_understands_the_warning():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(30, random_state=0, callback=interrupt_after(3))
    words = interrupted_fit(forest, X, y)
    assert len(forest) < 30
    assert is_usable(forest, X, words, n_before=0)
    assert not is_usable(forest, X, [], n_before=0)


def test_no_task_outlives_the_block_of_its_results():
    """Also where a result is not taken; long tasks end where they ask whether to go on."""
    running, ended = [], []

    def work(i):
        running.append(i)
        try:
            for _ in range(1000):
                time.sleep(0.01)
                if i > 0:
                    go_on()
                else:
                    return i
        finally:
            ended.append(i)

    with results_of(((work, i) for i in range(6)), n_jobs=2) as results:
        assert next(iter(results)) == 0
    assert sorted(ended) == sorted(running)
    assert len(running) < 6


def test_tasks_are_interrupted():
    began = time.perf_counter()

    def work(i):
        if i == 2:
            send_interrupt()
        for _ in range(200):
            time.sleep(0.01)
            go_on()

    with pytest.raises(KeyboardInterrupt), results_of(((work, i) for i in range(8)), 2) as results:
        list(results)
    assert time.perf_counter() - began < 6.0  # two tasks, not eight


def test_no_thread_outlives_an_interrupt():
    """Of joblib's pools, whenever it comes: also while they are made, and while they end."""
    rng = np.random.default_rng(0)
    before = set(threading.enumerate())

    def work():
        with results_of(((time.sleep, 0.001) for _ in range(8)), n_jobs=2) as results:
            return list(results)

    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    n_interrupts = 0
    for _ in range(60):
        timer = threading.Timer(rng.uniform(0.0, seconds), send_interrupt)
        try:
            timer.start()
            work()
            timer.join()
        except KeyboardInterrupt:
            n_interrupts += 1
            timer.join()
    patience = time.perf_counter() + 5.0
    while set(threading.enumerate()) - before and time.perf_counter() < patience:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before
    assert n_interrupts >= 50  # Python swallows one that comes at the end of an object


def test_parts_are_not_begun_after_an_interrupt():
    seen = []

    def work(first, end):
        seen.append(first)
        if len(seen) == 3:
            send_interrupt()
        time.sleep(0.02)

    for n_jobs in (1, 2):
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            in_parts(work, 100, n_jobs, max_part=1)
        n_seen = len(seen)
        assert n_seen < 20
        time.sleep(0.1)
        assert len(seen) == n_seen


@pytest.mark.parametrize("n_started", [0, 1])
def test_fewer_threads_do_the_work(n_started, monkeypatch):
    """Where the system starts no more: "can't start new thread"."""
    start, started = threading.Thread.start, []

    def refuse(thread):
        if len(started) == n_started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    found = np.zeros(100)

    def work(first, end):
        found[first:end] += 1.0

    in_parts(work, 100, 4, max_part=7)
    assert np.all(found == 1.0)
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(thread_pool, "_WORK_PER_THREAD", 1)
    started.clear()
    forest = RandomForestClassifier(9, random_state=0, n_jobs=3).fit(X, y)
    assert len(forest) == 9
    assert len(started) == n_started


@pytest.mark.parametrize("room", [1, 99])
def test_work_is_called_once_in_each_thread(room, monkeypatch):
    """Also where there is room for the next thread whenever that is asked, but not for many."""
    monkeypatch.setattr("cart.primitives.threads.has_room_for", lambda n: n <= room)
    callers = []
    in_threads(lambda: callers.append(threading.current_thread()), 3, pytest.fail)
    assert len({*callers} - {threading.main_thread()}) == len(callers) == 3


def test_what_a_thread_raises_is_raised_and_stops_the_others():
    stopped = []

    def work():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_threads(work, 2, lambda: stopped.append(1))
    assert stopped
