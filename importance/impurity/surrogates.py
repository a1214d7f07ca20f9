"""Importance with surrogates, and which features stand in for which.

Where two features say the same, a tree splits on one of them, and the other seems to say nothing:
it is masked. Its surrogate splits show it (Breiman et al. 1984, section 5.3.4).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from importance.core.adoption import of_fitted_forest
from importance.core.docs import with_shared_parameters
from importance.core.fitted_forest import check_forest, is_classification, names_of, trees_of
from importance.core.groups import parse_groups
from importance.core.plots import axes_for, short_names
from importance.core.result import Importances, importances_over_trees
from importance.impurity.debiased import evaluate_trees

BIAS = (
    "Features that go together all get what one of them improves, so that values add up to more "
    "than the trees improve; a feature has a surrogate's share of splits that it is never needed "
    "for. {how}"
)
_IN_BAG = "Computed on the rows the trees were grown on, it favours what the trees overfit."
_OUT_OF_BAG = "Improvements are judged out of bag, agreement is that of the rows in bag."


@with_shared_parameters
@of_fitted_forest
def surrogate_importance(
    forest: Any, X: Any = None, y: Any = None, *, out_of_bag: bool = False,
    groups: Any = None, n_jobs: int | None = None,
) -> Importances:  # fmt: skip
    """What splits improve, as primary splits and as surrogates (rpart's variable importance).

    Per tree the sum, over the splits on a feature, of decrease of impurity x weight, plus over all
    splits that it is a surrogate of, their decrease times its adjusted agreement `adj`.

    Parameters
    ----------
    forest : fitted random forest of ours
        With `surrogates` > 0.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,), default=None
        The table the forest was fitted on (with `out_of_bag`).
    out_of_bag : bool, default=False
        Judge what splits improve by the rows that a tree has not seen, as `unbiased_mdi` does
        (method "ufi"; Gini impurity or squared error), on its scale: as a share of the weight.
    %(groups)s
    %(n_jobs)s

    Returns
    -------
    Importances

    Raises
    ------
    TypeError, ValueError
        If the forest keeps no surrogates, or as `unbiased_mdi` (with `out_of_bag`).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, surrogate_importance
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, max_depth=4, surrogates="auto", random_state=0).fit(X, y)
    >>> result = surrogate_importance(forest)
    >>> result.feature_names[result.values.argmax()]
    'bmi'
    """
    trees = _trees_with_surrogates(forest)
    names = names_of(forest)
    columns = parse_groups(groups, names)
    per_tree = np.full((len(trees), len(names)), np.nan)
    if out_of_bag:
        fitted = check_forest(forest, X, y)
        for t, splits in evaluate_trees(fitted, "ufi", n_jobs):
            gain = np.zeros(trees[t].node_count)
            gain[splits.node] = splits.debiased
            per_tree[t] = _with_surrogates(trees[t], gain)
        impurity = "Gini impurity" if is_classification(forest) else "squared error"
        unit = f"weighted decrease of the {impurity} of a tree, judged out of bag"
    else:
        for t, tree in enumerate(trees):
            per_tree[t] = _with_surrogates(tree, tree.surrogates.primary)
        unit = "weighted impurity decrease of a tree (rows x impurity)"
    return importances_over_trees(
        "surrogate_importance", columns.sum(per_tree), columns.names, unit=unit,
        bias=BIAS.format(how=_OUT_OF_BAG if out_of_bag else _IN_BAG),
    )  # fmt: skip


def _with_surrogates(tree, gain):
    """What every feature improves in a tree, (n_features,); `gain` is that of the nodes."""
    kept, nodes = tree.surrogates, tree.nodes
    is_split = nodes.feature >= 0
    as_primary = np.bincount(nodes.feature[is_split], gain[is_split], tree.n_features)
    share = gain[_nodes_of(kept)] * kept.adj
    return as_primary + np.bincount(kept.feature, share, tree.n_features)


def _nodes_of(surrogates):
    """The node of each surrogate."""
    return np.repeat(np.arange(len(surrogates.primary)), np.diff(surrogates.start))


def _trees_with_surrogates(forest):
    trees = trees_of(forest)
    if any(getattr(tree, "surrogates", None) is None for tree in trees):
        raise ValueError(
            f"The trees of the {type(forest).__name__} keep no surrogates; fit one of ours with "
            'surrogates="auto" or a number.'
        )
    return trees


@dataclass(frozen=True, eq=False)
class Masking:
    """Which features stand in for which.

    Attributes
    ----------
    feature_names : ndarray of shape (n_features,), str
    matrix : ndarray of shape (n_features, n_features), float64
        [i, j]: how well splits on feature i are made by feature j instead: the mean of its `adj`,
        0 where it is no surrogate, weighted by what the splits improve. 1 on the diagonal; rows of
        features that no tree splits on are nan.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, masking
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(5, max_depth=3, surrogates=2, random_state=0).fit(X, y)
    >>> masking(forest).matrix.shape
    (10, 10)
    """

    feature_names: np.ndarray
    matrix: np.ndarray

    def to_frame(self) -> Any:
        """The matrix as a pandas DataFrame: splits on rows, stand-ins in columns."""
        import pandas as pd

        return pd.DataFrame(self.matrix, self.feature_names, self.feature_names)

    def plot(self, ax: Any = None) -> Any:
        """The matrix as a picture: the darker, the better a feature (column) stands in.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        n = len(self.feature_names)
        ax = axes_for(ax, n)
        ax.imshow(self.matrix, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        names = short_names(self.feature_names)
        ax.set_yticks(np.arange(n), names, fontsize=9)
        ax.set_xticks(np.arange(n), names, fontsize=9, rotation=90)
        ax.set_ylabel("splits on")
        ax.set_xlabel("could be made by")
        return ax


@of_fitted_forest
def masking(forest: Any) -> Masking:
    """Which features mask which: how well each stands in for the splits on another.

    Parameters
    ----------
    forest : fitted random forest of ours
        With `surrogates` > 0; only the surrogates that a node keeps count.

    Returns
    -------
    Masking

    Raises
    ------
    TypeError, ValueError
        If the forest keeps no surrogates.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, masking
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, max_depth=4, surrogates="auto", random_state=0).fit(X, y)
    >>> found = masking(forest).to_frame()
    >>> found.loc["s1"].drop("s1").idxmax()  # total serum cholesterol, and
    's2'
    """
    names = names_of(forest)
    n = len(names)
    shared, whole = np.zeros((n, n)), np.zeros(n)
    for tree in _trees_with_surrogates(forest):
        kept, nodes = tree.surrogates, tree.nodes
        is_split = nodes.feature >= 0
        whole += np.bincount(nodes.feature[is_split], kept.primary[is_split], n)
        node = _nodes_of(kept)
        np.add.at(shared, (nodes.feature[node], kept.feature), kept.primary[node] * kept.adj)
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = shared / whole[:, np.newaxis]
    matrix[np.diag_indices(n)] = np.where(whole > 0.0, 1.0, np.nan)
    return Masking(names, matrix)
