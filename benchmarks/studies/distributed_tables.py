"""Tables and clusters for measuring forests of partitions."""

from contextlib import contextmanager

import numpy as np

N_FEATURES = 20


def make_piece(number, n_rows, n_classes):
    """Rows of one piece of a table; the target is numeric if `n_classes` is 0."""
    random = np.random.RandomState(number)
    X = random.rand(n_rows, N_FEATURES).astype(np.float32)
    signal_ = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    signal_ += 10 * X[:, 3] + 5 * X[:, 4] + random.randn(n_rows)
    if n_classes == 0:
        return X, signal_.astype(np.float64)
    return X, np.clip((signal_ - 5) * n_classes / 20, 0, n_classes - 1).astype(np.uint8)


@contextmanager
def start_cluster(n_workers):
    """Yield the client of a cluster of `n_workers` processes with one thread each."""
    import dask
    from distributed import Client, LocalCluster

    # How long Dask tries to reach a worker that is gone; 30 s by default.
    seconds = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            env=seconds,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def on_dask(X, y, cuts):
    """Dask arrays that are cut before the given rows."""
    import dask.array as da

    sizes = tuple(np.diff([0, *cuts, len(X)]).tolist())
    return da.from_array(X, chunks=(sizes, -1)), da.from_array(y, chunks=(sizes,))
