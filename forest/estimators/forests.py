"""Random forests and extra trees as scikit-learn estimators."""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

import cart
from cart.estimators.class_costs import cheapest, true_shares
from cart.estimators.outputs import ClassifierOutputs, RegressorOutputs
from cart.estimators.parameters import (
    CLASS_COSTS,
    CLASSIFIER_CRITERION,
    REGRESSOR_CRITERION,
    ClassWeight,
    MatrixLike,
    Priors,
    RandomState,
    keep_parameters,
    with_docs_of,
    without_deprecated,
)
from cart.estimators.saved_state import storable_estimators
from cart.estimators.validation import as_of_now
from forest.estimators.base import BaseForest
from forest.inference.intervals import predict_interval
from forest.inference.jackknife import standard_error
from forest.inference.quantiles import predict_quantiles
from forest.inference.training_rows import keep_leaves


class ForestClassifier(ClassifierOutputs, BaseForest):
    """Base class of forests of classification trees."""

    _has_classes = True
    _parameter_constraints = {
        **BaseForest._parameter_constraints,
        "criterion": CLASSIFIER_CRITERION,
        **CLASS_COSTS,
        "stratify": ["boolean"],
        "class_weight": [StrOptions({"balanced", "balanced_subsample"}), dict, list, None],
    }

    def _encode_target(self, y):
        target = super()._encode_target(y)
        if target.n_outputs > 1:  # as in scikit-learn, a list in forests, but an array in trees
            self.n_classes_ = self.n_classes_.tolist()
        return target

    def predict_proba_std(self, X: MatrixLike) -> np.ndarray | list[np.ndarray]:
        """Standard errors of the class shares of `predict_proba`.

        They are computed by the infinitesimal jackknife with its correction for a finite number of
        trees (Wager, Hastie and Efron 2014); see `forest.inference.jackknife.standard_error`, also
        for which forests it refuses, as those with `loss` are. They are too small for full trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64, or a list of them, one per output
            Columns in the order of `classes_`.
        """
        self = as_of_now(self)
        if hasattr(self, "loss_"):
            raise ValueError(
                "Standard errors describe the votes, which loss= weighs by class; fit without loss."
            )
        error = standard_error(self, self._check_X(X))
        if self.n_outputs_ == 1:
            return error[:, 0]
        return [error[:, k, :n] for k, n in enumerate(self.n_classes_)]

    def _keep_out_of_bag(self, votes):
        if self.n_outputs_ > 1 and max(self.n_classes_) > 2:
            raise ValueError(
                "The type of target cannot be used to compute OOB estimates. Got "
                "multiclass-multioutput while only the following are supported: continuous, "
                "continuous-multioutput, binary, multiclass, multilabel-indicator."
            )
        if hasattr(self, "loss_"):
            self.oob_decision_function_ = true_shares(votes.values[:, 0], self.loss_)
            return cheapest(self.oob_decision_function_, self.loss_)
        shares = votes.values.transpose(0, 2, 1)
        self.oob_decision_function_ = shares[:, :, 0] if self.n_outputs_ == 1 else shares
        return self.oob_decision_function_.argmax(axis=1)


