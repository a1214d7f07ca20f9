"""Ctrl-C at random moments of growth, out-of-bag scores, predictions and importances."""

import signal
import threading
import warnings
from time import perf_counter, sleep

import numpy as np

from benchmarks.harness import display
from forest import RandomForestClassifier, RandomForestRegressor
from importance import oob_permutation, unbiased_mdi

SEED = 38
N_INTERRUPTS = 100
BAR = 1.0  # seconds from the signal until the caller gets KeyboardInterrupt
IDLE = 0.2  # seconds that threads without a task may take to end
N_ROWS = 20_000


class TooSoon(Exception):
    """The work was done before it could be interrupted."""


class Swallowed(Exception):
    """The interrupt was sent, but the work went on to its end."""


def run(args):
    """Interrupt each kind of work in turn; 1 if any was late, swallowed, or left a broken model.

    An interrupt is swallowed if Python handles it where no exception can propagate, such as in a
    finalizer.
    """
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(N_ROWS, 10)).astype(np.float32)
    signals = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=N_ROWS)
    works = [work for n_jobs in (1, 2) for work in _works(X, signals, n_jobs)]
    seconds = {name: _time(work) for name, _, work in works}
    rows, ends, n_swallowed = {name: [0, 0, 0.0, 0, 0] for name in seconds}, 0, 0
    while ends < (N_INTERRUPTS // 10 if args.quick else N_INTERRUPTS):
        name, model, work = works[ends % len(works)]
        row = rows[name]
        before, n_before = set(threading.enumerate()), len(getattr(model, "estimators_", ()))
        try:
            late, words = _interrupt(work, rng.uniform(0.0, seconds[name]))
        except TooSoon:
            continue
        except Swallowed:
            n_swallowed += 1
            continue
        ends += 1
        left_over = _left_over(before)
        row[0] += 1
        row[1] += late > BAR
        row[2] = max(row[2], late)
        row[3] += len(left_over)
        row[4] += not is_usable(model, X, words, n_before)
    table = [
        [name, str(n), str(late), f"{worst:.2f} s", str(threads), str(broken)]
        for name, (n, late, worst, threads, broken) in rows.items()
    ]
    heads = ["work", "interrupts", f"later than {BAR:.0f} s", "latest", "threads left", "broken"]
    title = f"{ends} interrupts, and {n_swallowed} that Python swallowed"
    display.show(display.Table(title, heads, table))
    is_wrong = any(late or threads or broken for _, late, _, threads, broken in rows.values())
    return int(is_wrong or n_swallowed > 0)


def _works(X, y, n_jobs):
    """Names of the works, their models, and the functions that do them."""
    fitted = RandomForestClassifier(30, random_state=0, n_jobs=n_jobs).fit(X, y > 1.0)
    few = X[:2_000], (y > 1.0)[:2_000]
    small = RandomForestClassifier(30, random_state=0, n_jobs=n_jobs).fit(*few)
    many = np.tile(X, (10, 1))
    for kind, target in ((RandomForestClassifier, y > 1.0), (RandomForestRegressor, y)):
        model = kind(30, random_state=0, n_jobs=n_jobs, oob_score=True)
        name = f"growth and out-of-bag score of a {kind.__name__}, n_jobs={n_jobs}"
        yield name, model, lambda model=model, target=target: model.fit(X, target)
    works = {
        "prediction": lambda: fitted.predict(many),
        "out of bag": lambda: fitted.out_of_bag(X, y > 1.0),
        "oob_permutation": lambda: oob_permutation(small, *few, n_jobs=n_jobs),
        "unbiased_mdi": lambda: unbiased_mdi(small, *few, n_jobs=n_jobs),
    }
    for name, work in works.items():
        yield f"{name}, n_jobs={n_jobs}", fitted, work


def _time(work):
    """Seconds that some work takes, with its kernels compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work()
        start = perf_counter()
        work()
    return perf_counter() - start


def _interrupt(work, delay):
    """Seconds from the signal until KeyboardInterrupt, and the text of the warnings."""
    sent = []

    def send():
        sent.append(perf_counter())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(delay, send)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            timer.start()
            work()
            timer.cancel()
            timer.join()
        raise Swallowed if sent else TooSoon
    except KeyboardInterrupt:
        if not sent:  # sent by the user
            raise
        late = perf_counter() - sent[0]
        timer.join()
        return late, [str(w.message) for w in caught if "Interrupted" in str(w.message)]
    finally:
        signal.signal(signal.SIGINT, before)


def _left_over(before):
    """Threads that are still alive; idle threads of joblib's pools get a moment to end."""
    patience = perf_counter() + IDLE
    while (left := set(threading.enumerate()) - before) and perf_counter() < patience:
        sleep(0.005)
    return left


def is_usable(model, X, words, n_before):
    """Whether a model still works after an interrupt.

    A fitted model must predict. If it has fewer trees than asked for, it must have said so, or be
    as it was before a fit that had not grown any.
    """
    if not hasattr(model, "estimators_"):
        return True  # interrupted before the first tree
    said = model.predict(X[:100])
    n_trees = len(model)
    is_as_it_was = not words and n_trees == n_before
    is_told = any(f" {n_trees} of {model.n_estimators} trees" in word for word in words)
    return len(said) == 100 and (n_trees == model.n_estimators or is_as_it_was or is_told)
