"""Threads where there is no room for another one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import resource
import threading

import psutil

from cart.primitives.threads import in_parts

done = []


def work(first, end):
    is_main = threading.current_thread() is threading.main_thread()
    done.extend((i, is_main) for i in range(first, end))


in_parts(work, 8, n_jobs=2)
print(sorted(i for i, _ in done) == list(range(8)), any(is_main for _, is_main in done))
done.clear()
room = psutil.Process().memory_info().vms + 2**25
resource.setrlimit(resource.RLIMIT_AS, (room, room))
in_parts(work, 8, n_jobs=2)
print(sorted(i for i, _ in done) == list(range(8)), all(is_main for _, is_main in done))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited")
def test_without_room_for_a_thread_this_one_does_the_work():
    """Python's own would be waited for for ever, if it found no memory as it began."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["True False", "True True"]
