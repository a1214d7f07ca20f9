"""What a forest was fitted with and on: parameters that shape trees, fingerprints of its table."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from forest.estimators.parameters import FOREST_CONSTRAINTS, TREE_PARAMETERS
from forest.inference.row_fingerprints import row_fingerprints
from forest.inference.training_rows import fingerprint

# Parameters that say how many trees there are, who votes and what is shown: not what a tree is.
_NOT_OF_TREES = (
    FOREST_CONSTRAINTS.keys() - TREE_PARAMETERS - {"bootstrap", "max_samples", "replace"}
)


def remember_the_fit(
    forest: BaseEstimator, X: Any, codes: np.ndarray, precision: DTypeLike, add: bool
) -> None:
    """Keep the parameters of a fit and the fingerprints of its table with the forest.

    With `add`, a warm start, those of the fits before stay: `_grown_with` lists the parameters that
    trees were grown with, one dict unless they were changed between fits, and a second table is one
    more of several, of which none is that of all trees.
    """
    params = forest.get_params(deep=False)
    grown_with = deepcopy({k: v for k, v in params.items() if k not in _NOT_OF_TREES})
    table, rows = fingerprint(X, codes, precision), row_fingerprints(X, codes, precision)
    before = getattr(forest, "_grown_with", None) if add else None
    known = getattr(forest, "_fingerprint", None) if add else None
    old_rows = getattr(forest, "_row_fingerprints", rows[:0])  # older pickles have none
    if known is not None and not _is_same_table(known, table, old_rows, rows):
        table = table._replace(digest=None)
        rows = np.unique(np.concatenate((old_rows, rows)))
    forest._fingerprint, forest._row_fingerprints = table, rows
    if before is None:
        forest._grown_with = [grown_with]
    elif not any(is_same_parameters(grown_with, each) for each in before):
        forest._grown_with = [*before, grown_with]


def _is_same_table(known, table, known_rows, rows):
    if known.is_sparse == table.is_sparse:
        return known == table
    return np.array_equal(known_rows, rows)


def is_same_parameters(one: dict, other: dict) -> bool:
    """Are the values of two sets of parameters equal? A share of 1.0 is not a number of 1."""
    return one.keys() == other.keys() and not changed_parameters(one, other)


def changed_parameters(one: dict, other: dict) -> list[str]:
    """Names of the parameters of both that have another value in the other."""
    return [k for k in one if k in other and not _is_same(one[k], other[k])]


def _is_same(a, b):
    if a is b:
        return True
    if isinstance(a, float) != isinstance(b, float):
        return False
    return bool(np.array_equal(np.asarray(a, object), np.asarray(b, object)))
