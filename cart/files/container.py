"""Files of arrays and JSON: safetensors with a version and a checksum, replaced atomically.

8 bytes            length of the header
header, JSON       "__metadata__": {"cartwood": what the arrays are, "format": "1",
                                    "checksum": of all the rest}; names, dtypes, shapes, offsets
arrays             one after another, mapped into memory when the file is read
"""

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from mmap import ACCESS_COPY
from mmap import mmap as map_file
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cart.files.checksum import checksum
from cart.files.errors import DamagedModelError, require
from cart.files.state import describe, restore

FORMAT = 1
_ROOM = 1 << 22  # bytes: more than the writer of safetensors takes besides the header
_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "F16": "f2",
    "U32": "u4", "I32": "i4", "F32": "f4", "U64": "u8", "I64": "i8", "F64": "f8",
}  # fmt: skip

# Other errors are not the file's: a signal handler that ends a load at a time limit may raise any.
_OF_BAD_FILES = (
    SafetensorError, ArithmeticError, AttributeError, LookupError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip


def write(value: Any, path: str | os.PathLike) -> None:
    """Write an object into a file atomically: if it fails, the file stays as it was.

    Parameters
    ----------
    value : object
        See `cart.files.state`.
    path : path
        An existing file is replaced at the end.

    Raises
    ------
    TypeError
        If the object has a part that cannot be stored in a model file; nothing is written.
    OSError
        If the file cannot be written, for example because the disk is full.
    """
    content, arrays = describe(value)
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    metadata = {"format": str(FORMAT), "cartwood": text}
    metadata["checksum"] = checksum_of_parts(text, arrays)
    with _replacing(Path(path)) as draft:
        np.empty(_ROOM, np.uint8)  # without memory for its buffer, save_file ends the process
        try:
            save_file(arrays, draft, metadata)
        except SafetensorError as error:
            code = _code_in(error) or errno.EIO
            raise OSError(code, os.strerror(code), os.fspath(path)) from error


def read(path: str | os.PathLike, mmap: bool = True) -> Any:
    """Read the object in a file.

    Parameters
    ----------
    path : path
    mmap : bool, default=True
        Map the arrays into memory; False copies them there.

    Raises
    ------
    DamagedModelError
        If the file was not written by `write`, or was changed since.
    OSError
        If it cannot be read.
    MemoryError
        If there is not enough memory to map it.
    """
    while True:
        version = _version_of(path)
        try:
            return _read_once(path, mmap)
        except DamagedModelError:
            if version == _version_of(path):
                raise  # else it was replaced while parts of it were read


def _version_of(path):
    """What changes when a file is replaced; None if there is no file."""
    with suppress(OSError, TypeError, ValueError):
        state = os.stat(path)
        return state.st_ino, state.st_mtime_ns


def _read_once(path, mmap):
    try:
        text, said, arrays = _parts_of(Path(path), mmap)
        require(said == checksum_of_parts(text, arrays), "its checksum does not match")
        return restore(json.loads(text), arrays)
    except (DamagedModelError, MemoryError):
        raise
    except (*_OF_BAD_FILES, OSError) as error:
        if errno.ENOMEM in (getattr(error, "errno", None), _code_in(error)):
            raise MemoryError(f"There is not enough memory to map {os.fspath(path)!r}.") from error
        if isinstance(error, OSError):
            raise
        raise DamagedModelError(
            f"{os.fspath(path)!r} is not a model file, or is damaged: {error}"
        ) from error


def checksum_of_parts(text: str, arrays: dict[str, np.ndarray]) -> str:
    """The checksum of a file: of the JSON text, and of the arrays and their descriptions."""
    names = sorted(arrays)
    said = [f"{name} {arrays[name].dtype.str} {arrays[name].shape}" for name in names]
    return checksum([f"format {FORMAT}", text, *said], [arrays[name] for name in names])


def _parts_of(path, mmap):
    """The JSON, the checksum and the arrays of a file, after checking its header."""
    with open(path, "rb") as file:  # raises an OSError that says why it cannot be read
        length = int.from_bytes(file.read(8), "little")
    with safe_open(path, "np") as file:
        metadata = file.metadata() or {}
        names = file.offset_keys()
        kinds = [file.get_slice(name) for name in names]
        kinds = [(_DTYPES[kind.get_dtype()], tuple(kind.get_shape())) for kind in kinds]
    found = metadata.get("format", "")
    require("cartwood" in metadata and found.isdecimal(), "it was not written by save")
    if int(found) > FORMAT:
        raise DamagedModelError(
            f"{os.fspath(path)!r} has format {found}, but this version reads formats up to "
            f"{FORMAT}. Use a newer version of Cartwood."
        )
    content = _content_of(path, mmap)[8 + length :]
    arrays, first = {}, 0
    for name, (dtype, shape) in zip(names, kinds, strict=True):  # safe_open checked: no gaps
        array = np.ndarray(shape, dtype, content.data, first)
        arrays[name], first = array, first + array.nbytes
    require(first == len(content), "its length does not match its header")
    return metadata["cartwood"], metadata["checksum"], arrays


def _content_of(path, mmap):
    """The bytes of a file, mapped privately if `mmap`: writing to them does not change the file.

    numpy.memmap would not do: joblib passes such arrays to processes by the name of the file, which
    may hold another model by then.
    """
    if not mmap:
        return np.fromfile(path, np.uint8)
    with open(path, "rb") as file:
        return np.frombuffer(map_file(file.fileno(), 0, access=ACCESS_COPY), np.uint8)


def _code_in(error):
    """The number of an error of the system that safetensors has only in its text; None without."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Context with a draft beside a file, which replaces it atomically at the end."""
    path = path.resolve()  # if this is a link, replace its target
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    try:
        draft.touch()
        mode = (path if path.exists() else draft).stat().st_mode
        yield draft
        draft.chmod(stat.S_IMODE(mode))
        _keep(draft)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        _keep(path.parent)


def _keep(path):
    """Flush what was written to the disk."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
