"""CSV and Parquet files as DataFrames."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import Any

from cartwood.terminal import UserError, nearest, require

_MISSING = ["?"]  # beside what pandas takes for it: nothing, NA, null and the like
_PARQUET = (".parquet", ".pq")


def read(path: Path) -> Any:
    """The table of a file.

    Parameters
    ----------
    path : Path
        Parquet by its ending, else text with commas, semicolons or tabs and a line of names.

    Returns
    -------
    pandas.DataFrame
        Its columns named by strings, without blanks around them.

    Raises
    ------
    UserError
        If it cannot be read, or has no rows, no columns or one name twice.
    """
    pandas = require("pandas", "frame")
    if not path.is_file():
        raise UserError(f"there is no file {path}{_others(path)}")
    try:
        frame = _read_parquet(path) if path.suffix.lower() in _PARQUET else _read_text(path)
    except (OSError, ValueError, pandas.errors.ParserError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"cannot read {path}: {reason}") from error
    frame.columns = [str(name).strip() for name in frame.columns]
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise UserError(f"{path} has two columns named {twice[0]!r}; rename one.")
    if 0 in frame.shape:
        raise UserError(f"{path} has no {'rows' if len(frame) == 0 else 'columns'}.")
    return frame


def _read_text(path):
    import pandas as pd

    with path.open("rb") as file:
        encoding = "utf-16" if file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8"
    with path.open(encoding=encoding, errors="replace") as file:
        names = file.readline()
    how = {"sep": max(",;\t", key=names.count), "low_memory": False, "na_values": _MISSING}
    try:
        return pd.read_csv(path, encoding=encoding, **how)
    except UnicodeDecodeError:  # an older Windows: its letters, such as é, have one byte
        return pd.read_csv(path, encoding="cp1252", **how)


def _read_parquet(path):
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:  # pandas leaves Parquet to pyarrow; polars brings its own
        polars = require("polars", "parquet")
    try:
        frame = polars.read_parquet(path)
    except polars.exceptions.PolarsError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    return pd.DataFrame({column.name: column.to_numpy() for column in frame})


def _others(path):
    """The files of its folder with a name like that."""
    folder = path.parent
    names = [each.name for each in folder.iterdir() if each.is_file()] if folder.is_dir() else []
    found = nearest(path.name, names) if names else ""
    return f"; {found}" if found.startswith("did") else "."
