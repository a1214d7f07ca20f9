"""`select_features` as a transformer; in its own module because the mixin is slow to import."""

from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from cart.estimators.doc_link import DocLink
from cart.estimators.parameters import keep_parameters
from cart.table.precision import as_plain_table, native_frame, with_plain_columns
from importance.inference.refit import Measure
from importance.inference.shadow import METHODS, select_features


class FeatureSelector(DocLink, SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Transformer that keeps the features that `select_features` confirms.

    Parameters
    ----------
    estimator : random forest, ours or scikit-learn's
        Needs bootstrap=True with the default `measure`; a clone of it is fitted.
    method : {"maximum", "boruta"}, default="maximum"
        How to decide on features, see `select_features`.
    alpha : float, default=0.05
        With "maximum", a bound on the chance that any noise feature is kept if there is nothing but
        noise. "boruta" does not bound it, with any number of rounds: see `select_features`.
    n_rounds : int, default=99
        How often the forest is refitted with shadows; more rounds decide more features, and take
        longer.
    measure : callable, default=None
        `measure(forest, X, y)` returns Importances; exact `oob_permutation` by default.
    random_state : int, RandomState instance or None, default=None
        Seed of the shadows and the refits.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar with the time left; a step is one refit.
    keep_tentative : bool, default=False
        Also keep the features that are not decided; `alpha` then bounds nothing.

    Attributes
    ----------
    estimator_ : estimator
        The forest fitted on all features.
    selection_ : Selection
        The decision on each feature, and the data it rests on.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), str
        Column names of X, if all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from cartwood import FeatureSelector, RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0)
    >>> selector = FeatureSelector(forest, n_rounds=19, random_state=0).fit(X, y)
    >>> selector.get_feature_names_out()
    array(['bmi', 'bp', 's3', 's4', 's5', 's6'], dtype=object)
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"])],
        "method": [StrOptions(METHODS)],
        "alpha": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "measure": [callable, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "keep_tentative": ["boolean"],
    }

    def __init__(
        self, estimator: Any, *, method: str = "maximum", alpha: float = 0.05, n_rounds: int = 99,
        measure: Measure | None = None, random_state: Any = None, n_jobs: int | None = None,
        verbose: int = 0, keep_tentative: bool = False,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, **fit_params: Any) -> "FeatureSelector":
        """Fit the forest and select the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **fit_params
            Passed on to the forest's `fit`, such as `sample_weight`, which its refits use as well;
            with scikit-learn's `enable_metadata_routing`, as the forest requests them.

        Returns
        -------
        self
        """
        if _routing_enabled():
            fit_params = process_routing(self, "fit", **fit_params)["estimator"]["fit"]
        estimator = clone(self.estimator).fit(X, y, **fit_params)
        self.selection_ = select_features(
            estimator, X, y, method=self.method, alpha=self.alpha, n_rounds=self.n_rounds,
            measure=self.measure, random_state=self.random_state, n_jobs=self.n_jobs,
            verbose=self.verbose,
        )  # fmt: skip
        self.estimator_ = estimator
        self.n_features_in_ = estimator.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(estimator, "feature_names_in_"):
            self.feature_names_in_ = estimator.feature_names_in_
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns that are kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_kept)
            Or the container that `set_output` asks for. In an array, dates are seconds.
        """
        X, output = native_frame(X), _get_output_config("transform", self)["dense"]
        if output == "default":
            X = with_plain_columns(as_plain_table(X))
        elif hasattr(type(X), "to_dicts"):
            # Of polars: scikit-learn would make it an array of objects.
            if output == "pandas":
                import pandas as pd

                X = pd.DataFrame(X.to_dict(as_series=False))
            elif self._get_support_mask().any():
                validate_data(self, X, reset=False, skip_check_array=True)
                return X[:, self.get_support(indices=True).tolist()]
        return super().transform(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """Tell scikit-learn's metadata routing that `fit` passes its parameters on to the forest.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def _get_support_mask(self):
        check_is_fitted(self)
        chosen = self.selection_
        return chosen.confirmed | chosen.tentative if self.keep_tentative else chosen.confirmed

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        theirs = get_tags(self.estimator).input_tags
        tags.target_tags.required = True
        tags.input_tags.sparse, tags.input_tags.allow_nan = theirs.sparse, theirs.allow_nan
        return tags
