"""Read, check and examine the partitions of a table, before any work is wasted on them."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _get_feature_names

from cart.estimators.category_encoder import CategoryEncoder, as_columns, find_categorical
from cart.estimators.target import refuse_missing_target
from cart.estimators.validation import TAKE_TEXT, naming_text, refuse_missing
from cart.table.precision import are_dates, as_plain_table, native_frame
from forest.partitioned.table.quantiles import sort_columns
from forest.partitioned.table.sources import refuse_sparse
from forest.partitioned.table.targets import ends_of


class Kind(NamedTuple):
    """How a forest reads its table."""

    precision: np.dtype  # of X
    has_classes: bool
    categorical_features: Any = None  # the forest's parameter
    encoder: CategoryEncoder | None = None  # for the categories of the whole table
    missing: str = "learned"  # the forest's parameter


class Look(NamedTuple):
    """Facts about a partition, or about several together."""

    names: tuple | None  # of the columns, if all are strings
    n_features: int
    n_rows: tuple  # pairs (number of a partition, its rows)
    labels: np.ndarray | None  # distinct labels, ascending; None in regression
    ends: tuple[float, float]  # lowest and highest target in regression
    is_categorical: tuple | None  # which columns hold categories
    cover: tuple  # for each partition with rows, a few of them that have all its categories
    dates: np.ndarray | None  # which columns hold dates, if any do


class Examined(NamedTuple):
    """The result of examining a partition: facts about it, and its sorted columns."""

    look: Look
    columns: list  # see `forest.partitioned.table.quantiles.sort_columns`


def values_of(X: Any, number: int, kind: Kind) -> tuple[np.ndarray, tuple | None]:
    """The checked values of a partition in the precision of trees, and the names of its columns.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features), or a function that reads it
    number : int
        Number of the partition, for error messages.
    kind : Kind

    Raises
    ------
    TypeError, ValueError
        If X is sparse, if a value is not a number, is infinite in that precision, or missing though
        the forest refuses missing values, or if only some column names are strings.
    """
    X = X() if callable(X) else X
    refuse_sparse(X)
    names = _get_feature_names(X)
    names = None if names is None else tuple(names)
    X = as_plain_table(X)
    if len(X) == 0:
        n_features = np.shape(X)[1] if np.ndim(X) == 2 else 0
        return np.empty((0, n_features), kind.precision), names
    name = f"X, in partition {number},"
    with naming_text(X, kind.categorical_features, TAKE_TEXT):
        codes = X if kind.encoder is None else kind.encoder.transform(as_columns(X))
        options = {"dtype": kind.precision, "ensure_all_finite": "allow-nan", "input_name": name}
        X = check_array(codes, **options)
    refuse_missing(SimpleNamespace(missing=kind.missing, feature_names_in_=names), X)
    return X, names


def target_of(y: Any, n_rows: int, number: int, kind: Kind) -> np.ndarray:
    """The checked target of a partition.

    Raises
    ------
    ValueError
        If it has another number of rows, several outputs or missing values.
    """
    y = np.asarray(y() if callable(y) else y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(
            f"y has {y.shape[-1]} outputs, but partitions support one; fit a forest per output."
        )
    if len(y) != n_rows:
        raise ValueError(
            f"Partition {number} of X has {n_rows} rows, but that of y has {len(y)}; cut both "
            "alike."
        )
    if len(y) == 0:
        return y if kind.has_classes else np.empty(0)
    name, dtype = f"y, in partition {number},", None if kind.has_classes else np.float64
    refuse_missing_target(y, name)
    y = check_array(y, dtype=dtype, ensure_2d=False, input_name=name)
    if kind.has_classes:
        check_classification_targets(y)
    return y


def examine(X: Any, y: Any, number: int, kind: Kind) -> Examined:
    """Examine a partition, and sort its columns.

    Parameters
    ----------
    X, y : array-like, or functions that read them
    number : int
        Number of the partition.
    kind : Kind

    Returns
    -------
    Examined
    """
    X = X() if callable(X) else X
    refuse_sparse(X)
    is_categorical: tuple | None = None
    cover: tuple = ()
    if kind.categorical_features is not None and len(X):
        table = as_columns(X)
        encoder = CategoryEncoder(find_categorical(kind.categorical_features, table))
        codes = encoder.fit(table)[:, encoder.mask]
        firsts = [np.unique(column, return_index=True)[1] for column in codes.T]
        rows = np.unique(np.concatenate([[0], *firsts]))  # at least one, even without categories
        is_categorical, cover = tuple(encoder.mask), (getattr(table, "iloc", table)[rows],)
        kind = kind._replace(encoder=encoder)
    dates = are_dates(native_frame(X))
    X, names = values_of(X, number, kind)
    y = target_of(y, len(X), number, kind)
    labels = np.unique(y) if kind.has_classes else None
    ends = (np.inf, -np.inf) if kind.has_classes else ends_of(y)
    n_rows = ((number, len(X)),)
    look = Look(names, X.shape[1], n_rows, labels, ends, is_categorical, cover, dates)
    numbers = X if is_categorical is None else np.where(is_categorical, np.nan, X)
    return Examined(look, sort_columns(numbers))


def look_of(examined: Examined) -> Look:
    """The facts about a partition that was examined."""
    return examined.look


def sorted_of(examined: Examined) -> list:
    """The sorted columns of a partition that was examined."""
    return examined.columns


def join_looks(one: Look, other: Look) -> Look:
    """Join the facts about two partitions.

    Raises
    ------
    ValueError
        If their columns differ in number, names or order, or in which hold categories.
    """
    if one.n_features != other.n_features:
        raise ValueError(
            f"Partition {one.n_rows[0][0]} has {one.n_features} columns, but partition "
            f"{other.n_rows[0][0]} has {other.n_features}; all partitions need the same columns."
        )
    if one.names != other.names:
        raise ValueError(
            f"The columns of partition {one.n_rows[0][0]} are {shown(one.names)}, but those of "
            f"partition {other.n_rows[0][0]} are {shown(other.names)}; all partitions need the "
            "same names in the same order."
        )
    labels = one.labels
    if labels is not None and other.labels is not None:
        known = [some for some in (labels, other.labels) if len(some)]
        labels = np.unique(np.concatenate(known)) if known else labels
    masks = {mask for mask in (one.is_categorical, other.is_categorical) if mask is not None}
    if len(masks) == 2:
        raise ValueError(
            f"Partition {other.n_rows[0][0]} holds categories in other columns than partition "
            f"{one.n_rows[0][0]}; give the columns the same dtypes, or name them in "
            "categorical_features."
        )
    ends = min(one.ends[0], other.ends[0]), max(one.ends[1], other.ends[1])
    return Look(
        one.names, one.n_features, one.n_rows + other.n_rows, labels,
        ends, masks.pop() if masks else None, one.cover + other.cover,
        other.dates if one.dates is None else one.dates,
    )  # fmt: skip


def join_covers(covers: tuple) -> Any:
    """Join some rows of each partition to one table."""
    if hasattr(covers[0], "iloc"):
        import pandas as pd

        return pd.concat(covers, ignore_index=True)
    if hasattr(type(covers[0]), "to_dicts"):
        import polars as pl

        return pl.concat(covers, how="vertical_relaxed")
    return np.concatenate(covers)


def shown(names: tuple | None) -> str:
    """Names of columns, as error messages list them."""
    if names is None:
        return "nothing"
    return ", ".join(map(repr, names[:10])) + (" ..." if len(names) > 10 else "")
