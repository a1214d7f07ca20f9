"""Standard errors of importances over data: how much another sample of rows would change them."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from importance.core.adoption import of_fitted_forest
from importance.core.given import require_count
from importance.core.result import OVER_TREES, Importances
from importance.inference.refit import Measure, Refits

OVER_DATA = "over data"


@of_fitted_forest
def over_data(
    forest: Any, X: Any, y: Any, *, measure: Measure | None = None, n_subsamples: int = 50,
    subsample: float = 0.5, random_state: Any = None, n_jobs: int | None = None, verbose: int = 0,
    callback: Callable | None = None,
) -> Importances:  # fmt: skip
    """Importances with their standard error over data, by refits on subsamples of the rows.

    The delete-d jackknife of Ishwaran and Lu (2019): of n rows, b are drawn without replacement,
    many times, and each time the forest is refitted and measured. The importances of these refits
    differ from that of the given forest, I, because of the rows and because of the trees of both.
    Let m be the mean of (I_subsample - I)^2, t the squared standard error over trees of the given
    forest, and u its mean over the subsamples. Then

        SE^2 = b / (n - b) max(m - t - u, 0) + t.

    So the variance due to trees is that of the given forest, and more trees shrink only the last
    term. (For a measure without a standard error over trees both t and u are 0, and m contains
    their variance.) As in the paper, deviations are taken from I and not from the mean over
    subsamples. Importances are smaller on fewer rows, so this makes the error larger, which makes
    up for the skewness of I: the further I is below its mean, the smaller is its error. Unlike in
    the paper, b is n / 2 and not sqrt(n), because a forest needs more than a few rows. Coverage:
    `python -m benchmarks calibration --only "over data"`.

    Parameters
    ----------
    %(refitted)s
    %(measure)s
    n_subsamples : int, default=50
        Number of refits.
    subsample : float, default=0.5
        Share of the rows, b / n.
    random_state : int, RandomState instance or None, default=None
        Seed of the subsamples and the refits.
    %(progress)s

    Returns
    -------
    Importances
        `measure(forest, X, y)` with "over data" added to `other_errors`: how much another sample of
        as many rows, and a forest grown on it, would change the value.

    %(refit_errors)s

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cartwood import RandomForestRegressor, over_data
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(50, max_features=1 / 3, random_state=0).fit(X, y)
    >>> found = over_data(forest, X, y, n_subsamples=5, random_state=0)
    >>> found.other_errors["over data"].round()
    array([ 35.,  32., 225., 160.,  99., 107.,  79., 162., 497., 126.])
    """
    require_count("n_subsamples", n_subsamples)
    if not isinstance(subsample, Real) or not np.isfinite(subsample):
        raise ValueError(
            f"subsample={subsample!r} must be a share of the rows between 0 and 1, such as 0.5."
        )
    refits = Refits.of(forest, X, y, measure)
    n = len(refits.y)
    b = round(subsample * n)
    if not 2 <= b < n:
        raise ValueError(
            f"subsample={subsample} draws {b} of {n} rows; draw at least 2, but not all."
        )
    found = refits.measure(forest, X, y)

    def subsample_rows(stream):
        return {"rows": np.sort(stream.permutation(n)[:b])}

    def keep(part):
        return part.values, _tree_variance(part)

    parts = refits.measure_each(
        subsample_rows, keep, n_subsamples, random_state, n_jobs, verbose, callback
    )
    values, of_trees = (np.array(of_parts) for of_parts in zip(*parts, strict=True))
    at_hand = _tree_variance(found)
    deviation = np.mean(np.square(values - found.values), axis=0)
    of_rows = np.maximum(deviation - at_hand - np.mean(of_trees, axis=0), 0.0)
    error = np.sqrt(b / (n - b) * of_rows + at_hand)
    return replace(found, other_errors={**found.other_errors, OVER_DATA: error})


def _tree_variance(found):
    """Squared standard error over trees; 0 if the measure has none."""
    return found.errors.get(OVER_TREES, np.zeros(len(found.values))) ** 2
