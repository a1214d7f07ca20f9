"""Units beside every number of a column of text, as in "$1,200.50" and "176 m²"."""

import re
from typing import Any

from cartwood.table.written import (
    AMONG_WORDS,
    LIMIT,
    PLAIN,
    POWER,
    SPACES,
    as_text,
    is_number,
    kind_of_numbers,
    may_be_booked,
    with_minus,
)

_SIGN = r"[$¢-¥\u20a0-\u20cf]"  # of a currency
_CURRENCIES = (  # the most common codes of ISO 4217
    "AED ARS AUD BDT BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KES KRW "
    "MAD MXN MYR NGN NOK NZD PEN PHP PKR PLN QAR RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR"
)
_CODE = rf"{'|'.join(_CURRENCIES.split())}|Rs\.?|kr\.?"  # rupees and kronor are abbreviated
_BEFORE = rf"[A-Z]{{0,2}}{_SIGN}|{_CODE}"  # "$", "US$", "USD"
_OF = r"(?:/|(?:out )?of) *\d+"  # "/ 10", "out of 5"
_SYMBOL = r"[°'\"\u2032\u2033\u2605]"  # of degrees, feet and inches, stars
# "€", "kg", "°C", "m2", "km/h"
_AFTER = rf"{_OF}|(?:[^\W\d_]|{_SIGN}|{_SYMBOL})(?:[^\d,;]|(?<=m)[23])*"
_PLURAL = re.compile(r"[a-z]{3,}")  # "1 year", "2 years"; but "m" is not "ms"
_NUMBER = rf"[+-]?(?:\d[\d.,{SPACES}]*|[.,]\d+)(?:{POWER})?"


def unit_of(known: Any) -> tuple[str, str] | None:
    """The text before and after every number of some texts, at least one and none missing, or None.

    Letters alone before a number make a code, not a unit, except those of currencies.
    """
    known = known.drop_duplicates()
    known = with_minus(known) if may_be_booked(known) else known
    first = str(known.iloc[0]).strip()
    found = _looks(_BEFORE, "").fullmatch(first) or _looks("", _AFTER).fullmatch(first)
    if found is None:
        return None
    unit = found["before"], found["after"]
    if not known.astype(str).str.strip().str.fullmatch(_pattern(unit)).all():
        return None
    bare = without_unit(known, unit)
    is_plain = bare.str.fullmatch(PLAIN).all()
    return unit if is_plain or kind_of_numbers(bare) not in (None, AMONG_WORDS) else None


def without_unit(column: Any, unit: tuple[str, str] | None) -> Any:
    """A column as text without its unit; unchanged if it has no unit or is not text.

    Raises
    ------
    ValueError
        If a value has no unit, or another one.
    """
    if unit is None or is_number(column):
        return column
    text = as_text(with_minus(column)).str.strip()
    known = text.dropna()
    others = known[~known.str.fullmatch(_pattern(unit))]
    if len(others):
        raise ValueError(f"{others.iloc[0]!r} is not a number in {''.join(unit)!r}, as in training")
    return text.str.replace(_pattern(unit), r"\g<sign>\g<number>", regex=True).str.strip()


def _pattern(unit):
    before, after = map(re.escape, unit)
    return _looks(before, f"{after.removesuffix('s')}s?" if _PLURAL.fullmatch(after) else after)


def _looks(before, after):
    """A pattern for a number with its unit: "-$5", "$ -5", "5kg"."""
    return re.compile(
        rf"(?P<sign>{LIMIT}[+-]?)(?P<before>{before})\s*(?P<number>{_NUMBER})\s*(?P<after>{after})"
    )
