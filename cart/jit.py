"""How this library compiles: the only module that knows numba beyond these decorators."""

import functools
import hashlib
import inspect

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.options import DefaultOptions
from numba.extending import overload

# error_model="numpy" removes the ZeroDivisionError path, so that LLVM inlines the helpers
# (ten times faster in the scan). No fastmath: the order of additions is part of the model.
_OPTIONS = {"nogil": True, "error_model": "numpy"}

# Hot helpers only read and write arrays they are given. Switching numba's reference counting
# off there doubles the speed of small nodes. The option is private to numba, hence the check.
if hasattr(DefaultOptions, "_nrt") or "_nrt" in inspect.getsource(DefaultOptions):
    _OPTIONS["_nrt"] = False

# Kernels are called by kernels; only entry kernels by Python. Doing without the wrappers for
# Python, which unpack dozens of arrays, saves a fifth of the time of compilation.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}
kernel = numba.njit(**_INNER)
inline_kernel = numba.njit(forceinline=True, **_INNER)


class _Loader(FunctionCache):
    """numba's cache, which reads a kernel without preparing to compile.

    To read one, numba first installs all that it knows about compiling, in every process. Kernels
    without reference counting need none of it, and where one has to be compiled after all, the
    compiler installs it itself.
    """

    def load_overload(self, sig, target_context):
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class KernelFiles(IndexDataCacheFile):
    """The files of a kernel on disk, each named after what it was compiled for.

    numba numbers them: two processes that compile at the same time may give one number to two
    files, and then one of them is read in the place of the other.
    """

    def save(self, key, data):
        name = hashlib.sha256(repr((key, self._source_stamp)).encode()).hexdigest()[:16]
        name = f"{self._index_name.removesuffix('.nbi')}.{name}.nbc"
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


def entry_kernel(function):
    """Compile a kernel that Python calls, and keep it on disk."""
    dispatcher = numba.njit(cache=True, **_OPTIONS)(function)
    # Like `_nrt`, the method that does the reading is private to numba, hence the check.
    if "_nrt" in _OPTIONS and hasattr(FunctionCache, "_load_overload"):
        cache = getattr(dispatcher, "_cache", None)  # none with NUMBA_DISABLE_JIT=1
        if isinstance(cache, FunctionCache):
            cache.__class__ = _Loader
            cache._cache_file.__class__ = KernelFiles
    return dispatcher


def dispatch(function):
    """Compile `function(obj, ...)` inside kernels as the method of that name of obj's class.

    `obj` is a NamedTuple. Kernels then specialise per class and are still cached on disk;
    with NUMBA_DISABLE_JIT=1 the same code is plain Python.
    """

    @functools.wraps(function)
    def method_of(obj, *args):
        return getattr(obj.instance_class, function.__name__)

    overload(function, strict=False, jit_options={"forceinline": True, **_INNER})(method_of)
    return function
