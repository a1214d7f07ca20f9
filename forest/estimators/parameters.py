"""The permitted values of the parameters of a forest, alone and in combination."""

from numbers import Integral, Real

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from cart.estimators.parameters import INT_MAX, TREE_CONSTRAINTS
from cart.table.precision import precision_of
from forest.voting.mixin import VOTING_CONSTRAINTS

# Parameters that a forest passes to each of its trees.
TREE_PARAMETERS = {"criterion", *TREE_CONSTRAINTS} - {"random_state"}

FOREST_CONSTRAINTS = {
    **TREE_CONSTRAINTS,
    "n_estimators": [Interval(Integral, 1, INT_MAX, closed="both"), StrOptions({"auto"})],
    "max_time": [None, Interval(Real, 0, None, closed="neither")],
    "max_memory": [None, Interval(Integral, 1, INT_MAX, closed="both")],
    "bootstrap": ["boolean"],
    "bootstrap_draw": [StrOptions({"sequence", "keyed"})],
    "oob_score": ["boolean", callable],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
    "max_samples": [
        None,
        Interval(RealNotInt, 0.0, None, closed="neither"),
        Interval(Integral, 1, INT_MAX, closed="both"),
    ],
    "replace": ["boolean"],
    **VOTING_CONSTRAINTS,
    "callback": [callable, None],
}


def refuse_contradictions(forest: BaseEstimator, old_trees: list) -> None:
    """Raise a ValueError if parameters contradict each other.

    Parameters
    ----------
    forest : forest estimator
    old_trees : list of estimators of `cart`
        The trees that a warm start keeps.

    Raises
    ------
    ValueError
    """
    if not forest.bootstrap and forest.max_samples is not None:
        raise ValueError(
            "max_samples sets how many rows to draw, but bootstrap=False draws none; set "
            "bootstrap=True or max_samples=None."
        )
    forest._refuse_impossible_votes()
    if forest.n_estimators == "auto":
        if not forest.bootstrap:
            raise ValueError(
                'n_estimators="auto" judges the trees on out-of-bag rows, but bootstrap=False '
                "leaves none; set bootstrap=True or a number of trees."
            )
    elif forest.max_time is not None or forest.max_memory is not None:
        raise ValueError(
            'max_time and max_memory need n_estimators="auto", but '
            f"n_estimators={forest.n_estimators}; leave them out."
        )
    elif forest.n_estimators < len(old_trees):
        raise ValueError(
            f"n_estimators={forest.n_estimators} must be at least {len(old_trees)}, the number "
            "of trees kept by warm_start=True."
        )
    for tree in old_trees:
        if precision_of(tree) != forest.precision:
            raise ValueError(
                "The trees kept by warm_start=True were grown with "
                f"precision={precision_of(tree).name!r}, but now precision={forest.precision!r}; "
                "set it as it was, or warm_start=False."
            )
