"""Kernels are compiled, or a clear error is raised, whatever the process does meanwhile."""

import os
import subprocess
import sys

import numba
import pytest

from cart.jit.decorators import entry_kernel, kernel

ANY_KERNEL = """
import os, shutil, signal, tempfile, threading, time
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from cart.files.checksum import digest_of

def run_kernel():
    digest_of(np.arange(1 << 14))
"""
FORK = """
def compile():
    with global_compiler_lock:
        has_begun.set()
        time.sleep(0.3)

has_begun = threading.Event()
threading.Thread(target=compile).start()
has_begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    run_kernel()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
NO_FOLDER = """
folder = tempfile.mkdtemp()
os.chdir(folder)
os.rmdir(folder)
try:
    run_kernel()
except FileNotFoundError as error:
    print(error)
os.chdir(os.sep)
run_kernel()
"""


def output_of(program, folder):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ANY_KERNEL + program],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_is_forked_while_a_thread_compiles_has_kernels(tmp_path):
    """It waited for ever for the lock of that thread, which it does not have."""
    output_of(FORK, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="folders in use cannot be deleted")
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_an_error_says_that_the_working_directory_is_gone(tmp_path):
    """numba's error has no name in it. Afterwards kernels can be compiled."""
    assert "Change to another one by os.chdir" in output_of(NO_FOLDER, tmp_path)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_kernel_is_compiled_once_whatever_constants_it_is_given():
    @kernel
    def twice(number):
        return 2 * number

    @entry_kernel
    def add_up(n):
        total = 0
        return twice(total) + twice(1) + twice(5) + twice(n)

    assert add_up(4) == 20
    assert len(twice.signatures) == 1
