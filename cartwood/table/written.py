"""Numbers written as text, maybe among words: "3,5", "12 %", "1,234,567", "(86.27)"."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

WRITTEN, AMONG_WORDS = "written number", "number among words"
GROUPED, GROUPED_BY_POINTS = "number, commas for thousands", "number, points for thousands"
GROUPED_BY_SPACES = "number, spaces for thousands"
IN_THOUSANDS = "number, K, M or B behind it"
_MOST_WORDS, _WORDS_SHARE = 3, 0.2  # among numbers: distinct words, and their share of the values
_MANY_NUMBERS = 20  # with fewer distinct ones they may be names of classes
_MANY_WORDS = 0.5  # share of words up to which a column may be meant as numbers
_FIRST_LOOK = 20  # first values that tell whether a column of text may hold numbers
# Numbers known only to be beyond a limit, of detection or of a scale, or approximate: "<0.5",
# ">= 90", "65+", "~5".
LIMIT, _LIMITED = r"(?:[<>]=?|[\u2264\u2265~\u2248])?\s*", r"^[<>\u2264\u2265~\u2248]|\d\s*\+$"
_WRITTEN = rf"{LIMIT}[+-]?(\d+([.,]\d+)?|[.,]\d+)\s*[%+]?"  # without separators: "3,5", "12 %"
_GROUPED = rf"{LIMIT}[+-]?(\d{{1,3}}|[1-9]\d{{0,2}}(,\d{{3}})+)(\.\d+)?\+?"
_GROUPED_BY_POINTS = r"[+-]?(\d{1,3}|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?"
SPACES = " '\u2019\u00a0\u202f"  # including apostrophes and no-break spaces
_GROUPED_BY_SPACES = rf"[+-]?(\d{{1,3}}|[1-9]\d{{0,2}}([{SPACES}]\d{{3}})+)([.,]\d+)?"
PLAIN = r"[+-]?(\d+(\.\d*)?|\.\d+)"
# Negative numbers as bookkeepers write them, (86.27) and 86.27-, and with the minus sign U+2212.
_BARE = rf"[^\w()+-]{{0,3}}[\d.,][\d.,{SPACES}]*[^\w()+-]{{0,3}}"
_NEGATIVE = rf"^(?:\(({_BARE})\)|({_BARE})-|\u2212({_BARE}))$"
_BOOKED = rf"[+-]?{_BARE}|{_NEGATIVE}"
_LIKE_THOUSANDS = r"[+-]?[1-9]\d{0,2},\d{3}"
_TWO_NUMBERS = rf"{PLAIN}\s*[/x\u00d7*:-]\s*{PLAIN}"
POWER = r"[kKMB](?![^\W\d_])"  # as in "1.2M", but not in "5 MB"
_POWERS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
# A pattern that all texts match, and one that some must contain, since digits alone are codes.
_PATTERNS = (
    (GROUPED, _GROUPED, ","), (GROUPED_BY_POINTS, _GROUPED_BY_POINTS, r"\.\d{3}"),
    (GROUPED_BY_SPACES, _GROUPED_BY_SPACES, f"[{SPACES}]"), (WRITTEN, _WRITTEN, f"[,%]|{_LIMITED}"),
    (IN_THOUSANDS, rf"[+-]?\d+([.,]\d+)?\s*({POWER})?\+?", POWER),
)  # fmt: skip


def is_number(column: Any) -> bool:
    """Whether a column holds real numbers or booleans."""
    from pandas.api.types import is_numeric_dtype

    return is_numeric_dtype(column) and getattr(column.dtype, "kind", "O") != "c"


def kind_of_numbers(known: Any) -> str | None:
    """The kind of numbers in some texts, none of them missing; or None."""
    signed = with_minus(known) if may_be_booked(known) else known
    distinct = signed.drop_duplicates()
    for kind, pattern, sign in _PATTERNS:
        if are_all(distinct, pattern, sign):
            return kind
    if signed is not known and are_all(distinct, PLAIN, ""):
        return WRITTEN
    return AMONG_WORDS if _are_among_words(signed) else None


def may_be_booked(known: Any) -> bool:
    """Whether any of the first texts is a number; most columns need no further look."""
    first = known.iloc[:_FIRST_LOOK].astype(str).str.strip()
    return bool(first.str.fullmatch(_BOOKED).any())


def with_minus(column: Any) -> Any:
    """A column whose negative numbers begin with a minus; everything else as it is."""
    if is_number(column) or column.dtype.kind in "mM":
        return column
    text = as_text(column).str.strip()
    ends, begins = text.str.endswith((")", "-"), na=False), text.str.startswith("\u2212", na=False)
    are_marks = text.str.endswith("+", na=False).any()  # "3+", "5-"
    if are_marks or not (ends | begins).any():
        return column
    signed = text.str.replace(_NEGATIVE, r"-\1\2\3", regex=True)
    return column if signed.equals(text) else signed


def are_all(known: Any, pattern: str, sign: str) -> bool:
    """Whether all of some texts match a pattern, and at least one contains `sign`."""
    if not re.fullmatch(pattern, str(known.iloc[0]).strip()):
        return False  # the first text usually tells
    text = known.astype(str).str.strip()
    return bool(text.str.contains(sign).any() and text.str.fullmatch(pattern).all())


def _are_among_words(known):
    """Whether nearly all texts are numbers, and the rest a few words that mean missing."""
    words = _words_among_numbers(known)
    if words is None:
        return False
    numbers = known.drop(words.index).astype(str).str.strip()
    is_grouped = numbers.str.contains(",").any() and numbers.str.fullmatch(_GROUPED).all()
    is_few = len(words) <= _WORDS_SHARE * len(known) and words.nunique() <= _MOST_WORDS
    return is_few and not is_grouped


def _words_among_numbers(known):
    """The texts that are not numbers, if at least half are numbers and these are many; or None."""
    first = known.iloc[:_FIRST_LOOK].astype(str).str.strip()
    if first.str.fullmatch(_WRITTEN).mean() < 0.5:
        return None
    numbers = _read(known, errors="coerce")
    words = known[np.isnan(numbers)]
    is_code = known.astype(str).str.fullmatch(r"0\d+").any()  # 007
    n_numbers = len(np.unique(numbers[~np.isnan(numbers)]))
    is_many = n_numbers >= _MANY_NUMBERS and len(words) <= _MANY_WORDS * len(known)
    return words if is_many and not is_code else None


# --------------------------------------------------------------------------------- reading them


def numbers_of(column: Any) -> np.ndarray:
    """The numbers of a column, float64; infinite ones become missing."""
    if column.dtype.kind in "mM":  # pandas would convert these to nanoseconds or the like
        raise ValueError("it holds dates or durations")
    values = _parse(column, column)
    return np.where(np.isinf(values), np.nan, values)


def _parse(plain, column, errors="raise"):
    """The numbers in the texts `plain`; `column` has them as they are written, for messages."""
    import pandas as pd

    numbers = pd.to_numeric(plain, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    others = column[np.isnan(numbers) & column.notna().to_numpy()] if errors == "raise" else ()
    others = [text for text in others if str(text).strip().lower() != "nan"]
    if others:
        raise ValueError(f"{others[0]!r} is not a number")
    return numbers


def _read(column, errors="raise"):
    if is_number(column):  # read from a file in which no value has a sign
        return numbers_of(column)
    text = as_text(with_minus(column)).str.strip()
    plain = text.str.replace(f"^{LIMIT}", "", regex=True).str.rstrip("%+").str.strip()
    plain = plain.str.replace(",", ".")
    numbers = _parse(plain, column, errors)
    return numbers + _beyond(text) * np.maximum(np.abs(numbers) * 1e-5, 1e-6)


def _beyond(text):
    """-1 where less than the number is meant, 1 where more, otherwise 0.

    The caller moves the number by a hundred-thousandth of it, or at least a millionth, which trees
    still distinguish from the number itself.
    """
    said = text.str.extract(r"^([<>])(?!=)", expand=False)
    return said.map({"<": -1.0, ">": 1.0}).fillna(0.0).to_numpy(np.float64)


def _read_grouped(column, thousands, pattern):
    if is_number(column):
        return numbers_of(column)
    text = as_text(with_minus(column))
    known = text.dropna().str.strip()
    others = known[~known.str.fullmatch(rf"{pattern}|[+-]?\d+")]
    if len(others):
        raise ValueError(f"{others.iloc[0]!r} is not written as in training")
    return _read(text.str.strip().str.replace(f"[{thousands}]", "", regex=True))


def _read_in_powers(column):
    text = as_text(with_minus(column)).str.strip().str.rstrip("+")
    factor = text.str[-1:].map(_POWERS).fillna(1.0).to_numpy(np.float64)
    return _read(text.str.rstrip("".join(_POWERS))) * factor


def as_text(column: Any) -> Any:
    """The values of a column as str, with nan for missing ones."""
    return column.astype(object).where(column.notna(), np.nan).map(str, na_action="ignore")


# By kind: the function that converts a column to float64.
READ: dict[str, Callable[[Any], np.ndarray]] = {
    WRITTEN: _read,
    AMONG_WORDS: partial(_read, errors="coerce"),
    GROUPED: partial(_read_grouped, thousands=",", pattern=_GROUPED),
    GROUPED_BY_POINTS: partial(_read_grouped, thousands=".", pattern=_GROUPED_BY_POINTS),
    GROUPED_BY_SPACES: partial(_read_grouped, thousands=SPACES, pattern=_GROUPED_BY_SPACES),
    IN_THOUSANDS: _read_in_powers,
}


# --------------------------------------------------------------------------------------- doubts


def may_be_numbers(column: Any) -> Iterator[str]:
    """A sentence on words that turn a column of numbers into categories."""
    if column.dtype.name == "category":
        return
    words = _words_among_numbers(column)
    if words is not None and len(words):
        n_numbers = len(column) - len(words)
        yield (
            f"{n_numbers:,} of {len(column):,} values are numbers, but {_quoted(words)} "
            f"{'is' if words.nunique() == 1 else 'are'} not; leave these cells empty to make the "
            "column a number"
        )


def may_be_two_numbers(column: Any) -> Iterator[str]:
    """A sentence on two numbers in one cell, as "120/80", which count as a category."""
    if column.dtype.name == "category":
        return
    text = column.drop_duplicates().astype(str).str.strip()
    if len(text) >= _MANY_NUMBERS and text.str.fullmatch(_TWO_NUMBERS).all():
        yield f'"{text.iloc[0]}" is taken as a category; split the two numbers into two columns'


def _words_that_are_missing(column):
    yield from _limits_are_meant(column)
    words = column[np.isnan(READ[AMONG_WORDS](column))]
    if len(words):
        what, count = "values that are not numbers", "count"
        if len(words) == 1:
            what, count = "value that is not a number", "counts"
        yield f"{len(words):,} {what} ({_quoted(words)}) {count} as missing"


def _quoted(words):
    named = [f'"{word}"' for word in words.unique()]
    return ", ".join(named[:_MANY_NUMBERS]) + (", ..." if len(named) > _MANY_NUMBERS else "")


def _limits_are_meant(column):
    """How numbers beyond a limit are read; one sentence for each direction."""
    text = column.astype(str).str.strip()
    for sign, meant in (("<", "a little less than"), (">", "a little more than")):
        first = text[text.str.contains(f"^{sign}(?!=)")].iloc[:1]
        if len(first):
            yield f'"{first.iloc[0]}" is read as {meant} the number itself'


def _minus_is_meant(column):
    signed = with_minus(column)
    if signed is not column:
        is_other = signed != column.astype(str).str.strip()
        first = column[is_other].iloc[:1]
        number = READ[kind_of_numbers(column) or WRITTEN](first)[0]
        yield f'"{first.iloc[0]}" is read as {number:.15g}'


def _read_in_thousands(column):
    column = column.drop_duplicates()
    text = column.astype(str).str.strip()
    yield from _limits_are_meant(column)
    first = text[text.str.contains(r"[.,]\d{3}")].iloc[:1]
    said = f'"{first.iloc[0]}" is read as {READ[kind_of_numbers(column)](first)[0]:.15g}'
    yield from dict.fromkeys((*_minus_is_meant(column), said))


def _letters_are_powers(column):
    text = column.astype(str)
    first = text[text.str.contains(POWER)].iloc[:1]
    yield f'"{first.iloc[0]}" is read as {_read_in_powers(first)[0]:.15g}'


def _commas_may_part_thousands(column):
    column = column.drop_duplicates()
    yield from _minus_is_meant(column)
    yield from _limits_are_meant(column)
    text = column.astype(str).str.strip()
    with_comma = text[text.str.contains(",", regex=False)]
    if len(with_comma) and with_comma.str.fullmatch(_LIKE_THOUSANDS).all():
        first = with_comma.iloc[:1]
        yield (
            f'"{first.iloc[0]}" is read as {_read(first)[0]:.15g}; if commas separate thousands, '
            "write the numbers without them"
        )


# By kind: sentences on values that may mean something else than they are taken for.
DOUBTS: dict[str, Callable[[Any], Iterator[str]]] = {
    WRITTEN: _commas_may_part_thousands,
    AMONG_WORDS: _words_that_are_missing,
    GROUPED: _read_in_thousands,
    GROUPED_BY_POINTS: _read_in_thousands,
    IN_THOUSANDS: _letters_are_powers,
}
