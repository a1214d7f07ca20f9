"""Tasks of Bagging, one estimator each: fit it on its drawn rows and features; predict with it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import _routing_enabled, get_routing_for_object
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from cart.estimators.category_encoder import as_columns, find_categorical
from cart.estimators.saved_state import SavedState
from cart.splitting.feature_draw import DRAW_SEED_MAX
from forest.sampling.bootstrap import restart_stream
from forest.sampling.patches import Patches


def output_of(estimator: BaseEstimator, X: Any, params: dict[str, dict], method: str) -> np.ndarray:
    """Call a method of an estimator on X; `params` holds the metadata of each method."""
    return getattr(estimator, method)(X, **params.get(method, {}))


def class_shares(
    estimator: BaseEstimator, X: Any, params: dict[str, dict], n_classes: int
) -> np.ndarray:
    """Class probabilities of a classifier, or its votes if it has no `predict_proba`.

    Parameters
    ----------
    estimator : fitted classifier of class codes
    X : ndarray or sparse of shape (n_samples, n_features)
    params : dict of dict
        Metadata of each of its methods.
    n_classes : int
        Number of classes of all estimators. Classes that this one did not see have the share 0.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), float64
    """
    if hasattr(estimator, "predict_proba"):
        shares = output_of(estimator, X, params, "predict_proba")
        return _spread(shares, estimator.classes_, n_classes, 0.0)
    return np.eye(n_classes)[output_of(estimator, X, params, "predict")]


def log_class_shares(
    estimator: BaseEstimator, X: Any, params: dict[str, dict], n_classes: int
) -> np.ndarray:
    """As `class_shares`, from `predict_log_proba`; classes that it did not see have -inf."""
    shares = output_of(estimator, X, params, "predict_log_proba")
    return _spread(shares, estimator.classes_, n_classes, -np.inf)


def _spread(shares, classes, n_classes, absent):
    """Put the shares of some classes into columns for all classes, with `absent` in the others."""
    out = np.full((len(shares), n_classes), absent)
    out[:, classes] = shares
    return out


def with_categories_of(base: BaseEstimator, X: Any) -> BaseEstimator:
    """A clone of our estimator with `categorical_features` as a mask; else `base` itself.

    A mask is needed since the clone is fitted on arrays of drawn columns, without names.
    """
    if not _knows_categories(base):
        return base
    mask = find_categorical(base.categorical_features, as_columns(X))
    return clone(base).set_params(categorical_features=mask)


def _knows_categories(estimator):
    is_ours = isinstance(estimator, SavedState)
    return is_ours and getattr(estimator, "categorical_features", None) is not None


def fit_one(
    base: BaseEstimator,
    X: Any,
    y: np.ndarray,
    patches: Patches,
    i: int,
    takes_weight: bool,
    fit_params: dict,
    verbose: int,
) -> BaseEstimator:
    """Fit a copy of `base` on patch i."""
    if verbose > 1:
        print(f"fitting estimator {i + 1} of {len(patches.seeds)}")
    estimator = clone(base)
    _seed(estimator, patches.seeds[i])
    if takes_weight:
        fit_params = {**fit_params, "sample_weight": patches.counts(i)}
    else:
        rows = patches.draws(i)
        fit_params = _check_method_params(X, fit_params, indices=rows)
        X, y = X[rows], y[rows]
    if patches.bootstrap_features or patches.n_drawn_features < patches.n_features:
        features = patches.features(i)
        X = X[:, features]
        if _knows_categories(estimator):
            estimator.set_params(categorical_features=estimator.categorical_features[features])
    estimator.fit(X, y, **fit_params)
    return estimator


def _seed(estimator, seed):
    """Set every `random_state` among an estimator's parameters, also nested ones."""
    stream = restart_stream(seed)
    names = [name for name in estimator.get_params() if f"__{name}".endswith("__random_state")]
    estimator.set_params(**{name: stream.randint(DRAW_SEED_MAX) for name in sorted(names)})


def predict_one(
    predict: Callable, estimator: BaseEstimator, X: Any, features: np.ndarray, params: dict
) -> np.ndarray:
    """Predictions of one estimator, which takes only its own features of X."""
    return predict(estimator, X[:, features], params)


def predict_out_of_bag(
    predict: Callable, estimator: BaseEstimator, X: Any, patches: Patches, i: int
) -> tuple[np.ndarray, np.ndarray]:
    """An estimator's out-of-bag rows, and its output for them."""
    rows = patches.out_of_bag(i)
    if len(rows) == 0:
        return rows, np.empty(0)  # estimators raise errors for tables without rows
    return rows, predict_one(predict, estimator, X[rows], patches.features(i), {})


def takes_sample_weight(estimator: BaseEstimator) -> bool:
    """Whether `fit` takes `sample_weight`, so that drawn rows can be passed as weights."""
    if _routing_enabled():
        return bool(get_routing_for_object(estimator).consumes("fit", ("sample_weight",)))
    return has_fit_parameter(estimator, "sample_weight")
