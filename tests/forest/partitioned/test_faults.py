"""What goes wrong on a cluster leaves the same forest, or an end in words; on real processes."""

import os
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from forest import RandomForestClassifier, RandomForestRegressor
from forest.partitioned.dask import fit
from forest.partitioned.fit import fit_together
from forest.partitioned.growth import Size
from tests.forest.partitioned.same import assert_same_forest

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

from forest.partitioned.dask_engine import DaskEngine  # noqa: E402
from tests.forest.partitioned.test_cluster import (  # noqa: E402
    KEYED,
    chunked,
    make_table,
    start_cluster,
)
from tests.forest.partitioned.test_progress import interrupted  # noqa: E402

SIZE = Size(small_rows=500)


@pytest.fixture(scope="module")
def cluster_and_client():
    with start_cluster(2) as both:
        yield both


def at_first(monkeypatch, **actions):
    """Call `actions[name]()` when the first task of that function is submitted."""
    submit = DaskEngine._submit

    def submit_after_action(self, function, *arguments, **where):
        actions.pop(function.__name__, lambda: None)()
        return submit(self, function, *arguments, **where)

    monkeypatch.setattr(DaskEngine, "_submit", submit_after_action)
    return actions


def codes_sent(dask_worker):
    """Bytes of codes that a worker has sent, to the others and to the client."""
    return sum(
        n_bytes
        for message in dask_worker.transfer_outgoing_log
        for key, n_bytes in message["keys"].items()
        if str(key).startswith(("_code", "_encode", "_all_of", "gather"))
    )


def test_codes_are_sent_once(cluster_and_client):
    """Not for every tree: to the other of two workers, together no more than twice."""
    _, client = cluster_and_client
    X, y = make_table(2)
    forest = RandomForestClassifier(**{**KEYED, "n_estimators": 20})
    before = sum(client.run(codes_sent).values())
    model = fit(forest, *chunked(X, y, (2000, 2000)), client=client, size=SIZE)
    sent = sum(client.run(codes_sent).values()) - before
    assert_same_forest(model, forest.fit(X, y))
    n_bytes = X.size + 2 * len(y)
    assert n_bytes / 4 <= sent <= 2.5 * n_bytes  # one partition may be where the other is


@pytest.mark.parametrize("phase", ["count_up_to", "grow_below_held"])
def test_a_worker_killed_in_a_phase(cluster_and_client, monkeypatch, phase):
    """Its partitions are made anew; in every phase: `benchmarks distributed --only faults`."""
    _, client = cluster_and_client
    client.wait_for_workers(2, timeout=60)
    X, y = make_table(3)
    forest = RandomForestClassifier(**KEYED)

    def kill():
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    waiting = at_first(monkeypatch, **{phase: kill})
    model = fit(forest, *chunked(X, y, (1000, 1000, 2000)), client=client, size=SIZE)
    assert not waiting  # it was killed
    assert_same_forest(model, forest.fit(X, y))


def test_a_cluster_that_grows_and_shrinks(cluster_and_client, monkeypatch):
    cluster, client = cluster_and_client
    X, y = make_table(2)
    forest = RandomForestClassifier(**KEYED)

    def grow():
        cluster.scale(3)
        client.wait_for_workers(3, timeout=60)

    waiting = at_first(
        monkeypatch, few_values=grow, divide=lambda: cluster.scale(1), list_rows=lambda: None
    )
    model = fit(forest, *chunked(X, y, (500, 1500, 2000)), client=client, size=SIZE)
    assert not waiting
    assert_same_forest(model, forest.fit(X, y))
    cluster.scale(2)
    client.wait_for_workers(2, timeout=60)


