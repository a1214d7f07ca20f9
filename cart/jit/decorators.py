"""Decorators that compile kernels, on top of numba's own."""

import functools
import gc
import inspect
import os

import numba
from numba import types
from numba.core import codegen, errors
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import overload

from cart.jit.disk_cache import KernelCache
from cart.jit.interrupts import uninterrupted
from cart.jit.notice import announced
from cart.jit.private_hooks import HOOKS
from cart.jit.unsigned_indices import with_unsigned_indices

# error_model="numpy" removes the ZeroDivisionError path, so that LLVM inlines the helpers
# (which makes the scan ten times faster). No fastmath: the order of additions is part of the model.
_OPTIONS = {"nogil": True, "error_model": "numpy"}

# Kernels only read and write arrays that they are given, so they need no reference counting.
# Switching it off doubles the speed of small nodes.
if HOOKS["no_counting"]:
    _OPTIONS["_nrt"] = False

# Python calls entry kernels only; other kernels are called by kernels. Without their wrappers for
# Python, which unpack dozens of arrays, compiling takes a fifth less time.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}


# A process that is forked while another thread compiles would wait for ever for numba's lock, which
# that thread does not release there. So forks wait until no thread compiles.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


class _Compiler(Compiler):
    """numba's compiler with garbage collection off: it would search a large heap in vain."""

    def define_pipelines(self):
        return with_unsigned_indices(super().define_pipelines())

    def compile_extra(self, function):
        _require_folder()
        is_on = gc.isenabled()
        gc.disable()
        try:
            with announced(f"{function.__module__}.{function.__name__}"):
                return super().compile_extra(function)
        finally:
            if is_on:
                gc.enable()


def _require_folder():
    """Raise an error in words if the working directory is gone: numba names it in its messages."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise FileNotFoundError(
            "Kernels cannot be compiled while the working directory does not exist, since numba "
            "looks it up. Change to another one by os.chdir, then try again."
        ) from error


_ENTRY = {"no_cfunc_wrapper": True, "pipeline_class": _Compiler, **_OPTIONS}


class _Part(codegen.JITCodeLibrary):
    """The code of an inner kernel, which is only compiled as a part of the entry kernels.

    numba would optimise it and generate machine code for it, then do so again with everything that
    calls it. That takes much of the time of compilation.
    """

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        return 0  # kernels call it by name, never through a pointer

    @property
    def codegen(self):
        return _PartsCodegen(self._codegen)


class _PartsCodegen:
    """numba's code generator without `set_env`, as a part has no machine code to set it in."""

    def __init__(self, whole):
        self._whole = whole

    def __getattr__(self, name):
        return getattr(self._whole, name)

    def set_env(self, env_name, env):
        pass


class _PartCompiler(Compiler):
    def define_pipelines(self):
        whole = self.state.targetctx.codegen()
        self.state.library = _Part(whole, self.state.func_id.func_qualname)
        return with_unsigned_indices(super().define_pipelines())


if HOOKS["parts"]:
    _INNER["pipeline_class"] = _PartCompiler


def kernel(function, **options):
    """Compile a kernel that other kernels call.

    numba would compile it again for every constant argument, even for a variable that starts as 0.
    So constants are passed like all other values.
    """
    dispatcher = numba.njit(**_INNER, **options)(function)
    if HOOKS["constants"] and not numba.config.DISABLE_JIT:
        find_code = dispatcher.get_call_template
        dispatcher.get_call_template = lambda arguments, named: find_code(
            [types.unliteral(argument) for argument in arguments], named
        )
    return dispatcher


def inline_kernel(function):
    """Compile a kernel that is inlined into its callers."""
    return kernel(function, forceinline=True)


def entry_kernel(function):
    """Compile a kernel that Python calls, and keep it on disk if a folder can be written to.

    Ctrl-C takes effect after compilation: numba would turn it into another error.
    """
    dispatcher = numba.njit(**_ENTRY)(function)
    if not numba.config.DISABLE_JIT:
        dispatcher.compile = uninterrupted(dispatcher.compile)
        dispatcher.get_call_template = functools.partial(_refuse, function.__qualname__)
        if HOOKS["cache"]:
            dispatcher._cache = KernelCache(function)
    return dispatcher


def _refuse(name, arguments, named):
    raise errors.TypingError(
        f"{name} is an entry kernel: only Python can call it, not other kernels"
    )


def dispatch(function):
    """Make `function(obj, ...)`, which has a docstring but no body, call obj's method of that name.

    `obj` is a NamedTuple. Kernels specialise per class and are still cached on disk; with
    NUMBA_DISABLE_JIT=1 the same code is plain Python.
    """
    name = function.__name__

    @functools.wraps(function)
    def call(obj, *args):
        return getattr(obj, name)(*args)

    @functools.wraps(function)
    def method_of(obj, *args):
        return getattr(obj.instance_class, name)

    overload(call, strict=False, jit_options={"forceinline": True, **_INNER})(method_of)
    return call


def like(other):
    """Class decorator: copy the methods of `other` that the class does not define itself.

    Kernels are given NamedTuples, which cannot inherit methods without inheriting fields as well.
    """

    def take_over(cls):
        for name, method in vars(other).items():
            if inspect.isfunction(method) and name not in vars(cls):
                setattr(cls, name, method)
        return cls

    return take_over
