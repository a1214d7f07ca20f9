"""What every fit begins with: a checked table, and the old fit kept until the new one stands."""

from contextlib import contextmanager

import numpy as np
from sklearn.utils import column_or_1d
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
    y : array-like of shape (n_samples,) or (n_samples, 1)
        The latter with scikit-learn's DataConversionWarning.
    reset : bool, default=True
        False compares X with the table of the fit before.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
        If X or y holds what is not finite, or y has several columns.
    """
    X, y = validate_data(estimator, X, y, reset=reset, multi_output=True, dtype=np.float32)
    return X, single_output(estimator, y)


def single_output(estimator, y):
    """y as one column.

    Raises
    ------
    ValueError
        If y has several columns.
    """
    y = np.atleast_1d(y)
    if y.ndim == 2 and y.shape[1] == 1:
        return column_or_1d(y, warn=True)
    if y.ndim != 1:
        raise ValueError(
            f"{type(estimator).__name__} fits one output, but y has shape {y.shape}. Multi-output "
            "targets are not supported yet: fit one model per column, for example with "
            "sklearn.multioutput.MultiOutputClassifier or MultiOutputRegressor."
        )
    return y


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
