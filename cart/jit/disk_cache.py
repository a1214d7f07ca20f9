"""Cache of compiled kernels on disk, valid for the sources, versions and CPU they are made for."""

import functools
import glob
import hashlib
import inspect
import os
import pickle
import time
from contextlib import suppress

from llvmlite import binding as llvm
from numba import types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from cart.jit.folders import OF_THE_WHEEL, folders_of, warn_not_kept
from cart.jit.levels import targets_below
from cart.jit.private_hooks import HOOKS
from cart.jit.source_digest import digest_of

_WEEK = 7 * 24 * 3600.0  # seconds


class KernelFiles:
    """The files of a kernel: one for each pair of stamp and key (str) that it is compiled for.

        NAME.STAMP.KEY.nbc:  checksum of stamp, key and code | code, a pickle

    There is no index that could be damaged, or lose what another process writes. A file that is
    truncated, damaged or in another file's place has a wrong checksum and is ignored.

    Parameters
    ----------
    name : str
        Of the kernel.
    folders : sequence of Folder
        They are read in turn. Files are written to the first that accepts them.
    """

    def __init__(self, name, folders):
        self._name = name
        self._folders = folders

    def load(self, stamp, key):
        """Return what was saved for a stamp and key, or None."""
        name = self._file(stamp, key)
        for folder in self._folders:
            content = memoryview(folder.read(name) or b"")
            checksum, code = content[:_N_CHECKSUM], content[_N_CHECKSUM:]
            if checksum == _checksum(stamp, key, code):
                return pickle.loads(code)
        return None

    def save(self, stamp, key, data):
        """Save data, and delete old files.

        Raises
        ------
        OSError
            If no folder accepts the file.
        """
        code = dumps(data)
        content = _checksum(stamp, key, code) + code
        refused = []
        for folder in self._folders:
            try:
                folder.write(self._file(stamp, key), content)
            except OSError as error:
                refused.append(f"{folder.path}: {error.strerror or error}")
            else:
                self._drop_old(folder.path, stamp)
                return
        raise OSError("; ".join(refused))

    def _file(self, stamp, key):
        return f"{self._name}.{stamp[:16]}.{hashlib.sha256(key.encode()).hexdigest()[:16]}.nbc"

    def _drop_old(self, folder, stamp):
        """Delete files over a week old that are unfinished or come from other sources."""
        current = os.path.join(folder, f"{self._name}.{stamp[:16]}.")
        for path in glob.glob(os.path.join(glob.escape(folder), f"{self._name}.*.nbc*")):
            if not (path.startswith(current) and path.endswith(".nbc")):
                with suppress(OSError):
                    if time.time() - os.stat(path).st_mtime > _WEEK:
                        os.unlink(path)


class KernelCache(NullCache):
    """The cache in which numba looks for a compiled kernel, and to which it saves one.

    numba's own cache checks the kernel's file only: after an edit of something that the kernel
    calls, it still returns the old code. It also refreshes numba's registries of types and
    functions before it loads a kernel, in every process. Kernels without reference counting do not
    need that, and if one has to be compiled after all, the compiler does it itself.
    """

    def __init__(self, function):
        name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
        self._function = function
        self._files = KernelFiles(name, folders_of(inspect.getfile(function)))
        self._of_the_wheel = KernelFiles(name, [OF_THE_WHEEL])

    def load_overload(self, sig, target_context):
        if not HOOKS["no_counting"]:
            target_context.refresh()
        own = target_context.codegen().magic_tuple()
        levels = targets_below(own) if has_kernels() else ()
        tried = [(self._of_the_wheel, level) for level in levels]
        for files, target in (*tried, (self._files, own)):
            place = self._place(sig, target)
            if place and (reduced := files.load(*place)):
                return CompileResult._rebuild(target_context, *reduced)
        return None

    def save_overload(self, sig, data):
        place = self._place(sig, data.codegen.magic_tuple())
        if place and not data.library.has_dynamic_globals:
            try:
                self._files.save(*place, _reduce(data))
            except OSError as error:
                warn_not_kept(str(error))

    def _place(self, sig, target):
        """Stamp and key: which sources the code is made from, and for which types and CPU.

        None if these have no lasting name, if a source was edited since it was imported, or if an
        argument is text, whose references are counted: `load_overload` prepares nothing for that.
        """
        stamp = digest_of(self._function.__module__)
        classes = sorted({*_classes(getattr(sig, "args", sig))})
        digests = [digest_of(module) for module, _ in classes]
        line = self._function.__code__.co_firstlineno
        key = repr((sig, classes, digests, target, line))
        is_named = self._function.__closure__ is None and " at 0x" not in key
        is_kept = is_named and "unicode_type" not in key and None not in (stamp, *digests)
        return (stamp, key) if is_kept else None


@functools.cache
def has_kernels():
    """Whether the package came with compiled kernels."""
    return os.path.isdir(OF_THE_WHEEL.path)


def _reduce(result):
    """What numba would save of a compiled kernel, without the two parts that take most space.

    One is the bitcode for linking with other kernels, none of which calls an entry kernel: numba
    only checks that it has the name that Python calls. The other is the text of the types of all
    variables, which names files of this machine.
    """
    reduced = result._reduce()
    match reduced:
        case ((name, "object", (code, bytes())), *others) if isinstance(others[_TYPES], str):
            others[_TYPES] = ""
            stub = f'define void @"{result.fndesc.llvm_cpython_wrapper_name}"() {{ ret void }}'
            return (name, "object", (code, llvm.parse_assembly(stub).as_bitcode())), *others
    return reduced  # another version of numba


def _classes(arguments):
    """Yield the module and name of each NamedTuple class among the types of the arguments.

    Methods of these classes are compiled into the kernel, whose module need not import them.
    """
    for argument in arguments:
        if isinstance(argument, types.BaseNamedTuple):
            yield argument.instance_class.__module__, argument.instance_class.__qualname__
        if isinstance(argument, types.BaseTuple):
            yield from _classes(argument)


def _checksum(stamp, key, code):
    checksum = hashlib.sha256(f"{stamp} {key}".encode())
    checksum.update(code)
    return checksum.digest()


_TYPES = 5  # position of the types in `others`, see `_reduce`
_N_CHECKSUM = len(_checksum("", "", b""))
