"""Numbers as sentences, reprs, tables and pages show them: in order, and rounded.

The largest come first; equal values keep their order. Powers of ten are only used below 1e-12 and
from 1e15 on, where doubles have hardly any decimals.
"""

from collections.abc import Iterable, Sequence
from math import floor, log10

import numpy as np
from numpy.typing import ArrayLike

from importance.core.given import require_count

_MOST_DECIMALS = 12
_LARGEST = 1e15
_ROUNDING = 1e-12  # values below this share of the largest are rounding errors


def descending(values: np.ndarray) -> np.ndarray:
    """Positions of the values, the largest first."""
    return np.argsort(-values, kind="stable")


def leading(values: np.ndarray, n: int, also: Iterable[int] = ()) -> np.ndarray:
    """Positions of the n largest values and of `also`, the largest last (on top in pictures)."""
    require_count("max_features", n)
    order = descending(values)
    is_shown = np.isin(order, list(also))
    is_shown[:n] = True
    return order[is_shown][::-1]


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Rank of each value: 1 for the largest, and so on."""
    ranks = np.empty(len(values), np.int64)
    ranks[descending(values)] = np.arange(1, len(values) + 1)
    return ranks


def list_leaders(names: np.ndarray, values: np.ndarray, texts: Sequence[str]) -> str:
    """The five largest values in words: name and text of each."""
    words = (f"{names[j]} {texts[j]}" for j in descending(values)[:5])
    return ", ".join(words) + (", ..." if len(values) > 5 else "")


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
