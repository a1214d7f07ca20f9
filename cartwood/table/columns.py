"""What is done to every column of a table before trees see it, kept to be done again to new rows.

Numbers stay, also those that are written as text ("3,5", "12 %"), be there a word or two among them
for what is missing ("n.a."); booleans are 0 and 1; dates,
durations and times of day count as seconds; all else is categories, which trees split into subsets.
Missing values stay missing: trees send them to the better side.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cartwood.terminal import UserError, nearest

NUMBER, BOOLEAN, DATE, DURATION, CATEGORY = "number", "boolean", "date", "duration", "category"
WRITTEN, DAY_FIRST, CLOCK = "written number", "date, day first", "time of day"
AMONG_WORDS = "number among words"
_FIRST = {"dayfirst": True}
LEFT_OUT = {"empty": "no values", "constant": "one value", "name": "nearly every row its own"}
_NEARLY_ALL = 0.9  # of the rows: a column of text with so many distinct values names rows
_SOME = 50  # values below which nothing is said of that
_NAMED = 20  # columns that a line names
_MOST_WORDS, _WORDS_SHARE = 3, 0.2  # among numbers: distinct words, and their share of the values
_MANY_NUMBERS = 20  # distinct ones, or they may be names of classes
_FIRST_LOOK = 20  # values that tell whether a column of text may hold numbers
_WRITTEN = r"[+-]?(\d+([.,]\d+)?|[.,]\d+)\s*%?"  # without separators of thousands: "3,5", "12 %"
_CLOCK = r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?"


class Recipe(NamedTuple):
    """The columns that trees are given, in their order, and what each is made of.

    Attributes
    ----------
    kinds : dict of str to str
        "number", "boolean", "date", "category" and so on, by the name of the column.
    left_out : dict of str to str
        Why a column is not used, a key of LEFT_OUT.
    """

    kinds: dict[str, str]
    left_out: dict[str, str]

    @classmethod
    def of(cls, frame: Any) -> "Recipe":
        """What the columns of a training table ask for."""
        kinds = {name: _kind_of(frame[name]) for name in frame.columns}
        left_out = {name: kind for name, kind in kinds.items() if kind in LEFT_OUT}
        kinds = {name: kind for name, kind in kinds.items() if kind not in LEFT_OUT}
        if not kinds:
            why = cls(kinds, left_out).in_words() or "there is none beside the target"
            raise UserError(f"no column is left to predict from: {why}.")
        return cls(kinds, left_out)

    @property
    def categorical(self) -> list[str]:
        """Names of the columns of categories."""
        return [name for name, kind in self.kinds.items() if kind == CATEGORY]

    def apply(self, frame: Any) -> Any:
        """The table as trees take it: float64, and objects (str or nan) for categories.

        Raises
        ------
        UserError
            If a column is missing, or has other values than in training.
        """
        import pandas as pd

        for name in self.kinds:
            if name not in frame.columns:
                raise UserError(f"there is no column {name!r}; {nearest(name, frame.columns)}")
        return pd.DataFrame(
            {name: _convert(frame[name], kind) for name, kind in self.kinds.items()}
        )

    def doubts(self, frame: Any) -> Iterator[str]:
        """Sentences on columns that may be other than what they were taken for."""
        for name, kind in self.kinds.items():
            column = frame[name].dropna()
            if kind == AMONG_WORDS:
                words = column[np.isnan(_convert(column, kind))]
                listed = ", ".join(f'"{word}"' for word in words.unique())
                what = f"{len(words):,} values that are no numbers ({listed})"
                yield f"{name}: {what} count as missing"
            elif len(frame) >= _SOME and column.dtype.kind in "iu" and frame[name].is_unique:
                yield (
                    f"{name}: every row has its own whole number, as ids do, which tell nothing of "
                    f'other rows; --drop "{name}" leaves it out'
                )

    def in_words(self, X: Any = None) -> str:
        """One line: what was done to which column; with the table also where values are missing."""
        parts = []
        for kind, what in _WORDS.items():
            names = [name for name, each in self.kinds.items() if each == kind]
            if names:
                named = "" if kind == NUMBER else f" ({_list(names, _levels(X, kind))})"
                parts.append(f"{len(names)} {what[len(names) > 1]}{named}")
        if X is not None:
            missing = X.isna().sum()
            missing = missing[missing > 0]
            if len(missing):
                parts.append(
                    f"missing values kept in {len(missing)} ({_list(missing.index, missing)})"
                )
        for why, reason in LEFT_OUT.items():
            names = [name for name, each in self.left_out.items() if each == why]
            if names:
                parts.append(f"left out, {reason}: {_list(names)}")
        return "; ".join(parts)


_WORDS = {
    NUMBER: ("number", "numbers"),
    BOOLEAN: ("boolean as 0 and 1", "booleans as 0 and 1"),
    WRITTEN: ("number written as text", "numbers written as text"),
    AMONG_WORDS: ("number among words", "numbers among words"),
    DATE: ("date as seconds", "dates as seconds"),
    DAY_FIRST: ("date, its day first, as seconds", "dates, their days first, as seconds"),
    DURATION: ("duration as seconds", "durations as seconds"),
    CLOCK: ("time of day as seconds", "times of day as seconds"),
    CATEGORY: ("column of categories", "columns of categories"),
}


def _levels(X, kind):
    """Number of categories by column, or None."""
    return (
        None if X is None or kind != CATEGORY else {name: X[name].nunique() for name in X.columns}
    )


def _list(names, numbers=None):
    names = list(names)
    words = [name if numbers is None else f"{name} {numbers[name]:,}" for name in names[:_NAMED]]
    more = len(names) - _NAMED
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


def is_number(column: Any) -> bool:
    """Does it hold real numbers, or booleans?"""
    from pandas.api.types import is_numeric_dtype

    return is_numeric_dtype(column) and getattr(column.dtype, "kind", "O") != "c"


def _kind_of(column):
    from pandas.api import types

    known = column.dropna()
    if len(known) == 0:
        return "empty"
    n_distinct = known.astype(str).nunique() if known.dtype == object else known.nunique()
    if n_distinct == 1 and len(known) == len(column):
        return "constant"
    if types.is_bool_dtype(known) or (known.dtype == object and _are(known, bool)):
        return BOOLEAN
    if types.is_datetime64_any_dtype(column):
        return DATE
    if types.is_timedelta64_dtype(column):
        return DURATION
    if is_number(column) or (known.dtype == object and _are(known, (int, float))):
        return NUMBER
    if not isinstance(column.dtype, _categorical_dtype()):
        kind = _kind_of_text(known)
        if kind is not None:
            return kind
    is_name = len(known) >= _SOME and n_distinct > _NEARLY_ALL * len(known)
    return "name" if is_name else CATEGORY


def _categorical_dtype():
    from pandas import CategoricalDtype

    return CategoricalDtype


def _are(values, kinds):
    return all(isinstance(value, kinds) for value in values)


def _kind_of_text(known):
    """What all of some texts are, beside categories, or None."""
    first = str(known.iloc[0]).strip()
    for kind, pattern in ((WRITTEN, _WRITTEN), (CLOCK, _CLOCK)):
        if re.fullmatch(pattern, first):  # most texts are seen to be others by the first of them
            text = known.astype(str).str.strip()
            # Digits alone, which a file kept as text, are codes.
            is_code = kind == WRITTEN and not text.str.contains("[,%]").any()
            if not is_code and text.str.fullmatch(pattern).all():
                return kind
    if _are_numbers_among_words(known):
        return AMONG_WORDS
    if not (6 <= len(first) <= 40 and sum(letter.isdigit() for letter in first) >= 4):
        return None
    # Day first is read only where no other order fits: a 13th month tells.
    for kind, options in ((DATE, {"format": "ISO8601"}), (DATE, {}), (DAY_FIRST, _FIRST)):
        if _are_dates(known, options):
            return kind
    return None


def _are_numbers_among_words(known):
    """Is nearly all of some texts numbers, and the rest few words that mean they are missing?"""
    first = known.iloc[:_FIRST_LOOK].astype(str).str.strip()
    if first.str.fullmatch(_WRITTEN).mean() < 0.5:
        return False
    numbers = _written(known, errors="coerce")
    words = known[np.isnan(numbers)]
    is_code = known.astype(str).str.fullmatch(r"0\d+").any()  # 007
    return (
        not is_code
        and len(words) <= _WORDS_SHARE * len(known)
        and words.nunique() <= _MOST_WORDS
        and len(np.unique(numbers)) > _MANY_NUMBERS
    )


def _are_dates(text, options):
    import pandas as pd

    try:
        with warnings.catch_warnings(record=True, action="always") as doubts:
            pd.to_datetime(text, utc=True, **options)
    except (ValueError, TypeError, OverflowError):
        return False
    return not doubts  # formats that differ by row, or have their days first


def _convert(column, kind):
    """The values of a column, float64, or str and nan in an array of objects."""
    try:
        return _CONVERT[kind](column)
    except (ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"column {column.name!r} should hold a {kind}: {reason}") from error


def _numbers(column):
    import pandas as pd

    values = pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isinf(values), np.nan, values)


def as_numbers(column: Any) -> Any:
    """A column whose numbers are written as text as numbers; any other as it is."""
    import pandas as pd

    known = column.dropna()
    kind = None if len(known) == 0 or is_number(column) else _kind_of_text(known)
    if kind not in (WRITTEN, AMONG_WORDS):
        return column
    return pd.Series(_convert(column, kind), column.index, name=column.name)


def _written(column, errors="raise"):
    import pandas as pd

    if is_number(column):  # of a file where none of them has a sign
        return _numbers(column)
    text = column.astype(object).where(column.notna(), np.nan).map(str, na_action="ignore")
    plain = text.str.strip().str.rstrip("%").str.strip().str.replace(",", ".")
    return pd.to_numeric(plain, errors=errors).to_numpy(np.float64, na_value=np.nan)


def _booleans(column):
    values = column.astype(object).where(column.notna(), np.nan)
    return values.map({True: 1.0, False: 0.0, "True": 1.0, "False": 0.0}).to_numpy(np.float64)


def _dates(column, **options):
    import pandas as pd

    dates = pd.to_datetime(column, utc=True, **options)
    return ((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)).to_numpy(np.float64)


def _times_of_day(column):
    import pandas as pd

    text = column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
    whole = text.where(text.str.count(":") != 1, text + ":00")
    return pd.to_timedelta(whole).dt.total_seconds().to_numpy(np.float64)


def _durations(column):
    return column.dt.total_seconds().to_numpy(np.float64)


def _categories(column):
    text = column.astype(object)
    return text.where(text.isna(), text.map(str)).where(text.notna(), np.nan).to_numpy(object)


_CONVERT: dict[str, Callable[[Any], np.ndarray]] = {
    NUMBER: _numbers,
    WRITTEN: _written,
    AMONG_WORDS: partial(_written, errors="coerce"),
    DAY_FIRST: partial(_dates, **_FIRST),
    CLOCK: _times_of_day,
    BOOLEAN: _booleans,
    DATE: _dates,
    DURATION: _durations,
    CATEGORY: _categories,
}
