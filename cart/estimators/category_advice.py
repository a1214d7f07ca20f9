"""Warnings about columns that "from_dtype" takes for categories although they hardly are."""

import re
from collections.abc import Iterable

from cart.primitives.user_warning import warn_user

MOST = 0.9  # a column with more distinct values than this share of the rows identifies rows
LEAST = 50  # columns with fewer distinct values get no such warning
_NAMED = 5  # at most this many columns are listed in a warning
_DAY = r"(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{4}/\d{1,2}/\d{1,2})"
_DATE = re.compile(_DAY + r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")


def warn_of_other_texts(names: Iterable, categories: list, n_rows: int) -> None:
    """Warn about columns that hold row names or dates rather than categories.

    Parameters
    ----------
    names : iterable of str
        Names of all columns.
    categories : list of ndarray or None
        The categories of every column; None for a column of numbers.
    n_rows : int

    Warns
    -----
    UserWarning
        If nearly every row has a category of its own, or all categories are written as dates.
    """
    unique, dates = [], []
    for name, found in zip(names, categories, strict=True):
        if found is None or len(found) == 0:
            continue
        if _are_dates(found):
            dates.append(str(name))
        elif len(found) >= LEAST and len(found) > MOST * n_rows:
            unique.append(f"{name} ({len(found):,} in {n_rows:,} rows)")
    if unique:
        warn_user(
            'categorical_features="from_dtype": nearly every row has its own category in '
            f"{_list(unique)}. Such columns identify rows and say nothing about new ones; drop "
            "them."
        )
    if dates:
        warn_user(
            'categorical_features="from_dtype" takes dates written as text for categories, '
            f"without their order, in {_list(dates)}. Convert them with pandas.to_datetime: "
            "dates count as seconds."
        )


def _are_dates(found):
    """Whether all categories are texts written as dates; usually the first one already tells."""
    return all(isinstance(text, str) and _DATE.fullmatch(text.strip()) for text in found)


def _list(words):
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")
