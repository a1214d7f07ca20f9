"""Base class of the forests: fit, votes and leaves of rows, out-of-bag predictions."""

from functools import partial
from inspect import signature
from operator import attrgetter
from typing import Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, MultiOutputMixin, _fit_context
from sklearn.exceptions import DataConversionWarning
from sklearn.utils._sparse import _align_api_if_sparse
from sklearn.utils.validation import check_is_fitted

from cart.estimators.doc_link import DocLink
from cart.estimators.parameters import GivenParameters, MatrixLike
from cart.estimators.preparation import prepare
from cart.estimators.saved_state import SavedState, check_classes_of, check_tree_of
from cart.estimators.trees import BaseDecisionTree
from cart.estimators.validation import as_of_now, check_table, fitted_at_once, require_weight
from cart.files import require
from cart.primitives.threads import in_parts
from cart.primitives.user_warning import warn_user
from cart.table.precision import precision_of
from cart.tree.packed import pack
from cart.tree.traversal import leaf_ids, paths_to, rows_for
from forest.estimators.fitted_on import refuse_unknown_draws, remember_the_fit
from forest.estimators.growth import grow_forest, shared_parameters
from forest.estimators.parameters import FOREST_CONSTRAINTS, refuse_contradictions
from forest.growing.interruption import Interruption
from forest.inference.training_rows import is_worth_remembering, remember, require_table
from forest.sampling.bootstrap import Draws, bootstrap_of
from forest.sampling.plan import draws_ignore_class_weight, plan_bootstrap
from forest.sampling.weights import combine_weights
from forest.voting.mixin import VotingMixin
from forest.voting.out_of_bag import NO_ROW, OutOfBag, outputs_out_of_bag, sum_out_of_bag
from forest.voting.rules import RULES, soft_vote, vote, with_ballots

# Packed trees of each fit, by its first tree. They are kept here, so that predicting does not
# change attributes of estimators. The same trees may be packed with class shares and with ballots.
_PACKED: WeakKeyDictionary = WeakKeyDictionary()


