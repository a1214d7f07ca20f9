"""Where compiled kernels are kept on disk, and read from."""

import hashlib
import inspect
import os
from contextlib import suppress

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
)


class _ReadOnly(InTreeCacheLocator):
    """The folder beside the sources, where there is none that can be written to."""

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func, py_file) if os.path.exists(py_file) else None


class _Place(CompileResultCacheImpl):
    """Where numba keeps a kernel, or would keep it."""

    _locator_classes = [*getattr(CompileResultCacheImpl, "_locator_classes", ()), _ReadOnly]


class KernelFiles(IndexDataCacheFile):
    """The files of a kernel on disk, each named after what it was compiled for.

    numba numbers them: two processes that compile at the same time may give one number to two
    files, and then one of them is read in the place of the other.

    Parameters
    ----------
    folder, name, stamp : str, str, object
        numba's.
    also : sequence of str
        Folders to read from as well, which cannot be written to.
    """

    def __init__(self, folder, name, stamp, also=()):
        super().__init__(folder, name, stamp)
        self._also = [IndexDataCacheFile(other, name, stamp) for other in also]

    def load(self, key):
        found = super().load(key)
        for files in self._also:
            if found is None:
                with suppress(OSError):
                    found = files.load(key)
        return found

    def save(self, key, data):
        name = hashlib.sha256(repr((key, self._source_stamp)).encode()).hexdigest()[:16]
        name = f"{self._index_name.removesuffix('.nbi')}.{name}.nbc"
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


class KernelCache(FunctionCache):
    """numba's cache, which reads a kernel without preparing to compile, and from folders, too, that
    it cannot write to: of an image, or of an installed package.

    To read one, numba first installs all that it knows about compiling, in every process. Kernels
    without reference counting need none of it, and where one has to be compiled after all, the
    compiler installs it itself.
    """

    _impl_class = _Place

    def __init__(self, function):
        super().__init__(function)
        file = inspect.getfile(function)
        kinds = [UserProvidedCacheLocator] if numba.config.CACHE_DIR else []
        folders = [kind(function, file).get_cache_path() for kind in (*kinds, InTreeCacheLocator)]
        if self.cache_path in folders:  # those before it were refused
            folders = folders[: folders.index(self.cache_path)]
        name, stamp = self._impl.filename_base, self._impl.locator.get_source_stamp()
        self._cache_file = KernelFiles(self.cache_path, name, stamp, folders)

    def load_overload(self, sig, target_context):
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig, data):
        with suppress(OSError):  # what cannot be kept is compiled anew by the next process
            super().save_overload(sig, data)
