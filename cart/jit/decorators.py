"""How kernels are compiled: the decorators, which numba's own stand behind."""

import functools
import gc
import inspect

import numba
from numba import types
from numba.core import codegen, errors
from numba.core.compiler import Compiler
from numba.extending import overload

from cart.jit.disk_cache import KernelCache
from cart.jit.interrupts import uninterrupted
from cart.jit.notice import announced
from cart.jit.private_hooks import HOOKS
from cart.jit.unsigned_indices import count_from_the_start

# error_model="numpy" removes the ZeroDivisionError path, so that LLVM inlines the helpers
# (ten times faster in the scan). No fastmath: the order of additions is part of the model.
_OPTIONS = {"nogil": True, "error_model": "numpy"}

# Hot helpers only read and write arrays they are given. Switching numba's reference counting
# off there doubles the speed of small nodes.
if HOOKS["no_counting"]:
    _OPTIONS["_nrt"] = False

# Kernels are called by kernels; only entry kernels by Python. Doing without the wrappers for
# Python, which unpack dozens of arrays, saves a fifth of the time of compilation.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}


class _Compiler(Compiler):
    """numba's compiler, without Python's search for garbage among all that it has to keep."""

    def define_pipelines(self):
        return count_from_the_start(super().define_pipelines())

    def compile_extra(self, function):
        is_on = gc.isenabled()
        gc.disable()
        try:
            with announced(f"{function.__module__}.{function.__name__}"):
                return super().compile_extra(function)
        finally:
            if is_on:
                gc.enable()


_ENTRY = {"no_cfunc_wrapper": True, "pipeline_class": _Compiler, **_OPTIONS}


class _Part(codegen.JITCodeLibrary):
    """The code of an inner kernel: written down, and left to the entry kernel that it becomes a
    part of. numba would optimise it and turn it into machine code, then do so again with everything
    that calls it, which is much of the time of compilation."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        return 0  # nobody calls it but by name

    @property
    def codegen(self):
        return _PartsCodegen(self._codegen)


class _PartsCodegen:
    """numba's code generator, which has no machine code of a part to tell of its environment."""

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
        return count_from_the_start(super().define_pipelines())


if HOOKS["parts"]:
    _INNER["pipeline_class"] = _PartCompiler


def kernel(function, **options):
    """Compile a kernel that kernels call.

    numba would compile it anew for every constant that it is given, also for the 0 that a variable
    begins with. So constants are passed like all other values.
    """
    dispatcher = numba.njit(**_INNER, **options)(function)
    if HOOKS["constants"] and not numba.config.DISABLE_JIT:
        find_code = dispatcher.get_call_template
        dispatcher.get_call_template = lambda arguments, named: find_code(
            [types.unliteral(argument) for argument in arguments], named
        )
    return dispatcher


def inline_kernel(function):
    """Compile a kernel that becomes a part of each that calls it."""
    return kernel(function, forceinline=True)


def entry_kernel(function):
    """Compile a kernel that Python calls, and keep it on disk where there is a place for it.

    Ctrl-C is heard when it is compiled: numba would make another error of it.
    """
    dispatcher = numba.njit(**_ENTRY)(function)
    if not numba.config.DISABLE_JIT:
        dispatcher.compile = uninterrupted(dispatcher.compile)
        dispatcher.get_call_template = functools.partial(_refuse, function.__qualname__)
        if HOOKS["cache"]:
            dispatcher._cache = KernelCache(function)
    return dispatcher


def _refuse(name, arguments, named):
    raise errors.TypingError(f"{name} is an entry kernel: kernels cannot call it, only Python can")


def dispatch(function):
    """Have `function(obj, ...)`, which has words and no body, call obj's method of that name.

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
    """Have a class take what methods it does not have from another one.

    Kernels are given NamedTuples, which inherit the fields of others with their methods.
    """

    def take_over(cls):
        for name, method in vars(other).items():
            if inspect.isfunction(method) and name not in vars(cls):
                setattr(cls, name, method)
        return cls

    return take_over
