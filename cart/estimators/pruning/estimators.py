"""Estimators of trees whose `fit` also prunes them, by cross-validation."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import Bunch
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from cart.estimators.parameters import (
    ClassWeight,
    MatrixLike,
    Priors,
    RandomState,
    keep_parameters,
    with_docs_of,
)
from cart.estimators.pruning.cp_table import RULES
from cart.estimators.pruning.cross_validation import Pruning, fit_pruned
from cart.estimators.saved_state import storable_estimators
from cart.estimators.trees import BaseDecisionTree, DecisionTreeClassifier, DecisionTreeRegressor
from cart.estimators.validation import fitted_at_once

_PRUNING = {
    "cv": [
        Interval(Integral, 2, None, closed="left"),
        "array-like",
        HasMethods(["split"]),
        "cv_object",
    ],
    "rule": [StrOptions({*RULES})],
    "cp": [Interval(Real, 0.0, None, closed="left")],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "callback": [callable, None],
}


def _constraints_of(tree_class):
    constraints = {**tree_class._parameter_constraints, **_PRUNING}
    del constraints["ccp_alpha"]
    return constraints


class BasePrunedTree(BaseDecisionTree):
    """What the pruned trees share.

    Parameters
    ----------
    cv : int, array-like of shape (n_samples,), splitter, or iterable of pairs, default=10
        The folds; see `cart.cv_prune`.
    rule : {"1se", "min"}, default="1se"
        Choose the smallest subtree whose cross-validated risk is within one standard error of the
        least ("1se"), or that has the least risk ("min").
    cp : float, default=0.0
        Least complexity of the subtrees considered, as a share of the root's risk.
    n_jobs : int, default=None
        Number of threads that grow the trees of the folds.
    verbose : int, default=0
        1 shows a progress bar with the time left on standard error. A step is one tree: that of
        all rows, or that of a fold.
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every step.
    %(of_trees)s

    Attributes
    ----------
    tree_ : cart.tree.tree.Tree
        The pruned tree.
    cp_table_ : cart.estimators.pruning.CpTable
        All subtrees with their cross-validated risks.
    classes_ : ndarray of shape (n_classes,)
        Labels (classification only).
    n_classes_ : int
        Number of labels (classification only).
    max_features_ : int
        Number of features considered at a split.
    n_features_in_, n_outputs_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), str
        Column names of X, if all of them are strings.
    is_categorical_ : ndarray of shape (n_features_in_,), bool
        Which features hold categories (with `categorical_features`).
    categories_ : list of ndarray or None
        The categories of each feature, in the order of their codes in `tree_`; None for numbers
        (with `categorical_features`).
    feature_importances_ : ndarray of shape (n_features_in_,), float64
        Mean decrease in impurity of every feature; sums to 1, or all 0 if the tree has no split.
    n_merged_values_ : ndarray of shape (n_features_in_,), int64
        How many distinct values of each column became equal to others in `precision`.

    Notes
    -----
    `random_state` also seeds the draw of folds. y must have one output.
    """

    ccp_alpha = 0.0
    verbose, callback = 0, None  # for pickles that are older than these parameters
    _whole_tree: type[BaseDecisionTree]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: ArrayLike | None = None,
        check_input: bool = True,
    ) -> Self:
        """Grow the tree and prune it to the subtree that cross-validation chooses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; nan is a missing value.
        y : array-like of shape (n_samples,)
            Labels or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; rows of weight 0 are left out.
        check_input : bool, default=True
            Ignored, for compatibility with scikit-learn: X and y are always checked.

        Returns
        -------
        self
        """
        with fitted_at_once(self) as draft:
            how = Pruning(*(getattr(self, name) for name in Pruning._fields))
            fit_pruned(draft, X, y, sample_weight, how)
        return self

    def cost_complexity_pruning_path(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None
    ) -> Bunch:
        """The cost-complexity pruning path of the whole tree, before it is pruned.

        Parameters
        ----------
        X, y, sample_weight : see `fit`

        Returns
        -------
        sklearn.utils.Bunch
            `ccp_alphas` and `impurities`, see `DecisionTreeClassifier`.
        """
        names = self._whole_tree._get_param_names()
        known = {name: value for name, value in self.get_params().items() if name in names}
        return self._whole_tree(**known).cost_complexity_pruning_path(X, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


class PrunedTreeClassifier(BasePrunedTree, DecisionTreeClassifier):
    __doc__ = with_docs_of(
        BasePrunedTree, "A classification tree, pruned by cross-validation.",
        of_trees=BaseDecisionTree, without=("ccp_alpha",),
        defaults={"criterion": "gini", "splitter": "best", "max_features": None},
        name="PrunedTreeClassifier", data="load_breast_cancer", arguments="random_state=0",
        shown="model.get_n_leaves(), model.cp_table_.xerror.min().round(2)",
        output="(4, np.float64(0.2))",
    )  # fmt: skip
    _parameter_constraints = _constraints_of(DecisionTreeClassifier)
    _whole_tree = DecisionTreeClassifier

    def __init__(
        self, *, cv: Any = 10, rule: str = "1se", cp: float = 0.0, n_jobs: int | None = None,
        verbose: int = 0, callback: Callable | None = None, criterion: str = "gini",
        splitter: str = "best", max_depth: int | None = None, min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = None,
        random_state: RandomState = None, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, class_weight: ClassWeight = None,
        monotonic_cst: ArrayLike | None = None, precision: str = "float32",
        categorical_features: ArrayLike | None = None, min_category_ratio: float = 5.0,
        feature_draw: str = "sequence", max_bins: int | None = None,
        priors: Priors = None, loss: ArrayLike | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


class PrunedTreeRegressor(BasePrunedTree, DecisionTreeRegressor):
    __doc__ = with_docs_of(
        BasePrunedTree, "A regression tree, pruned by cross-validation.",
        of_trees=BaseDecisionTree, without=("ccp_alpha",),
        defaults={"criterion": "squared_error", "splitter": "best", "max_features": None},
        name="PrunedTreeRegressor", data="load_diabetes", arguments="random_state=0",
        shown="model.get_n_leaves(), model.cp_table_.xerror.min().round(2)",
        output="(5, np.float64(0.64))",
    )  # fmt: skip
    _parameter_constraints = _constraints_of(DecisionTreeRegressor)
    _whole_tree = DecisionTreeRegressor

    def __init__(
        self, *, cv: Any = 10, rule: str = "1se", cp: float = 0.0, n_jobs: int | None = None,
        verbose: int = 0, callback: Callable | None = None, criterion: str = "squared_error",
        splitter: str = "best", max_depth: int | None = None, min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0, max_features: float | str | None = None,
        random_state: RandomState = None, max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0, monotonic_cst: ArrayLike | None = None,
        precision: str = "float32", categorical_features: ArrayLike | None = None,
        min_category_ratio: float = 5.0, feature_draw: str = "sequence",
        max_bins: int | None = None,
        missing: str = "learned", surrogates: int | str = 0, surrogate_style: str = "all",
        surrogate_features: str = "all", competitors: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())


storable_estimators(PrunedTreeClassifier, PrunedTreeRegressor)
