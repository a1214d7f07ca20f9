"""Compiled kernels on disk: kept for the sources, versions and CPU that they were compiled for."""

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
    """Files of a kernel, one for each stamp and key, which are str, that it is compiled for.

        NAME.STAMP.KEY.nbc:  checksum of stamp, key and code | code, a pickle

    There is no index that could be damaged, or lose what another process writes. A file that is cut
    off, damaged or in another's place has a wrong checksum: it is as good as none.

    Parameters
    ----------
    name : str
        Of the kernel.
    folders : sequence of Folder
        To read from, in turn; what is kept goes to the first that takes it.
    """

    def __init__(self, name, folders):
        self._name = name
        self._folders = folders

    def load(self, stamp, key):
        """What is kept, or None."""
        name = self._file(stamp, key)
        for folder in self._folders:
            content = memoryview(folder.read(name) or b"")
            checksum, code = content[:_N_CHECKSUM], content[_N_CHECKSUM:]
            if checksum == _checksum(stamp, key, code):
                return pickle.loads(code)
        return None

    def save(self, stamp, key, data):
        """Keep data, and drop what is old.

        Raises
        ------
        OSError
            No folder takes it.
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
        """Drop files of a week ago that were compiled from other sources, or left unfinished."""
        current = os.path.join(folder, f"{self._name}.{stamp[:16]}.")
        for path in glob.glob(os.path.join(glob.escape(folder), f"{self._name}.*.nbc*")):
            if not (path.startswith(current) and path.endswith(".nbc")):
                with suppress(OSError):
                    if time.time() - os.stat(path).st_mtime > _WEEK:
                        os.unlink(path)


class KernelCache(NullCache):
    """What numba asks for a kernel that is compiled already, and gives a compiled one to keep.

    numba's own looks at the kernel's file alone: after an edit of what the kernel calls it goes on
    with the old code. It also installs all that it knows about compiling before it reads a kernel,
    in every process; kernels without reference counting need none of it, and where one has to be
    compiled after all, the compiler installs it itself.
    """

    def __init__(self, function):
        name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
        self._function = function
        self._files = KernelFiles(name, folders_of(inspect.getfile(function)))
        self._of_the_wheel = KernelFiles(name, [OF_THE_WHEEL])

    def load_overload(self, sig, target_context):
        if not HOOKS["no_counting"]:
            target_context.refresh()
        target = target_context.codegen().magic_tuple()
        reduced = None
        for below in targets_below(target) if has_kernels() else ():
            reduced = reduced or _load(self._of_the_wheel, self._place(sig, below))
        reduced = reduced or _load(self._files, self._place(sig, target))
        return reduced and CompileResult._rebuild(target_context, *reduced)

    def save_overload(self, sig, data):
        place = self._place(sig, data.codegen.magic_tuple())
        if place and not data.library.has_dynamic_globals:
            try:
                self._files.save(*place, _reduce(data))
            except OSError as error:
                warn_not_kept(str(error))

    def _place(self, sig, target):
        """Stamp and key: what the code was made from, and for what. None where that has no name, or
        where sources were edited since they were imported."""
        stamp = digest_of(self._function.__module__)
        classes = sorted({*_classes(getattr(sig, "args", sig))})
        digests = [digest_of(module) for module, _ in classes]
        line = self._function.__code__.co_firstlineno
        key = repr((sig, classes, digests, target, line))
        is_named = self._function.__closure__ is None and " at 0x" not in key
        return (stamp, key) if is_named and None not in (stamp, *digests) else None


@functools.cache
def has_kernels():
    """Did the package come with kernels?"""
    return os.path.isdir(OF_THE_WHEEL.path)


def _load(files, place):
    return place and files.load(*place)


def _reduce(result):
    """What numba keeps of a compiled kernel, but for what takes most of the space: code that other
    kernels could be linked with (none calls an entry kernel), which numba only asks whether it has
    the name that Python calls; and the types of all variables, in words that name files here."""
    reduced = result._reduce()
    match reduced:
        case ((name, "object", (code, bytes())), *others) if isinstance(others[_TYPES], str):
            others[_TYPES] = ""
            stub = f'define void @"{result.fndesc.llvm_cpython_wrapper_name}"() {{ ret void }}'
            return (name, "object", (code, llvm.parse_assembly(stub).as_bitcode())), *others
    return reduced  # of another numba


def _classes(arguments):
    """Module and name of each class of NamedTuple among types of arguments: its methods, which the
    kernel's module need not import, become part of the kernel."""
    for argument in arguments:
        if isinstance(argument, types.BaseNamedTuple):
            yield argument.instance_class.__module__, argument.instance_class.__qualname__
        if isinstance(argument, types.BaseTuple):
            yield from _classes(argument)


def _checksum(stamp, key, code):
    checksum = hashlib.sha256(f"{stamp} {key}".encode())
    checksum.update(code)
    return checksum.digest()


_TYPES = 5  # place of the types among the others
_N_CHECKSUM = len(_checksum("", "", b""))
