"""Conversion of every column of a table to what trees take, kept to be repeated on new rows.

Numbers stay, also those written as text ("3,5", "12 %", "1,234,567"), with the same unit beside all
of them ("$1,200"), or with a word or two among them for missing values ("n.a."). Booleans become 0
and 1. Dates, durations and times of day become seconds. All other columns are categories, which
trees split into subsets. Missing values stay missing: trees send them to the better side.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cartwood.table import dates, written
from cartwood.table.dates import CLOCK, DATE, DAY_FIRST, DURATION, HOURS, kind_of_dates
from cartwood.table.units import unit_of, without_unit
from cartwood.table.written import (
    AMONG_WORDS,
    GROUPED,
    GROUPED_BY_POINTS,
    GROUPED_BY_SPACES,
    IN_THOUSANDS,
    WRITTEN,
    is_number,
    kind_of_numbers,
    may_be_numbers,
    may_be_two_numbers,
    numbers_of,
)
from cartwood.terminal import UserError, nearest

NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"
LEFT_OUT = {"empty": "no values", "constant": "one value", "name": "nearly all values distinct"}
_NEARLY_ALL = 0.9  # share of distinct values from which on a column of text only names its rows
_SOME = 50  # with fewer values a column is not taken for names or ids
_SOME_LISTS = 6  # least number of distinct cells that may list choices
_NAMED = 20  # most columns that a line names
_TIMES = {
    DATE: "dates", DAY_FIRST: "dates", CLOCK: "times of day", DURATION: "durations",
    HOURS: "durations",
}  # fmt: skip


class Recipe(NamedTuple):
    """The columns that trees are given, in order, and how each is converted.

    Attributes
    ----------
    kinds : dict of str to str
        "number", "boolean", "date", "category" and so on, by column name.
    left_out : dict of str to str
        Why a column is not used, as a key of LEFT_OUT.
    units : dict of str to tuple of str
        The text before and after every number of a column.
    """

    kinds: dict[str, str]
    left_out: dict[str, str]
    units: dict[str, tuple[str, str]]

    @classmethod
    def of(cls, frame: Any) -> "Recipe":
        """The recipe for a training table."""
        units, kinds = {}, {}
        for name in frame.columns:
            kinds[name], unit = _kind_and_unit(frame[name])
            if unit is not None:
                units[name] = unit
        left_out = {name: kind for name, kind in kinds.items() if kind in LEFT_OUT}
        kinds = {name: kind for name, kind in kinds.items() if kind not in LEFT_OUT}
        if not kinds:
            why = cls(kinds, left_out, units).in_words() or "the table has only the target"
            raise UserError(f"no column is left to predict from: {why}.")
        return cls(kinds, left_out, units)

    @property
    def categorical(self) -> list[str]:
        """Names of the categorical columns."""
        return [name for name, kind in self.kinds.items() if kind == CATEGORY]

    @property
    def texts(self) -> list[str]:
        """Names of the columns that must be read as text, not as numbers: "01" is not 1."""
        kinds = CATEGORY, GROUPED, GROUPED_BY_POINTS, GROUPED_BY_SPACES
        return [name for name, kind in self.kinds.items() if kind in kinds]

    @property
    def dates(self) -> list[str]:
        """Names of the columns of dates."""
        return [name for name, kind in self.kinds.items() if kind in (DATE, DAY_FIRST)]

    def apply(self, frame: Any) -> Any:
        """Convert a table to what trees take: float64, and objects (str or nan) for categories.

        Raises
        ------
        UserError
            If a column is missing, or has other kinds of values than in training.
        """
        import pandas as pd

        for name in self.kinds:
            if name not in frame.columns:
                raise UserError(f"there is no column {name!r}; {nearest(name, frame.columns)}")
        return pd.DataFrame(
            {
                name: _convert(frame[name], kind, self.units.get(name))
                for name, kind in self.kinds.items()
            }
        )

    def doubts(self, frame: Any) -> Iterator[str]:
        """Sentences on columns that may mean something else than they were taken for."""
        for name, kind in self.kinds.items():
            column = frame[name].dropna()
            if kind in _DOUBTS:
                unit = self.units.get(name)
                bare = column if unit is None else without_unit(column.drop_duplicates(), unit)
                yield from (f"{name}: {text}" for text in _DOUBTS[kind](bare))
            if kind == CATEGORY:
                yield from (f"{name}: {text}" for text in _may_stand_for_those_below(frame[name]))
            if len(frame) >= _SOME and column.dtype.kind in "iu" and frame[name].is_unique:
                yield (
                    f"{name}: all values are distinct whole numbers, like ids, which say nothing "
                    f'about new rows; --drop "{name}" leaves it out'
                )
        for name in self.left_out:
            if self.left_out[name] == "name":
                yield from (f"{name}: {text}" for text in may_be_numbers(frame[name].dropna()))

    def doubts_on_new(self, frame: Any) -> Iterator[str]:
        """Sentences on values of new rows that may mean something else than they are taken for."""
        for name, kind in self.kinds.items():
            if kind in (AMONG_WORDS, NUMBER, DATE):
                bare = without_unit(frame[name].dropna(), self.units.get(name))
                yield from (f"{name}: {text}" for text in _DOUBTS[kind](bare))

    def in_words(self, X: Any = None) -> str:
        """One line on how columns are converted and, given the table, which lack values."""
        parts = []
        for kind, what in _WORDS.items():
            names = [name for name, each in self.kinds.items() if each == kind]
            if names:
                named = "" if kind == NUMBER else f" ({_list(names, _levels(X, kind))})"
                parts.append(f"{len(names)} {what[len(names) > 1]}{named}")
        if self.units:
            named = _list(f"{name} {''.join(unit)}" for name, unit in self.units.items())
            parts.append(f"units removed: {named}")
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
    AMONG_WORDS: ("number with words among the values", "numbers with words among the values"),
    GROUPED: ("number with commas for thousands", "numbers with commas for thousands"),
    GROUPED_BY_POINTS: ("number with points for thousands", "numbers with points for thousands"),
    GROUPED_BY_SPACES: ("number with spaces for thousands", "numbers with spaces for thousands"),
    IN_THOUSANDS: ("number with K, M or B behind it", "numbers with K, M or B behind them"),
    DATE: ("date as seconds", "dates as seconds"),
    DAY_FIRST: ("date, day first, as seconds", "dates, day first, as seconds"),
    DURATION: ("duration as seconds", "durations as seconds"),
    HOURS: (
        "duration of hours and minutes as seconds",
        "durations of hours and minutes as seconds",
    ),
    CLOCK: ("time of day as seconds", "times of day as seconds"),
    CATEGORY: ("column of categories", "columns of categories"),
}


def _levels(X, kind):
    """Number of categories by column, or None if not applicable."""
    return (
        None if X is None or kind != CATEGORY else {name: X[name].nunique() for name in X.columns}
    )


def _list(names, numbers=None):
    names = list(names)
    words = [name if numbers is None else f"{name} {numbers[name]:,}" for name in names[:_NAMED]]
    more = len(names) - _NAMED
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


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
    if column.dtype.name != "category":
        kind = _kind_of_text(known)
        if kind is not None:
            return kind
    is_name = len(known) >= _SOME and n_distinct > _NEARLY_ALL * len(known)
    return "name" if is_name else CATEGORY


def _kind_and_unit(column):
    """What a column holds, and the unit beside its numbers, or None."""
    kind, known = _kind_of(column), column.dropna()
    may_have_unit = kind in (CATEGORY, "name") and column.dtype.name != "category"
    unit = unit_of(known) if may_have_unit else None
    return (kind if unit is None else _kind_beside(unit, known)), unit


def _kind_beside(unit, known):
    kind = kind_of_numbers(without_unit(known.drop_duplicates(), unit))
    return NUMBER if kind in (None, AMONG_WORDS) else kind  # beside a unit, digits are no codes


def _are(values, kinds):
    return all(isinstance(value, kinds) for value in values)


def _kind_of_text(known):
    """The kind of numbers or dates that all of some texts are, or None for categories."""
    kind = kind_of_numbers(known)
    return kind_of_dates(known) if kind is None else kind


def _not_as_written(column):
    if column.dtype.kind in "iuO" and len(column):
        n_distinct, n_left = column.nunique(), len(np.unique(numbers_of(column)))
        if n_left < n_distinct:
            yield (
                f"{n_distinct - n_left:,} of {n_distinct:,} numbers become equal to others: floats "
                "hold whole numbers exactly only up to 2**53; subtract the smallest"
            )
    n_infinite = np.isinf(column.astype(np.float64)).sum()
    if n_infinite:
        yield f"infinite values ({n_infinite:,}) count as missing"


def _may_be_meant_otherwise(column):
    """Sentences on a column of categories that may mean something else."""
    yield from may_be_numbers(column)
    yield from may_be_two_numbers(column)
    yield from _may_be_several_choices(column)
    yield from doubts_on_names(column)


def _may_be_several_choices(column):
    """A sentence on cells that list several of a few choices, such as "a, b"."""
    cells = column.astype(str).drop_duplicates()
    for separator in ",;|":
        listed = cells.str.split(separator)
        if len(cells) < _SOME_LISTS or (listed.str.len() > 1).mean() < 0.5:
            continue
        choices = listed.explode().str.strip().unique()
        if 2 * len(choices) < len(cells):
            first = cells[listed.str.len() > 1].iloc[0]
            yield (
                f'"{first}" is taken as one category; if cells list several of {len(choices)} '
                "choices, make a yes/no column for each choice"
            )


def _may_stand_for_those_below(column):
    """A sentence on a column that may be filled only where a new value begins."""
    known = column.dropna().astype(str)
    is_sparse = 2 < len(known) <= len(column) / 2
    if is_sparse and column.notna().iloc[0] and (known != known.shift()).all():
        yield (
            f"{len(column) - len(known):,} of {len(column):,} cells are empty; if an empty cell "
            "repeats the value above it, fill it in"
        )


def doubts_on_names(names: Any) -> Iterator[str]:
    """A sentence on names, in a Series, that may be spellings of the same name."""
    names = names.astype(str).drop_duplicates()
    plain = names.str.split().str.join(" ").str.casefold()
    alike = names[plain.duplicated(keep=False)]
    if len(alike):
        first = names[plain == plain[alike.index[0]]]
        more = len(alike) - len(first)
        named = " and ".join(f'"{name}"' for name in first)
        named += f" (and {more:,} more)" if more else ""
        yield f"{named} differ only in spaces or capitals; spell them the same if they are one"


# By kind of column: sentences on values that may mean something else than they are taken for.
_DOUBTS: dict[str, Callable[[Any], Iterator[str]]] = {
    **written.DOUBTS,
    CATEGORY: _may_be_meant_otherwise,
    NUMBER: _not_as_written,
    **dates.DOUBTS,
}


def _convert(column, kind, unit=None):
    """The values of a column, as float64, or as an object array of str and nan."""
    import pandas as pd

    if column.isna().all():  # an empty column has no kind of its own
        return np.full(len(column), np.nan, object if kind == CATEGORY else np.float64)
    places = None
    if kind != CATEGORY and pd.api.types.is_string_dtype(column):  # parse each distinct text once
        places, texts = column.factorize()  # -1 if missing
        column = pd.Series(texts, name=column.name)
    try:
        values = _CONVERT[kind](without_unit(column, unit))
        return values if places is None else np.append(values, np.nan)[places]
    except (ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"column {column.name!r} should hold a {kind}: {reason}") from error


def kind_of_time(column: Any) -> str | None:
    """The kind of time in a column without gaps: "dates", "durations", "times of day" or None."""
    return _TIMES.get(_kind_of(column)) if len(column) > 0 else None


def as_numbers(column: Any) -> Any:
    """A column of numbers written as text, converted to numbers; any other column as it is."""
    import pandas as pd

    kind, unit = _kind_of_written(column)
    if kind is None:
        return column
    return pd.Series(_convert(column, kind, unit), column.index, name=column.name)


def doubts_on_numbers(column: Any) -> Iterator[str]:
    """Sentences on what `as_numbers` makes of a column, if it may be meant otherwise."""
    kind, unit = _kind_of_written(column)
    if kind in _DOUBTS:
        bare = without_unit(column.dropna(), unit)
        yield from (f"{column.name}: {text}" for text in _DOUBTS[kind](bare))


def _kind_of_written(column):
    """The kind of numbers written as text that a column holds, and their unit; or None."""
    known = column.dropna()
    if len(known) == 0 or is_number(column):
        return None, None
    kind = kind_of_numbers(known)
    unit = unit_of(known) if kind is None and kind_of_time(known) is None else None
    return (kind if unit is None else _kind_beside(unit, known)), unit


# The spellings that pandas reads as booleans.
_TRUE = dict.fromkeys((True, "True", "TRUE", "true"), 1.0)
_FALSE = dict.fromkeys((False, "False", "FALSE", "false"), 0.0)


def _booleans(column):
    values = column.astype(object).where(column.notna(), np.nan)
    found = values.map(_TRUE | _FALSE)
    others = values[found.isna() & values.notna()]
    if len(others):
        raise ValueError(f"{others.iloc[0]!r} is neither True nor False")
    return found.to_numpy(np.float64)


def _categories(column):
    text = column.astype(object)
    return text.where(text.isna(), text.map(str)).where(text.notna(), np.nan).to_numpy(object)


_CONVERT: dict[str, Callable[[Any], np.ndarray]] = {
    **written.READ,
    NUMBER: numbers_of,
    **dates.READ,
    BOOLEAN: _booleans,
    CATEGORY: _categories,
}
