"""Mean decrease in impurity."""

from typing import Any

import numpy as np

from cart.tree.tree import impurity_decrease
from importance.core.adoption import of_fitted_forest
from importance.core.fitted_forest import names_of, trees_of
from importance.core.groups import parse_groups
from importance.core.result import Importances, mean_and_error

BIAS = (
    "Computed on the rows the trees were grown on, it favours features with many distinct values "
    "and whatever the trees overfit (Strobl et al. 2007)."
)


@of_fitted_forest
def mdi(forest: Any, normalize: bool = True, *, groups: Any = None) -> Importances:
    """Mean decrease in impurity.

    By default equal to scikit-learn's `feature_importances_`: per tree, the weighted impurity
    decrease of all splits on a feature, divided by the sum over features; the mean over the trees
    that split at all, divided by its sum (Breiman et al. 1984; Louppe et al. 2013).

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's
    normalize : bool, default=True
        False is the raw measure of R's ranger (importance="impurity") and randomForest
        (MeanDecreaseGini, IncNodePurity): per tree the sum, over the splits on a feature, of
        weight x impurity of the node less that of its children; the mean over all trees, those
        that do not split counting 0. It is in units of rows x impurity: divided by the weight of
        a root (the rows drawn for a tree) it is on the scale of `unbiased_mdi`.
    %(groups)s

    Returns
    -------
    Importances
        With `normalize` it sums to 1, or is all 0 where no tree splits, and `per_tree` is nan in
        trees that do not.

    Raises
    ------
    TypeError, ValueError
        If the forest is not a fitted random forest, or the groups do not fit it.

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
