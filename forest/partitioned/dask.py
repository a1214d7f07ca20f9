"""`forest.dask`: forests of tables that no machine holds, on Dask, or out of core."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from forest.growing.dask import fit_partitions, partitions_of
from forest.partitioned.engines import Engine, LocalEngine
from forest.partitioned.fit import fit_together, refuse_impossible
from forest.partitioned.growth import DEFAULT_SIZE, Size
from forest.partitioned.table.sources import cut_array, read_path
from forest.partitioned.table.targets import fixed_point

__all__ = ["fit", "fit_partitions", "fixed_point", "predict"]


def fit(
    forest: BaseEstimator, X: Any, y: Any, *, client: Any = None, size: Size = DEFAULT_SIZE,
    local_directory: str | Path | None = None,
) -> BaseEstimator:  # fmt: skip
    """Fit one forest on a table in partitions: bit for bit that of the whole table.

    Trees are those of `forest.fit(X, y)` on one machine, for every way to cut the table, every
    order in which work is done and every number of workers. In regression the targets are rounded
    first, so that sums are exact in every order: the forest is that of
    `forest.fit(X, fixed_point(y))` (see `forest.partitioned.table.targets`).

    Workers keep their partitions as codes, a byte a cell, and read X twice. They add up histograms
    of the rows in open nodes, whose sums choose the cuts; what is below small nodes is grown by one
    worker each. For that all processes get all codes, once, where they are few (`held_bytes`), or
    else those of the nodes' rows.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Unfitted, with `max_bins` and `feature_draw="keyed"`. It is left as it is.
    X : Dask array or dataframe, list of arrays or dataframes, ndarray, or path
        Partitions of rows, in the order of the rows, and all columns in each. An array (which may
        be memory-mapped), a file of `numpy.save` or one in the Parquet format, or a folder of such
        files, is read in pieces.
    y : Dask array or series, list of arrays, ndarray, path, or str
        Partitioned as X. Of a Parquet file the name of a column, which is none of X then.
    client : distributed.Client, optional
        For tables of Dask: the present one unless given. Everything else is worked on by
        `forest.n_jobs` threads of this process.
    size : forest.partitioned.growth.Size, optional
        How much is done at once, which decides on memory and time, not on the forest.
    local_directory : path, optional
        Where the places that work on partitions keep codes, in files that go with the fit; in
        memory unless given.

    Returns
    -------
    estimator
        A fitted clone of `forest`, which is an ordinary forest, and holds no rows.

    Raises
    ------
    TypeError, ValueError
        If the forest asks for what partitions cannot do (weights, warm starts, best first growth,
        constraints), or the partitions do not fit each other: in words, before trees
        are grown.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from forest import RandomForestClassifier
    >>> from forest.dask import fit
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, max_bins=255, feature_draw="keyed", random_state=0)
    >>> model = fit(forest, np.array_split(X, 3), np.array_split(y, 3))
    >>> np.array_equal(model.predict_proba(X), forest.fit(X, y).predict_proba(X))
    True
    """
    refuse_impossible(forest)
    folder = None if local_directory is None else str(local_directory)
    engine, X_parts, y_parts = open_parts(X, y, client, forest.n_jobs, size.rows_at_once)
    return fit_together(
        forest, engine, engine.spread(X_parts), engine.spread(y_parts), len(X_parts), size, folder
    )


def predict(model: BaseEstimator, X: Any, method: str = "predict") -> Any:
    """What a forest predicts for a table of Dask: chunks of it, where the partitions are.

    Parameters
    ----------
    model : fitted estimator
    X : dask.array.Array or dask.dataframe.DataFrame
        Partitions may be empty.
    method : {"predict", "predict_proba", "apply"} or another that takes rows
        Its answer is one array, with a row of each row.

    Returns
    -------
    dask.array.Array
        Not computed yet.
    """
    import dask
    import dask.array as da

    row = getattr(X, "_meta_nonempty", np.zeros((1, model.n_features_in_)))
    example = np.asarray(getattr(model, method)(row))
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
    answer, model = dask.delayed(_answer), dask.delayed(model)
    chunks = [
        da.from_delayed(
            answer(part, model, method, example[:0]), (size, *example.shape[1:]), example.dtype
        )
        for part, size in zip(partitions_of(X, "X"), sizes, strict=True)
    ]
    return da.concatenate(chunks)


def _answer(X, model, method, empty):
    return np.asarray(getattr(model, method)(X)) if len(X) else empty


def open_parts(
    X: Any, y: Any, client: Any, n_jobs: int | None, rows_at_once: int
) -> tuple[Engine, list, list]:
    """Where the partitions of a table are worked on, and these, not read yet; see `fit`."""
    engine: Engine
    if hasattr(X, "dask"):
        from distributed import get_client

        from forest.partitioned.dask_engine import DaskEngine

        X_parts, y_parts = partitions_of(X, "X"), partitions_of(y, "y")
        _refuse_unaligned(X, y)
        engine = DaskEngine(client or get_client())
    else:
        engine = LocalEngine(n_jobs)
        if isinstance(X, (str, Path)):
            X_parts, y_parts = read_path(Path(X), y, rows_at_once)
        elif isinstance(X, (list, tuple)):
            X_parts, y_parts = list(X), list(y)
        else:
            X_parts, y_parts = cut_array(X, rows_at_once), cut_array(y, rows_at_once)
    if len(X_parts) != len(y_parts):
        raise ValueError(
            f"X has {len(X_parts)} partitions and y {len(y_parts)}; rechunk them alike."
        )
    if not X_parts:
        raise ValueError("There are no partitions.")
    return engine, X_parts, y_parts


def _refuse_unaligned(X, y):
    """Refuse chunks of which it is known that they differ, before one is made."""
    rows = [np.array(table.chunks[0], float) for table in (X, y) if hasattr(table, "chunks")]
    if len(rows) == 2 and len(rows[0]) == len(rows[1]):
        differ = np.flatnonzero((rows[0] != rows[1]) & ~np.isnan(rows[0] + rows[1]))
        if len(differ):
            n_X, n_y = (int(n[differ[0]]) for n in rows)
            raise ValueError(
                f"Partition {differ[0]} of X has {n_X} rows, but that of y {n_y}: cut both alike."
            )
