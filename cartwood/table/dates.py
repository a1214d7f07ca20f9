"""Dates, times of day and durations, also those written as text, converted to seconds."""

import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from cartwood.table.written import are_all, as_text, is_number

DATE, DAY_FIRST, CLOCK, DURATION = "date", "date, day first", "time of day", "duration"
HOURS = "duration, hours and minutes"
_ISO, _FIRST = {"format": "ISO8601"}, {"dayfirst": True}
_CLOCK = r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?"
_LONG_CLOCK = r"\d+:[0-5]\d:[0-5]\d(\.\d+)?"  # 26:10:00
_HOURS = r"\d+:[0-5]\d"  # 26:10
_PART = r"\d+(?:\.\d+)?\s*(?:days?|d|hours?|hr?|minutes?|min|m|seconds?|sec|s)"  # pandas's
_ISO_DURATION = r"P(?=.*\d)(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"  # PT4H53M
_DURATION = rf"{_LONG_CLOCK}|({_PART},?\s*)+({_LONG_CLOCK})?|{_ISO_DURATION}"
_TWO_PARTS = rf"{_PART},?\s*\d|:|^P"  # one part alone, as "5 m", may be another unit
_ZONE = r"(?<=[\dMm.])\s*(?:GMT|UTC)(?:([+-])(\d{1,2})(?::?(\d\d))?)?$"  # 6:13 PM GMT+2
_HALF_DAY = (
    r"\b(0?[1-9]|1[0-2])(:[0-5]\d(?::[0-5]\d)?)\s*([AaPp])\.?[Mm]\.?(?=$|[+-]\d\d:\d\d$)"  # 6:13 PM
)
# 3/24/24, 24.3.24, 24-Mar-24; not 24-3-24, which may begin with the year or with the day.
_SHORT_YEAR = r"^(\d{1,2}(?:([./])\d{1,2}\2|([ -])[A-Za-z]{3,9}\3))(\d\d)(?=$|\s)"
# Months and quarters; they stand for their first day.
_OF_YEAR = r"((?:19|20)\d\d)"
_MONTH = rf"^(0?[1-9]|1[0-2])[/.]{_OF_YEAR}$"
_NAMES = "January February March April May June July August September October November December"
_NAME = "|".join(f"{name[:3]}(?={name[3:]}|\\b)" for name in _NAMES.split())
_NAMED_MONTH = rf"(?i)^({_NAME})[a-z]*\.?[ -]{_OF_YEAR}$"
_QUARTER, _QUARTER_FIRST = rf"^{_OF_YEAR}[ -]?Q([1-4])$", rf"^Q([1-4])[ /-]?{_OF_YEAR}$"
_CENTURY = 69  # 69 is 1969, 68 is 2068 (POSIX)


def kind_of_dates(known: Any) -> str | None:
    """The kind of dates or times in some texts, none of them missing; or None."""
    text = _in_full(known.drop_duplicates())
    if are_all(text, _CLOCK, ":"):
        return CLOCK
    if are_all(text, _HOURS, ":"):
        return HOURS
    if are_all(text, _DURATION, _TWO_PARTS):
        return DURATION
    first = str(text.iloc[0]).strip()
    if not (6 <= len(first) <= 40 and sum(letter.isdigit() for letter in first) >= 4):
        return None
    # Day first is tried last: only a 13th month, which no other order fits, decides for it.
    for kind, options in ((DATE, _ISO), (DATE, {}), (DAY_FIRST, _FIRST)):
        if _are_dates(text, options):
            return kind
    return None


def _in_full(column):
    """Texts with time zone offsets, 24-hour times, four-digit years and a day filled in.

    Texts that need none of this stay as they are.
    """
    known = column.dropna()
    if not len(known) or not _is_text(column):
        return column
    first = str(known.iloc[0]).strip()
    for pattern, in_full in (
        (_ZONE, _offset), (_HALF_DAY, _hours_of_day), (_SHORT_YEAR, _year_in_full),
        (_MONTH, r"\2-\1-01"), (_NAMED_MONTH, r"1 \1 \2"),
        (_QUARTER, lambda found: _quarter(found[1], found[2])),
        (_QUARTER_FIRST, lambda found: _quarter(found[2], found[1])),
    ):  # fmt: skip
        if re.search(pattern, first):  # the first text usually tells whether a pattern applies
            text = column.where(column.isna(), column.astype(str).str.strip())
            column = text.str.replace(pattern, in_full, regex=True)
            first = re.sub(pattern, in_full, first)
    return column


def _offset(found):
    return f"{found[1] or '+'}{int(found[2] or 0):02}:{found[3] or '00'}"


def _hours_of_day(found):
    hour = int(found[1]) % 12 + 12 * (found[3] in "Pp")
    return f"{hour:02}{found[2]}"


def _quarter(year, quarter):
    return f"{year}-{3 * int(quarter) - 2:02}-01"


