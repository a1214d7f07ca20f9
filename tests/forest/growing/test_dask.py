"""More than one machine: joblib's Dask backend, and the partitions of Dask tables."""

import os
import signal
import time
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import train_test_split

from forest import BaggingClassifier, RandomForestClassifier, RandomForestRegressor
from forest.growing import dask_tasks, thread_pool
from forest.growing.dask import fit_partitions
from forest.growing.dask_tasks import LostWorkersError
from forest.growing.thread_pool import Job
from forest.growing.workers import results_of
from importance import drop_column, oob_permutation

da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")


def cluster_of(n_workers, processes):
    """Workers of one thread each, on this machine."""
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None
    )


@pytest.fixture(scope="module")
def client():
    """Two worker processes."""
    with (
        cluster_of(2, processes=True) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_fit_over_dask_is_the_local_one(client):
    X, y = load_breast_cancer(return_X_y=True)
    params = {"n_estimators": 20, "random_state": 0, "oob_score": True}
    local = RandomForestClassifier(**params).fit(X, y)
    with parallel_config(backend="dask"):
        spread = RandomForestClassifier(**params).fit(X, y)
    for a, b in zip(local.estimators_, spread.estimators_, strict=True):
        assert a.random_state == b.random_state
        for mine, other in zip(a.tree_.nodes, b.tree_.nodes, strict=True):
            np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(local.predict_proba(X), spread.predict_proba(X))
    np.testing.assert_array_equal(local.oob_decision_function_, spread.oob_decision_function_)


def test_importances_over_dask_are_the_local_ones(client):
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    for measure in (oob_permutation, drop_column):
        local = measure(forest, X, y)
        with parallel_config(backend="dask"):
            spread = measure(forest, X, y)
        np.testing.assert_array_equal(local.values, spread.values)
        np.testing.assert_array_equal(local.per_tree, spread.per_tree)


def test_bagging_over_dask_is_the_local_one(client):
    X, y = load_iris(return_X_y=True)
    local = BaggingClassifier(n_estimators=6, random_state=0).fit(X, y)
    with parallel_config(backend="dask"):
        spread = BaggingClassifier(n_estimators=6, random_state=0).fit(X, y)
        said = spread.predict_proba(X)
    np.testing.assert_array_equal(local.predict_proba(X), said)


def hold_batches(mark):
    """Have this process grow no batch of trees but the first before there is a file."""
    grow = thread_pool._grow_batch

    def hold_and_grow(job, batch):
        while batch[0] > 0 and not mark.exists():
            time.sleep(0.01)
        return grow(job, batch)

    thread_pool._grow_batch = hold_and_grow


def test_a_fit_goes_on_when_a_worker_is_killed(tmp_path):
    """joblib's own backend may wait for ever. Killed when the first tree is here, and others cannot
    be. In a cluster of its own, which may end before Dask has replaced the worker."""
    mark, killed = tmp_path / "killed", []
    X, y = load_breast_cancer(return_X_y=True)
    params = {"n_estimators": 40, "random_state": 0}

    def kill(progress):
        if not killed:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)
            mark.touch()

    with (
        cluster_of(2, processes=True) as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask"),
    ):
        workers = client.run(os.getpid)
        client.run(hold_batches, mark)
        spread = RandomForestClassifier(**params, callback=kill).fit(X, y)
    assert killed
    local = RandomForestClassifier(**params).fit(X, y)
    np.testing.assert_array_equal(spread.predict_proba(X), local.predict_proba(X))


def test_a_fit_whose_workers_are_all_gone_ends(monkeypatch):
    monkeypatch.setattr(dask_tasks, "_PATIENCE", 0.3)
    with (
        cluster_of(1, processes=False) as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask"),
    ):
        with results_of([(time.sleep, 0.2)] * 20, 1) as results:
            next(results)
            cluster.scale(0)
            with pytest.raises(LostWorkersError, match="none has replaced them"):
                list(results)
        with (
            pytest.raises(TimeoutError, match="no worker"),
            parallel_config(backend="dask", client=client, wait_for_workers_timeout=0.3),
        ):
            RandomForestClassifier(4).fit(*load_iris(return_X_y=True))


def test_the_table_is_shipped_once_per_worker(client, monkeypatch):
    """However many trees there are."""
    sent = []
    reduce = Job.__reduce_ex__
    monkeypatch.setattr(
        Job, "__reduce_ex__", lambda job, protocol: (sent.append(1), reduce(job, protocol))[1]
    )
    X, y = load_breast_cancer(return_X_y=True)
    with parallel_config(backend="dask"):
        RandomForestClassifier(60, random_state=0).fit(X, y)
    assert 1 <= len(sent) <= 2


