"""Mean decrease in impurity."""

from typing import Any

import numpy as np

from cart.tree.tree import impurity_decrease
from importance.core.adoption import is_one_of_several, of_fitted_forest
from importance.core.fitted_forest import names_of, trees_of
from importance.core.groups import parse_groups
from importance.core.result import Importances, mean_and_error

BIAS = (
    "Computed on the rows that grew the trees, it favours features with many distinct values "
    "and whatever the trees overfit (Strobl et al. 2007)."
)


@of_fitted_forest
def mdi(forest: Any, normalize: bool = True, *, groups: Any = None) -> Importances:
    """Mean decrease in impurity.

    By default it is equal to scikit-learn's `feature_importances_`. In each tree, the weighted
    impurity decreases of all splits on a feature are summed up, and divided by the sum over
    features. The mean over the trees with at least one split is divided by its sum (Breiman et al.
    1984; Louppe et al. 2013).

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
    normalize : bool, default=True
        False gives the raw measure of R's ranger (importance="impurity") and randomForest
        (MeanDecreaseGini, IncNodePurity): the sum, over the splits on a feature in a tree, of
        weight x impurity of the node minus that of its children, averaged over all trees (0 for
        trees without a split). It is in units of rows x impurity; divided by the weight of a root
        (the rows drawn for a tree), it is on the scale of `unbiased_mdi`.
    %(groups)s

    Returns
    -------
    Importances
        With `normalize`, values sum to 1, or are all 0 if no tree has a split; `per_tree` is nan
        for trees without a split.

    Raises
    ------
    TypeError, ValueError
        If this is not a fitted random forest, or if the groups do not match its columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, mdi
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> result = mdi(forest)
    >>> result
    <Importances mdi, ± over trees: bmi 0.231 ± 0.014, s5 0.200 ± 0.016, bp 0.1207 ± 0.0077, s6
     0.1061 ± 0.0070, s4 0.075 ± 0.010, ...>
    >>> bool((result.values == forest.feature_importances_).all())
    True
    """
    if is_one_of_several(forest):
        raise TypeError("Impurity is that of all outputs: give mdi the forest itself.")
    trees = trees_of(forest)
    columns = parse_groups(groups, names_of(forest))
    per_tree = np.array([impurity_decrease(tree, normalize) for tree in trees])
    if normalize:
        per_tree[~per_tree.any(axis=1)] = np.nan
    else:
        per_tree *= np.array([tree.weighted_n_node_samples[0] for tree in trees])[:, np.newaxis]
    per_tree = columns.sum(per_tree)
    if np.isnan(per_tree).all():
        values, error = np.zeros((2, per_tree.shape[1]))
    else:
        values, error = mean_and_error(per_tree)
    total = values.sum()
    if normalize and total > 0.0:
        values, error = values / total, error / total
    return Importances(
        "mdi", values, error, per_tree, columns.names,
        unit="share of the weighted impurity decrease" if normalize
        else "weighted impurity decrease of a tree (rows x impurity)",
        uncertainty="over trees",
        bias=BIAS,
    )  # fmt: skip