class BaseForest(
    SavedState, DocLink, GivenParameters, VotingMixin, MultiOutputMixin,
    BaseEstimator,
):  # fmt: skip
    """Base class of forests of classification and regression trees.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        Number of trees. "auto" grows trees until the out-of-bag loss and the order of the five most
        important features would hardly change with more, see `forest.growing.stopping`, or until
        `max_time` or `max_memory` is reached.
    %(of_trees)s
    bootstrap : bool
        Grow each tree on rows drawn with replacement (as random forests do), or else on all rows
        (as extra trees do).
    bootstrap_draw : {"sequence", "keyed"}, default="sequence"
        "sequence" draws rows by scikit-learn's random stream. "keyed" draws other rows by the same
        distribution, and can draw for a part of the rows without the others, see
        `forest.sampling.block_draws`: `forest.dask.fit` then need not replay the stream of a long
        table on every worker.
    oob_score : bool or callable, default=False
        Score the out-of-bag predictions: by accuracy or R2, or by `oob_score(y_true, y_pred)`,
        which gets classes as their positions in `classes_`, as in scikit-learn.
    n_jobs : int, default=None
        Number of threads (or of workers, if another joblib backend is active). The model does not
        depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the seeds of the trees, which determine their draws of rows and features.
    verbose : int, default=0
        Above 0, a progress bar shows the trees grown, trees per second and the time left (by tqdm,
        if it is installed).
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every tree. If it returns False,
        growth ends and the forest has the trees grown so far (with several threads, a few more may
        be grown to fill gaps before the last one).
    warm_start : bool, default=False
        Keep the trees of the previous fit and add new ones up to `n_estimators`.
    class_weight : {"balanced", "balanced_subsample"}, dict, list of dict or None, default=None
        Weight of each class, one dict per output (classification only).
    max_samples : int or float, default=None
        Rows drawn per tree: a number, or a share of the rows (of the total weight, if rows have
        weights); None draws as many rows as X has, or 0.632 of them without replacement. If `fit`
        is given `groups`, groups are drawn and counted instead.
    replace : bool, default=True
        Draw with replacement; if False, no row is drawn twice for a tree.
    stratify : bool, default=False
        Draw from each class in proportion to its rows (classification only).
    voting : {"soft", "majority", "oob_weighted", "oob_weighted_soft", "stacked"}, default="soft"
        How trees vote. "soft": the mean of their class shares (or numbers). "majority": one tree,
        one vote. "oob_weighted": votes weighted by each tree's out-of-bag accuracy (in regression,
        by its R2, not below 0). "oob_weighted_soft": class shares with these weights. "stacked": a
        meta-learner trained on the trees' out-of-bag outputs, see `forest.voting.stacking` (it
        holds the outputs of all trees for all rows in memory at once).
    final_estimator : estimator, default=None
        The meta-learner of voting="stacked"; None is a logistic or ridge regression.
    max_time : float, default=None
        Approximate limit of the time for growing, in seconds (n_estimators="auto").
    max_memory : int, default=None
        Approximate limit of the memory for the nodes of all trees, in bytes (n_estimators="auto").

    Attributes
    ----------
    estimator_ : estimator of `cart`
        An unfitted tree of the kind that the forest grows.
    estimators_ : list of estimators of `cart`
        The trees.
    estimators_samples_ : list of ndarray of shape (n_draws,), int32
        Rows drawn for each tree; computed from its seed on each access.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes[, n_outputs]), float64
        Mean out-of-bag class shares; nan for rows never out of bag (classification, `oob_score`).
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        Mean out-of-bag prediction; nan for rows never out of bag (regression, `oob_score`).
    oob_score_ : float
        Score of the rows that were ever out of bag; nan if there are none (with `oob_score`).
    estimator_weights_ : ndarray of shape (n_estimators, n_outputs), float64
        Weight of each tree in the vote (voting="oob_weighted", "oob_weighted_soft").
    final_estimator_ : list of estimators, one per output
        The fitted meta-learners (voting="stacked").
    stability_ : forest.growing.stopping.Stability
        How much the result still depends on the number of trees (n_estimators="auto").
    classes_ : ndarray of shape (n_classes,), or list of them
        Labels, or a list of the labels of each output (classification only).
    n_classes_ : int or list of int, one per output
        Number of labels (classification only).
    n_features_in_, n_outputs_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), str
        Column names of X, if all of them are strings.
    feature_importances_ : ndarray of shape (n_features_in_,), float64
        Mean decrease in impurity of every feature; sums to 1, or all 0 if no tree has a split. It
        favours features with many distinct values and features that the trees overfit; see
        `importance.oob_permutation`.
    n_merged_values_ : ndarray of shape (n_features_in_,), int64
        How many distinct values of each column became equal to others in `precision`. A
        UserWarning names the columns where they are more than 1 %, or any of integers or dates.

    Notes
    -----
    For the same data, parameters and `random_state` the trees are those that scikit-learn grows,
    node for node. With a bootstrap, `sample_weight`, `class_weight`, `priors` and `loss` determine
    the probabilities of the draws; without one, they are weights inside the trees. `priors` and
    `loss` are weights inside the trees also if rows are not drawn by weight: with `groups`,
    `in_bag`, `stratify=True` and `bootstrap_draw="keyed"`.
    """

    _parameter_constraints = FOREST_CONSTRAINTS

    stratify = False
    bootstrap_draw, _class_factor, _own_weight = "sequence", None, None  # for older pickles
    # In a search with `groups`, these go to the splitter only, as with scikit-learn's forests.
    __metadata_request__fit = {"groups": False}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        in_bag: ArrayLike | None = None,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; nan is a missing value.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. With a bootstrap, rows are drawn with probabilities proportional to it.
        groups : array-like of shape (n_samples,), default=None
            Group of each row: the rows of a group are in bag or out of bag together. Metadata
            routing passes groups on after `set_fit_request(groups=True)`.
        in_bag : array-like of shape (n_estimators, n_samples), default=None
            How often each row is in bag for each tree, as whole numbers; nothing is then drawn.

        Returns
        -------
        self

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C. If trees were finished by then, the forest is fitted with them and a warning
            says how many; else the previous fit is kept. With warm_start=True, another call of
            `fit` grows the rest.
        """
        old_trees = self.estimators_ if self.warm_start and self.__sklearn_is_fitted__() else []
        with Interruption() as interruption, fitted_at_once(self) as draft:
            given, draft.estimators_ = X, old_trees
            _refuse_sparse_target(y)
            X, y = check_table(draft, X, y, reset=not old_trees)
            _warn_of_column(y)
            if len(old_trees) == draft.n_estimators:
                warn_user(
                    "Warm-start fitting without increasing n_estimators does not fit new trees."
                )
                if not draft._learns_to_vote and (
                    not draft.oob_score or hasattr(draft, "oob_score_")
                ):
                    return self  # nothing depends on the table
            prepared = prepare(draft, X, y, sample_weight, draft.estimator.splitter)
            refuse_contradictions(draft, old_trees)
            target = prepared.target
            _require_same_outputs(self, old_trees, target, getattr(draft, "loss_", None))
            draft._n_samples = X.shape[0]
            draft._weigh_rows(prepared, draws_ignore_class_weight(draft, groups, in_bag))
            needs_rows = draft._judges_out_of_bag or is_worth_remembering(target)
            if needs_rows and not issparse(X):
                X = X.astype(precision_of(draft), copy=False)
                prepared = prepared._replace(X=X)
            bootstrap = plan_bootstrap(draft, target.codes, draft._row_weight, groups, in_bag)
            remember_the_fit(
                draft, X, target.codes, precision_of(draft), bootstrap, add=bool(old_trees)
            )
            refuse_unknown_draws(draft, draft._judges_out_of_bag)
            if len(old_trees) != draft.n_estimators:
                table, columns = prepared.encode(draft, given, draft.n_estimators == "auto")
                draft.estimators_ = grow_forest(
                    draft, table, prepared.plan, columns, target, old_trees, interruption
                )
                draft._forget_out_of_bag()  # results of the old trees
            truth = target.codes if target.labels is None else target.codes.astype(np.int64)
            truth = truth[:, 0] if target.n_outputs == 1 else truth
            draft._learn_or_forget(X, target, truth, interruption)
            remember(draft, X, target)
        return self

    def _weigh_rows(self, prepared, draws_ignore_class_weight):
        """Keep the weights of rows for the draws (or inside the trees, without a bootstrap).

        If draws do not go by weights, the factors of priors and losses are kept apart, for the
        weights inside the trees.
        """
        self._row_weight, self._class_factor = prepared.weight, None
        if draws_ignore_class_weight:
            self._row_weight, self._class_factor = prepared.own_weight, prepared.class_factor
        has_factor = prepared.class_factor is not None
        self._own_weight = prepared.own_weight if has_factor else None  # for refits

    @property
    def _judges_out_of_bag(self):
        return self.oob_score or self._learns_to_vote or self.n_estimators == "auto"

    def _combine_weights(self, weight, y, target):
        """Weight of each row times that of its class; None if there are neither."""
        if target.labels is not None:
            if self.warm_start and isinstance(self.class_weight, str):
                warn_user(
                    f"class_weight={self.class_weight!r} is not recommended for warm_start if the "
                    "fitted data differs from the full dataset: pass the weights of the full "
                    "dataset as a dict instead."
                )
            weight = combine_weights(self.class_weight, weight, y, target.labels, self.bootstrap)
        if weight is not None:
            require_weight(weight)
        return weight

    def _predict_out_of_bag(self, X, target, judges=True):
        """Out-of-bag votes of the trees; see `VotingMixin._votes_out_of_bag`."""
        bootstrap = bootstrap_of(self)
        trees = self._packed(), X, target.n_outputs, bootstrap.out_of_bag
        if self.voting == "soft" and not judges:
            return sum_out_of_bag(*trees), None
        answers = outputs_out_of_bag(*trees)
        n_trees, seed = len(self.estimators_), bootstrap.seeds[0]
        return self._votes_out_of_bag(answers, n_trees, target, seed, bootstrap.groups, judges)

    def out_of_bag(self, X: MatrixLike, y: MatrixLike) -> OutOfBag:
        """Out-of-bag predictions: what the trees predict for training rows they were not grown on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table that the forest was fitted on.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)

        Returns
        -------
        forest.voting.out_of_bag.OutOfBag

        Raises
        ------
        ValueError
            If no row is out of bag, or this is not the training table with its rows in order.
        """
        self = as_of_now(self)
        X = self._check_X(X)
        if not self._bootstrap.is_drawn:
            raise ValueError(NO_ROW)
        y = np.asarray(y)
        n_rows, n_columns = (*y.shape, 1)[:2] if y.ndim else (0, 1)
        if X.shape[0] != self._n_samples or n_rows != self._n_samples:
            raise ValueError(
                f"X and y must be the training table of {self._n_samples} rows, but have "
                f"{X.shape[0]} and {n_rows} rows."
            )
        if n_columns != self.n_outputs_:
            raise ValueError(
                f"y must have {self.n_outputs_} output(s), as in the fit, but has {n_columns}."
            )
        target = self._encode_known_target(y)
        require_table(self, X, target.codes)
        votes, costs = self._predict_out_of_bag(X, target)[0], getattr(self, "loss_", None)
        return OutOfBag.of(votes, y, target, costs, self._bootstrap.groups)

    def __setstate__(self, state: dict) -> None:
        if "_plan" in state:  # the attribute's name in old pickles
            state = {**state, "_bootstrap": state["_plan"]}
            del state["_plan"]
        super().__setstate__(state)

    def check_state(self) -> None:
        """See `cart.estimators.saved_state.SavedState`."""
        if not self.__sklearn_is_fitted__():
            return
        require(type(self.estimators_) is list, "a forest has no list of trees")
        for tree in self.estimators_:
            require(isinstance(tree, BaseDecisionTree), "an estimator of a forest is not a tree")
            check_tree_of(self, tree.tree_)
        check_classes_of(self)
        require(isinstance(self._bootstrap, Draws), "a forest has no draws")
        self._bootstrap.check()
        n_samples = self._bootstrap.n_samples
        require(self._n_samples == n_samples, "the draws do not match the rows")
        for weight in (self._row_weight, self._own_weight):
            is_weight = weight is None or np.shape(weight) == (n_samples,)
            require(is_weight, "the weights do not match the rows")
        factor = self._class_factor
        is_factor = factor is None or np.shape(factor) == (getattr(self, "n_classes_", 0),)
        require(is_factor, "the weights do not match the classes")
        rows = getattr(self, "_training_rows", None)
        require(rows is None or len(rows.y) == n_samples, "the leaves do not match the rows")

    @property
    def estimator(self) -> BaseEstimator:
        """An unfitted tree of the kind that the forest grows, with default parameters."""
        return self._tree_class()

    @property
    def estimator_params(self) -> tuple[str, ...]:
        """Names of the parameters that trees get from the forest; `random_state` seeds theirs."""
        shared = {*shared_parameters(self._tree_class), "random_state"}
        return tuple(name for name in signature(type(self)).parameters if name in shared)

    @property
    def estimator_(self) -> BaseEstimator:
        """The same as `estimator`, for a fitted forest: scikit-learn's name for it."""
        check_is_fitted(self)
        return self.estimator

    def __sklearn_is_fitted__(self) -> bool:
        return len(getattr(self, "estimators_", ())) > 0

    def _packed(self, rule="soft", weight=None):
        """The trees, packed on first use; leaves hold ballots by the rule, times tree weights."""
        trees = list(map(attrgetter("tree_"), self.estimators_))
        first = self.estimators_[0]
        known, packed = _PACKED.get(first, (None, {}))
        if known != trees:
            packed = {("soft", None): pack(trees, precision_of(self), self.n_jobs)}
            _PACKED[first] = trees, packed
        key = rule, None if weight is None else weight.tobytes()
        if key not in packed:
            plain = packed["soft", None]
            if weight is not None or not RULES[rule].is_hard:  # even pure leaves change
                plain = pack(trees, precision_of(self), self.n_jobs, shares_leaves=False)
            packed[key] = with_ballots(plain, self.n_outputs_, rule, weight)
        return packed[key]

    def _values(self, X, check_input):
        self._require_fit()
        learnt = self._learnt()
        if self.voting == "stacked":
            walk = partial(vote, n_outputs=self.n_outputs_, decide=self._decide, n_jobs=self.n_jobs)
            return self._walk(walk, self._packed(), X, check_input)
        walk = partial(soft_vote, n_jobs=self.n_jobs, is_weighed=learnt is not None)
        values = self._walk(walk, self._packed(self.voting, learnt), X, check_input)
        return values.reshape(len(values), self.n_outputs_, -1)

    def apply(self, X: MatrixLike) -> np.ndarray:
        """Number of the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_estimators), int64
        """
        self = as_of_now(self)
        return self._leaves_of(X).T

    def _leaves_of(self, X):
        """The leaf of each row in each tree, (n_trees, n_rows) int64."""
        self._require_fit()
        packed = self._packed()
        X = self._walk(rows_for, packed, X)
        leaves = np.empty((len(self.estimators_), X.n_samples), np.int64)

        def fill(tree, _):
            leaves[tree] = leaf_ids(packed, tree, X)

        in_parts(fill, len(leaves), self.n_jobs, max_part=1)
        return leaves

    def decision_path(self, X: MatrixLike) -> tuple[csr_matrix, np.ndarray]:
        """Indicator matrix of the nodes of all trees that each row passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        indicator : scipy.sparse.csr_matrix of shape (n_samples, n_nodes)
            The nodes of all trees, tree after tree; a csr_array if scikit-learn's option
            `sparse_interface` is "sparray".
        n_nodes_ptr : ndarray of shape (n_estimators + 1,), int64
            Tree t has the columns n_nodes_ptr[t]:n_nodes_ptr[t + 1].
        """
        self = as_of_now(self)
        leaves = self._leaves_of(X)
        paths, start = paths_to(leaves, [estimator.tree_ for estimator in self.estimators_])
        return _align_api_if_sparse(paths), start

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows drawn for each tree, computed from its seed: a list of int32 arrays."""
        self = as_of_now(self)
        check_is_fitted(self)
        bootstrap = bootstrap_of(self)
        return [bootstrap.draws(tree) for tree in range(len(self.estimators_))]

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean decrease in impurity, (n_features,); sums to 1, or all 0 if no tree has a split.

        See `importance.mdi`, which also gives its standard error and explains its bias.
        """
        check_is_fitted(self)
        per_tree = [tree.feature_importances_ for tree in self.estimators_]
        grown = [values for values in per_tree if values.any()]
        if not grown:
            return np.zeros(self.n_features_in_)
        mean = np.mean(grown, axis=0)
        return mean / mean.sum()


