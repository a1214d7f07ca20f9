"""Numbers as sentences, reprs, tables and pages show them: one style, never in powers of ten."""

from math import floor, log10

import numpy as np

_MOST_DECIMALS = 12


def significant(value: float, digits: int = 3) -> str:
    """A number rounded to so many digits, and to whole ones at most: "12,345", "0.00123"."""
    if value == 0.0 or not np.isfinite(value):
        return f"{value:g}"
    return f"{value:z,.{_decimals(value, digits)}f}"


def estimate(value: float, error: float) -> str:
    """A value and its uncertainty, with two digits of the latter: "1,574 ± 312", "0.64 ± 0.07"."""
    if error == 0.0 or not np.isfinite(error):
        return f"{significant(value)} ± {error:g}"
    decimals = _decimals(error, 2)
    return f"{value:z,.{decimals}f} ± {error:,.{decimals}f}"


def _decimals(value, digits):
    return min(max(0, digits - 1 - floor(log10(abs(value)))), _MOST_DECIMALS)
