"""Doubts on "12.340" beside "999": a number with decimals, or twelve thousand?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cartwood.table.files import is_text, read

_LIKE_THOUSANDS = r"[+-]?[1-9]\d{0,2}\.\d{3}"
_BELOW_THEM = r"[+-]?\d{1,3}"


def doubts_on_points(path: Path, frame: Any) -> Iterator[str]:
    """Sentences on the columns of a file whose points may part thousands.

    All values with a point have three digits behind it and no lone 0 before it, others have no
    point, and somewhere a 0 stands at the end. Who writes decimals writes no such column: with
    zeros at the end "999" is "999.000", without them "12.340" is "12.34".

    Parameters
    ----------
    path : Path
    frame : pandas.DataFrame
        What was read of it; of the columns that it has.
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
                f'{name}: "{first}" is read as {float(first):g}, beside "{other}"; if points part '
                "thousands, write the numbers without them"
            )


def _may_be(column):
    """Do the numbers allow it? Most columns need not be read as text."""
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
