"""Permutation importance on rows that no tree has seen."""

from collections.abc import Callable
from typing import Any

from importance.core.adoption import of_fitted_forest
from importance.core.fitted_forest import check_evaluation_rows
from importance.core.groups import group_columns
from importance.core.held_out_rows import EvaluatedForest, require_held_out
from importance.core.losses import choose_loss
from importance.core.result import Importances, importances_over_trees
from importance.permutation.oob import BIAS
from importance.permutation.tree_level import Options, evaluate_trees


@of_fitted_forest
def held_out_permutation(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, training: tuple | None = None,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
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
    training : (X_train, y_train), default=None
        The training table, to find rows that are in it. Our forests know theirs without; of
        others (and of Bagging) only the whole of it is recognised, in any order, by the leaves.
    %(watched)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If it is not a forest, rows were in its training table (more of them than fresh rows would
        equal by chance, and more than a tenth), y holds classes that it does not know, or the loss
        does not fit the task.

    Warns
    -----
    UserWarning
        If a few rows were in the training table.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, held_out_permutation
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> forest = forest.fit(X[:300], y[:300])
    >>> held_out_permutation(forest, X[300:], y[300:])
    <Importances held_out_permutation, squared_error, ± over trees: bmi 1,670 ± 120, s5 1,520 ±
     140, bp 574 ± 86, s4 283 ± 87, s1 195 ± 69, ...>
    """
    require_held_out(forest, *check_evaluation_rows(forest, X, y), training)
    return judge_held_out(forest, X, y, loss, n_jobs, verbose, callback)


def judge_held_out(
    forest: Any, X: Any, y: Any, loss: str | None = None, n_jobs: int | None = None,
    verbose: int = 0, callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """`held_out_permutation` of rows that are known to be held out."""
    rows, codes, weight = check_evaluation_rows(forest, X, y)
    name, make_loss = choose_loss(loss, forest)
    columns = group_columns(None, forest)
    held_out = EvaluatedForest(forest, rows, codes, weight)
    options = Options(n_jobs=n_jobs, verbose=verbose, callback=callback)
    result = evaluate_trees(held_out, make_loss, columns, options)
    return importances_over_trees(
        "held_out_permutation", result.per_tree, columns.names, bias=BIAS,
        unit=f"increase in held-out {name.replace('_', '-')} loss of a tree", loss=name,
    )  # fmt: skip
