"""Targets of regression rounded to whole steps, so that their sums are exact in any order.

A forest that is grown on sums of rounded numbers depends, in the last bits, on the order of the
rows. Targets are therefore rounded to multiples of a step. The step is a power of two, just coarse
enough for the sum of the squared targets, in steps, to stay below 2**53:

    n_draws * steps**2 <= 2**53     steps: of the largest target
    a million draws                 94,906 steps: y to 1e-5 of the largest
    a thousand million              3,001 steps: to 3e-4

Targets that are multiples of the step already do not change.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cart.primitives.float_order import WHOLE_MAX
from cart.primitives.user_warning import warn_user

_FEWEST_STEPS = 1000  # with fewer steps between lowest and highest target, rounding matters


def step_of(largest: float, n_draws: int) -> float:
    """The length of a step.

    Parameters
    ----------
    largest : float
        The largest absolute value of a target.
    n_draws : int
        In-bag rows of a tree, each counted as often as it is in bag.

    Returns
    -------
    float
        A power of two.
    """
    n_steps = math.isqrt(int(WHOLE_MAX) // n_draws)
    if largest == 0.0:
        return 1.0
    mantissa, exponent = math.frexp(largest / n_steps)  # in [0.5, 1)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


def ends_of(y: np.ndarray) -> tuple[float, float]:
    """The lowest and the highest target; inf and -inf if there are none."""
    return float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))


def steps_between(low: float, high: float, n_draws: int) -> float:
    """The length of a step for targets from `low` to `high`.

    Parameters
    ----------
    low, high : float
    n_draws : int
        See `step_of`.

    Returns
    -------
    float

    Warns
    -----
    UserWarning
        If there are few steps between `low` and `high`, and these are not multiples of a step.
    """
    if low > high:  # no targets
        return 1.0
    step = step_of(max(-low, high), n_draws)
    n_steps = (high - low) / step
    if 0.0 < n_steps < _FEWEST_STEPS and (low % step or high % step):
        warn_user(
            f"Targets from {low:.10g} to {high:.10g} are rounded to multiples of {step:g}, of "
            f"which only {n_steps:.2g} lie between. Subtract the mean of the targets before the "
            "fit."
        )
    return step


def in_steps(y: np.ndarray, step: float) -> np.ndarray:
    """Targets in steps, rounded to the nearest whole number, int64."""
    return np.rint(np.asarray(y, np.float64) / step).astype(np.int64)


def fixed_point(y: ArrayLike, n_draws: int | None = None) -> Any:
    """Round targets as `forest.dask.fit` does: a local fit on them gives the same forest.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
    n_draws : int, optional
        In-bag rows of a tree; by default the number of rows.

    Returns
    -------
    ndarray of shape (n_samples,), float64

    Examples
    --------
    >>> import numpy as np
    >>> from forest.partitioned import fixed_point
    >>> y = np.array([0.1, 2.5, 1000.0])
    >>> fixed_point(y, n_draws=1_000_000)  # to 1/64
    array([9.375e-02, 2.500e+00, 1.000e+03])
    """
    y = np.asarray(y, np.float64)
    step = steps_between(*ends_of(y), len(y) if n_draws is None else n_draws)
    return in_steps(y, step) * step
