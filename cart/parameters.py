"""Which values the parameters of trees may take, and which of them are not supported yet."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from cart import criteria

TREE_CONSTRAINTS = {
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "random_state": ["random_state"],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
    "monotonic_cst": ["array-like", None],
}
CLASSIFIER_CRITERION = [StrOptions(set(criteria.CLASSIFICATION))]
REGRESSOR_CRITERION = [
    StrOptions({*criteria.REGRESSION, "absolute_error", "poisson", "friedman_mse"})
]


def refuse_unsupported(estimator, criteria):
    """Refuse what scikit-learn has and this version does not.

    Parameters
    ----------
    estimator : a tree or a forest, ours or scikit-learn's
    criteria : dict
        The criteria of its task, see `cart.criteria`.

    Raises
    ------
    ValueError
        Naming the parameter, its value and the one that works.
    """
    name = type(estimator).__name__
    params = estimator.get_params(deep=False)
    if params["criterion"] not in criteria:
        raise ValueError(
            f"{name} does not support criterion={params['criterion']!r} yet; "
            f"use one of {sorted(criteria)}."
        )
    for parameter, works in (("splitter", "best"), ("ccp_alpha", 0.0), ("monotonic_cst", None)):
        value = params.get(parameter, works)
        if value is not works and (works is None or value != works):
            raise ValueError(
                f"{name} does not support {parameter}={value!r} yet; use {parameter}={works!r}."
            )