def _year_in_full(found):
    return f"{found[1]}{19 if int(found[4]) >= _CENTURY else 20}{found[4]}"


def _is_text(column):
    from pandas.api import types

    return types.is_string_dtype(column) or types.is_object_dtype(column)


def _are_dates(text, options):
    return _parse(text, options) is not None


def _parse(text, options):
    """Dates of some texts; None if one is no date, formats differ, or a day is first unasked."""
    import pandas as pd

    try:
        with warnings.catch_warnings(record=True, action="always") as doubts:
            dates = pd.to_datetime(text, utc=True, **options)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if doubts else dates


# --------------------------------------------------------------------------------- reading them


def _dates(column, **options):
    import pandas as pd

    from cart.table.precision import dates_as_seconds

    if column.notna().any() and is_number(column):
        raise ValueError("it holds numbers")
    text = _in_full(column)
    dates = _parse(text, _ISO)
    dates = _parse(text, options) if dates is None else dates
    if dates is None and _is_text(text):
        first = column[_which_is_none(text, options)]
        raise ValueError(
            f"{first!r} is not a date, or its day and month are in another order than in training"
        )
    dates = pd.to_datetime(text, utc=True, **options) if dates is None else dates
    return dates_as_seconds(dates.to_numpy("M8[us]"))  # microseconds can hold 9999-12-31


def _which_is_none(text, how):
    """Index of the first text that is not a date; of the first text if all of them are dates."""
    import pandas as pd

    known = text.dropna()
    with warnings.catch_warnings(action="ignore"):
        is_none = pd.to_datetime(known, utc=True, errors="coerce", **how).isna()
    return is_none.idxmax()


def _times_of_day(column):
    import pandas as pd

    text = _in_full(as_text(column))
    known = text.dropna().str.strip()
    others = known[~known.str.fullmatch(rf"{_CLOCK}(\.\d+)?")]
    if len(others):
        raise ValueError(f"{others.iloc[0]!r} is not a time of day")
    whole = text.where(text.str.count(":") != 1, text + ":00")
    return pd.to_timedelta(whole).dt.total_seconds().to_numpy(np.float64)


def _durations(column):
    import pandas as pd

    if column.dtype.kind != "m":
        text = as_text(column).str.strip()
        others = text.dropna()[~text.dropna().str.fullmatch(_DURATION)]
        if len(others):
            raise ValueError(f"{others.iloc[0]!r} is not a duration")
        column = pd.to_timedelta(text.str.replace(r"(?<=\d)\s*d\b", "D", regex=True))
    return column.dt.total_seconds().to_numpy(np.float64)


def _hours_and_minutes(column):
    import pandas as pd

    text = as_text(column).str.strip()
    others = text.dropna()[~text.dropna().str.fullmatch(_HOURS)]
    if len(others):
        raise ValueError(f"{others.iloc[0]!r} is not written as in training")
    return pd.to_timedelta(text + ":00").dt.total_seconds().to_numpy(np.float64)


# By kind: the function that converts a column to float64.
READ: dict[str, Callable[[Any], np.ndarray]] = {
    DATE: _dates,
    DAY_FIRST: partial(_dates, **_FIRST),
    CLOCK: _times_of_day,
    DURATION: _durations,
    HOURS: _hours_and_minutes,
}


# --------------------------------------------------------------------------------------- doubts


def _month_is_first(column):
    """How a date is read whose month could be its day; otherwise how a two-digit year is read."""
    column = column.drop_duplicates()
    text = _in_full(column)
    may_be_other = _is_text(text) and not _are_dates(text, _ISO) and _are_dates(text, _FIRST)
    is_other = _dates(text) != _dates(text, **_FIRST) if may_be_other else np.zeros(len(text), bool)
    if is_other.any():
        said = _as_read(column[is_other])
        yield f"{said}, month first; if the day is first, write dates as YYYY-MM-DD"
    else:
        yield from _year_is_meant(column)


def _year_is_meant(column, **options):
    if len(column) and re.match(_SHORT_YEAR, str(column.iloc[0]).strip()):
        yield _as_read(column, **options)


def _as_read(column, **options):
    import pandas as pd

    date = pd.to_datetime(_in_full(column[:1]).iloc[0], **options)
    return f'"{column.iloc[0]}" is read as {date:%Y-%m-%d}'


def _hours_are_meant(column):
    column = column.astype(str).str.strip()
    first = column[~column.str.fullmatch(_CLOCK)].iloc[0]
    hours, minutes = map(int, first.split(":"))
    yield f'"{first}" is read as {hours:,} hours and {minutes} minutes'


# By kind: sentences on values that may mean something else than they are taken for.
DOUBTS: dict[str, Callable[[Any], Iterator[str]]] = {
    DATE: _month_is_first,
    DAY_FIRST: partial(_year_is_meant, **_FIRST),
    HOURS: _hours_are_meant,
}
