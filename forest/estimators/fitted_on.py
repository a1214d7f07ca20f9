"""Record what a forest was fitted with and on: parameters of its trees, fingerprints of rows."""

from copy import deepcopy
from dataclasses import fields
from datetime import date, timedelta
from functools import cache
from numbers import Number
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from forest.estimators.parameters import FOREST_CONSTRAINTS, TREE_PARAMETERS
from forest.inference.training_rows import is_of_one_table, is_table_of, row_fingerprints
from forest.sampling.bootstrap import Bootstrap

# Parameters that do not shape trees, such as those for their number, voting and progress.
_NOT_OF_TREES = (
    FOREST_CONSTRAINTS.keys() - TREE_PARAMETERS - {"bootstrap", "max_samples", "replace"}
)
# Types whose text identifies a value, so that its checksum does, too.
_TELLING = (str, bytes, date, timedelta, Number, np.generic)


def remember_the_fit(
    forest: BaseEstimator, X: Any, codes: np.ndarray, precision: DTypeLike, bootstrap: Bootstrap,
    add: bool,
) -> None:  # fmt: skip
    """Keep the parameters of a fit, its draws and the fingerprints of its rows with the forest.

    With `add` (a warm start), those of earlier fits stay. `_grown_with` lists the parameters that
    trees were grown with: one dict, unless they changed between fits. Fingerprints are in the order
    of the table if all trees have the same one; else each distinct row is kept once. A table that
    was drawn from in several ways counts as several tables, since the draws can only be recomputed
    in the last way.
    """
    grown_with = parameters_of_trees(forest)
    rows = row_fingerprints(X, codes, precision)
    before = getattr(forest, "_grown_with", []) if add else []
    is_other = add and (
        is_table_of(forest, X, codes, precision) is False
        or not _draws_alike(forest._bootstrap, bootstrap)
    )
    if is_other:
        known = getattr(forest, "_row_fingerprints", rows[:0])  # older pickles have none
        rows = np.unique(np.concatenate((known, rows)))
    forest._row_fingerprints, forest._is_of_one_table = rows, not is_other
    forest._bootstrap = bootstrap
    if all(
        grown_with.keys() != each.keys() or changed_parameters(grown_with, each) for each in before
    ):
        forest._grown_with = [*before, grown_with]


def parameters_of_trees(forest: BaseEstimator) -> dict[str, Any]:
    """The current parameters of a forest that shape its trees."""
    names = sorted(forest._parameter_constraints.keys() - _NOT_OF_TREES)
    return deepcopy({name: getattr(forest, name) for name in names})


def _draws_alike(kept, new):
    """Whether a new way of drawing draws the same rows for the trees that are kept."""
    if not isinstance(kept, Bootstrap):
        return False  # a partitioned forest has one for each part of the table
    if kept.given is not None and new.given is not None:
        n_known = min(len(kept.given), len(new.given))
        if not np.array_equal(kept.given[:n_known], new.given[:n_known]):
            return False
    names = {field.name for field in fields(Bootstrap)} - {"seeds", "given"}
    is_given = (kept.given is None) == (new.given is None)
    return is_given and all(np.array_equal(getattr(kept, k), getattr(new, k)) for k in names)


def remember_rows(bagging: BaseEstimator, X: Any, codes: np.ndarray, add: bool) -> None:
    """Keep the fingerprints of the rows that Bagging was fitted on.

    With `add` (a warm start), also note whether they are the rows of the earlier fits.
    """
    X = as_numbers(X)
    is_other = add and is_table_of(bagging, X, codes, np.float64) is False
    bagging._row_fingerprints = row_fingerprints(X, codes, np.float64)
    bagging._is_of_one_table = not is_other


def refuse_unknown_draws(model: BaseEstimator, is_judged: bool) -> None:
    """Raise a ValueError if estimators that a warm start keeps cannot be judged out of bag."""
    if is_judged and not is_of_one_table(model):
        raise ValueError(
            "The estimators kept by warm_start=True were fitted on another table than (X, y), or "
            "drew their rows in another way, so their out-of-bag rows are unknown. Pass the same "
            "table, weights and sampling parameters, or set warm_start=False."
        )


def as_numbers(X: Any) -> Any:
    """Turn a table of any values into one of numbers, by which its rows can be told apart.

    Numbers (also as text) are kept, other text and dates become checksums, and all else 0.
    """
    if X.dtype.kind in "biuf":
        return X
    of_text = cache(_as_number)  # texts mostly repeat

    def number_of(value):
        return of_text(value) if isinstance(value, str) else _as_number(value)

    return np.frompyfunc(number_of, 1, 1)(X).astype(np.float64)


def _as_number(value):
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        text = str(value) if isinstance(value, _TELLING) else ""
        return float(crc32(text.encode(errors="surrogatepass")))


def changed_parameters(one: dict, other: dict) -> list[str]:
    """Names of common parameters with different values; 1.0 (a share) differs from 1 (a number)."""
    return [k for k in one if k in other and not _is_same(one[k], other[k])]


def _is_same(a, b):
    if a is b:
        return True
    if isinstance(a, float) != isinstance(b, float):
        return False
    return bool(np.array_equal(np.asarray(a, object), np.asarray(b, object)))
