"""Base class of Bagging: fit on drawn rows and features, votes, out-of-bag predictions."""

from abc import ABCMeta, abstractmethod
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils import metadata_routing as routing
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from cart.estimators.doc_link import DocLink
from cart.estimators.parameters import INT_MAX, MatrixLike
from cart.estimators.saved_state import SavedState, check_classes_of
from cart.estimators.target import refuse_missing_target
from cart.estimators.validation import (
    as_of_now,
    fitted_at_once,
    refuse_too_large,
    require_weight,
)
from cart.files import require
from cart.primitives.user_warning import warn_user
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.precision import as_plain_table, native_frame, with_plain_columns
from forest.estimators import bagging_workers as workers
from forest.estimators.fitted_on import as_numbers, refuse_unknown_draws, remember_rows
from forest.estimators.parameters import FOREST_CONSTRAINTS
from forest.growing.interruption import Interruption
from forest.growing.workers import results_of
from forest.inference.training_rows import require_table
from forest.sampling.patches import Patches
from forest.sampling.plan import count_draws
from forest.voting.mixin import VOTING_CONSTRAINTS, VotingMixin
from forest.voting.out_of_bag import OutOfBag

# X is checked by the base estimator.
_ANY_TABLE = {"accept_sparse": ["csr", "csc"], "dtype": None, "ensure_all_finite": False}

# Parameters with the same permitted values as a forest's.
_AS_FORESTS = ("bootstrap", "warm_start", "random_state", "verbose", *VOTING_CONSTRAINTS)


