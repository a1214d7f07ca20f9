"""Check for the private parts of numba that we use. If a version of numba lacks some, one warning
tells what is lost; trees are the same without them."""

import inspect
import warnings

import numba
from numba.core.caching import NullCache
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.options import DefaultOptions

LOST = {
    "no_counting": "kernels count references, so small nodes take twice as long",
    "parts": "inner kernels are first compiled on their own, so compiling takes longer",
    "constants": "kernels are compiled again for constants, so compiling takes longer",
    "cache": "compiled kernels are not cached on disk, so every process compiles its own",
}


def find_hooks():
    """Return which hooks numba has: a dict from the names in LOST to bool."""
    return {
        "no_counting": hasattr(DefaultOptions, "_nrt") or "_nrt" in _source_of(DefaultOptions),
        "parts": _has(
            *(JITCodeLibrary, "_optimize_final_module", "_finalize_final_module"),
            "_finalize_dynamic_globals",
        ),
        "constants": numba.config.DISABLE_JIT or _has(numba.njit(_nothing), "get_call_template"),
        "cache": _has(NullCache, "load_overload", "save_overload")
        and _has(CompileResult, "_reduce", "_rebuild")
        and _has(CPUCodegen, "magic_tuple")
        and (numba.config.DISABLE_JIT or _has(numba.njit(_nothing), "_cache")),
    }


def warn_of_lost(hooks):
    """Issue one warning for all hooks that are missing.

    Warns
    -----
    RuntimeWarning
    """
    lost = [LOST[name] for name, is_there in hooks.items() if not is_there]
    if lost:
        warnings.warn(
            f"numba {numba.__version__} lacks private features that Cartwood uses: "
            f"{'; '.join(lost)}. Trees are the same.",
            RuntimeWarning,
            stacklevel=2,
        )


def _has(owner, *names):
    return all(hasattr(owner, name) for name in names)


def _source_of(owner):
    try:
        return inspect.getsource(owner)
    except OSError:  # installed without sources
        return ""


def _nothing():
    pass


HOOKS = find_hooks()
warn_of_lost(HOOKS)
