"""Folders that hold compiled kernels. Loading a kernel runs its code, so kernels are only read from
folders that no other user can write to."""

import functools
import os
import tempfile
import warnings
from contextlib import suppress
from typing import NamedTuple

import numba


class Folder(NamedTuple):
    """A folder, which need not exist yet.

    Parameters
    ----------
    path : str
    is_package : bool
        Whether the folder is in the package. Whoever can write there can also change the sources,
        so that its kernels are as safe as these.
    """

    path: str
    is_package: bool

    def read(self, name):
        """Return the content of a file, or None if there is none or it cannot be trusted."""
        with suppress(OSError), open(os.path.join(self.path, name), "rb") as file:
            if self.is_package or not (
                why_unsafe(os.stat(self.path)) or why_unsafe(os.fstat(file.fileno()))
            ):
                return file.read()
        return None

    def write(self, name, content):
        """Write a file atomically."""
        os.makedirs(self.path, mode=0o755, exist_ok=True)
        why = None if self.is_package else why_unsafe(os.stat(self.path))
        if why:
            raise PermissionError(why)
        handle, temporary = tempfile.mkstemp(prefix=name + ".", dir=self.path)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o644)  # others may read, as they may Python's bytecode
            os.replace(temporary, os.path.join(self.path, name))
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


# Of the kernels that came with a wheel; a checkout has none.
OF_THE_WHEEL = Folder(os.path.join(os.path.dirname(__file__), "kernels"), True)


def folders_of(source):
    """Folders for the kernels of a source file, in order of preference: only NUMBA_CACHE_DIR if
    that is set; else __pycache__ beside the source, then the user's cache folder, if known."""
    if numba.config.CACHE_DIR:
        return [Folder(os.path.join(numba.config.CACHE_DIR, "cartwood"), False)]
    beside = os.path.join(os.path.dirname(source), "__pycache__")
    of_user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folders = [Folder(beside, True), Folder(os.path.join(of_user, "cartwood"), False)]
    return folders if os.path.isabs(of_user) else folders[:1]  # "~" of a user without a home


def why_unsafe(status):
    """Why a folder or file with this status may hold another user's code; None if it is safe."""
    if os.name != "posix":
        return None
    if status.st_uid not in (0, os.getuid()):
        return "belongs to another user"
    return "others can write to it (fix with chmod go-w)" if status.st_mode & 0o022 else None


@functools.cache
def warn_not_kept(why):
    """Warn, once for each reason, that compiled kernels cannot be kept on disk.

    Warns
    -----
    RuntimeWarning
    """
    warnings.warn(
        f"Compiled kernels cannot be cached on disk ({why}), so every process will compile them "
        "again. Set NUMBA_CACHE_DIR to a folder that you own and others cannot write to.",
        RuntimeWarning,
        stacklevel=2,
    )
