"""Decision trees as scikit-learn estimators."""

from abc import ABCMeta, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, MultiOutputMixin, _fit_context, clone
from sklearn.utils import (
    Bunch,
    check_array,
    compute_sample_weight,
    metadata_routing,
)
from sklearn.utils._param_validation import StrOptions
from sklearn.utils._sparse import _align_api_if_sparse
from sklearn.utils.validation import check_is_fitted

from cart.estimators.category_encoder import match_categories
from cart.estimators.doc_link import DocLink
from cart.estimators.grower import Grower
from cart.estimators.outputs import ClassifierOutputs, RegressorOutputs
from cart.estimators.parameters import (
    CLASS_COSTS,
    CLASSIFIER_CRITERION,
    REGRESSOR_CRITERION,
    TREE_CONSTRAINTS,
    ClassWeight,
    GivenParameters,
    MatrixLike,
    Priors,
    RandomState,
    first_draw,
    keep_parameters,
    with_docs_of,
    without_deprecated,
)
from cart.estimators.preparation import prepare
from cart.estimators.saved_state import (
    SavedState,
    check_classes_of,
    check_tree_of,
    storable_estimators,
)
from cart.estimators.target import warn_of_small_target
from cart.estimators.validation import (
    as_of_now,
    check_criterion,
    check_table,
    copy_of,
    fitted_at_once,
    require_weight,
)
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.precision import precision_of
from cart.table.thresholds import fill_thresholds
from cart.tree.packed import with_values
from cart.tree.pruning import pruning_path
from cart.tree.traversal import leaf_ids, paths_to, sum_of_values
from cart.tree.tree import Tree


