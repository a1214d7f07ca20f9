"""Permutation importance on rows that no tree has seen."""

from typing import Any

import numpy as np

from forest.inference.training_rows import is_table_of
from importance.core.docs import with_shared_parameters
from importance.core.fitted_forest import (
    FittedForest,
    check_evaluation_rows,
    is_classification,
    trees_of,
)
from importance.core.groups import group_columns
from importance.core.losses import choose_loss
from importance.core.result import Importances, importances_over_trees
from importance.permutation.oob import BIAS
from importance.permutation.tree_level import Options, evaluate_trees


@with_shared_parameters
def held_out_permutation(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, n_jobs: int | None = None
) -> Importances:
    """How much worse each tree judges held-out rows when a feature is permuted among them.

    `oob_permutation` with the same rows for every tree: the exact expectation over all
    permutations of a feature within these rows, per tree, and the mean over trees.

    Parameters
    ----------
    forest : fitted forest, ours or scikit-learn's
        With or without bootstrap.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows that the forest was not fitted on.
    y : array-like of shape (n_rows,)
    loss : str, default=None
        As in `oob_permutation`.
    %(n_jobs)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If it is not a forest, (X, y) is its training table, y holds classes that it does not
        know, or the loss does not fit the task.
    """
    trees_of(forest)
    rows, codes, weight = check_evaluation_rows(forest, X, y)
    if is_table_of(forest, rows, codes):
        raise ValueError(
            "(X, y) is the table that the forest was fitted on: its rows are not held out. Use "
            "oob_permutation."
        )
    name, make_loss = choose_loss(loss, is_classification(forest))
    columns = group_columns(None, forest)
    held_out = _HeldOut(forest, rows, codes, weight)
    result = evaluate_trees(held_out, make_loss, columns, Options(n_jobs=n_jobs))
    return importances_over_trees(
        "held_out_permutation", result.per_tree, columns.names, bias=BIAS,
        unit=f"increase in held-out {name.replace('_', '-')} loss of a tree",
    )  # fmt: skip


class _HeldOut(FittedForest):
    """A forest and rows that every tree is evaluated on, as if they were its out-of-bag rows."""

    def out_of_bag(self, tree: int) -> np.ndarray:
        return np.arange(len(self.codes))
