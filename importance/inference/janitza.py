"""P-values from a null distribution made of the importances that are not positive."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from importance.core.adoption import of_fitted_forest
from importance.core.fitted_forest import check_evaluation_rows, is_classification
from importance.core.held_out_rows import EvaluatedForest
from importance.core.result import mean_and_error
from importance.inference.p_values import Significance, false_discovery_p_values, share_as_large
from importance.inference.refit import Refits, for_each, seeds_of
from importance.permutation.oob import judge_held_out

MIN_NON_POSITIVE = 100  # least number of non-positive importances that make a null


@of_fitted_forest
def janitza(
    forest: Any, X: Any, y: Any, *, loss: str | None = None, random_state: Any = None,
    n_jobs: int | None = None, verbose: int = 0, callback: Callable | None = None,
) -> Significance:  # fmt: skip
    """P-values of importances against the mirrored non-positive importances.

    For tables of many features, most of them without information (Janitza, Celik and Boulesteix
    2018). The rows are halved; a forest is fitted on each half and measured on the other
    (`held_out_permutation`), so that a feature without information is as likely to have a positive
    importance as a negative one. The importances that are not positive, and the mirror images of
    the negative ones, together form the null distribution M of every feature:
    p_j = (1 + #{m >= I_j}) / (1 + |M|). (The paper omits the 1 +, so its p-values can be 0.)

    Parameters
    ----------
    %(refitted)s
    loss : str, default=None
        As in `oob_permutation`.
    random_state : int, RandomState instance or None, default=None
        Seed of the halves and the refits.
    %(n_jobs)s
    verbose : int, default=0
        1 shows a progress bar with the time left on standard error; a step is one of the 2 refits.
    callback : callable, default=None
        Called with `n_done`, `n_total`, `seconds` and `seconds_left` after each step.

    Returns
    -------
    Significance
        Without `family_wise`: with so many features no p-value would be small enough.

    Raises
    ------
    TypeError, ValueError
        If the forest cannot be refitted (see `Refits.of`), a class has a single row, fewer than
        100 importances are not positive, or none is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from cartwood import RandomForestRegressor, janitza
    >>> X = np.random.default_rng(0).normal(size=(200, 300))
    >>> y = X[:, 0] + X[:, 1]
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> janitza(forest, X, y, random_state=0)
    <Significance of held_out_permutation, mirrored null of 294 values: x1 0.696 (p = 0.0034), x0
     0.478 (p = 0.0034), x53 0.00674 (p = 0.0068), x142 0.00672 (p = 0.0068), x191 0.00551 (p =
     0.01), ...>
    """
    refits = Refits.of(forest, X, y)
    if forest.n_features_in_ < MIN_NON_POSITIVE:
        raise ValueError(
            f"A mirrored null needs at least {MIN_NON_POSITIVE} importances that are not positive, "
            f"but X has only {forest.n_features_in_} features. Use permutation_test."
        )
    seeds = seeds_of(random_state, 3)
    one, other = _halve(refits.y, is_classification(forest), np.random.RandomState(seeds[0]))

    def measure(task):
        seed, fitted, held_out = task
        refit, _, _ = refits.fit(seed, rows=fitted)
        rows = check_evaluation_rows(refit, refits.take(held_out), refits.y[held_out])
        return judge_held_out(EvaluatedForest(refit, *rows), loss)

    tasks = [(seeds[1], one, other), (seeds[2], other, one)]
    parts = for_each(measure, tasks, n_jobs, verbose, callback)
    per_tree = np.concatenate([part.per_tree for part in parts])
    values, error = mean_and_error(per_tree)
    found = replace(parts[0], values=values, standard_error=error, per_tree=per_tree)
    null = mirrored_null(values)
    p_values = share_as_large(null[:, np.newaxis], values)
    return Significance(
        found, p_values, None, false_discovery_p_values(p_values), null,
        f"mirrored null of {len(null)} values",
    )  # fmt: skip


def mirrored_null(values: np.ndarray) -> np.ndarray:
    """The values that are not positive, and the mirror images of the negative ones.

    Raises ValueError if there are too few of them, or none is negative.
    """
    known = values[values <= 0.0]
    negative = known[known < 0.0]
    if len(known) < MIN_NON_POSITIVE or len(negative) == 0:
        raise ValueError(
            f"A mirrored null needs at least {MIN_NON_POSITIVE} importances that are not positive, "
            f"some of them negative, as in a table with many uninformative features; of these "
            f"{len(values)}, {len(known)} are not positive and {len(negative)} are negative. Use "
            "permutation_test."
        )
    return np.concatenate((known, -negative))


def _halve(y, has_classes, stream):
    """Row numbers of two random halves, stratified by class."""
    order = stream.permutation(len(y))
    if has_classes:
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if counts.min() < 2:
            label = classes.tolist()[counts.argmin()]
            raise ValueError(f"Class {label!r} has a single row, but both halves need one.")
        order = order[np.argsort(codes[order], kind="stable")]
    return np.sort(order[::2]), np.sort(order[1::2])
