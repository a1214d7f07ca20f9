"""Doubts about "12.340" beside "999": a number with decimals, or twelve thousand?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cartwood.table.files import is_text, read

_LIKE_THOUSANDS = r"[+-]?[1-9]\d{0,2}\.\d{3}"
_BELOW_THEM = r"[+-]?\d{1,3}"


def doubts_on_points(path: Path, frame: Any) -> Iterator[str]:
    """Sentences on the columns of a text file whose points may separate thousands.

    In such a column every value with a point has three digits after it and no single 0 before it,
    some values have no point, and at least one ends in 0. Decimals are not written like that: with
    trailing zeros "999" would be "999.000", and without them "12.340" would be "12.34".

    Parameters
    ----------
    path : Path
    frame : pandas.DataFrame
        The table read from the file; only its columns are considered.
    """
    names = [name for name in frame.columns if _may_be(frame[name])] if is_text(path) else []
    texts = read(path, names) if names else frame
    for name in names:
        text = texts[name].dropna().str.strip()
        has_point = text.str.contains(".", regex=False)
        if not (
            text[has_point].str.fullmatch(_LIKE_THOUSANDS).all()
            and text[~has_point].str.fullmatch(_BELOW_THEM).all()
            and not has_point.all()
        ):
            continue
        other = text[~has_point].iloc[0]
        for first in text[has_point & text.str.endswith("0")].iloc[:1]:
            yield (
                f'{name}: "{first}" is read as {float(first):g}, beside "{other}"; if points '
                "separate thousands, write the numbers without them"
            )


def _may_be(column):
    """Whether the numbers allow it; most columns then need not be read again as text."""
    if column.dtype.kind != "f":
        return False
    values = np.abs(column.to_numpy())
    values = values[np.isfinite(values)]
    is_whole = values % 1.0 == 0.0
    return (
        0 < np.count_nonzero(is_whole) < len(values)
        and values.max() < 1000.0
        and values[~is_whole].min() >= 1.0
        and np.array_equal(values, values.round(3))
    )