class BaseDecisionTree(
    SavedState, DocLink, GivenParameters, MultiOutputMixin, BaseEstimator, metaclass=ABCMeta
):
    """What classification and regression trees share.

    Parameters
    ----------
    criterion : str
        Measure of impurity that splits decrease: "gini", "entropy" or "log_loss" (the same) in
        classification, "squared_error", "absolute_error" or "poisson" in regression.
        Classification also has "twoing" and "ordered_twoing" (for ordered classes), which choose
        the split that best separates two groups of classes; the impurity of nodes is then Gini's.
        See `cart.splitting.twoing`.
    splitter : {"best", "random"}
        "best" searches every threshold of a feature; "random" draws one at random.
    max_depth : int, default=None
        Maximum depth of the tree; None is unlimited.
    min_samples_split : int or float, default=2
        Minimum number of samples in a node to split it; a float is a share of n_samples.
    min_samples_leaf : int or float, default=1
        Minimum number of samples on either side of a cut; a float is a share of n_samples.
    min_weight_fraction_leaf : float, default=0.0
        Minimum weight on either side of a cut, as a share of the total weight.
    max_features : int, float, {"sqrt", "log2"} or None
        Number of features considered at a split: a number, a share, or all (None). The search goes
        on beyond it until a feature is found that is not constant in the node. The default is all
        for decision trees and in regression, "sqrt" for extra trees and forests in classification.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which features are drawn, which decides between equally good splits.
    max_leaf_nodes : int, default=None
        Maximum number of leaves: the node with the largest decrease in impurity is split first.
    min_impurity_decrease : float, default=0.0
        Minimum weighted impurity decrease of a split, as a share of the total weight.
    class_weight : dict, list of dict or "balanced", default=None
        Weight of each class, one dict per output (classification only).
    priors : dict of label to float, or array-like of shape (n_classes,), default=None
        Share of each class in the population to predict, summing to 1, in the order of `classes_`
        (a pandas Series is read by its labels); None takes the shares in the weighted training
        rows. Only for classification with one output, and not with `class_weight`.
    loss : array-like of shape (n_classes, n_classes), default=None
        loss[i][j] is the cost of predicting class j for class i, in the order of `classes_`; None
        is 1 for every mistake. Splits are chosen under altered priors, which give more weight to
        classes that are costly to mistake; the shares and weights in `tree_` are under them.
        `predict` returns the class of least expected loss; `predict_proba` and scores are not
        altered. See `cart.estimators.class_costs`. Only for classification with one output.
    ccp_alpha : float, default=0.0
        Prune to the subtree of least impurity + ccp_alpha * (number of leaves).
    monotonic_cst : array-like of shape (n_features,), default=None
        1: the prediction (the probability of the second class) does not fall when the feature
        rises; -1: it does not rise; 0: no constraint. Only for one output and at most two classes.
        With missing="surrogate", a constrained feature is not used as a surrogate.
    precision : {"float32", "float64"}, default="float32"
        Precision in which X is stored and compared. "float32" is scikit-learn's: values that agree
        in about 7 digits, such as 2**24 and 2**24 + 1, become equal, and neighbouring values
        within 1e-7 count as equal. "float64" keeps all doubles apart, for example ids of 11 digits
        or timestamps in seconds.
    max_bins : int, default=None
        Sort the values of each column of numbers into at most this many bins (2 to 255) by
        quantiles, once for all trees, and cut only between bins: halfway between the largest
        training value of one bin and the smallest of the next in the node. A column with at most
        `max_bins` distinct values has a bin for each. None does not bin. Not for
        splitter="random" (extra trees have no such parameter) or sparse tables.
    feature_draw : {"sequence", "keyed"}, default="sequence"
        "sequence" is scikit-learn's random stream: permuting the columns of a table may change the
        model. "keyed" draws by the names of features (their positions, if the columns have no
        names): permuting the columns permutes the model and changes nothing else. `monotonic_cst`
        is by position in either case.
    categorical_features : array-like of bool, int or str, "from_dtype" or None, default=None
        Columns that hold categories, of any sortable type: a mask, column numbers or names;
        "from_dtype" means the categorical and string columns of a DataFrame. A split sends one
        subset of the categories left, see `cart.splitting.category_subsets`. A category that did
        not occur in the node (or anywhere in training, see `cart.count_unseen`) goes where most
        rows of the node go; missing values go to the side that is better in training. Not for
        criterion="absolute_error" or sparse tables.
    min_category_ratio : float, default=5.0
        Least F ratio (of an analysis of variance) at which a node may split a feature of more than
        8 categories: how many times as much as by chance the mean responses of its categories
        vary. This guard keeps trees from sorting rare categories by their noise; 0 switches it
        off. A feature that it bars counts towards `max_features`, but the search goes on until it
        finds a feature that is neither barred nor constant.
    missing : {"learned", "surrogate", "majority", "refuse"}, default="learned"
        Where a node sends rows without a value of its feature. "learned": scikit-learn's rule, see
        the notes. "surrogate": where the first of the node's surrogate splits sends them whose
        value they have, else with the majority (Breiman et al. 1984). "majority": to the side of
        most weight. With these two, a split is judged by the rows that have its feature's value.
        "refuse": missing values raise an error.
    surrogates : int or "auto", default=0
        Number of surrogate splits that a node keeps: the splits of other features that send most
        weight the same way as the node's split, and more than sending all to the larger side
        would. "auto" is 5. With missing="learned" or "majority" they only serve to be read. Not
        for sparse tables.
    surrogate_style : {"all", "known"}, default="all"
        "all" takes agreement as a share of all rows that the split sends (rpart's
        surrogatestyle=0); "known" as a share of those that also have the surrogate's value (as in
        Breiman et al.; surrogatestyle=1).
    surrogate_features : {"all", "drawn"}, default="all"
        Features searched for surrogates: all, or as many as `max_features` says, drawn anew for
        this in every node, which is faster if these are few.
    competitors : int, default=0
        Number of competitor splits that a node keeps: the best splits of the other features. Not
        for sparse tables.

    Attributes
    ----------
    tree_ : cart.tree.tree.Tree
        The tree, with scikit-learn's names of arrays. `tree_.surrogates` and `tree_.competitors`
        hold the splits asked for, else None; see `cart.tree.surrogates`.
    classes_ : ndarray of shape (n_classes,), or list of them
        Labels, or a list of the labels of each output (classification only).
    n_classes_ : int or ndarray of shape (n_outputs,)
        Number of labels (classification only).
    max_features_ : int
        Number of features considered at a split.
    is_categorical_ : ndarray of shape (n_features_in_,), bool
        Which features hold categories (with `categorical_features`).
    categories_ : list of ndarray or None
        The categories of each feature, in the order of their codes in `tree_`; None for numbers
        (with `categorical_features`).
    n_features_in_, n_outputs_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), str
        Column names of X, if all of them are strings.
    feature_importances_ : ndarray of shape (n_features_in_,), float64
        Mean decrease in impurity of every feature; sums to 1, or all 0 if the tree has no split.
        It favours features with many distinct values and features that the tree overfits; see
        `importance.oob_permutation`.
    n_merged_values_ : ndarray of shape (n_features_in_,), int64
        How many distinct values of each column became equal to others in `precision`. A
        UserWarning names the columns where they are more than 1 %, or any of integers or dates.

    Notes
    -----
    For the same data, parameters and `random_state` the tree is the one that scikit-learn grows,
    node for node. Missing values (nan) go to the side that is better in training; if none were
    missing in training, to the larger side. Dates and durations count as seconds (dates since
    1970, UTC); exports and texts of a tree show the thresholds of dates as dates.
    """

    __metadata_request__fit = {"check_input": metadata_routing.UNUSED}
    _parameter_constraints = {**TREE_CONSTRAINTS, "splitter": [StrOptions({"best", "random"})]}

    _grown_in = None  # precision of the fitted tree; None in old pickles and before a fit

    @abstractmethod
    def __init__(self) -> None:
        """Keep the parameters; each estimator has its own."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: ArrayLike | None = None,
        check_input: bool = True,
    ) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; nan is a missing value.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; rows of weight 0 are left out.
        check_input : bool, default=True
            False skips the checks of X and y; X must then be an array of dtype `precision`. Not
            with `categorical_features`.

        Returns
        -------
        self
        """
        with fitted_at_once(self) as draft:
            vars(draft).pop("cp_table_", None)  # from an earlier fit by `cart.cv_prune`
            draft._grown_in = draft.precision
            if check_input:
                if self.criterion == "poisson":  # like scikit-learn, before comparing lengths
                    check_criterion("poisson", check_array(y, ensure_2d=False, input_name="y"))
                numbers, y = check_table(draft, X, y)
            elif self.categorical_features is not None:
                raise ValueError("categorical_features needs check_input=True, which encodes them.")
            else:
                match_categories(draft, X, True)  # forgets those of an earlier fit
                numbers, y, draft.n_features_in_ = X, np.asarray(y), X.shape[1]
            prepared = prepare(draft, numbers, y, sample_weight, draft.splitter)
            plan, codes = prepared.plan, prepared.target.codes
            draft.max_features_ = plan.limits.max_features
            seed = first_draw(draft.random_state, DRAW_SEED_MAX)
            table, columns = prepared.encode(draft, X)
            (draft.tree_,) = Grower(table, codes, plan, columns).grow([prepared.weight], [seed])
            fill_thresholds([draft.tree_], table, columns)
            warn_of_small_target([draft.tree_], prepared.target)
        return self

    def _combine_weights(self, weight, y, target):
        weight = 1.0 if weight is None else weight
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        require_weight(weight)
        return weight

    def cost_complexity_pruning_path(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None
    ) -> Bunch:
        """The subtrees that are left as `ccp_alpha` rises, from the whole tree to its root.

        Parameters
        ----------
        X, y, sample_weight : see `fit`

        Returns
        -------
        sklearn.utils.Bunch
            ccp_alphas : ndarray of shape (n_subtrees,), the alpha from which on each is the best;
            impurities : ndarray of shape (n_subtrees,), the total impurity of its leaves.
        """
        whole = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        alphas, impurities = pruning_path(whole.tree_)
        return Bunch(ccp_alphas=alphas, impurities=impurities)

    def holding(self, tree: Tree, random_state: int) -> Self:
        """A fitted copy of this estimator that holds `tree`, grown with `random_state`.

        Parameters
        ----------
        tree : cart.tree.tree.Tree
        random_state : int
        """
        return copy_of(self, tree_=tree, random_state=random_state)

    def check_state(self) -> None:
        """See `cart.estimators.saved_state.SavedState`."""
        if "tree_" in vars(self):
            check_tree_of(self, self.tree_)
            check_classes_of(self)

    def _values(self, X, check_input):
        self._require_fit()
        packed = self.tree_.packed_for(precision_of(self))
        return self.tree_.shaped(self._walk(sum_of_values, packed, X, check_input))

    def apply(self, X: MatrixLike, check_input: bool = True) -> NDArray[np.int64]:
        """Number of the leaf in `tree_` that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks; X must then be an array of dtype `precision`.

        Returns
        -------
        ndarray of shape (n_samples,), int64
        """
        self = as_of_now(self)
        self._require_fit()
        packed = self.tree_.packed_for(precision_of(self))
        return self._walk(lambda packed, X: leaf_ids(packed, 0, X), packed, X, check_input)

    def decision_path(self, X: MatrixLike, check_input: bool = True) -> csr_matrix:
        """Indicator matrix of the nodes in `tree_` that each row passes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        check_input : bool, default=True
            False skips the checks; X must then be an array of dtype `precision`.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, node_count)
            A csr_array if scikit-learn's option `sparse_interface` is "sparray".
        """
        self = as_of_now(self)
        paths, _ = paths_to(self.apply(X, check_input)[np.newaxis], [self.tree_])
        return _align_api_if_sparse(paths)

    def get_depth(self) -> int:
        """Depth of the tree: the greatest distance of a leaf from the root."""
        check_is_fitted(self, "tree_")
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self, "tree_")
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean decrease in impurity of every feature; sums to 1, or all 0 for a lone root.

        It favours features with many distinct values and features that the tree overfits; see
        `importance.oob_permutation` for a measure on rows that the trees have not seen.
        """
        check_is_fitted(self, "tree_")
        return self.tree_.compute_feature_importances()


class DecisionTreeClassifier(ClassifierOutputs, BaseDecisionTree):
    __doc__ = with_docs_of(
        BaseDecisionTree, "A classification tree.",
        defaults={"criterion": "gini", "splitter": "best", "max_features": None},
        name="DecisionTreeClassifier", data="load_iris", arguments="max_depth=2",
        shown="model.predict_proba(X[[0, 60, 140]]).round(2)",
        output="array([[1. , 0. , 0. ], [0. , 0.91, 0.09], [0. , 0.02, 0.98]])",
    )  # fmt: skip
    _parameter_constraints = {
        **BaseDecisionTree._parameter_constraints,
        "criterion": CLASSIFIER_CRITERION,
        **CLASS_COSTS,
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def __init__(
        self, *, criterion: str = "gini", splitter: str = "best", max_depth: int | None = None,
        min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = None,
        random_state: RandomState = None, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, class_weight: ClassWeight = None,
        ccp_alpha: float = 0.0, monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", max_bins: int | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
        priors: Priors = None, loss: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _best_classes(self, X, check_input):
        self._require_fit()

        def walk(packed, X):
            if X.shape[0] <= len(packed.value):
                return self._decide_classes(self.tree_.shaped(sum_of_values(packed, X)))
            of_leaves = self.tree_.shaped(packed.value)  # decide once per leaf, not per row
            decided = self._decide_classes(of_leaves).astype(np.float64)
            return sum_of_values(with_values(packed, decided), X).astype(np.intp)

        return self._walk(walk, self.tree_.packed_for(precision_of(self)), X, check_input)


class DecisionTreeRegressor(RegressorOutputs, BaseDecisionTree):
    __doc__ = with_docs_of(
        BaseDecisionTree, "A regression tree.",
        defaults={"criterion": "squared_error", "splitter": "best", "max_features": None},
        name="DecisionTreeRegressor", data="load_diabetes", arguments="max_depth=2",
        shown="model.predict(X[:3]).round(1)", output="array([225.9, 96.3, 225.9])",
    )  # fmt: skip
    _parameter_constraints = {
        **BaseDecisionTree._parameter_constraints,
        "criterion": REGRESSOR_CRITERION,
    }

    def __init__(
        self, *, criterion: str = "squared_error", splitter: str = "best",
        max_depth: int | None = None, min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = None,
        random_state: RandomState = None, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, ccp_alpha: float = 0.0,
        monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", max_bins: int | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
    ) -> None:  # fmt: skip
        criterion = without_deprecated(criterion)
        keep_parameters(self, locals())


class ExtraTreeClassifier(DecisionTreeClassifier):
    __doc__ = with_docs_of(
        BaseDecisionTree,
        "An extremely randomised classification tree: one random threshold per feature.",
        defaults={"criterion": "gini", "splitter": "random", "max_features": "sqrt"},
        name="ExtraTreeClassifier", data="load_iris", arguments="random_state=0",
        shown="model.get_depth(), model.get_n_leaves()", output="(10, 25)",
    )  # fmt: skip

    def __init__(
        self, *, criterion: str = "gini", splitter: str = "random", max_depth: int | None = None,
        min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = "sqrt",
        random_state: RandomState = None, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, class_weight: ClassWeight = None,
        ccp_alpha: float = 0.0, monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", priors: Priors = None, loss: ArrayLike | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())


class ExtraTreeRegressor(DecisionTreeRegressor):
    __doc__ = with_docs_of(
        BaseDecisionTree,
        "An extremely randomised regression tree: one random threshold per feature.",
        defaults={"criterion": "squared_error", "splitter": "random", "max_features": 1.0},
        name="ExtraTreeRegressor", data="load_diabetes", arguments="random_state=0",
        shown="model.get_depth(), model.get_n_leaves()", output="(18, 437)",
    )  # fmt: skip

    def __init__(
        self, *, criterion: str = "squared_error", splitter: str = "random",
        max_depth: int | None = None, min_samples_split: float = 2, min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = 1.0,
        random_state: RandomState = None, min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None, ccp_alpha: float = 0.0,
        monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence",
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
    ) -> None:  # fmt: skip
        criterion = without_deprecated(criterion)
        keep_parameters(self, locals())


storable_estimators(
    DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
)
