"""`forest.dask`: forests of tables too large for one machine, on Dask or out of core."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from forest.growing.dask import fit_partitions, partitions_of
from forest.partitioned.engines import Engine, LocalEngine
from forest.partitioned.fit import fit_together, refuse_impossible
from forest.partitioned.growth import DEFAULT_SIZE, Size
from forest.partitioned.table.sources import cut_array, read_path
from forest.partitioned.table.targets import fixed_point

__all__ = ["fit", "fit_partitions", "fixed_point", "predict"]


def fit(
    forest: BaseEstimator, X: Any, y: Any, *, sample_weight: Any = None, client: Any = None,
    size: Size = DEFAULT_SIZE, local_directory: str | Path | None = None,
) -> BaseEstimator:  # fmt: skip
    """Fit one forest on a table in partitions: bit for bit the forest of the whole table.

    The trees are those of `forest.fit(X, y)` on one machine, however the table is partitioned, in
    whatever order work is done, and for every number of workers. In regression, targets are first
    rounded so that sums are exact in every order: the forest is that of
    `forest.fit(X, fixed_point(y))` (see `forest.partitioned.table.targets`), if a tree draws as
    many rows as the table has.

    Workers read X twice, and keep their partitions as codes, usually one byte per value. They add
    up histograms of the rows in open nodes; cuts are chosen from the sums over all partitions.
    Subtrees of small nodes are grown by a single worker each. For these, all processes get all
    codes once, if they fit into `Size.held_bytes`, or else only the codes of the nodes' rows.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Unfitted, with `max_bins` and `feature_draw="keyed"`. It is not changed, except after
        Ctrl-C. Its `verbose` and `callback` report trees as in a local fit, but in groups: trees
        are grown together, as many as take about ten seconds.
    X : Dask array or dataframe, list of arrays or dataframes, ndarray, or path
        Partitions of rows, in the order of the rows, each with all columns. An array (which may be
        memory-mapped), a file of `numpy.save` or in the Parquet format, or a folder of such files
        is read in pieces.
    y : Dask array or series, list of arrays, ndarray, path, or str
        Partitioned as X. For Parquet files, the name of a column, which is then not part of X.
    sample_weight : as y, optional
        Non-negative. With a bootstrap, rows are drawn with probabilities proportional to it, as in
        a local fit; with bootstrap=False, they must be whole numbers, and are weights inside the
        trees. All weights are sent to every process, eight bytes per row.
    client : distributed.Client, optional
        Client for tables of Dask; by default the current one. Other tables are processed by
        `forest.n_jobs` threads of this process.
    size : forest.partitioned.growth.Size, optional
        How much is done at once. This affects memory and time, but not the forest.
    local_directory : path, optional
        Folder in which workers keep codes, in files that are removed after the fit; by default
        codes are kept in memory.

    Returns
    -------
    estimator
        A fitted clone of `forest`: an ordinary forest in the calling process, which holds no rows
        and needs no cluster to predict or to be saved. So it needs no `to_local`, which LightGBM's
        Dask estimators have.

    Raises
    ------
    TypeError, ValueError
        Before trees are grown: if the forest needs something that partitions do not support (such
        as warm starts, best first growth or constraints), or if partitions contradict each other.
    KeyboardInterrupt
        On Ctrl-C. If trees were finished by then, `forest` itself is fitted with them and a warning
        says how many; else it is not changed. No task of ours is left on the workers of Dask.

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
    refuse_impossible(forest, sample_weight is not None)
    engine, X_parts, y_parts, *weights = open_parts(
        X, y, client, forest.n_jobs, size.rows_at_once, sample_weight
    )
    with engine:
        return fit_together(
            forest, engine, engine.spread(X_parts), engine.spread(y_parts), len(X_parts), size,
            local_directory, *map(engine.spread, weights),
        )  # fmt: skip


def predict(model: BaseEstimator, X: Any, method: str = "predict") -> Any:
    """Predict for a table of Dask: each partition on the worker that has it.

    Parameters
    ----------
    model : fitted estimator
    X : dask.array.Array or dask.dataframe.DataFrame
        Partitions may be empty.
    method : str, default="predict"
        A method of the model that takes rows, such as "predict_proba" or "apply", and returns one
        array with a row per row of X.

    Returns
    -------
    dask.array.Array
        Not computed yet.

    Raises
    ------
    ValueError
        If the method returns anything else, as "decision_path" does.
    """
    import dask
    import dask.array as da

    check_is_fitted(model)
    parts = partitions_of(X, "X")
    row = getattr(X, "_meta_nonempty", np.zeros((1, model.n_features_in_)))
    example = getattr(model, method)(row)
    if not isinstance(example, np.ndarray) or example.shape[:1] != (len(row),):
        raise ValueError(
            f"method={method!r} of {type(model).__name__} does not return one array with a row "
            "per row of X, so its results do not form a Dask array; use another method."
        )
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
    answer, model = dask.delayed(_answer), dask.delayed(model)
    chunks = [
        da.from_delayed(
            answer(part, model, method, example[:0]), (size, *example.shape[1:]), example.dtype
        )
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(chunks)


def _answer(X, model, method, empty):
    return np.asarray(getattr(model, method)(X)) if len(X) else empty


def open_parts(
    X: Any, y: Any, client: Any, n_jobs: int | None, rows_at_once: int, sample_weight: Any = None
) -> tuple:
    """Make the engine for a table and its partitions, without reading these yet; see `fit`.

    Returns
    -------
    engine : Engine
    X_parts, y_parts[, weight_parts] : list
        The last only if there are weights.
    """
    engine: Engine
    of_rows = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
    if hasattr(X, "dask"):
        from distributed import get_client

        from forest.partitioned.dask_engine import DaskEngine

        parts = [partitions_of(X, "X")]
        for name, column in of_rows.items():
            parts.append(partitions_of(column, name))
            _refuse_unaligned(X, column, name)
        try:
            engine = DaskEngine(client or get_client())
        except ValueError as error:
            raise ValueError(
                "A table of Dask is fitted by the workers of a client, but there is none; create "
                "one, as by distributed.Client(), or pass client=."
            ) from error
    else:
        engine = LocalEngine(n_jobs)
        if isinstance(X, (str, Path)):
            parts = read_path(Path(X), of_rows, rows_at_once)
        elif isinstance(X, (list, tuple)):
            parts = [list(X), *map(list, of_rows.values())]
        else:
            parts = [cut_array(table, rows_at_once) for table in (X, *of_rows.values())]
    for name, column in zip(of_rows, parts[1:], strict=True):
        if len(parts[0]) != len(column):
            raise ValueError(
                f"X has {len(parts[0])} partitions, but {name} has {len(column)}; rechunk them "
                "alike."
            )
    if not parts[0]:
        raise ValueError("There are no partitions.")
    return engine, *parts


def _refuse_unaligned(X, column, name):
    """Raise a ValueError if chunks are known to differ in length, before any is computed."""
    rows = [np.array(table.chunks[0], float) for table in (X, column) if hasattr(table, "chunks")]
    if len(rows) == 2 and len(rows[0]) == len(rows[1]):
        differ = np.flatnonzero((rows[0] != rows[1]) & ~np.isnan(rows[0] + rows[1]))
        if len(differ):
            n_X, n = (int(of_table[differ[0]]) for of_table in rows)
            raise ValueError(
                f"Partition {differ[0]} of X has {n_X} rows, but that of {name} has {n}; cut "
                "both alike."
            )