@pytest.mark.parametrize("with_strings", [False, True])
def test_partitions_make_one_forest(client, with_strings):
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["malign", "benign"])[y] if with_strings else y
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    dX, dy = da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=150)
    forest = RandomForestClassifier(31, random_state=0)
    model = fit_partitions(forest, dX, dy)
    assert not hasattr(forest, "estimators_")
    assert len(model.estimators_) == 31
    assert model.score(X_test, y_test) > 0.9
    said = dX.map_blocks(model.predict_proba, chunks=(dX.chunks[0], (2,)), dtype=float)
    np.testing.assert_array_equal(said.compute(), model.predict_proba(X))
    again = fit_partitions(forest, dX, dy)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    first = 0
    for tree, draws in enumerate(model.estimators_samples_):
        first = 150 * (draws[0] // 150)
        assert (draws // 150 == first // 150).all(), tree


def test_each_part_is_the_forest_of_its_rows(client):
    X, y = load_diabetes(return_X_y=True)
    dX, dy = da.from_array(X, chunks=(221, -1)), da.from_array(y, chunks=221)
    model = fit_partitions(RandomForestRegressor(10, random_state=5), dX, dy)
    seeds = np.random.RandomState(5).randint(np.iinfo(np.int32).max, size=2)
    parts = [
        RandomForestRegressor(5, random_state=seed).fit(X[rows], y[rows])
        for seed, rows in zip(seeds, (slice(221), slice(221, None)), strict=True)
    ]
    expected = np.mean([part.predict(X) for part in parts], axis=0)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    # Who saw which row is known: so are the out-of-bag rows of the whole table.
    judged = model.out_of_bag(X, y)
    assert judged.counts.min() >= 5
    assert 0.2 < 1 - judged.loss / y.var() < 0.8
    assert oob_permutation(model, X, y).values.argmax() in (2, 8)


def test_a_partition_that_misses_a_class(client):
    X, y = load_iris(return_X_y=True)  # in the order of the classes
    dX, dy = da.from_array(X, chunks=(75, -1)), da.from_array(y, chunks=75)
    forest = RandomForestClassifier(8, surrogates=2, competitors=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = fit_partitions(forest, dX, dy)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.predict_proba(X).shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    for tree in model.estimators_:
        assert (tree.tree_.value[0, 0] == 0).sum() == 1
        np.testing.assert_array_equal(tree.predict(X), tree.predict_proba(X).argmax(axis=1))
        assert len(tree.tree_.surrogates.of(0)) == 2
        assert len(tree.tree_.competitors.of(0)) == 1


def test_dataframes(client):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    frame, y = load_iris(return_X_y=True, as_frame=True)
    mixed = np.random.RandomState(0).permutation(150)
    frame, y = frame.iloc[mixed].reset_index(drop=True), y.iloc[mixed].reset_index(drop=True)
    model = fit_partitions(
        RandomForestClassifier(8, random_state=0),
        dd.from_pandas(frame, npartitions=3),
        dd.from_pandas(y, npartitions=3),
    )
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.score(frame, y) > 0.9


def test_refusals(client):
    X, y = load_iris(return_X_y=True)
    dX, dy = da.from_array(X, chunks=(75, -1)), da.from_array(y, chunks=75)
    forest = RandomForestClassifier(4)
    with pytest.raises(TypeError, match="X must be a Dask"):
        fit_partitions(forest, X, dy)
    with pytest.raises(ValueError, match="rechunk them alike"):
        fit_partitions(forest, dX, dy.rechunk(30))
    with pytest.raises(ValueError, match="A partition of X has"):
        fit_partitions(forest, dX, dy.rechunk(((70, 80),)))
    with pytest.raises(ValueError, match=r"X.rechunk\(\{1: -1\}\)"):
        fit_partitions(forest, dX.rechunk((75, 2)), dy)
    for params in (
        {"oob_score": True}, {"voting": "stacked"}, {"n_estimators": "auto"},
        {"categorical_features": [0]}, {"class_weight": "balanced"}, {"warm_start": True},
        {"priors": [0.2, 0.3, 0.5]}, {"loss": 1 - np.eye(3)},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="all rows in one place"):
            fit_partitions(RandomForestClassifier(**params), dX, dy)


def test_partitions_of_no_one_table(client):
    """Are refused, in words, before a tree is grown."""
    import dask

    frame, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(4, random_state=0)

    def fit_parts(X_parts, y_parts, forest=forest):
        tables = [_DelayedTable([dask.delayed(part) for part in parts])
                  for parts in (X_parts, y_parts)]  # fmt: skip
        return fit_partitions(forest, *tables)

    halves, y_halves = (frame[::2], frame[1::2]), (y[::2], y[1::2])
    swapped = frame[1::2][frame.columns[::-1]]
    renamed = frame[1::2].rename(columns={frame.columns[0]: "other"})
    for other in (swapped, renamed, halves[1].iloc[:, :3]):
        with pytest.raises(ValueError, match="same columns in the same order"):
            fit_parts((halves[0], other), y_halves)
    with pytest.raises(ValueError, match="another index"):
        fit_parts(halves, (y_halves[1], y_halves[0]))
    with pytest.raises(ValueError, match="has no rows"):
        fit_parts((halves[0], halves[1][:0]), (y_halves[0], y_halves[1][:0]))
    outputs = [np.stack([part, part], axis=1) for part in y_halves]
    with pytest.raises(ValueError, match="2 outputs"):
        fit_parts(halves, outputs)
    for n_estimators in (0, 2.5):
        with pytest.raises(ValueError, match="n_estimators"):
            fit_parts(halves, y_halves, RandomForestClassifier(n_estimators))
    with pytest.warns(UserWarning, match=r"Partitions \[0, 1, 2\] have rows of one class only"):
        fit_parts(*([t[:50], t[50:100], t[100:]] for t in (frame, y)))


class _DelayedTable:
    """Partitions that Dask would not put together."""

    def __init__(self, parts):
        self._parts = parts
        self.npartitions = len(parts)

    def to_delayed(self):
        return self._parts
