"""SHAP values of a fitted forest or tree: path-dependent, interventional, out of bag."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import require_n_jobs
from importance.core import fitted_forest
from importance.core.adoption import forest_or_tree, take_steps
from importance.core.docs import with_shared_parameters
from importance.core.given import require_bool
from importance.shap.covered_trees import cover_trees
from importance.shap.interventional import add_reference_values
from importance.shap.over_trees import Sums, sum_over_trees
from importance.shap.result import ShapValues

EVERYONE = np.zeros((0, 0), bool)  # every tree explains every row


@with_shared_parameters
def shap_values(
    model: Any, X: Any, *, background: Any = None, out_of_bag: bool = False,
    interactions: bool = False, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> ShapValues:  # fmt: skip
    """Exact SHAP values: what each feature contributes to the prediction of each row.

    The prediction of a row is divided among the features by the Shapley value of a game in which
    absent features are averaged over. With `background=None`, a tree sends a row down both sides of
    a split on an absent feature, in proportion to the weight of the training rows (path-dependent,
    Lundberg et al. 2020). Otherwise absent features take the values of the reference rows, whatever
    the values of the others (interventional). The values of a forest are the mean over its trees.

    Parameters
    ----------
    model : fitted forest or tree, ours or scikit-learn's
        With a single output; forests with voting="soft".
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows to explain.
    background : array-like or sparse matrix of shape (n_references, n_features), default=None
        Reference rows; the time is proportional to rows times references.
    out_of_bag : bool, default=False
        Explain each row only by the trees for which it is out of bag. X must be the table that the
        forest was fitted on.
    interactions : bool, default=False
        Also return `interactions`, for path-dependent values. The time is multiplied by about twice
        the number of features of a tree; the memory is that of rows times features squared.
    %(progress_of_parts)s

    Returns
    -------
    ShapValues
        `base_value` plus the sum of `values` over features is the prediction (class shares in
        classification), or the out-of-bag prediction with `out_of_bag=True`.

    Raises
    ------
    TypeError, ValueError
        If the model is not one of ours or scikit-learn's; if it has several outputs (see
        `of_output`), a loss matrix or another voting rule than the mean; if X does not fit it; or,
        out of bag, if X is not its training table or no row is out of bag.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, shap_values
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> found = shap_values(forest, X)
    >>> found.values.shape
    (442, 10)
    >>> bool(abs(found.base_value + found.values.sum(axis=1) - forest.predict(X)).max() < 1e-9)
    True
    """
    require_bool("interactions", interactions)
    require_bool("out_of_bag", out_of_bag)
    require_n_jobs(n_jobs)
    if interactions and background is not None:
        raise ValueError(
            "interactions=True supports only path-dependent values; leave out background."
        )
    model = forest_or_tree(model)
    rows = take_steps(model, X)
    background = None if background is None else take_steps(model, background)
    takes = trees_out_of_bag(model, rows) if out_of_bag else EVERYONE
    found = explain(model, rows, takes, background, interactions, n_jobs, verbose, callback)
    return replace(found, index=X.index if hasattr(X, "iloc") else None)


def trees_out_of_bag(model: Any, X: Any) -> np.ndarray:
    """For which trees each training row is out of bag, (n_trees, n_samples) bool.

    X is the training table after the steps of a pipeline.
    """
    if hasattr(model, "tree_"):
        raise ValueError("out_of_bag=True needs a forest: a single tree has seen all its rows.")
    fitted = fitted_forest.check_training_rows(model, X)
    takes = np.array([fitted.counts(t) == 0 for t in range(len(fitted.trees))])
    if not takes.any():
        raise ValueError(fitted_forest.NO_ROW)
    return takes


def explain(
    model: Any, X: Any, takes: np.ndarray = EVERYONE, background: Any = None,
    interactions: bool = False, n_jobs: int | None = None,
    verbose: int = 0, callback: Callable | None = None,
) -> ShapValues:  # fmt: skip
    """SHAP values of rows, each explained by the trees in `takes`, (n_trees, n_samples) bool.

    `model` is an adopted forest or a tree, see `forest_or_tree`; X and `background` are rows after
    the steps of its pipeline; see `shap_values` for the rest.
    """
    found = trees_to_explain(model)
    table = _dense(model, X)
    references = None if background is None else np.ascontiguousarray(_dense(model, background).T)
    n_values = found[0].max_n_classes
    trees = cover_trees(found, slice(1, 2) if n_values == 2 else slice(None), n_jobs)
    watch = partial(ProgressReporter, unit="part", verbose=verbose, callback=callback)
    sums = sum_over_trees(trees, table, references, takes, interactions, n_jobs, watch)
    base = trees.mean[trees.start[:-1]]  # of the roots
    if references is not None:
        base = np.zeros_like(base)
        add_reference_values(trees, references, base)
        base /= references.shape[1]
    return _result(model, X, sums, base, takes, n_values)


def trees_to_explain(model: Any) -> list:
    """The trees of a model whose prediction is their mean; refuses other models."""
    if hasattr(model, "loss_"):
        raise ValueError(
            "SHAP values divide up the mean of the trees' outputs, but with loss= the class shares "
            "are that mean divided by the costs of mistakes; fit without loss."
        )
    trees = [model.tree_] if hasattr(model, "tree_") else fitted_forest.trees_of(model)
    fitted_forest.require_one_output(model, trees[0])
    if getattr(model, "voting", "soft") != "soft":
        raise ValueError(
            f"With voting={model.voting!r} the prediction is not the mean of the trees' outputs, "
            'so SHAP values of trees do not add up to it; use set_params(voting="soft").'
        )
    return trees


def _dense(model: Any, X: Any) -> np.ndarray:
    """Rows as the model takes them, dense and as float64, which represents their values exactly."""
    X = fitted_forest.check_walked_rows(model, X)
    return (X.toarray() if issparse(X) else X).astype(np.float64)


def _result(model, X, sums: Sums, base, takes, n_values) -> ShapValues:
    """Means over trees, with all classes."""
    is_out_of_bag = len(takes) > 0
    n_trees = takes.sum(axis=0) if is_out_of_bag else np.full(len(sums.total), len(base))
    each = n_trees[:, np.newaxis, np.newaxis]
    with np.errstate(invalid="ignore", divide="ignore"):
        values = sums.total / each
        variance = np.maximum(sums.squares / each - values**2, 0.0) / (each - 1)
        pairs = sums.pairs / each[..., np.newaxis] if len(sums.pairs) else None
        if is_out_of_bag:
            base = takes.T.astype(np.float64) @ base / n_trees[:, np.newaxis]
        else:
            base = base.mean(axis=0)
    error = np.where(each > 1, np.sqrt(variance), np.nan)
    classes = model.classes_ if fitted_forest.is_classification(model) else None

    def of_all(first, second):
        """The last axis as users see it: of two classes only the second was explained."""
        if classes is None:
            return second[..., 0]
        return np.concatenate((first, second), axis=-1) if n_values == 2 else second

    if pairs is not None:
        diagonal = np.arange(pairs.shape[1])
        pairs[:, diagonal, diagonal] = values - pairs.sum(axis=2)
        pairs = of_all(-pairs, pairs)
    return ShapValues(
        of_all(-values, values), of_all(1.0 - base, base), of_all(error, error),
        fitted_forest.names_of(model), classes, n_trees, X, pairs, is_out_of_bag,
    )  # fmt: skip
