"""Choose how far to prune a tree by the cross-validated risk of its subtrees.

The sequence of subtrees is that of the tree on all rows. For each fold, a tree is grown without the
fold's rows. It judges them after being pruned at complexities halfway (geometrically) between
neighbouring ones of the whole tree (Breiman et al. 1984, section 11.5):

    complexities   a1 > a2 > a3 > ...          of the whole tree
    folds at       inf, sqrt(a1 a2), sqrt(a2 a3), ...

The trees of all folds are grown on one table, in threads; rows that are held out have weight 0.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import column_or_1d

from cart.estimators.class_costs import check_priors, prior_weights
from cart.estimators.grower import Grower
from cart.estimators.parameters import MatrixLike, RandomState, first_draw
from cart.estimators.preparation import prepare
from cart.estimators.pruning.cp_table import RULES, make_table, refuse_several_outputs, require_cp
from cart.estimators.pruning.folds import folds_of, require_weights
from cart.estimators.pruning.risk import NestedSubtrees, refuse_other_risks
from cart.estimators.target import warn_of_small_target
from cart.estimators.trees import BaseDecisionTree
from cart.estimators.validation import check_table, fitted_at_once
from cart.growth.plan import make_plan
from cart.primitives.progress import ProgressReporter
from cart.primitives.threads import in_parts, require_n_jobs
from cart.splitting.feature_draw import DRAW_SEED_MAX
from cart.table.precision import precision_of
from cart.table.thresholds import fill_thresholds
from cart.tree.held_out import Rows, add_risks


def cv_prune(
    tree: BaseDecisionTree, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None,
    *, cv: Any = 10, rule: str = "1se", cp: float = 0.0, random_state: RandomState = None,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> BaseDecisionTree:  # fmt: skip
    """Grow a tree and prune it to the subtree that cross-validation chooses.

    Parameters
    ----------
    tree : tree estimator of `cart`
        Its parameters, of which `ccp_alpha` must be 0, say how to grow. It need not be fitted, and
        is not changed.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), default=None
    cv : int, array-like of shape (n_samples,), splitter, or iterable of pairs, default=10
        A number of folds, to be drawn at random (stratified by class); the number of each row's
        fold (rpart's `xval`); a scikit-learn splitter; or pairs of (training, held-out) rows.
    rule : {"1se", "min"}, default="1se"
        Choose the smallest subtree whose risk is within one standard error of the least ("1se"),
        or that has the least risk ("min").
    cp : float, default=0.0
        Least complexity of the subtrees considered, as a share of the root's risk: splits must
        lower the risk by at least this. rpart's default is 0.01.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw of folds. (The tree has a `random_state` of its own.)
    n_jobs : int, default=None
        Number of threads that grow the trees of the folds.
    verbose : int, default=0
        1 shows a progress bar with the time left on standard error. A step is one tree: that of
        all rows, or that of a fold.
    callback : callable, default=None
        Called with a `cart.primitives.progress.Progress` after every step.

    Returns
    -------
    tree estimator, fitted
        It has the pruned tree, and a `cp_table_` of all subtrees; see `cp_table` and `plot_cp`.

    Raises
    ------
    TypeError
        If `tree` is not a tree estimator of `cart`.
    ValueError
        If y has several outputs, criterion="poisson", or ccp_alpha is not 0.

    Notes
    -----
    A row has the same weight in all folds, by the priors and class weights of the whole table, as
    in Breiman et al. and in rpart. With an asymmetric `loss`, rpart (4.1.19) judges held-out rows
    by the transposed matrix; here they are judged by the matrix itself. Standard errors count a
    unit of weight as one row, as in rpart: with weights that sum to 1 they are those of a single
    row, and the rule "1se" leaves hardly any split.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984: sections 3.3,
    3.4 and 11.5. Therneau and Atkinson, An Introduction to Recursive Partitioning Using the RPART
    Routines.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cartwood import DecisionTreeClassifier, cv_prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> whole = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> pruned = cv_prune(whole, X, y, random_state=0)
    >>> whole.get_n_leaves(), pruned.get_n_leaves()
    (22, 4)
    """
    if not isinstance(tree, BaseDecisionTree):
        raise TypeError(
            f"cv_prune needs a tree estimator of Cartwood, but got {tree!r}; pass a "
            "cartwood.DecisionTreeClassifier or DecisionTreeRegressor."
        )
    require_n_jobs(n_jobs)
    with fitted_at_once(clone(tree)) as draft:
        how = Pruning(cv, rule, cp, random_state, n_jobs, verbose, callback)
        fit_pruned(draft, X, y, sample_weight, how)
    return draft


class Pruning(NamedTuple):
    """Options of pruning; see `cv_prune`."""

    cv: Any
    rule: str
    cp: float
    random_state: RandomState
    n_jobs: int | None
    verbose: int
    callback: Callable | None


def fit_pruned(draft, X, y, sample_weight, how):
    """Grow and prune the tree of an estimator's draft; see `cv_prune` and `fitted_at_once`."""
    if how.rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}, not {how.rule!r}.")
    require_cp(how.cp)
    if draft.ccp_alpha != 0.0:
        raise ValueError(
            f"ccp_alpha={draft.ccp_alpha} prunes by impurity before cross-validation prunes by "
            "risk; set ccp_alpha=0, and use cp to skip small complexities."
        )
    refuse_other_risks(draft)
    draft._validate_params()
    draft._grown_in = draft.precision
    numbers, y = check_table(draft, X, y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    prepared = prepare(draft, numbers, y, sample_weight, draft.splitter)
    refuse_several_outputs(draft)
    seed = first_draw(draft.random_state, DRAW_SEED_MAX)
    is_classification = prepared.target.labels is not None
    labels = prepared.target.codes[:, 0]
    folds = folds_of(how.cv, numbers, labels, is_classification, how.random_state)
    folded = _Folded(draft, prepared, X, seed)
    require_weights(folds, folded.own_weight)
    with ProgressReporter(1 + len(folds), "tree", how.verbose, how.callback) as reporter:
        whole = NestedSubtrees.of(draft, folded.grow(np.arange(len(y))))
        warn_of_small_target([whole.tree], prepared.target)
        reporter.step()
        alphas = whole.alphas(how.cp)
        folded.unit = _unit_near(whole.root_risk)
        risks = _risks_of_folds(folded, folds, alphas, how.n_jobs, reporter.step)
    risks = risks / (whole.root_risk / folded.unit or 1.0)
    draft.max_features_ = prepared.plan.limits.max_features
    draft.cp_table_ = make_table(whole, alphas)._replace(xerror=risks[0], xstd=risks[1])
    draft.tree_ = whole.pruned(alphas[draft.cp_table_.best(how.rule)])


class _Folded:
    """Grows trees on some of the rows, all on one table, and judges them on the others."""

    def __init__(self, draft, prepared, given, seed):
        self._draft, self._prepared, self._seed = draft, prepared, seed
        self._table, self._columns = prepared.encode(draft, given, keeps_values=True)
        self._rows = prepared.X.tocsr() if issparse(prepared.X) else prepared.X
        self._codes = codes = prepared.target.codes
        self._weight = np.broadcast_to(prepared.weight, len(codes))
        # Without priors and losses.
        self.own_weight = np.broadcast_to(prepared.own_weight, len(codes))
        self._factor = np.ones(len(codes))  # factor of each row's loss by the priors
        self.unit = 1.0  # in which losses are measured
        if prepared.target.labels is not None and draft.priors is not None:
            priors = check_priors(draft.priors, prepared.target.labels[0])
            classes = codes[:, 0].astype(np.int64)
            total = np.bincount(classes, self.own_weight, len(priors))
            self._factor = prior_weights(priors, total)[classes]

    def grow(self, rows):
        """Grow a tree on some of the rows."""
        prepared, draft, codes = self._prepared, self._draft, self._codes
        weight = np.bincount(rows, minlength=len(codes)) * self._weight
        plan = make_plan(
            draft, prepared.plan.criterion, prepared.splitter, len(rows), prepared.X.shape[1],
            1, prepared.target.n_values,
        )._replace(alternatives=prepared.plan.alternatives)  # fmt: skip
        grower = Grower(self._table, codes, plan, self._columns)
        (tree,) = grower.grow([weight], [self._seed])
        fill_thresholds([tree], self._table, self._columns)
        return tree

    def risks(self, fold, alphas):
        """Total loss of the held-out rows at each alpha, and the sum of its squares.

        Both are in the unit, and given as changes from alpha to alpha.
        """
        rows, held_out = fold
        whole = NestedSubtrees.of(self._draft, self.grow(rows))
        leaf = whole.tree.apply(self._rows[held_out].astype(precision_of(self._draft), copy=False))
        judged = Rows(
            leaf,
            self._codes[held_out, 0],
            self.own_weight[held_out],
            self._factor[held_out] / self.unit,
        )
        changes = np.zeros((2, len(alphas) + 1))
        add_risks(judged, whole.judged(self._draft, alphas), changes)
        return changes


def _unit_near(risk):
    """A power of two near the risk: measured in it, losses stay exact and their squares finite."""
    return np.ldexp(1.0, max(np.frexp(risk)[1] - 1, -1000))


def _risks_of_folds(folded, folds, alphas, n_jobs, step):
    """Risk per unit of weight at each alpha, and its standard error, (2, n_alphas) in the unit."""
    halfway = np.append(np.inf, np.sqrt(alphas[:-1]) * np.sqrt(alphas[1:]))
    changes = [None] * len(folds)

    def judge(first, end):
        for i in range(first, end):
            changes[i] = folded.risks(folds[i], halfway)
            step()

    in_parts(judge, len(folds), n_jobs)
    lost, squares = np.cumsum(np.sum(changes, axis=0), axis=1)[:, :-1]
    total = sum(folded.own_weight[held_out].sum() for _, held_out in folds)
    spread = np.sqrt(np.maximum(squares - lost * (lost / total), 0.0))
    return np.stack((lost, spread)) / total
