"""A version of numba without the hooks that are private to it: one warning says what is lost."""

import subprocess
import sys
import warnings

import pytest
from numba.core.caching import NullCache
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from cart.jit import private_hooks
from cart.jit.private_hooks import HOOKS, LOST, find_hooks, warn_of_lost


def test_this_version_has_all():
    assert HOOKS.keys() == LOST.keys()
    assert all(HOOKS.values())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_lost(HOOKS)


@pytest.mark.parametrize(
    ("owner", "attribute", "lost"),
    [
        (JITCodeLibrary, "_finalize_dynamic_globals", "parts"),
        (Dispatcher, "get_call_template", "constants"),
        (NullCache, "save_overload", "cache"),
        (CompileResult, "_rebuild", "cache"),
        (CPUCodegen, "magic_tuple", "cache"),
    ],
)
def test_what_lacks_is_found(monkeypatch, owner, attribute, lost):
    for each in owner.__mro__:
        if attribute in vars(each):
            monkeypatch.delattr(each, attribute)
    assert [name for name, is_there in find_hooks().items() if not is_there] == [lost]


def test_reference_counting_that_cannot_be_switched_off(monkeypatch):
    monkeypatch.setattr(private_hooks, "DefaultOptions", type("DefaultOptions", (), {}))
    assert not find_hooks()["no_counting"]


PROGRAM = """
import warnings
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompileResult
del CompileResult._reduce
del CPUCodeLibrary._finalize_dynamic_globals
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import cart, forest
print(*(warning.message for warning in caught if warning.category is RuntimeWarning), sep="\\n")
"""


def test_one_warning_tells_all():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    (warning,) = done.stdout.splitlines()
    assert LOST["parts"] in warning
    assert LOST["cache"] in warning
    assert LOST["constants"] not in warning
