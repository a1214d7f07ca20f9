"""Threads where there is no room for another one, and how many there are."""

import multiprocessing
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import pytest

from cart.primitives.threads import effective_n_threads, in_parts

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


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize(("min_part", "max_part"), [(1, None), (3, None), (1, 4), (5, 2)])
def test_parts_make_up_the_range_and_are_neither_short_nor_long(n_jobs, min_part, max_part):
    """There is a part for each thread unless it were shorter than `min_part`, and more of them if
    they were longer than `max_part`."""
    lengths = {} if min_part == 1 else {"min_part": min_part}  # which is 1 by default
    parts = []
    for n in range(17):
        parts.clear()
        in_parts(lambda *part: parts.append(part), n, n_jobs, max_part=max_part, **lengths)
        parts.sort()
        assert [i for first, end in parts for i in range(first, end)] == list(range(n))
        n_threads = max(1, min(n_jobs, n // min_part))
        assert len(parts) == max(n_threads, -(-n // (max_part or max(n, 1))))
        assert len(parts) == 1 or max_part or min(end - first for first, end in parts) >= min_part
        assert max_part is None or max(end - first for first, end in parts) <= max_part


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited")
def test_without_room_for_a_thread_this_one_does_the_work():
    """Python's own would be waited for for ever, if it found no memory as it began."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["True False", "True True"]


DAEMON = """
import threading, time
from cart.primitives.threads import in_parts

work = lambda first, end: time.sleep(30)
threading.Thread(target=in_parts, args=(work, 8), kwargs={"n_jobs": 2}, daemon=True).start()
time.sleep(0.5)
"""


def test_a_program_does_not_wait_for_the_work_of_a_daemon():
    subprocess.run([sys.executable, "-c", DAEMON], cwd=ROOT, check=True, timeout=20)


def test_daemonic_processes_start_threads_without_a_warning(monkeypatch):
    """Workers of a multiprocessing.Pool, in which joblib's own processes cannot be started."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with warnings.catch_warnings(action="error"):
        assert effective_n_threads(2) == 2
        assert effective_n_threads(None) == 1
    with pytest.warns(UserWarning, match="n_jobs=1"):
        assert joblib.effective_n_jobs(2) == 1


def test_a_backend_that_was_chosen_says_how_many_threads_there_are():
    assert effective_n_threads(3) == 3
    with joblib.parallel_config(backend="sequential"):
        assert effective_n_threads(3) == 1
    with joblib.parallel_config(n_jobs=2):
        assert effective_n_threads(None) == 2
