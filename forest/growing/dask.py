"""Forests whose trees are each grown on one partition of a table: fast, but less accurate."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state

from cart.primitives.user_warning import warn_user
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.tree.tree import Tree
from forest.sampling.bootstrap import Bootstrap, PartitionedBootstrap, bootstrap_of, round_to_sum


def fit_partitions(forest: BaseEstimator, X: Any, y: Any) -> BaseEstimator:
    """Fit each tree on one partition, which loses accuracy; `forest.dask.fit` loses nothing.

    The loss depends on the number of partitions and the order of the rows: with eight partitions of
    100,000 x 20 rows it is 0.017 of accuracy, with eight of California's 20,640 rows 0.045 of R2
    (`python -m benchmarks forest`). The rows should be in random order. Each worker grows trees on
    its partitions, in number proportional to their rows; no row leaves its worker. All these trees
    are the forest, in which the rows of the other partitions are out of bag for a tree. The result
    is an ordinary forest: `X.map_blocks(model.predict, drop_axis=1)` predicts a Dask array.

    Parameters
    ----------
    forest : estimator of `forest`
        Unfitted, for one output, with a number of trees, voting="soft" or "majority",
        oob_score=False, no categorical features, priors or loss. It is not changed.
    X : dask.array.Array of shape (n_samples, n_features), or dask.dataframe.DataFrame
        Its rows may be in chunks, but its columns may not.
    y : dask.array.Array or dask.dataframe.Series of shape (n_samples,)
        Partitioned as X. Both are computed twice: `persist` them if they are costly to make.

    Returns
    -------
    estimator
        A fitted clone of `forest`.

    Raises
    ------
    TypeError, ValueError
        Before any tree is grown: if the tables are not Dask's, are partitioned differently or have
        no rows, if their columns differ in name or order, if y has several outputs, or if the
        forest's parameters need all rows in one place.

    Warns
    -----
    UserWarning
        If a partition has one class only, which its trees then predict for every row.
    """
    import dask

    require_forest(forest)
    forest._validate_params()
    _refuse_impossible(forest)
    X_parts, y_parts = partitions_of(X, "X"), partitions_of(y, "y")
    if len(X_parts) != len(y_parts):
        raise ValueError(
            f"X has {len(X_parts)} partitions, but y has {len(y_parts)}; rechunk them alike."
        )
    pairs = list(zip(X_parts, y_parts, strict=True))
    look = dask.delayed(_look)
    looks = dask.compute(*(look(a, b, is_classifier(forest)) for a, b in pairs))
    sizes, columns, labels = zip(*looks, strict=True)
    _refuse_differences(sizes, columns, labels)
    n_rows = np.array(sizes)
    shares = round_to_sum(forest.n_estimators * n_rows / n_rows.sum(), forest.n_estimators)
    seeds = check_random_state(forest.random_state).randint(DRAW_SEED_MAX, size=len(n_rows))
    grow = dask.delayed(_grow_part)
    grown = [
        # A partition without trees draws nothing, but its rows belong to the table.
        grow(clone(forest).set_params(n_estimators=int(n), random_state=int(seed), n_jobs=1), a, b)
        if n > 0
        else None
        for n, seed, (a, b) in zip(shares, seeds, pairs, strict=True)
    ]
    return _join(clone(forest), dask.compute(*grown), n_rows, labels)


def require_forest(forest: Any) -> None:
    """Raise a TypeError unless this is a forest of ours, by parameters that only ours have."""
    if not (hasattr(forest, "voting") and hasattr(forest, "feature_draw")):
        name = forest.__name__ if isinstance(forest, type) else type(forest).__name__
        raise TypeError(
            f"Partitions can be fitted by a forest of Cartwood, but got {name}; pass a "
            "cartwood.RandomForestClassifier() or RandomForestRegressor()."
        )


def _refuse_impossible(forest):
    wanted = {
        'n_estimators="auto"': forest.n_estimators == "auto",
        "oob_score": forest.oob_score,
        f"voting={forest.voting!r}": forest.voting not in ("soft", "majority"),
        "categorical_features": forest.categorical_features is not None,
        "warm_start": forest.warm_start,
        "class_weight": isinstance(forest.class_weight, str),
        "priors": forest.priors is not None,
        "loss": forest.loss is not None,
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            raise ValueError(
                f"{name} needs all rows in one place, but partitions are fitted where they are; "
                "leave it out, or fit the whole table with joblib's Dask backend."
            )


def partitions_of(table: Any, name: str) -> list:
    """The partitions of a Dask table, as delayed objects.

    Raises
    ------
    TypeError, ValueError
        If it is not a table of Dask, or its columns are in several chunks.
    """
    if hasattr(table, "to_delayed") and hasattr(table, "npartitions"):
        parts = np.asarray(table.to_delayed(), dtype=object)
        if parts.ndim == 2 and parts.shape[1] > 1:
            raise ValueError(
                f"The columns of {name} are split into {parts.shape[1]} chunks; rechunk it so "
                "that every chunk has all columns: X.rechunk({1: -1})."
            )
        return list(parts.ravel())
    raise TypeError(f"{name} must be a Dask array or dataframe, got {type(table).__name__}.")


def _look(X, y, has_classes):
    """Number of rows, names or numbers of columns, and distinct labels (or None) of a partition."""
    if len(X) != len(y):
        raise ValueError(f"A partition of X has {len(X)} rows, but that of y has {len(y)}.")
    if hasattr(X, "index") and hasattr(y, "index") and not X.index.equals(y.index):
        raise ValueError(
            "A partition of y has another index than that of X, so rows and targets do not "
            "match. Align them, or pass both as arrays."
        )
    if np.ndim(y) == 2 and np.shape(y)[1] != 1:
        raise ValueError(
            f"y has {np.shape(y)[1]} outputs, but forests of partitions support one; fit a "
            "forest per output."
        )
    columns = tuple(getattr(X, "columns", range(np.shape(X)[1])))
    return len(X), columns, np.unique(np.ravel(y)) if has_classes else None


def _refuse_differences(sizes, columns, labels):
    """Raise an error if partitions do not form one table; warn about those with a single class."""
    for number, (n_rows, names) in enumerate(zip(sizes, columns, strict=True)):
        if n_rows == 0:
            raise ValueError(f"Partition {number} has no rows; drop it, for example by rechunking.")
        if names != columns[0]:
            raise ValueError(
                f"The columns of partition {number} are {list(names)}, but those of partition 0 "
                f"are {list(columns[0])}; all partitions need the same columns in the same order."
            )
    if labels[0] is None:
        return
    one = [number for number, mine in enumerate(labels) if len(mine) == 1]
    if one and len(np.unique(np.concatenate(labels))) > 1:
        warn_user(
            f"Partitions {one} have rows of one class only, so their trees predict that class "
            "for every row; shuffle the rows, or use forest.dask.fit, which grows each tree on "
            "all partitions."
        )


def _grow_part(forest, X, y):
    return forest.fit(X, np.asarray(y))


def _join(forest, parts, n_rows, labels):
    """Join the forests of the partitions, None for one without trees, into one forest."""
    grown = [part for part in parts if part is not None]
    first = grown[0]
    for name in ("n_features_in_", "n_outputs_", "feature_names_in_"):
        if hasattr(first, name):
            setattr(forest, name, getattr(first, name))
    forest.n_merged_values_ = np.max([part.n_merged_values_ for part in grown], axis=0)
    classes = None
    if labels[0] is not None:
        forest.classes_ = classes = np.unique(np.concatenate(labels))
        forest.n_classes_ = len(classes)
    forest.estimators_ = [
        _widen(tree, part.classes_, classes) if classes is not None else tree
        for part in grown
        for tree in part.estimators_
    ]
    forest._bootstrap = PartitionedBootstrap(
        [
            Bootstrap.plain(int(n), None) if part is None else bootstrap_of(part)
            for part, n in zip(parts, n_rows, strict=True)
        ]
    )
    forest._n_samples = int(n_rows.sum())
    forest._row_weight = None
    return forest


def _widen(estimator, known, classes):
    """Make a tree that was grown on some of the classes one of all classes."""
    if len(known) < len(classes):
        nodes = estimator.tree_.nodes
        value = np.zeros((*nodes.value.shape[:2], len(classes)))
        value[:, :, np.searchsorted(classes, known)] = nodes.value
        nodes, alternatives = nodes._replace(value=value), estimator.tree_.alternatives
        estimator.tree_ = Tree(nodes, estimator.tree_.n_features, **alternatives)
    estimator.classes_ = np.arange(len(classes), dtype=np.float64)
    estimator.n_classes_ = len(classes)
    return estimator
