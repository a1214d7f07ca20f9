"""Tables that are read in pieces: arrays (possibly memory-mapped) and files."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse


def refuse_sparse(table: Any) -> None:
    """Raise a TypeError for a sparse table, or a partition of one.

    Parameters
    ----------
    table : array-like
    """
    if issparse(table):
        raise TypeError(
            "The table is sparse, but partitions keep a byte for every cell; pass X.toarray(), "
            "or fit the whole table without partitions."
        )


def cut_array(array: Any, n_rows: int) -> list:
    """Cut a table into views of at most `n_rows` rows.

    Parameters
    ----------
    array : array-like
    n_rows : int
    """
    refuse_sparse(array)
    array = array if hasattr(array, "shape") else np.asarray(array)
    rows = getattr(array, "iloc", array)
    return [rows[first : first + n_rows] for first in range(0, max(1, len(array)), n_rows)]


def empty_on_disk(shape: tuple, dtype: np.dtype, folder: str | Path | None) -> np.ndarray:
    """An empty array mapped to an unnamed file, which is removed with the array.

    The operating system may write pages to the file and drop them when it is short of memory.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    folder : path or None
        Folder of the file, preferably on a local disk; None keeps the array in memory.
    """
    if folder is None or 0 in shape:  # nothing to map
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, dtype, "w+", shape=shape).view(np.ndarray)


def read_path(path: Path, of_rows: dict, n_rows: int) -> list[list]:
    """Divide files into pieces that are read when they are needed.

    Parameters
    ----------
    path : Path
        A file of `numpy.save` or in the Parquet format, or a folder of such files of one kind, in
        the order of their names.
    of_rows : dict of str to str, path or array-like
        The target and other data of rows, by name: given as X is, or, for Parquet, as the name of a
        column.
    n_rows : int
        Maximum number of rows of a piece. The row groups of Parquet files are not divided; their
        size is set when the file is written.

    Returns
    -------
    list of lists of functions, or of arrays
        The pieces of X, and of each item of `of_rows`.

    Raises
    ------
    FileNotFoundError, ValueError
        If there are no such files, or no such column.
    """
    files = _files_of(path)
    if files[0].suffix == ".npy":
        parts = [_pieces_of(files, n_rows)]
        for name, column in of_rows.items():
            if isinstance(column, (str, Path)):
                parts.append(_pieces_of(_files_of(Path(column)), n_rows))
            elif len(files) == 1:
                parts.append(cut_array(column, n_rows))
            else:
                raise ValueError(
                    f"{path} is a folder of {len(files)} files, so {name} must be a folder, too."
                )
        return parts
    return _row_groups_of(files, of_rows)


def _files_of(path):
    """The file, or the files of a folder, in the order of their names."""
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".npy", ".parquet"))
    if not files or not files[0].exists():
        raise FileNotFoundError(f"{path} holds no .npy or .parquet file.")
    if len({file.suffix for file in files}) > 1:
        raise ValueError(f"{path} holds both .npy and .parquet files; store X in one format.")
    return files


def _require_format(files, begins, name):
    """Raise a ValueError unless each file begins as those of a format do."""
    for path in files:
        with path.open("rb") as file:
            if file.read(len(begins)) != begins:
                raise ValueError(
                    f"{path} is not {name}. Partitions are read from files of numpy.save (.npy) or "
                    "in the Parquet format: convert it by numpy.save or DataFrame.to_parquet."
                )


def _pieces_of(files, n_rows):
    _require_format(files, b"\x93NUMPY", "a file of numpy.save")
    return [
        partial(_read_rows, path, first, first + n_rows)
        for path in files
        for first in range(0, max(1, len(np.load(path, mmap_mode="r"))), n_rows)
    ]


def _read_rows(path, first, end):
    """Read rows of a file of `numpy.save`.

    The file is only mapped meanwhile: a map that stayed would count as memory in use.
    """
    return np.array(np.load(path, mmap_mode="r")[first:end])


def _row_groups_of(files, of_rows):
    _require_format(files, b"PAR1", "in the Parquet format")
    try:
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Reading Parquet needs pyarrow: pip install "cartwood[parquet]".'
        ) from error
    parts: list[list] = [[] for _ in range(1 + len(of_rows))]
    for path in files:
        with pq.ParquetFile(path) as file:
            names, n_groups = list(file.schema_arrow.names), file.num_row_groups
        for what, column in of_rows.items():
            if not isinstance(column, str) or column not in names:
                raise ValueError(
                    f"{what} must name a column of {path.name}, one of {names}; got {column!r}."
                )
        features = [name for name in names if name not in of_rows.values()]
        for part, columns in zip(parts, [features, *of_rows.values()], strict=True):
            part += [partial(_read_row_group, path, group, columns) for group in range(n_groups)]
    return parts


def _read_row_group(path, group, columns):
    """Read a row group of a Parquet file: a dataframe of several columns, or an array of one."""
    import pyarrow.parquet as pq

    is_one = isinstance(columns, str)
    with pq.ParquetFile(path) as file:
        table = file.read_row_group(group, columns=[columns] if is_one else columns)
    return table.column(0).to_numpy() if is_one else table.to_pandas()
