"""Bagging: any scikit-learn estimator, fitted many times on randomly drawn rows and features."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.metadata_routing import _raise_for_params
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _estimator_has, check_is_fitted

from cart import DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.parameters import MatrixLike, RandomState, keep_parameters, with_docs_of
from cart.estimators.saved_state import storable_estimators
from cart.estimators.target import Target, encode_known_labels, encode_numbers
from cart.estimators.validation import as_of_now
from cart.primitives.user_warning import warn_user
from forest.estimators.bagging_base import BaseBagging
from forest.estimators.bagging_workers import class_shares, log_class_shares, output_of


class BaggingClassifier(ClassifierMixin, BaseBagging):
    __doc__ = with_docs_of(
        BaseBagging,
        "Bagging of classifiers: the class with the largest mean probability, or the most votes.",
        name="BaggingClassifier", data="load_iris", arguments="oob_score=True, random_state=0",
        shown="round(model.oob_score_, 3)", output="0.952",
    )  # fmt: skip
    _tree_class = DecisionTreeClassifier

    def __init__(
        self, estimator: BaseEstimator | None = None, n_estimators: int = 10, *,
        max_samples: float | None = None, max_features: float = 1.0, bootstrap: bool = True,
        bootstrap_features: bool = False, oob_score: bool | Callable = False,
        warm_start: bool = False, n_jobs: int | None = None, random_state: RandomState = None,
        verbose: int = 0, voting: str = "soft", final_estimator: BaseEstimator | None = None,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def predict(self, X: MatrixLike, **params: Any) -> np.ndarray:
        """The class with the largest share; in a tie, the first in `classes_`.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        **params : dict
            Metadata for `predict_proba` of the base estimator, or for `predict` if it has none.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        _raise_for_params(params, self, "predict")
        check_is_fitted(self)
        self = as_of_now(self)
        return self.classes_.take(self.predict_proba(X, **params).argmax(axis=1))

    def predict_proba(self, X: MatrixLike, **params: Any) -> np.ndarray:
        """Mean probabilities, or shares of votes if the base estimator has no `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        **params : dict
            Metadata for `predict_proba` of the base estimator, or for `predict` if it has none.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        self = as_of_now(self)
        if self.voting != "soft":
            return self._vote(X, "predict_proba", params)[:, 0]
        return self._mean_output(self._predictor(), X, "predict_proba", params)

    def predict_log_proba(self, X: MatrixLike, **params: Any) -> np.ndarray:
        """Natural logarithm of the mean probabilities; -inf where they are 0.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        **params : dict
            Metadata for the first method of `predict_log_proba`, `predict_proba` and `predict`
            that the base estimator has.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
        """
        _raise_for_params(params, self, "predict_log_proba")
        check_is_fitted(self)
        self = as_of_now(self)
        # A warm start may have kept estimators of another kind.
        has_logs = all(hasattr(estimator, "predict_log_proba") for estimator in self.estimators_)
        if self.voting != "soft" or not has_logs:
            with np.errstate(divide="ignore"):
                return np.log(self.predict_proba(X, **params))
        predict = partial(log_class_shares, n_classes=self.n_classes_)
        with self._each_output(predict, X, "predict_log_proba", params) as answers:
            return reduce(np.logaddexp, answers) - np.log(len(self.estimators_))

    @available_if(_estimator_has("decision_function", delegates=("estimators_", "estimator")))
    def decision_function(self, X: MatrixLike, **params: Any) -> np.ndarray:
        """Mean of the decision functions; available only if the base estimator has one.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        **params : dict
            Metadata for `decision_function` of the base estimator.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the shape that the base estimator returns.

        Raises
        ------
        ValueError
            If an estimator was not fitted on rows of every class, so that it has no decision for
            the others, or if `voting` is not "soft".
        """
        check_is_fitted(self)
        self = as_of_now(self)
        if self.voting != "soft":
            raise ValueError(
                f"decision_function is the mean over the estimators, but voting={self.voting!r} "
                'is another rule; use predict_proba, or voting="soft".'
            )
        for i, estimator in enumerate(self.estimators_):
            n_met = len(estimator.classes_)
            if n_met < self.n_classes_:
                raise ValueError(
                    f"estimators_[{i}] drew rows of only {n_met} of {self.n_classes_} classes, "
                    "so its decision function cannot be averaged with the others. Draw more rows "
                    "(max_samples), or use predict_proba."
                )
        decide = partial(output_of, method="decision_function")
        return self._mean_output(decide, X, "decision_function", params)

    def _refuse_contradictions(self, n_kept):
        super()._refuse_contradictions(n_kept)
        if is_regressor(self._base()):
            raise ValueError(
                f"BaggingClassifier needs a classifier, but {self._base()!r} is a regressor; "
                "use BaggingRegressor."
            )
        base = self._base()
        if isinstance(base, DecisionTreeClassifier) and base.loss is not None:
            warn_user(
                "BaggingClassifier predicts the class with the largest mean share, so loss= of "
                "its trees affects their splits but not the prediction. RandomForestClassifier "
                "with loss= and max_features=None is bagging that respects it."
            )

    def _encode_target(self, y, keep):
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if keep and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"y has the classes {classes}, but the estimators kept by warm_start=True have "
                f"{self.classes_}; fit with warm_start=False."
            )
        self.classes_, self.n_classes_ = classes, len(classes)
        return codes

    def _predictor(self):
        return partial(class_shares, n_classes=self.n_classes_)

    @property
    def _shape(self):
        return 1, self.n_classes_

    def _target(self, codes):
        return Target(codes[:, np.newaxis].astype(np.float64), [self.classes_])

    def _known_target(self, y):
        return encode_known_labels(y, [self.classes_])

    def _keep_out_of_bag(self, votes):
        total = votes.total[:, 0]
        with np.errstate(invalid="ignore"):  # 0 / 0 in rows that were never out of bag
            self.oob_decision_function_ = total / total.sum(axis=1, keepdims=True)
        return total.argmax(axis=1)


class BaggingRegressor(RegressorMixin, BaseBagging):
    __doc__ = with_docs_of(
        BaseBagging, "Bagging of regressors: the mean of their predictions.",
        name="BaggingRegressor", data="load_diabetes",
        arguments="n_estimators=50, oob_score=True, random_state=0",
        shown="round(model.oob_score_, 3)", output="0.399",
    )  # fmt: skip
    _tree_class = DecisionTreeRegressor

    def __init__(
        self, estimator: BaseEstimator | None = None, n_estimators: int = 10, *,
        max_samples: float | None = None, max_features: float = 1.0, bootstrap: bool = True,
        bootstrap_features: bool = False, oob_score: bool | Callable = False,
        warm_start: bool = False, n_jobs: int | None = None, random_state: RandomState = None,
        verbose: int = 0, voting: str = "soft", final_estimator: BaseEstimator | None = None,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def predict(self, X: MatrixLike, **params: Any) -> np.ndarray:
        """Mean of the predictions.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        **params : dict
            Metadata for `predict` of the base estimator.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        self = as_of_now(self)
        if self.voting != "soft":
            said = self._vote(X, "predict", params)[:, :, 0]
            return said[:, 0] if self.n_outputs_ == 1 else said
        return self._mean_output(self._predictor(), X, "predict", params)

    def _encode_target(self, y, keep):
        if issparse(y):
            check_array(y, input_name="y")  # raises scikit-learn's TypeError
        if y.ndim == 1 or y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        n_outputs = 1 if y.ndim == 1 else y.shape[1]
        if keep and n_outputs != self.n_outputs_:
            raise ValueError(
                f"y has {n_outputs} output(s), but the estimators kept by warm_start=True have "
                f"{self.n_outputs_}; fit with warm_start=False."
            )
        self.n_outputs_ = n_outputs
        return y

    def _predictor(self):
        return partial(output_of, method="predict")

    @property
    def _shape(self):
        return self.n_outputs_, 1

    _target = _known_target = staticmethod(encode_numbers)


storable_estimators(BaggingClassifier, BaggingRegressor)
