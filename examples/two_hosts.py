"""One forest on a Dask cluster of two hosts, or of two processes on this machine.

    host 1 $ dask scheduler --port 8786
    host 1 $ dask worker tcp://HOST1:8786 --nthreads 8
    host 2 $ dask worker tcp://HOST1:8786 --nthreads 8
    any    $ python examples/two_hosts.py tcp://HOST1:8786

Without an address it starts two processes here. All hosts need the same versions of Python and of
the packages.
"""

import sys

import numpy as np

from cartwood import RandomForestClassifier

try:
    import dask.array as da
    from distributed import Client
    from forest.dask import fit
except ModuleNotFoundError:
    sys.exit('Dask is not installed; pip install "cartwood[dask]" brings it.')


def main():
    """Fit on chunks that the workers make, and on the same table in one process."""
    X = da.random.default_rng(0).normal(size=(20_000, 8), chunks=(5_000, -1))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    X, y = X.persist(), y.persist()
    forest = RandomForestClassifier(20, max_bins=255, feature_draw="keyed", random_state=0)
    model = fit(forest, X, y)
    local = forest.fit(X.compute(), y.compute())
    some = X[:1000].compute()
    is_same = np.array_equal(model.predict_proba(some), local.predict_proba(some))
    print(f"{len(model)} trees; the forest of the whole table: {is_same}")


if __name__ == "__main__":
    address = sys.argv[1:2]
    with Client(*address) if address else Client(n_workers=2, threads_per_worker=1):
        main()
