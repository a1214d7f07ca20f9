"""CSV and Parquet files as DataFrames."""

import re
import warnings
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from cartwood.terminal import UserError, nearest, require

_MISSING = ["?"]  # in addition to pandas's markers, such as nothing, NA and null
_PARQUET = (".parquet", ".pq")
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
_SEPARATORS = ",;\t|"
_NO_TEXT = "{} is not text in a known encoding; save the table as CSV in UTF-8."
_OTHER_FIELDS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_NO_NAMES = (
    "line {1} has {2} fields, the lines above it have {0}; the first line must name all columns, "
    "with no title or comments above it, and no row may have more fields."
)
_CODE = re.compile(rb'[,;\t|"\s]0[0-9]+(?=[,;\t|"\s]|$)')
_COMPRESSED = b"\x1f\x8b", b"PK", b"BZ", b"\xfd7", b"(\xb5"  # pandas reads these, by file name
_WITH_COMMAS = r"[+-]?[\d.,]+\s*%?"  # a number in a table of one column


def read(path: Path, texts: Sequence[str] = ()) -> Any:
    """Read the table in a file.

    Parameters
    ----------
    path : Path
        Parquet by its ending; otherwise text with a header line, separated by commas, semicolons,
        tabs or |.
    texts : sequence of str, default=()
        Columns of a text file to keep as text even if they hold only numbers: "01" is not 1.

    Returns
    -------
    pandas.DataFrame
        With column names that are strings of one line, without blanks around them.

    Raises
    ------
    UserError
        If the file cannot be read, has no rows or no columns, or has a column name twice.
    """
    pandas = require("pandas", "frame")
    if not path.is_file():
        raise UserError(f"there is no file {path}{_others(path)}")
    if path.suffix.lower() in _SPREADSHEETS:
        raise UserError(f"{path} is a spreadsheet; save it as CSV.")
    try:
        frame = _read_text(path, texts) if is_text(path) else _read_parquet(path)
    except pandas.errors.EmptyDataError as error:
        raise UserError(f"{path} is empty.") from error
    except (OSError, ValueError, pandas.errors.ParserError) as error:
        reason = str(error).strip().partition("\n")[0].rpartition("C error: ")[2]
        counts = _OTHER_FIELDS.match(reason)
        reason = _NO_NAMES.format(*counts.groups()) if counts else reason
        raise UserError(f"cannot read {path}: {reason}") from error
    frame.columns = _require_distinct(path, frame.columns)
    _require_one_line_of_names(path, frame)
    if 0 in frame.shape:
        raise UserError(f"{path} has no {'rows' if len(frame) == 0 else 'columns'}.")
    return frame


def is_text(path: Path) -> bool:
    """Whether a file is read as text, judging by its name."""
    return path.suffix.lower() not in _PARQUET


def _require_distinct(path, names):
    """Column names in one line each; refuses a name that occurs twice."""
    names = [" ".join(str(name).splitlines()).strip() for name in names]
    for name, n_times in Counter(names).items():
        if n_times > 1:
            raise UserError(f"{path} has two columns named {name!r}; rename one.")
    return names


def _require_one_line_of_names(path, frame):
    """Refuse a row that repeats the header, because it turns all columns into text."""
    first = next((name for name in frame if frame[name].dtype.kind == "O"), None)
    if first is None:
        return
    for row in (frame[first].astype(str).str.strip() == first).to_numpy().nonzero()[0]:
        if [str(value).strip() for value in frame.iloc[row]] == [*frame.columns]:
            raise UserError(
                f"{path}: row {row + 1:,} repeats the header, as in concatenated files; remove "
                "such rows."
            )


def _read_text(path, texts):
    with path.open("rb") as file:
        encoding = "utf-16" if file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8"
    # The fallback is for files of older Windows, in which letters such as é have one byte.
    for each in (encoding, "cp1252"):
        with suppress(UnicodeDecodeError):
            return _decode(path, texts, each)
    raise UserError(_NO_TEXT.format(path))


