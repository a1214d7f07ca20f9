"""Mixins that turn the values of leaves into the predictions of classifiers and regressors.

Trees and forests share them, and differ only in `_values(X, check_input)`: an array of shape
(n_samples, n_outputs, n_values) of class shares, or of means (n_values is 1).
"""

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, metadata_routing
from sklearn.utils.validation import _check_n_features, check_is_fitted

from cart.estimators.class_costs import (
    cheapest,
    check_loss,
    check_priors,
    class_factors,
    true_shares,
)
from cart.estimators.encoding import takes_sparse
from cart.estimators.parameters import NO_ALTERNATIVES, MatrixLike
from cart.estimators.target import encode_known_labels, encode_labels, encode_numbers
from cart.estimators.validation import as_of_now, check_rows
from cart.splitting import criteria
from cart.table.precision import precision_of
from cart.tree.packed import Infinite, goes_by_keys


class _Outputs:
    """What classifiers and regressors share: checks of X, and the walk of rows down the trees."""

    # For estimators without such a parameter, and for pickles that are older than it.
    class_weight = max_bins = priors = loss = None
    missing, surrogates, surrogate_style, surrogate_features, competitors = NO_ALTERNATIVES

    def _require_fit(self):
        if not hasattr(self, "n_features_in_"):  # check_is_fitted takes as long as a row's walk
            check_is_fitted(self)

    def _check_X(self, X, check_input=True, converts=True):
        """Check and convert X for the kernels; with `check_input=False`, only its dtype and width.

        For `converts` see `check_rows`.
        """
        self._require_fit()
        if check_input:
            return check_rows(self, X, converts)
        _check_n_features(self, X, reset=False)
        dtype, precision = getattr(X, "dtype", type(X)), precision_of(self)
        if dtype != precision:
            raise ValueError(f"X.dtype should be {precision}, but is {dtype}.")
        return X.tocsr() if issparse(X) else X

    def _walk(self, walk, packed, X, check_input=True):
        """Return `walk(packed, X)` for checked rows.

        If only an infinite number could be wrong with X, it is not searched for beforehand: `walk`
        looks at every value anyway and raises `Infinite`.
        """
        converts = self.missing == "refuse" or not goes_by_keys(packed)
        try:
            return walk(packed, self._check_X(X, check_input, converts))
        except Infinite:
            return walk(packed, self._check_X(X))  # raises an error that says what is wrong

    def _weigh_classes(self, weight, target):
        return weight, None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "refuse"
        tags.input_tags.sparse = takes_sparse(self)
        return tags


class ClassifierOutputs(ClassifierMixin, _Outputs):
    """Mixin of classifiers: labels and probabilities."""

    __metadata_request__predict = {"check_input": metadata_routing.UNUSED}
    __metadata_request__predict_proba = {"check_input": metadata_routing.UNUSED}
    _criteria = criteria.CLASSIFICATION

    def _encode_target(self, y):
        target = encode_labels(y)
        several = target.n_outputs > 1
        self.n_outputs_ = target.n_outputs
        self.classes_ = target.labels if several else target.labels[0]
        n_classes = [len(labels) for labels in target.labels]
        self.n_classes_ = np.array(n_classes) if several else n_classes[0]
        return target

    def _weigh_classes(self, weight, target):
        """Apply priors and losses to the row weights, and set `loss_`.

        Returns the weights and the factor of each class, or None if there are no priors or losses.
        """
        vars(self).pop("loss_", None)  # of an earlier fit
        if self.priors is None and self.loss is None:
            return weight, None
        if target.n_outputs > 1:
            name = "loss" if self.priors is None else "priors"
            raise ValueError(
                f"{name} supports a single output, but y has {target.n_outputs}; fit a model per "
                "output."
            )
        if self.class_weight is not None:
            raise ValueError(
                "class_weight cannot be combined with priors or loss, which already set the "
                "weights of the classes; leave class_weight out."
            )
        labels, codes = target.labels[0], target.codes[:, 0]
        priors, loss = check_priors(self.priors, labels), check_loss(self.loss, labels)
        if loss is not None:
            self.loss_ = loss
        factor = class_factors(weight, codes, priors, loss, len(labels))
        return (1.0 if weight is None else weight) * factor[codes.astype(np.int64)], factor

    def _encode_known_target(self, y):
        labels = self.classes_ if self.n_outputs_ > 1 else [self.classes_]
        return encode_known_labels(y, labels)

    def predict_proba(
        self, X: MatrixLike, check_input: bool = True
    ) -> np.ndarray | list[np.ndarray]:
        """Class probabilities: the shares of the classes in the leaf, averaged over trees.

        If `priors` are given, the probabilities are under these.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks; X must then be an array of dtype `precision`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64, or a list of them, one per output
            Columns in the order of `classes_`.
        """
        self = as_of_now(self)
        values = true_shares(self._values(X, check_input), getattr(self, "loss_", None))
        if self.n_outputs_ == 1:
            return values[:, 0]
        return [values[:, k, :n] for k, n in enumerate(self.n_classes_)]

    def _decide_classes(self, values):
        """Positions of the predicted classes, from values of leaves of shape (..., n_classes)."""
        loss = getattr(self, "loss_", None)
        return cheapest(true_shares(values, loss), loss)

    def _best_classes(self, X, check_input):
        """Positions of the predicted classes in `classes_`, (n_samples, n_outputs)."""
        return self._decide_classes(self._values(X, check_input))

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray | list[np.ndarray]:
        """Natural logarithm of `predict_proba`; -inf where it is 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of one per output
        """
        self = as_of_now(self)
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(shares) if self.n_outputs_ == 1 else [np.log(s) for s in shares]

    def predict(self, X: MatrixLike, check_input: bool = True) -> np.ndarray:
        """The most probable class, or with `loss` the class of least expected loss.

        Of several such classes, the first in `classes_` is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks; X must then be an array of dtype `precision`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        self = as_of_now(self)
        best = self._best_classes(X, check_input)
        if self.n_outputs_ == 1:
            return self.classes_.take(best[:, 0])
        each = [labels.take(best[:, k]) for k, labels in enumerate(self.classes_)]
        return np.stack(each, axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class RegressorOutputs(RegressorMixin, _Outputs):
    """Mixin of regressors: means (medians with absolute_error)."""

    __metadata_request__predict = {"check_input": metadata_routing.UNUSED}
    _criteria = criteria.REGRESSION

    def _encode_target(self, y):
        target = encode_numbers(y)
        self.n_outputs_ = target.n_outputs
        return target

    def _encode_known_target(self, y):
        return encode_numbers(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))

    def predict(self, X: MatrixLike, check_input: bool = True) -> np.ndarray:
        """Value of the leaf, averaged over trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks; X must then be an array of dtype `precision`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        """
        self = as_of_now(self)
        values = self._values(X, check_input)[:, :, 0]
        return values[:, 0] if self.n_outputs_ == 1 else values