def _refuse_sparse_target(y):
    if issparse(y):
        raise ValueError(
            "sparse multilabel-indicator for y is not supported. Use y.toarray() to make it dense."
        )


def _warn_of_column(y):
    if y.ndim == 2 and y.shape[1] == 1:
        warn_user(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
        )


def _require_same_outputs(forest, old_trees, target, loss):
    """Raise a ValueError if new trees would have other outputs, labels or losses than old ones."""
    if not old_trees:
        return
    if not np.array_equal(getattr(old_trees[0], "loss_", None), loss):
        raise ValueError("The trees kept by warm_start=True have another loss; set it as it was.")
    kept = old_trees[0].tree_
    for what, new, old in (
        ("output(s)", target.n_outputs, kept.n_outputs),
        ("classes", target.n_values, kept.max_n_classes),
    ):
        if new != old:
            raise ValueError(
                f"y has {new} {what}, but the trees kept by warm_start=True have {old}; fit with "
                "warm_start=False."
            )
    if target.labels is None:
        return
    known = forest.classes_ if forest.n_outputs_ > 1 else [forest.classes_]
    for new, old in zip(target.labels, known, strict=True):
        if not np.array_equal(new, old):
            raise ValueError(
                f"y has the classes {new}, but the trees kept by warm_start=True have {old}; fit "
                "with warm_start=False."
            )
