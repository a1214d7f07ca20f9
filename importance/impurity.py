"""Mean decrease in impurity."""

import numpy as np

from cart.tree import impurity_decrease
from importance.adopt import names_of, trees_of
from importance.result import Importances, mean_and_error

BIAS = (
    "Computed on the rows the trees were grown on, it favours features with many distinct values "
    "and whatever the trees overfit (Strobl et al. 2007)."
)


def mdi(forest):
    """Mean decrease in impurity: equal to scikit-learn's `feature_importances_`.

    Per tree, the weighted impurity decrease of all splits on a feature, divided by the sum over
    features; the mean over the trees that split at all, divided by its sum (Breiman et al. 1984;
    Louppe et al. 2013).

    Parameters
    ----------
    forest : fitted random forest, ours or scikit-learn's

    Returns
    -------
    Importances
        Sums to 1, or is all 0 where no tree splits. `per_tree` is nan in trees that do not.
    """
    per_tree = np.array([impurity_decrease(tree, normalize=True) for tree in trees_of(forest)])
    per_tree[~per_tree.any(axis=1)] = np.nan
    if np.isnan(per_tree).all():
        values, error = np.zeros((2, per_tree.shape[1]))
    else:
        values, error = mean_and_error(per_tree)
        values, error = values / values.sum(), error / values.sum()
    return Importances(
        "mdi", values, error, per_tree, names_of(forest),
        unit="share of the weighted impurity decrease",
        uncertainty="over trees",
        bias=BIAS,
    )  # fmt: skip
