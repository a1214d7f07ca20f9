"""What a forest was fitted with and on: parameters that shape trees, fingerprints of its rows."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from forest.estimators.parameters import FOREST_CONSTRAINTS, TREE_PARAMETERS
from forest.inference.training_rows import is_table_of, row_fingerprints

# Parameters that say how many trees there are, who votes and what is shown: not what a tree is.
_NOT_OF_TREES = (
    FOREST_CONSTRAINTS.keys() - TREE_PARAMETERS - {"bootstrap", "max_samples", "replace"}
)


def remember_the_fit(
    forest: BaseEstimator, X: Any, codes: np.ndarray, precision: DTypeLike, add: bool
) -> None:
    """Keep the parameters of a fit and the fingerprints of its rows with the forest.

    With `add`, a warm start, those of the fits before stay: `_grown_with` lists the parameters that
    trees were grown with, one dict unless they were changed between fits. Rows of one table are in
    its order; of several, of which none is that of all trees, each is there once.
    """
    grown_with = parameters_of_trees(forest)
    rows = row_fingerprints(X, codes, precision)
    before = getattr(forest, "_grown_with", None) if add else None
    is_other = add and is_table_of(forest, X, codes, precision) is False
    if is_other:
        known = getattr(forest, "_row_fingerprints", rows[:0])  # older pickles have none
        rows = np.unique(np.concatenate((known, rows)))
    forest._row_fingerprints, forest._is_of_one_table = rows, not is_other
    if before is None:
        forest._grown_with = [grown_with]
    elif all(
        grown_with.keys() != each.keys() or changed_parameters(grown_with, each) for each in before
    ):
        forest._grown_with = [*before, grown_with]


def parameters_of_trees(forest: BaseEstimator) -> dict[str, Any]:
    """The parameters of a forest that shape its trees, as they are now."""
    names = sorted(forest._parameter_constraints.keys() - _NOT_OF_TREES)
    return deepcopy({name: getattr(forest, name) for name in names})


def remember_rows(bagging: BaseEstimator, X: Any, codes: np.ndarray, add: bool) -> None:
    """Keep the fingerprints of the rows of a fit with Bagging, if they are numbers; with `add`, a
    warm start, also whether they are those of the fits before."""
    is_number = X.dtype.kind in "biuf"
    is_other = add and is_number and is_table_of(bagging, X, codes, np.float64) is False
    bagging._row_fingerprints = row_fingerprints(X, codes, np.float64) if is_number else None
    bagging._is_of_one_table = not is_other


def changed_parameters(one: dict, other: dict) -> list[str]:
    """Names of the parameters of both that have another value in the other; a share of 1.0 is not a
    number of 1."""
    return [k for k in one if k in other and not _is_same(one[k], other[k])]


def _is_same(a, b):
    if a is b:
        return True
    if isinstance(a, float) != isinstance(b, float):
        return False
    return bool(np.array_equal(np.asarray(a, object), np.asarray(b, object)))
