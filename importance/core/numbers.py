"""Numbers as sentences, reprs, tables and pages show them.

Powers of ten are only used below 1e-12 and from 1e15 on, where doubles have hardly any decimals.
"""

from math import floor, log10

import numpy as np
from numpy.typing import ArrayLike

_MOST_DECIMALS = 12
_LARGEST = 1e15
_ROUNDING = 1e-12  # values below this share of the largest are rounding errors


def significant(value: float, digits: int = 3) -> str:
    """A number rounded to some significant digits: "12,300", "0.00123"."""
    if value == 0.0 or not np.isfinite(value):
        return f"{value:g}"
    if abs(value) >= _LARGEST:
        return f"{value:.{digits - 1}e}"
    return _rounded(value, _place_of(value, digits))


def estimate(value: float, error: float) -> str:
    """A value and its error, both to the error's second digit: "1,570 ± 310", "0.640 ± 0.068"."""
    if error == 0.0 or not np.isfinite(error):
        return f"{significant(value)} ± {error:g}"
    place = _place_of(error, 2)
    if max(abs(value), error) >= _LARGEST:
        return f"{value:.{max(0, _power_of(value) + place)}e} ± {error:.1e}"
    return f"{_rounded(value, place)} ± {_rounded(error, place)}"


def estimates(values: np.ndarray, errors: np.ndarray) -> list[str]:
    """Values of one measure, each with its error; mere rounding errors are shown as 0."""
    pairs = zip(past_rounding(values, values), past_rounding(errors, values), strict=True)
    return [estimate(value, error) for value, error in pairs]


def past_rounding(
    numbers: ArrayLike, values: np.ndarray, rounding: float = _ROUNDING
) -> np.ndarray:
    """Numbers in the unit of `values`, with those set to 0 that may be rounding errors.

    These are at most a share `rounding` of the largest of the values.
    """
    least = rounding * np.abs(values).max(initial=0.0)
    return np.where(np.abs(numbers) <= least, 0.0, numbers)


def _place_of(value, digits):
    """The decimal place of the last of some significant digits; negative left of the point."""
    return min(digits - 1 - _power_of(value), _MOST_DECIMALS)


def _power_of(value):
    return floor(log10(abs(value))) if value else 0


def _rounded(value, place):
    if place == _MOST_DECIMALS and 0.0 < abs(value) < 10.0**-place:
        return f"{value:.1e}"  # a rounding error, or a target of tiny numbers
    return f"{round(float(value), place):z,.{max(0, place)}f}"
