"""What classifiers and regressors make of the values that rows receive.

Trees and forests differ only in how a row gets its value: `_values(X, check_input)`, an array of
shape (n_samples, n_classes) of class shares, or (n_samples, 1) of means.
"""

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import metadata_routing
from sklearn.utils.validation import _check_n_features, check_is_fitted, validate_data

from cart import criteria
from cart.target import encode_labels, encode_numbers


class _Outputs:
    def _check_X(self, X, check_input=True):
        """X as the kernels take it; with `check_input=False` it is already so."""
        check_is_fitted(self)
        if check_input:
            return validate_data(self, X, dtype=np.float32, order="C", reset=False)
        _check_n_features(self, X, reset=False)
        return X


class ClassifierOutputs(ClassifierMixin, _Outputs):
    """The classifier's side: labels, probabilities."""

    __metadata_request__predict = {"check_input": metadata_routing.UNUSED}
    __metadata_request__predict_proba = {"check_input": metadata_routing.UNUSED}
    _criteria = criteria.CLASSIFICATION

    def _encode_target(self, y):
        target = encode_labels(y)
        self.classes_ = target.labels
        self.n_classes_ = len(target.labels)
        return target

    def predict_proba(self, X, check_input=True):
        """Class probabilities: the share of each class in the leaf, the mean over trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks: X is a float32 array in C order.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Columns in the order of `classes_`.
        """
        return self._values(X, check_input)

    def predict_log_proba(self, X):
        """Natural logarithm of `predict_proba`; -inf where it is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X, check_input=True))

    def predict(self, X, check_input=True):
        """The most probable class; the first in `classes_` where several are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks: X is a float32 array in C order.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self._values(X, check_input).argmax(axis=1)
        return self.classes_.take(best)


class RegressorOutputs(RegressorMixin, _Outputs):
    """The regressor's side: means."""

    __metadata_request__predict = {"check_input": metadata_routing.UNUSED}
    _criteria = criteria.REGRESSION

    def _encode_target(self, y):
        return encode_numbers(y)

    def predict(self, X, check_input=True):
        """Mean target of the leaf, the mean over trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks: X is a float32 array in C order.

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self._values(X, check_input)[:, 0]
