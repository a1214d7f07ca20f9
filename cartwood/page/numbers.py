"""Numbers as reports show them."""

from math import floor, log10

import numpy as np
from numpy.typing import ArrayLike


def significant(value: float, digits: int = 3) -> str:
    """A number rounded to so many digits, never in powers of ten: "12,300", "0.00123"."""
    if value == 0.0 or not np.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:,.{min(decimals, 12)}f}"


def seconds(value: float) -> str:
    """A time in a unit that fits."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 0.9995:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value * 1e6)} µs"


def share(part: float, whole: float) -> str:
    """A share in per cent that says 100 % only where it is exact."""
    if part in (0, whole):
        return "100 %" if part else "0 %"
    return f"{min(100.0 * part / whole, 99.99):.2f} %"


def estimates(values: ArrayLike, errors: ArrayLike | None = None) -> list[str]:
    """Values with three digits of the largest, and two of the largest uncertainty.

    Parameters
    ----------
    values, errors : array-like of shape (n,)

    Returns
    -------
    list of str
    """
    values = np.asarray(values, dtype=np.float64)
    decimals = _decimals(values, 3)
    if errors is None:
        return [f"{value:z,.{decimals}f}" for value in values]
    errors = np.asarray(errors, dtype=np.float64)
    decimals = max(decimals, _decimals(errors, 2))
    pairs = zip(values, errors, strict=True)
    return [f"{value:z,.{decimals}f} ± {error:.{decimals}f}" for value, error in pairs]


def _decimals(values, digits):
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return max(0, digits - 1 - floor(log10(largest))) if largest > 0.0 else 0
