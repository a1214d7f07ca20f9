"""What every fit begins with: a checked table, and the old fit kept until the new one stands."""

from contextlib import contextmanager

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import _check_sample_weight, validate_data


@contextmanager
def restored_on_failure(estimator):
    """Give the estimator back its attributes when fitting fails or is interrupted."""
    attributes = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(attributes)
        raise


def check_table(estimator, X, y, reset=True):
    """Check a training table as scikit-learn does.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like of shape (n_samples, n_features)
        nan is a missing value, where the estimator allows them.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    reset : bool, default=True
        False compares X with the table of the fit before.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32
    y : ndarray

    Raises
    ------
    ValueError
        If X or y holds what is not finite.
    """
    X, y = validate_data(
        estimator, X, y, reset=reset, multi_output=True, dtype=np.float32, accept_sparse="csc",
        ensure_all_finite=missing_values_rule(estimator),
    )  # fmt: skip
    refuse_sparse_gaps(X)
    return X, y


def missing_values_rule(estimator):
    """What scikit-learn's `ensure_all_finite` has to be for the estimator."""
    return "allow-nan" if get_tags(estimator).input_tags.allow_nan else True


def refuse_sparse_gaps(X):
    """Refuse missing values in a sparse table, as scikit-learn does."""
    if issparse(X):
        assert_all_finite(X, input_name="X")


def check_criterion(criterion, y):
    """Refuse targets that a criterion is not made for.

    Raises
    ------
    ValueError
        If y has negative values, or none that is positive, and the criterion is "poisson".
    """
    if criterion == "poisson":
        if np.any(y < 0):
            raise ValueError(
                "Some value(s) of y are negative which is not allowed for Poisson regression."
            )
        if np.sum(y) <= 0:
            raise ValueError("Sum of y is not positive which is necessary for Poisson regression.")


def check_sample_weight(sample_weight, X):
    """Sample weights as float64 of shape (n_samples,), or None.

    Raises
    ------
    ValueError
        If a weight is negative or not finite.
    """
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def require_weight(weight):
    """Refuse a table in which no row has a weight.

    Raises
    ------
    ValueError
        If `weight` is 0 everywhere.
    """
    if not np.any(weight):
        raise ValueError("Every row has weight 0; at least one must be positive.")
