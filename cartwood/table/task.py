"""The target: numbers or classes."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cartwood.table.columns import as_numbers, doubts_on_names, kind_of_time
from cartwood.table.written import is_number
from cartwood.terminal import UserError

KINDS = ("classification", "regression")
_FEW = 20  # whole numbers with at most so many distinct values are classes
_MOST_CLASSES = 200
_SCALE = 5  # from so many distinct whole numbers on, classes may be a scale
_NUMBER, _FEW_WORDS = re.compile(r"[+-]?\d+(\.\d+)?"), 3  # words among classes that are numbers
_FAR, _FEWEST = 5.0, 3  # times the range of the others; least number of distinct values
_IF_NUMBERS = "if these are numbers, remove the text next to them"
_LARGEST = 1e150  # squares of much larger numbers overflow
_LEAST = 1e-6  # of a range: trees, like scikit-learn's, take an impurity of 2e-16 for none


class Task(NamedTuple):
    """The target's values, of the rows that have one, and the kind of task.

    Attributes
    ----------
    kind : {"classification", "regression"}
    y : ndarray of shape (n_rows,)
        Numbers, or classes: strings, whole numbers or booleans.
    has_target : ndarray of shape (n_all_rows,), bool
    is_asked : bool
        Whether the user chose the kind.
    """

    kind: str
    y: np.ndarray
    has_target: np.ndarray
    is_asked: bool

    @classmethod
    def of(cls, column: Any, kind: str | None = None) -> "Task":
        """The task for a column of a DataFrame; `kind` overrides what its values suggest.

        Raises
        ------
        UserError
            If the column has a single value, or is not of that kind.
        """
        column = as_numbers(column)
        has_target = column.notna().to_numpy()
        known = column[has_target]
        times = kind_of_time(known) if kind is None else None
        if times is not None:
            such_as = "days since the first" if times == "dates" else "hours"
            raise UserError(
                f"the target {column.name!r} holds {times}; convert them to numbers, such as "
                f"{such_as}."
            )
        is_asked = kind is not None
        kind = kind or _kind_of(known)
        has_gaps = not has_target.all()
        y = _numbers_of(known) if kind == "regression" else _classes_of(known, has_gaps)
        n_distinct = len(np.unique(y))
        if n_distinct < 2:
            what = "only one value" if n_distinct else "no values"
            if n_distinct and has_gaps:
                what += f", missing in {np.count_nonzero(~has_target):,} rows"
            raise UserError(f"the target {column.name!r} has {what}: there is nothing to predict.")
        if kind == "classification":
            _refuse_classes(known, n_distinct)
        return cls(kind, y, has_target, is_asked)

    def doubts(self) -> Iterator[str]:
        """Sentences on what may be meant otherwise.

        Among numbers: one far from all others, and classes that may be a scale. Among classes:
        words among numbers, and two spellings of one name.
        """
        import pandas as pd

        if self.y.dtype.kind in "iuf":
            yield from self._doubts_on_one_value()
            n_classes = len(np.unique(self.y)) if self.kind == "classification" else 0
            if n_classes >= _SCALE and not self.is_asked:
                yield (
                    f"{n_classes} whole numbers are taken as classes; if they measure something, "
                    "as ratings do, use --task regression"
                )
        if self.kind == "classification" and self.y.dtype.kind == "U":
            classes = np.unique(self.y)
            yield from doubts_on_names(pd.Series(classes))
            words = [label for label in classes if not _NUMBER.fullmatch(label)]
            if 0 < len(words) <= _FEW_WORDS and 2 * len(words) <= len(classes):
                named = " and ".join(f'"{word}"' for word in words)
                are = "is a class" if len(words) == 1 else "are classes"
                yield f'{named} {are} among numbers; leave cells empty if this means "missing"'

    def _doubts_on_one_value(self):
        """A sentence on one value far from all others, which may be a total, a slip or a gap.

        Everything said about the target would then be about this value.
        """
        distinct, times = np.unique(self.y, return_counts=True)
        if len(distinct) < _FEWEST:
            return
        gaps = np.diff(distinct)
        for value, n_rows, gap, others in (
            (distinct[0], times[0], gaps[0], distinct[-1] - distinct[1]),
            (distinct[-1], times[-1], gaps[-1], distinct[-2] - distinct[0]),
        ):
            if gap <= _FAR * others:
                continue
            if n_rows == 1:
                (place,) = np.flatnonzero(self.has_target)[self.y == value]
                where = f"row {place + 1:,}"
                remedy = "it is a total or a typing error, remove the row"
            else:
                where = f"{n_rows:,} rows"
                remedy = 'it means "missing", leave these cells empty'
            yield f"{value:,.10g} in {where} is far from all others; if {remedy}"


def _numbers_of(column):
    if _are_codes(column):
        column = column.astype(np.float64)
    if not is_number(column):
        raise UserError(f"the target {column.name!r} is not numeric; try --task classification.")
    y = column.to_numpy(np.float64)
    if not np.isfinite(y).all():
        raise UserError(f"the target {column.name!r} has infinite values.")
    if np.abs(y).max(initial=0.0) > _LARGEST:
        raise UserError(
            f"the target {column.name!r} has numbers above {_LARGEST:g}, whose squares are too "
            "large to sum; divide it by a constant."
        )
    if 0.0 < np.ptp(y) < _LEAST:
        raise UserError(
            f"the target {column.name!r} has numbers that differ by less than {_LEAST:.6f}, which "
            "trees may treat as equal; multiply it by a constant."
        )
    return y


def _are_codes(column):
    """Whether the values are texts of digits alone, such as "01"."""
    return not is_number(column) and column.astype(str).str.fullmatch(r"\d+").all()


def _classes_of(column, has_gaps):
    """Class labels: whole numbers and booleans as they are, fractions and all else as text.

    If values are missing, pandas holds whole numbers as floats; converting them to int64 keeps the
    class 1 from being predicted as 1.0.
    """
    is_whole = column.dtype.kind == "f" and (column % 1 == 0).all()
    if is_whole and has_gaps and column.abs().max() < 2**53:
        return column.to_numpy(np.int64)
    is_plain = is_whole or column.dtype.kind in "biu"
    return column.to_numpy() if is_plain else column.astype(str).to_numpy(str)


def _refuse_classes(column, n_distinct):
    """Refuse more classes than can be told apart, and a class of its own for every row."""
    if n_distinct > _MOST_CLASSES:
        example, instead = "", "try --task regression"
        if not (is_number(column) or _are_codes(column)):
            example = f" such as {str(column.iloc[0])[:40]!r}"
            instead = f"choose one with fewer; {_IF_NUMBERS}"
        raise UserError(
            f"the target {column.name!r} has {n_distinct:,} classes{example}; the maximum is "
            f"{_MOST_CLASSES}; {instead}."
        )
    if n_distinct == len(column) and not is_number(column):
        raise UserError(
            f"the target {column.name!r} has a different class in every row, such as "
            f"{str(column.iloc[0])[:40]!r}: nothing can be learned; {_IF_NUMBERS}."
        )


def _kind_of(column):
    if not is_number(column) or column.dtype.kind == "b":
        return "classification"
    values = column.to_numpy(np.float64)
    is_whole = bool((values == np.floor(values)).all())
    return "classification" if is_whole and column.nunique() <= _FEW else "regression"