class ForestRegressor(RegressorOutputs, BaseForest):
    """Base class of forests of regression trees."""

    _has_classes = False
    _parameter_constraints = {**BaseForest._parameter_constraints, "criterion": REGRESSOR_CRITERION}

    def predict(  # type: ignore[override]  # a pair, as scikit-learn's with return_std
        self, X: MatrixLike, check_input: bool = True, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Value of the leaf, averaged over trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks; X must then be an array of dtype `precision`.
        return_std : bool, default=False
            Also return the standard error of the prediction, by the infinitesimal jackknife with
            its correction for a finite number of trees (Wager, Hastie and Efron 2014); see
            `forest.inference.jackknife.standard_error`, also for which forests it refuses. It is
            too small for trees of full depth. It is the uncertainty of the prediction;
            `predict_interval` gives that of y.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        error : ndarray of the same shape
            Only with `return_std`.
        """
        self = as_of_now(self)
        mean = super().predict(X, check_input)
        if not return_std:
            return mean
        error = standard_error(self, self._check_X(X, check_input))[:, :, 0]
        return mean, error[:, 0] if self.n_outputs_ == 1 else error

    def predict_quantiles(self, X: MatrixLike, q: ArrayLike, in_bag: bool = False) -> np.ndarray:
        """Quantiles of y given x: quantile regression forests (Meinshausen 2006).

        A quantile is the smallest y of the training table whose cumulative weight reaches q,
        without interpolation; see `forest.inference.quantiles.predict_quantiles` for the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        q : float, or array-like of shape (n_quantiles,)
            Numbers between 0 and 1, in any order.
        in_bag : bool, default=False
            Count only the rows that each tree was grown on, as often as they were drawn.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_quantiles) if q is an array, float64

        Raises
        ------
        ValueError
            If q is not between 0 and 1, or the forest has several outputs or does not know its
            training rows (see `keep_leaves`).
        """
        return predict_quantiles(self, X, q, in_bag)

    def predict_interval(self, X: MatrixLike, coverage: float = 0.9) -> np.ndarray:
        """Intervals that contain y with a given probability, calibrated on out-of-bag rows.

        This is conformalised quantile regression (Romano, Patterson and Candes 2019) of out-of-bag
        residuals; see `forest.inference.intervals.predict_interval` for the steps. It needs a
        bootstrap.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float, default=0.9
            Probability, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2), float64
            Lower and upper bound.

        Raises
        ------
        ValueError
            If coverage is not between 0 and 1, or too high for the number of rows out of bag, or
            if the forest has no bootstrap, has several outputs, or does not know its training rows.
        """
        return predict_interval(self, X, coverage)

    def keep_leaves(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Self:
        """Keep the leaf of every training row, which quantiles and intervals need.

        A fitted forest does this itself when it first predicts them. Call it before pickling a
        forest that is to predict quantiles afterwards (for intervals, call `predict_interval` once
        instead). Pass the training table if the forest does not know it, because it was copied,
        unpickled or converted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
        y : array-like of shape (n_samples,), optional
            The training table.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the trees were not grown on this table, if it is neither given nor known, or if the
            forest has several outputs.
        """
        keep_leaves(self, X, y)
        return self


class RandomForestClassifier(ForestClassifier):
    __doc__ = with_docs_of(
        BaseForest, "A random forest of classification trees.",
        of_trees=cart.DecisionTreeClassifier,
        defaults={"bootstrap": True, "max_features": "sqrt"},
        name="RandomForestClassifier", data="load_iris", arguments="oob_score=True, random_state=0",
        shown="round(model.oob_score_, 3)", output="0.953",
    )  # fmt: skip
    _tree_class = cart.DecisionTreeClassifier

    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "gini",
        max_depth: int | None = None, min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None, min_impurity_decrease: float = 0.0,
        bootstrap: bool = True, oob_score: bool | Callable = False, n_jobs: int | None = None,
        random_state: RandomState = None, verbose: int = 0, warm_start: bool = False,
        class_weight: ClassWeight = None, ccp_alpha: float = 0.0, max_samples: float | None = None,
        monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", replace: bool = True, stratify: bool = False,
        voting: str = "soft", final_estimator: BaseEstimator | None = None,
        callback: Callable | None = None, max_time: float | None = None,
        max_memory: int | None = None, max_bins: int | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
        priors: Priors = None, loss: ArrayLike | None = None, bootstrap_draw: str = "sequence",
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())


class RandomForestRegressor(ForestRegressor):
    __doc__ = with_docs_of(
        BaseForest, "A random forest of regression trees.",
        of_trees=cart.DecisionTreeRegressor,
        defaults={"bootstrap": True, "max_features": 1.0},
        name="RandomForestRegressor", data="load_diabetes",
        arguments="oob_score=True, max_features=1 / 3, random_state=0",
        shown="round(model.oob_score_, 3)", output="0.439",
    )  # fmt: skip
    _tree_class = cart.DecisionTreeRegressor

    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "squared_error",
        max_depth: int | None = None, min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None, min_impurity_decrease: float = 0.0,
        bootstrap: bool = True, oob_score: bool | Callable = False, n_jobs: int | None = None,
        random_state: RandomState = None, verbose: int = 0, warm_start: bool = False,
        ccp_alpha: float = 0.0, max_samples: float | None = None,
        monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", replace: bool = True, voting: str = "soft",
        final_estimator: BaseEstimator | None = None, callback: Callable | None = None,
        max_time: float | None = None, max_memory: int | None = None, max_bins: int | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
        bootstrap_draw: str = "sequence",
    ) -> None:  # fmt: skip
        criterion = without_deprecated(criterion)
        keep_parameters(self, locals())


class ExtraTreesClassifier(ForestClassifier):
    __doc__ = with_docs_of(
        BaseForest,
        "Extremely randomised classification trees: one random threshold per feature.",
        of_trees=cart.ExtraTreeClassifier,
        defaults={"bootstrap": False},
        name="ExtraTreesClassifier", data="load_iris", arguments="random_state=0",
        shown="model.feature_importances_.round(2)", output="array([0.08, 0.07, 0.41, 0.44])",
    )  # fmt: skip
    _tree_class = cart.ExtraTreeClassifier

    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "gini",
        max_depth: int | None = None, min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None, min_impurity_decrease: float = 0.0,
        bootstrap: bool = False, oob_score: bool | Callable = False, n_jobs: int | None = None,
        random_state: RandomState = None, verbose: int = 0, warm_start: bool = False,
        class_weight: ClassWeight = None, ccp_alpha: float = 0.0, max_samples: float | None = None,
        monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", replace: bool = True, stratify: bool = False,
        voting: str = "soft", final_estimator: BaseEstimator | None = None,
        callback: Callable | None = None, max_time: float | None = None,
        max_memory: int | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
        priors: Priors = None, loss: ArrayLike | None = None, bootstrap_draw: str = "sequence",
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())


class ExtraTreesRegressor(ForestRegressor):
    __doc__ = with_docs_of(
        BaseForest,
        "Extremely randomised regression trees: one random threshold per feature.",
        of_trees=cart.ExtraTreeRegressor,
        defaults={"bootstrap": False},
        name="ExtraTreesRegressor", data="load_diabetes", arguments="random_state=0",
        shown="model.feature_importances_.round(2)",
        output="array([0.06, 0.03, 0.25, 0.12, 0.05, 0.05, 0.07, 0.07, 0.23, 0.07])",
    )  # fmt: skip
    _tree_class = cart.ExtraTreeRegressor

    def __init__(
        self, n_estimators: int | str = 100, *, criterion: str = "squared_error",
        max_depth: int | None = None, min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None, min_impurity_decrease: float = 0.0,
        bootstrap: bool = False, oob_score: bool | Callable = False, n_jobs: int | None = None,
        random_state: RandomState = None, verbose: int = 0, warm_start: bool = False,
        ccp_alpha: float = 0.0, max_samples: float | None = None,
        monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", replace: bool = True, voting: str = "soft",
        final_estimator: BaseEstimator | None = None, callback: Callable | None = None,
        max_time: float | None = None, max_memory: int | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
        bootstrap_draw: str = "sequence",
    ) -> None:  # fmt: skip
        criterion = without_deprecated(criterion)
        keep_parameters(self, locals())


storable_estimators(
    RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor
)
