"""Targets whose sums are exact, in any order: class codes, or numbers in whole steps.

A forest grown on sums of rounded numbers depends, in the last bits, on the order of the rows. So
targets of regression are rounded to whole multiples of a step, a power of two, that is fine enough
for the largest of them and coarse enough for sums of squares to stay below 2**53:

    n_draws * steps**2 <= 2**53     steps: of the largest target
    a million draws                 94,906 steps: y to 1e-5 of the largest
    a thousand million              3,001 steps: to 3e-4

Whole numbers, and others that are multiples of the step, stay what they are.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cart.primitives.float_order import WHOLE_MAX
from cart.primitives.user_warning import warn_user

_FEWEST_STEPS = 1000  # between the lowest and the highest target: with fewer, rounding is seen


def step_of(largest: float, n_draws: int) -> float:
    """The length of a step.

    Parameters
    ----------
    largest : float
        Of the absolute targets.
    n_draws : int
        In-bag rows of a tree, by how often they are in bag.

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
    """The lowest and the highest target; of none inf and -inf."""
    return float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))


def steps_between(low: float, high: float, n_draws: int) -> float:
    """The length of a step for targets from `low` to `high`; warns where few lie between them.

    Parameters
    ----------
    low, high : float
    n_draws : int
        See `step_of`.

    Returns
    -------
    float
    """
    if low > high:  # no targets
        return 1.0
    step = step_of(max(abs(low), abs(high)), n_draws)
    n_steps = (high - low) / step
    if 0.0 < n_steps < _FEWEST_STEPS and (low % step or high % step):
        warn_user(
            f"Targets from {low:.10g} to {high:.10g} are rounded to multiples of {step:g}; only "
            f"{n_steps:.2g} of these lie between. Subtract the mean of the targets before the fit."
        )
    return step


def in_steps(y: np.ndarray, step: float) -> np.ndarray:
    """Targets as whole numbers of steps, int64, rounded to the nearest."""
    return np.rint(np.asarray(y, np.float64) / step).astype(np.int64)


def fixed_point(y: ArrayLike, n_draws: int | None = None) -> Any:
    """Round targets as `forest.dask.fit` does: a local forest of them is the same, bit for bit.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
    n_draws : int, optional
        In-bag rows of a tree; as many as there are rows unless given.

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
