"""Warnings of columns that "from_dtype" takes for categories, and that are hardly any."""

import re
from collections.abc import Iterable

from cart.primitives.user_warning import warn_user

MOST = 0.9  # of the rows: a column with so many distinct values names them
LEAST = 50  # values from which on that is said
_NAMED = 5
_DAY = r"(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{4}/\d{1,2}/\d{1,2})"
_DATE = re.compile(_DAY + r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")


def warn_of_other_texts(names: Iterable, categories: list, n_rows: int) -> None:
    """Warn of columns of names or dates.

    Parameters
    ----------
    names : iterable of str
        Of all columns.
    categories : list of ndarray or None
        Of every column; None for numbers.
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
            f'categorical_features="from_dtype": nearly every row has its own category in '
            f"{_list(unique)}, which names rows and tells nothing of others. Leave it out."
        )
    if dates:
        warn_user(
            f'categorical_features="from_dtype": {_list(dates)} holds dates as text, whose order '
            "categories do not have. pandas.to_datetime makes them dates, which count as seconds."
        )


def _are_dates(found):
    """Texts that all are; the first of most others is none."""
    return all(isinstance(text, str) and _DATE.fullmatch(text.strip()) for text in found)


def _list(words):
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")