def test_strange_partitions(cluster_and_client):
    """Empty, of one class, with categories of their own, of another type: the same forest. In
    another order of columns: an error that says so."""
    _, client = cluster_and_client
    random = np.random.RandomState(0)
    frame = pd.DataFrame({
        "colour": np.array(["red", "green", "blue"])[random.randint(3, size=400)],
        "size": random.randint(9, size=400).astype(float),
    })  # fmt: skip
    frame.loc[:20, "colour"] = "grey"
    y = (random.rand(400) < 0.2 + 0.6 * (frame["colour"] == "red")).to_numpy().copy()
    y[:50] = True
    cuts = [0, 50, 50, 180, 400]
    parts = [frame[a:b] for a, b in pairwise(cuts)]
    parts[2] = parts[2].astype({"size": np.int32})
    forest = RandomForestClassifier(**KEYED, categorical_features="from_dtype")

    def fit_parts(parts):
        with DaskEngine(client) as engine:
            spread = (engine.spread([dask.delayed(part) for part in of]) for of in (parts, y_parts))
            return fit_together(forest, engine, *spread, 4, Size(small_rows=50))

    y_parts = [y[a:b] for a, b in pairwise(cuts)]
    assert_same_forest(fit_parts(parts), forest.fit(frame, y))
    parts[3] = parts[3][["size", "colour"]]
    with pytest.raises(ValueError, match="are 'colour', 'size', but those of partition 3"):
        fit_parts(parts)


def tasks_left(client, n_expected):
    """How many tasks the scheduler knows, once it has heard of what was let go."""
    for _ in range(100):
        n = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if n == n_expected:
            break
        time.sleep(0.05)
    return n


@pytest.mark.parametrize("has_trees", [False, True], ids=["before trees", "after two trees"])
def test_an_interrupt_on_a_cluster(cluster_and_client, monkeypatch, has_trees):
    """Ctrl-C keeps the trees that were finished, and no task but those of the user's tables; the
    next fit is as ever."""
    _, client = cluster_and_client
    client.wait_for_workers(2, timeout=60)
    X, y = make_table(2)
    told = []
    forest = RandomForestClassifier(**KEYED, callback=told.append)
    tables = dask.persist(*chunked(X, y, (2000, 2000)))
    distributed.wait(tables)
    n_tasks = tasks_left(client, 4)
    size = SIZE._replace(trees_at_once=2)
    submit = DaskEngine._submit

    def submit_or_interrupt(self, function, *arguments, **where):
        if function.__name__ == "divide" and (told or not has_trees):
            monkeypatch.setattr(DaskEngine, "_submit", submit)
            signal.raise_signal(signal.SIGINT)
        return submit(self, function, *arguments, **where)

    monkeypatch.setattr(DaskEngine, "_submit", submit_or_interrupt)
    words, error = interrupted(fit, forest, *tables, client=client, size=size)
    assert error.traceback  # whose frames keep what they had, as those of the last error do
    assert DaskEngine._submit is submit
    assert tasks_left(client, n_tasks) == n_tasks == 4
    local = RandomForestClassifier(**KEYED).fit(X, y)
    if has_trees:
        assert [progress.n_done for progress in told] == [1, 2]
        assert "2 of 4 trees" in words
        np.testing.assert_array_equal(
            forest.predict_proba(X), np.mean([t.predict_proba(X) for t in local.estimators_[:2]], 0)
        )
    else:
        assert words == ""
        assert not hasattr(forest, "estimators_")  # what was passed is left as it was
    told.clear()
    model = fit(forest, *tables, client=client, size=size)
    assert_same_forest(model, local)
    assert [progress.n_done for progress in told] == [1, 2, 3, 4]
    assert tasks_left(client, 4) == 4


def test_an_interrupt_of_threads():
    """Ctrl-C in the middle of a local fit: no thread outlives it."""
    X, y = np.random.RandomState(0).randn(60_000, 8), np.arange(60_000) % 7
    forest = RandomForestRegressor(**{**KEYED, "n_estimators": 30}, n_jobs=2)
    parts = np.array_split(X, 6), np.array_split(y, 6)
    fit(RandomForestRegressor(**KEYED, max_depth=2), *parts)  # kernels
    before = threading.active_count()
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fit(forest, *parts)
    timer.join()
    assert threading.active_count() == before
