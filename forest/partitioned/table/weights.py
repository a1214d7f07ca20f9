"""Weights of rows: probabilities of draws or, if nothing is drawn, weights inside the trees.

Draws by weight come from a stream for the whole table. All weights are therefore gathered in one
place and sent to every process that replays the stream: eight bytes per row.
"""

from operator import add
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from cart.estimators.target import Target
from forest.partitioned.engines import Engine
from forest.partitioned.histograms import WEIGHT
from forest.partitioned.table.partitions import Kind, target_of

BYTES_PER_ROW = 8


def weights_of_table(
    model: BaseEstimator, engine: Engine, y_parts: Any, weight_parts: Any, spans: list,
    kind: Kind, target: Target,
) -> np.ndarray | None:  # fmt: skip
    """Combine sample weights and class weights to the weight of every row, as in a local fit.

    Parameters
    ----------
    model : forest
    engine : Engine
    y_parts, weight_parts : handles
        The latter may be None.
    spans : list of (number, first row, end)
        The rows of each partition.
    kind : Kind
    target : Target
        With the labels of the whole table.

    Returns
    -------
    ndarray of shape (n_samples,), float64, or None
        None if all rows weigh the same.

    Raises
    ------
    ValueError
        If weights are negative or not finite, do not match the rows, or are all 0.
    """
    weight = y = None
    if weight_parts is not None:
        weight = _gather(engine, _weights_of, weight_parts, spans)
    if target.labels is not None and model.class_weight is not None:
        labels = target.labels[0]
        y = labels[_gather(engine, _classes_of, y_parts, spans, kind, labels)]
    return model._combine_weights(weight, y, target)


def total_of_whole(weight: np.ndarray) -> int:
    """The sum of weights inside the trees, which must be whole numbers.

    Raises
    ------
    ValueError
        If they are not, or if the sum is too large for a cell of a histogram.
    """
    if not (weight == np.floor(weight)).all():
        raise ValueError(
            "Weights must be whole numbers if bootstrap=False: trees of partitions add them up, "
            "and only sums of whole numbers are the same in every order. Pass whole weights, or "
            "set bootstrap=True, which draws rows by weight."
        )
    total = float(weight.sum())
    if total > WEIGHT:
        raise ValueError(
            f"The weights of the rows add up to {total:.3g}, but partitions support at most "
            f"{WEIGHT:,}; divide them."
        )
    return int(total)


def _gather(engine, function, parts, spans, *common):
    """Concatenate over partitions what a function, which returns [(number, array)], has of rows."""
    found = engine.reduce(function, add, parts, spans, common=common)
    return np.concatenate([of_rows for _, of_rows in sorted(found, key=lambda part: part[0])])


def _classes_of(y, span, kind, labels):
    number, first, end = span
    y = target_of(y, end - first, number, kind)
    return [(number, np.searchsorted(labels, y).astype(np.uint16))]


def _weights_of(weight, span):
    number, first, end = span
    weight = weight() if callable(weight) else weight
    weight = np.asarray(weight, np.float64)
    if weight.shape != (end - first,):
        raise ValueError(
            f"Partition {number} of X has {end - first} rows, but sample_weight has shape "
            f"{weight.shape} there; cut both alike."
        )
    if not (np.isfinite(weight) & (weight >= 0.0)).all():
        raise ValueError(f"sample_weight in partition {number} has negative or non-finite values.")
    return [(number, weight)]