class BaseBagging(
    SavedState, DocLink, VotingMixin, MetaEstimatorMixin, BaseEstimator,
    metaclass=ABCMeta,
):  # fmt: skip
    """Base class of Bagging of classifiers and of regressors.

    Parameters
    ----------
    estimator : estimator, default=None
        The base estimator, which is fitted many times; None is a decision tree of `cart`.
    n_estimators : int, default=10
        Number of estimators to fit.
    max_samples : int or float, default=None
        Rows drawn per estimator: a number, or a share of the rows (of the total weight, if rows
        have weights); None draws as many rows as X has.
    max_features : int or float, default=1.0
        Features drawn per estimator: a number, or a share of the features.
    bootstrap : bool, default=True
        Draw rows with replacement.
    bootstrap_features : bool, default=False
        Draw features with replacement.
    oob_score : bool, default=False
        Score the out-of-bag predictions, by accuracy or R2. A warm start judges old and new
        estimators together, so it must be given the same table.
    warm_start : bool, default=False
        Keep the estimators of the previous fit and add new ones up to `n_estimators`. With an
        integer `random_state` the result is that of a single fit.
    n_jobs : int, default=None
        Number of joblib's workers. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the seeds of the estimators, which determine their draws and every
        `random_state` among their parameters.
    verbose : int, default=0
        joblib's verbosity; above 1, every estimator is also announced.
    voting : {"soft", "majority", "oob_weighted", "oob_weighted_soft", "stacked"}, default="soft"
        How the estimators vote, as in the forests: "soft" is the mean of their class shares (or
        numbers); the others count votes, weight them, or learn from them.
    final_estimator : estimator, default=None
        The meta-learner of voting="stacked"; None is a logistic or ridge regression.

    Attributes
    ----------
    estimator_ : estimator
        The base estimator, unfitted.
    estimators_ : list of estimators
        The fitted estimators. Those of a classifier predict positions in `classes_`.
    estimators_samples_ : list of ndarray of shape (n_draws,), int64
        Rows drawn for each estimator; computed from its seed on each access.
    estimators_features_ : list of ndarray of shape (n_drawn_features,), int64
        Features drawn for each estimator.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes), float64
        Mean out-of-bag class shares; nan for rows never out of bag (classification, `oob_score`).
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        Mean out-of-bag prediction; nan for rows never out of bag (regression, `oob_score`).
    oob_score_ : float
        Score of the rows that were ever out of bag; nan if there are none (with `oob_score`).
    estimator_weights_ : ndarray of shape (n_estimators, n_outputs), float64
        Weight of each estimator in the vote (voting="oob_weighted", "oob_weighted_soft").
    final_estimator_ : list of estimators, one per output
        The fitted meta-learners (voting="stacked").
    classes_ : ndarray of shape (n_classes,)
        Labels (classification only).
    n_classes_ : int
        Number of labels (classification only).
    n_outputs_ : int
        Number of columns of y (regression only).
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), str
        Column names of X, if all of them are strings.

    Notes
    -----
    For the same data, parameters and `random_state`, draws, estimators and predictions are those
    of scikit-learn. An estimator that takes `sample_weight` is fitted on all rows, weighted by how
    often each was drawn; any other is fitted on the drawn rows.

    References
    ----------
    Breiman (1996), Bagging predictors; Breiman (1999), Pasting small votes; Ho (1998), The random
    subspace method; Louppe and Geurts (2012), Ensembles on random patches.
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, INT_MAX, closed="both")],
        "max_samples": [
            None,
            Interval(Integral, 1, INT_MAX, closed="both"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "max_features": [
            Interval(Integral, 1, INT_MAX, closed="both"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "bootstrap_features": ["boolean"],
        "oob_score": ["boolean"],
        "n_jobs": [None, Integral],
        **{name: FOREST_CONSTRAINTS[name] for name in _AS_FORESTS},
    }

    estimator_params = ()  # as in scikit-learn, estimators take no parameters from Bagging

    # Base estimators must validate their own parameters, which nothing has checked yet.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the estimators, each on its drawn rows and features.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            A table that the base estimator accepts; also sparse or with nan, if it does.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) in regression
            Labels of any sortable type, or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; rows are drawn with probabilities proportional to it.
        **fit_params : dict
            Metadata for `fit` of the base estimator; needs scikit-learn's metadata routing.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters contradict each other or the table, or if a warm start is given a table
            that does not match the estimators kept.
        KeyboardInterrupt
            On Ctrl-C. The estimators before the first unfinished one are kept, and a warning says
            how many; if there is none, the previous fit is kept. With warm_start=True, another
            call of `fit` fits the rest.
        """
        routing._raise_for_params(fit_params, self, "fit")
        estimators, features, draws = self._kept()
        n_kept = len(estimators)
        with Interruption() as interruption, fitted_at_once(self) as draft:
            refuse_too_large(X)
            refuse_missing_target(y)
            X = native_frame(X)
            base = workers.with_categories_of(draft._base(), X)
            X, y = validate_data(
                draft, draft._as_table(X), y, reset=not n_kept, multi_output=True, **_ANY_TABLE
            )
            weight = draft._check_weight(sample_weight, X)
            y = draft._encode_target(y, keep=n_kept > 0)
            draft._refuse_contradictions(n_kept)
            is_judged = draft.oob_score or draft._learns_to_vote
            if is_judged:
                _require_rows(draws, X.shape[0])
            remember_rows(draft, X, draft._target(y).codes, add=n_kept > 0)
            refuse_unknown_draws(draft, is_judged)
            fit_params = routing.process_routing(draft, "fit", **fit_params)["estimator"]["fit"]
            if n_kept == draft.n_estimators:
                warn_user(
                    "Warm-start fitting without increasing n_estimators does not fit new ones."
                )
            else:
                n_draws = count_draws(draft.max_samples, X.shape[0], weight)
                patches = draft._plan_patches(X.shape, n_draws, weight, n_kept)
                draft.estimator_ = base
                fitted = draft._fit_each(X, y, patches, fit_params, interruption)
                draft.estimators_ = [*estimators, *fitted]
                new = range(len(fitted))
                draft.estimators_features_ = [*features, *(patches.features(i) for i in new)]
                draft._draws = [*draws, *((patches, i) for i in new)]
                draft._forget_out_of_bag()
            draft._learn_or_forget(X, draft._target(y), y, interruption)
        return self

    def _kept(self):
        """The estimators that a warm start keeps, their features and their draws."""
        if not (self.warm_start and hasattr(self, "estimators_")):
            return [], [], []
        n = len(self.estimators_)
        return self.estimators_, self.estimators_features_[:n], self._draws[:n]

    def _refuse_contradictions(self, n_kept):
        self._refuse_impossible_votes()
        if self.n_estimators < n_kept:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least {n_kept}, the number of "
                "estimators kept by warm_start=True."
            )

    def _check_weight(self, sample_weight, X):
        if sample_weight is None:
            return None
        refuse_missing_target(sample_weight, "sample_weight")
        # Do not cast single precision: that would change the draws, which are scikit-learn's.
        weight = _check_sample_weight(sample_weight, X, dtype=None, ensure_non_negative=True)
        require_weight(weight)
        if not self.bootstrap:
            warn_user(
                f"When fitting {type(self).__name__} with sample_weight it is recommended to use "
                "bootstrap=True: rows drawn without replacement follow their weights only loosely."
            )
        return weight

    def _plan_patches(self, shape, n_draws, weight, n_kept):
        """Plan the draws of the new estimators from a table of this shape."""
        n_samples, n_features = shape
        n_drawn_features = self.max_features
        if not isinstance(n_drawn_features, Integral):
            n_drawn_features = max(1, int(n_drawn_features * n_features))
        if n_drawn_features > n_features:
            raise ValueError(
                f"max_features={self.max_features} is more than the {n_features} features of X; "
                "set it to at most that, or to a share such as 1.0."
            )
        n_drawable = n_samples if weight is None else np.count_nonzero(weight)
        if n_draws > n_drawable and not self.bootstrap:
            raise ValueError(
                f"max_samples={n_draws} must be <= n_samples={n_drawable} to be able to sample "
                "without replacement. That is how many rows have a positive weight; set "
                "max_samples to at most that, or bootstrap=True."
            )
        # A warm start continues the stream of seeds where a single fit would be.
        seeds = check_random_state(self.random_state).randint(DRAW_SEED_MAX, size=self.n_estimators)
        return Patches(
            seeds[n_kept:], n_samples, n_draws, self.bootstrap,
            n_features, n_drawn_features, self.bootstrap_features,
            None if weight is None else weight / weight.sum(),
        )  # fmt: skip

    def _fit_each(self, X, y, patches, fit_params, interruption):
        """Fit an estimator for each patch; after Ctrl-C return those that were finished."""
        takes_weight = workers.takes_sample_weight(self.estimator_)
        fitted: list = []

        def fit_all():
            table, how = (X, y, patches), (takes_weight, fit_params, self.verbose)
            numbers = range(len(patches.seeds))
            tasks = ((workers.fit_one, self.estimator_, *table, i, *how) for i in numbers)
            with self._in_order(tasks) as results:
                for estimator in results:
                    fitted.append(estimator)

        if not interruption.run(fit_all):
            if not fitted:
                raise KeyboardInterrupt
            n_finished = self.n_estimators - len(patches.seeds) + len(fitted)
            interruption.keep(
                f"{n_finished} of {self.n_estimators} estimators are finished and kept (fit "
                "again with warm_start=True to continue)"
            )
        return fitted

    def _in_order(self, tasks):
        """Context with an iterator of the results of tasks, in the order of the tasks."""
        return results_of(tasks, self.n_jobs, verbose=self.verbose, prefer=None)

    def _predict_out_of_bag(self, X, target, judges=True):
        """See `VotingMixin._votes_out_of_bag`."""
        # strict=False, as in `_each_output`: the user may have removed estimators.
        tasks = (
            (workers.predict_out_of_bag, self._predictor(), estimator, X, patches, i)
            for estimator, (patches, i) in zip(self.estimators_, self._draws, strict=False)
        )
        seed = self._draws[0][0].seeds[0]
        with self._in_order(tasks) as answers:
            shaped = ((rows, said.reshape(len(rows), *self._shape)) for rows, said in answers)
            n_models = len(self.estimators_)
            return self._votes_out_of_bag(shaped, n_models, target, seed, judges=judges)

    def out_of_bag(self, X: MatrixLike, y: MatrixLike) -> OutOfBag:
        """Out-of-bag predictions: what the estimators predict for training rows they did not draw.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            The table that the estimators were fitted on.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) in regression

        Returns
        -------
        forest.voting.out_of_bag.OutOfBag

        Raises
        ------
        ValueError
            If no row is out of bag, or this is not the training table with its rows in order.
        """
        check_is_fitted(self)
        self = as_of_now(self)
        X = validate_data(self, self._as_table(X), reset=False, **_ANY_TABLE)
        _require_rows(self._draws, X.shape[0])
        y = np.asarray(y)
        check_consistent_length(X, y)
        target = self._known_target(y)
        require_table(self, as_numbers(X), target.codes, np.float64)
        return OutOfBag.of(self._predict_out_of_bag(X, target)[0], y, target)

    def check_state(self) -> None:
        """See `cart.estimators.saved_state.SavedState`."""
        if not hasattr(self, "estimators_"):
            return
        require(type(self.estimators_) is list, "Bagging has no list of estimators")
        for estimator in self.estimators_:
            is_model = not isinstance(estimator, type) and hasattr(estimator, "predict")
            require(is_model, "an estimator of Bagging cannot predict")
        for features in self.estimators_features_:
            is_array = isinstance(features, np.ndarray) and features.dtype.kind in "iu"
            is_array = is_array and features.ndim == 1 and len(features) > 0
            require(is_array, "the features of an estimator are not an array of numbers")
            is_known = features.min() >= 0 and features.max() < self.n_features_in_
            require(bool(is_known), "the features of an estimator are out of range")
        for patches, i in self._draws:
            require(isinstance(patches, Patches), "an estimator has no draws")
            require(0 <= i < len(patches.seeds), "the draws of an estimator are out of range")
        for patches in {id(patches): patches for patches, _ in self._draws}.values():
            patches.check()
        check_classes_of(self)

    def _vote(self, X, caller, params):
        """The vote by a rule other than "soft", (n_samples, n_outputs, n_values).

        The parameters are those of `_each_output`.
        """
        with self._each_output(self._predictor(), X, caller, params) as answers:
            outputs = list(answers)
        return self._decide(np.stack([said.reshape(-1, *self._shape) for said in outputs], axis=1))

    def _mean_output(self, predict, X, caller, params):
        """Mean of the outputs, added in a fixed order: the same for every `n_jobs`."""
        with self._each_output(predict, X, caller, params) as outputs:
            return sum(outputs) / len(self.estimators_)

    def _each_output(self, predict, X, caller, params):
        """Context with an iterator of each estimator's output on X, an ndarray, in order.

        `predict(estimator, X, params)` is called with the metadata of each method of the estimator,
        routed from `params`, the metadata that our method `caller` was given.
        """
        routing._raise_for_params(params, self, caller)
        X = validate_data(self, self._as_table(X), reset=False, **_ANY_TABLE)
        routed = routing.process_routing(self, caller, **params)["estimator"]
        # Estimators that the user removed do not vote; their features are ignored (strict=False).
        each = zip(self.estimators_, self.estimators_features_, strict=False)
        return self._in_order(
            (workers.predict_one, predict, estimator, X, features, routed)
            for estimator, features in each
        )

    def _as_table(self, X):
        """Prepare X for our trees: dates as seconds, and pandas' own dtypes as numpy's.

        Columns of pandas' own dtypes could not be in one array with numbers.
        """
        if not isinstance(self._base(), SavedState):
            return X
        return with_plain_columns(as_plain_table(X))

    def _base(self):
        return self._tree_class() if self.estimator is None else self.estimator

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows drawn for each estimator, computed from its seed: a list of int64 arrays."""
        check_is_fitted(self)
        return [patches.draws(i) for patches, i in self._draws]

    def get_metadata_routing(self) -> routing.MetadataRouter:
        """Say which metadata goes to which method of the base estimator.

        `sample_weight` of `fit` goes to none of them: it determines the draws.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        base = self._base()
        votes = "predict_proba" if hasattr(base, "predict_proba") else "predict"
        log_votes = "predict_log_proba" if hasattr(base, "predict_log_proba") else votes
        mapping = routing.MethodMapping()
        for caller, callee in (
            ("fit", "fit"),
            ("decision_function", "decision_function"),
            ("predict", votes),
            ("predict_proba", votes),
            ("predict_log_proba", log_votes),
        ):
            mapping.add(caller=caller, callee=callee)
        return routing.MetadataRouter(owner=self).add(estimator=base, method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = base.sparse, base.allow_nan
        return tags

    # Subclasses also have `_shape`, the shape (n_outputs, n_values) of an estimator's output on one
    # row; `_target` and `_known_target`, which make a `Target` of y as the estimators got it, and
    # as the user gives it.
    @abstractmethod
    def _encode_target(self, y, keep):
        """y as the estimators get it; with `keep` it must match y of the previous fit."""

    @abstractmethod
    def _predictor(self):
        """The function `predict(estimator, X, params)` that returns an estimator's vote."""


def _require_rows(draws, n_samples):
    """Raise a ValueError if estimators to judge out of bag drew from a table of another length."""
    for patches, _ in draws:
        if patches.n_samples != n_samples:
            raise ValueError(
                f"Out-of-bag estimates need the training table: X has {n_samples} rows, but some "
                f"estimators were fitted on {patches.n_samples}. (After a warm start on another "
                "table, no table fits all estimators.)"
            )
