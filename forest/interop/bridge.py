"""Conversion between our forests and scikit-learn's, with the same trees, seeds and draws."""

from typing import Literal

import sklearn.ensemble
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

import forest
from cart.interop import bridge
from forest.sampling.bootstrap import Bootstrap

_FITTED = (
    *("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "n_classes_"),
    *("oob_score_", "oob_decision_function_", "oob_prediction_", "_n_samples"),
)


def to_sklearn(
    estimator: BaseEstimator, *, categories: Literal["indicators"] | None = None
) -> BaseEstimator:
    """Convert a fitted forest or tree to a fitted scikit-learn estimator with the same trees.

    Parameters
    ----------
    estimator : a fitted forest of `forest`, or a fitted tree of `cart`
    categories : {"indicators"} or None, default=None
        "indicators" converts splits on subsets of categories: the result is a Pipeline of
        `cart.interop.indicators.Indicators`, which makes a column of 0 and 1 for each distinct
        subset, and the forest on these columns. None raises an error for such splits.

    Returns
    -------
    estimator of `sklearn.ensemble` or `sklearn.tree`
        With the same parameters, predictions and, for a forest, draws (`estimators_samples_`).
        With categorical features, a Pipeline that ends in it.

    Raises
    ------
    TypeError
        If it is neither a forest nor a tree of ours.
    ValueError
        If it has something that scikit-learn's lack: splits on categories or in double precision,
        a criterion of our own, priors, losses, missing values sent by surrogates or refused, votes
        other than soft, draws other than scikit-learn's.
    sklearn.exceptions.NotFittedError

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.inspection import partial_dependence
    >>> from cartwood import RandomForestRegressor, to_sklearn
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> peer = to_sklearn(forest)  # for functions that need scikit-learn's class
    >>> found = partial_dependence(peer, X, [2], method="recursion", grid_resolution=3)
    >>> found["average"].round(1)
    array([[113.8, 177.5, 225. ]])
    """
    if not isinstance(estimator, forest.estimators.base.BaseForest):
        return bridge.to_sklearn(estimator, categories=categories)
    peer = bridge.counterpart(estimator, forest, sklearn.ensemble)
    check_is_fitted(estimator)
    trees = [tree.tree_ for tree in estimator.estimators_]
    indicators = bridge.indicators_of(estimator, trees, categories)
    bridge.refuse_foreign(estimator, indicators is not None)
    _refuse_foreign_votes(estimator)
    bridge.copy_attributes(estimator, peer, _FITTED)
    peer.n_estimators = len(estimator.estimators_)
    peer.estimator_ = clone(peer.estimator)
    peer._n_samples_bootstrap = estimator._bootstrap.n_draws
    peer._sample_weight = estimator._row_weight
    if indicators is None:
        peer.estimators_ = [bridge.to_sklearn(tree) for tree in estimator.estimators_]
        return peer
    peer.estimators_ = [
        bridge.pipeline_of(
            indicators, bridge.fitted_counterpart(tree, indicators.rewrite(tree.tree_))
        )[-1]
        for tree in estimator.estimators_
    ]
    return bridge.pipeline_of(indicators, peer)


def from_sklearn(estimator: BaseEstimator) -> BaseEstimator:
    """Convert a fitted scikit-learn forest or tree to one of ours with the same trees.

    Parameters
    ----------
    estimator : a fitted forest of `sklearn.ensemble`, or a fitted tree of `sklearn.tree`

    Returns
    -------
    estimator of `forest` or `cart`
        With the same parameters, predictions and, for a forest, draws (`estimators_samples_`).

    Raises
    ------
    TypeError
        If it is neither a forest nor a tree of scikit-learn.
    sklearn.exceptions.NotFittedError

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from cartwood import from_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> peer = RandomForestClassifier(10, random_state=0).fit(X, y)
    >>> bool((from_sklearn(peer).predict_proba(X) == peer.predict_proba(X)).all())
    True
    """
    if not hasattr(estimator, "n_estimators"):
        return bridge.from_sklearn(estimator)
    ours = bridge.counterpart(estimator, sklearn.ensemble, forest)
    check_is_fitted(estimator)
    if not isinstance(ours, forest.estimators.base.BaseForest):
        raise TypeError(
            f"{type(estimator).__name__} is not a forest; convert the trees in its estimators_."
        )
    bridge.copy_attributes(estimator, ours, _FITTED)
    ours.estimators_ = [bridge.from_sklearn(tree) for tree in estimator.estimators_]
    ours._row_weight = estimator._sample_weight
    ours._bootstrap = Bootstrap.plain(
        estimator._n_samples, estimator._n_samples_bootstrap, estimator._sample_weight
    )
    return ours


def _refuse_foreign_votes(estimator):
    """Raise a ValueError for votes and draws that scikit-learn would silently do otherwise."""
    if estimator.voting != "soft":
        raise ValueError(
            f'scikit-learn\'s forests support only voting="soft", not {estimator.voting!r}, so '
            'the predictions would differ. Use set_params(voting="soft") first.'
        )
    if not estimator._bootstrap.is_scikit_learns:
        raise ValueError(
            "scikit-learn cannot repeat the draws of this forest (replace=False, stratify, "
            'groups, in_bag, bootstrap_draw="keyed"), so its out-of-bag rows would be wrong. '
            "Convert the trees in estimators_, or fit with a plain bootstrap."
        )
