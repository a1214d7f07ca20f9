"""Numbers as reports show them, in the style of `importance.core.numbers`.

That is imported when a number is shown: `--help` and a misspelt column should not wait for it.
"""

import numpy as np
from numpy.typing import ArrayLike


def significant(value: float, digits: int = 3) -> str:
    """A number rounded to so many digits: "12,300", "0.00123"."""
    from importance.core import numbers

    return numbers.significant(value, digits)


def seconds(value: float) -> str:
    """A time in a unit that fits."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 0.9995:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value * 1e6)} µs"


def estimates(values: ArrayLike, errors: ArrayLike | None = None) -> list[str]:
    """Values with three digits each, or with two digits of their uncertainty.

    Parameters
    ----------
    values, errors : array-like of shape (n,)

    Returns
    -------
    list of str
    """
    from importance.core.numbers import estimate

    if errors is None:
        return [significant(value) for value in np.asarray(values, dtype=np.float64)]
    pairs = zip(np.asarray(values), np.asarray(errors), strict=True)
    return [estimate(value, error) for value, error in pairs]