def _decode(path, texts, encoding):
    import pandas as pd

    separator, names = _first_line(path, encoding)
    if any("\0" in str(name) for name in names):
        raise UserError(_NO_TEXT.format(path))
    # pandas itself would rename the second of two equal names.
    names = _require_distinct(path, (name or f"Unnamed: {j}" for j, name in enumerate(names)))
    texts = {name: str for name in texts if name in names}
    read_csv = partial(
        pd.read_csv, path, sep=separator, encoding=encoding, names=names, header=0, index_col=False,
        low_memory=False, na_values=_MISSING,
    )  # fmt: skip
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            return _with_codes(read_csv(dtype=texts), path, read_csv)
    except pd.errors.ParserWarning as error:
        line = separator.join(names)[:60]
        raise UserError(
            f"{path} has rows with more fields than its first line, {line!r}, which must name all "
            "columns."
        ) from error


def _with_codes(frame, path, read_csv):
    """The table with codes kept as text: whole numbers with leading zeros, as "01003".

    A column in which "5" and "05" both occur stays numeric: there a zero means nothing.
    """
    names = [name for name in frame if _holds_whole_numbers(frame[name])]
    if names and _may_hold_codes(path):
        for name, column in read_csv(dtype=str, usecols=names).items():
            text = column.str.strip()
            has_zeros = text.str.fullmatch(r"0\d+").any()
            if has_zeros and text.nunique() == frame[name].nunique():
                frame[name] = text
    return frame


def _holds_whole_numbers(column):
    return column.dtype.kind in "iu" or (
        column.dtype.kind == "f" and bool((column.dropna() % 1.0 == 0.0).all())
    )


def _may_hold_codes(path):
    """Whether a 0 precedes other digits somewhere in a file; if not, it need not be read again."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        is_plain = content[:2] not in (BOM_UTF16_LE, BOM_UTF16_BE, *_COMPRESSED)
        return not is_plain or _CODE.search(content) is not None


def _first_line(path, encoding):
    """The separator that divides the header into the most names, and these names."""
    import pandas as pd

    how = {"header": None, "nrows": 1, "index_col": False, "dtype": str, "keep_default_na": False}
    lines = {
        separator: pd.read_csv(path, sep=separator, encoding=encoding, **how).iloc[0]
        for separator in _SEPARATORS
    }
    separator, names = max(lines.items(), key=lambda line: len(line[1]))
    return ";" if len(names) == 1 and _has_decimal_commas(path, encoding) else separator, names


def _has_decimal_commas(path, encoding):
    """Whether all commas in a table of one column belong to numbers."""
    import pandas as pd

    lines = pd.read_csv(path, sep=";", encoding=encoding, index_col=False, dtype=str).iloc[:, 0]
    with_commas = lines[lines.str.contains(",", na=False)].str.strip()
    return bool(len(with_commas) and with_commas.str.fullmatch(_WITH_COMMAS).all())


def _read_parquet(path):
    import pandas as pd

    try:
        return _with_plain_decimals(pd.read_parquet(path))
    except NotImplementedError as error:  # pyarrow lacks a type, which polars may have
        problem = f"cannot read {path}: {error}"
    except ImportError:  # pandas needs pyarrow for Parquet; polars has its own reader
        problem = 'Parquet files need pyarrow or polars; "cartwood[parquet]" brings pyarrow.'
    if find_spec("polars") is None:
        raise UserError(problem)
    import polars

    try:
        frame = polars.read_parquet(path)
    except polars.exceptions.PolarsError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    return pd.DataFrame({column.name: _values_of(column) for column in frame})


def _with_plain_decimals(frame):
    """The frame with decimals, which pandas holds as objects, as numbers."""
    from pandas.api.types import infer_dtype

    for j, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, j]
        if dtype == "object" and infer_dtype(column, skipna=True) == "decimal":
            frame.isetitem(j, column.astype(float))
    return frame


def _values_of(column):
    """A column of polars in a form that pandas takes."""
    import pandas as pd

    if column.dtype.is_decimal() or str(column.dtype) in ("Int128", "UInt128"):
        column = column.cast(float)  # NumPy has no such types
    values = column.to_numpy()
    return values if values.ndim == 1 else pd.Series(column.to_list(), dtype=object)


def _others(path):
    """A hint at files of the same folder with a similar name."""
    folder = path.parent
    names = [each.name for each in folder.iterdir() if each.is_file()] if folder.is_dir() else []
    found = nearest(path.name, names) if names else ""
    return f"; {found}" if found.startswith("did") else "."
