"""Tables that are read in pieces: arrays, which may be memory-mapped, and files."""

from pathlib import Path
from typing import Any

import numpy as np


def cut_array(array: Any, n_rows: int) -> list:
    """Views of so many rows each.

    Parameters
    ----------
    array : array-like
    n_rows : int
    """
    array = array if hasattr(array, "shape") else np.asarray(array)
    rows = getattr(array, "iloc", array)
    return [rows[first : first + n_rows] for first in range(0, max(1, len(array)), n_rows)]


def read_npy(path: Path, y: Any, n_rows: int) -> tuple[list, list]:
    """Pieces of a file of `numpy.save`, read when they are needed; y likewise, or an array."""
    y_parts = _pieces_of(y, n_rows) if isinstance(y, (str, Path)) else cut_array(y, n_rows)
    return _pieces_of(path, n_rows), y_parts


def _pieces_of(path, n_rows):
    n = len(np.load(path, mmap_mode="r"))
    return [FileRows(str(path), first, first + n_rows) for first in range(0, max(1, n), n_rows)]


class FileRows:
    """Some rows of a file of `numpy.save`, read whenever it is called.

    The file is mapped for the time of a call: a map that stayed would count as memory in use.

    Parameters
    ----------
    path : str
    first, end : int
    """

    def __init__(self, path: str, first: int, end: int) -> None:
        self._path = path
        self._rows = slice(first, end)

    def __call__(self) -> np.ndarray:
        return np.array(np.load(self._path, mmap_mode="r")[self._rows])


def read_parquet(path: Path, target: str, n_rows: int) -> tuple[list, list]:
    """Pieces of a Parquet file, row groups, to be read when they are needed.

    Parameters
    ----------
    path : Path
    target : str
        The column that is y.
    n_rows : int
        A row group is not divided: more pieces are made by whoever writes the file.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    import pyarrow.parquet as pq

    names = pq.ParquetFile(path).schema_arrow.names
    if target not in names:
        raise ValueError(f"y must name a column of {path.name}, one of {names}; got {target!r}.")
    n_groups = pq.ParquetFile(path).num_row_groups
    others = [name for name in names if name != target]
    X = [RowGroup(str(path), group, others) for group in range(n_groups)]
    return X, [RowGroup(str(path), group, target) for group in range(n_groups)]


class RowGroup:
    """A row group of a Parquet file, read whenever it is called.

    Parameters
    ----------
    path : str
    group : int
    columns : list of str, or str
        A dataframe of several columns, or an array of one.
    """

    def __init__(self, path: str, group: int, columns: list[str] | str) -> None:
        self._path = path
        self._group = group
        self._columns = columns

    def __call__(self) -> Any:
        import pyarrow.parquet as pq

        is_one = isinstance(self._columns, str)
        columns = [self._columns] if is_one else self._columns
        table = pq.ParquetFile(self._path).read_row_group(self._group, columns=columns)
        return table.column(0).to_numpy() if is_one else table.to_pandas()
