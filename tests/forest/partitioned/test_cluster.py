"""One forest of the partitions that processes of Dask have, however many."""

from contextlib import contextmanager

import numpy as np
import pytest

from forest import RandomForestClassifier, RandomForestRegressor, load
from forest.partitioned.dask import fit, predict
from forest.partitioned.growth import Size
from forest.partitioned.table.targets import fixed_point
from importance import mdi, oob_permutation
from importance.permutation import partitions
from tests.forest.partitioned.same import assert_same_forest

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

KEYED = {"n_estimators": 4, "max_bins": 255, "feature_draw": "keyed", "random_state": 0}
SIZE = Size(small_rows=500)


@contextmanager
def start_cluster(n_workers):
    """A cluster of so many processes, and its client."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),  # to one that is gone
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            env={"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client


@pytest.fixture(scope="module")
def growing():
    with start_cluster(1) as cluster_and_client:
        yield cluster_and_client


def make_table(n_classes):
    random = np.random.RandomState(n_classes)
    X = random.randn(4000, 6)
    X[:, 1] = np.round(X[:, 1])
    X[random.rand(*X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + random.randn(4000) > 0) + random.randint(n_classes - 1, size=4000)
    return X, y


def chunked(X, y, sizes):
    return da.from_array(X, chunks=(sizes, -1)), da.from_array(y, chunks=(sizes,))


@pytest.mark.parametrize(
    ("n_workers", "n_classes", "sizes"),
    [(1, 10, (1500, 0, 2500)), (2, 2, (1, 1999, 2000)), (4, 2, (2500, 1500))],
)
def test_any_number_of_workers(growing, n_workers, n_classes, sizes):
    cluster, client = growing
    cluster.scale(n_workers)
    client.wait_for_workers(n_workers, timeout=60)
    X, y = make_table(n_classes)
    forest = RandomForestClassifier(**KEYED)
    assert_same_forest(fit(forest, *chunked(X, y, sizes), size=SIZE), forest.fit(X, y))
    y = np.nan_to_num(X[:, 0]) * 1e3 + y
    forest = RandomForestRegressor(**KEYED, max_depth=5)
    model = fit(forest, *chunked(X, y, sizes), size=SIZE)
    assert_same_forest(model, forest.fit(X, fixed_point(y)))


def test_dataframes(growing):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    pd = pytest.importorskip("pandas")
    X, y = make_table(3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    forest = RandomForestClassifier(**KEYED)
    tables = (dd.from_pandas(table, npartitions=3) for table in (frame, pd.Series(y)))
    model = fit(forest, *tables)
    assert_same_forest(model, forest.fit(frame, y))
    assert list(model.feature_names_in_) == list("abcdef")
    X = dd.from_pandas(frame, npartitions=3)
    np.testing.assert_array_equal(predict(model, X).compute(), model.predict(frame))
    with pytest.raises(TypeError, match="X must be a Dask array or dataframe, got DataFrame"):
        predict(model, frame)


def test_weights(growing):
    """They come to the workers, which draw rows by them."""
    _, client = growing
    X, y = make_table(3)
    weight = np.random.RandomState(0).rand(len(X))
    sizes = (1500, 0, 2500)
    params = {**KEYED, "n_estimators": 20}
    forest = RandomForestClassifier(**params, class_weight="balanced", oob_score=True)
    given = da.from_array(weight, chunks=(sizes,))
    model = fit(forest, *chunked(X, y, sizes), sample_weight=given, client=client, size=SIZE)
    assert_same_forest(model, forest.fit(X, y, weight))
    assert model.oob_score_ == pytest.approx(forest.oob_score_, rel=1e-14)
    given = da.from_array(weight, chunks=((2000, 1, 1999),))
    with pytest.raises(ValueError, match="but that of sample_weight has 2000"):
        fit(forest, *chunked(X, y, sizes), sample_weight=given, client=client)


def test_what_a_forest_of_partitions_does(growing, tmp_path):
    """It is saved and loaded, predicts chunks where they are, and importances come from there."""
    _, client = growing
    X, y = make_table(3)
    tables = chunked(X, y, (1500, 0, 2500))
    forest = RandomForestClassifier(**{**KEYED, "n_estimators": 20}, oob_score=True)
    model, local = fit(forest, *tables, client=client, size=SIZE), forest.fit(X, y)
    assert model.oob_score_ == pytest.approx(local.oob_score_, rel=1e-14)
    model.save(tmp_path / "forest.cart")
    loaded = load(tmp_path / "forest.cart")
    assert_same_forest(loaded, local)
    np.testing.assert_array_equal(predict(loaded, tables[0]).compute(), local.predict(X))
    shares = predict(loaded, tables[0], "predict_proba")
    assert shares.shape == (4000, 3)
    np.testing.assert_array_equal(shares.compute(), local.predict_proba(X))
    np.testing.assert_array_equal(mdi(model).values, mdi(local).values)
    told = []
    found = partitions.oob_permutation(model, *tables, callback=told.append)
    whole = oob_permutation(local, X, y)
    assert [(each.n_done, each.n_total) for each in told] == [(n, 6) for n in range(1, 7)]
    np.testing.assert_allclose(found.values, whole.values, rtol=1e-9)
    np.testing.assert_allclose(found.standard_error, whole.standard_error, rtol=1e-9)
