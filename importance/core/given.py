"""Checks of plain arguments: counts, functions and booleans."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np


def require_count(name: str, value: Any, least: int = 1) -> None:
    """Raise a ValueError unless the value is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")


def require_function(name: str, value: Callable | None, example: str) -> None:
    """Raise a TypeError unless the value is callable or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}={value!r} must be a function, such as {example}.")


def require_bool(name: str, value: Any) -> None:
    """Raise a TypeError unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} must be True or False.")
