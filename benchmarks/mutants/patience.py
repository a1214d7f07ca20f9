"""A pytest plugin that records how long tests take, and ends those that take far longer.

    pytest -p benchmarks.mutants.patience

CARTWOOD_TIMES names a file. If it does not exist, it is written; otherwise it says how long each
test took before. A test that needs more than ten times that processor time loops; one that has not
ended after a far longer time on the clock waits forever. In both cases the process ends with the
status ENDLESS. (Processor time is used because the machine may be busy with something else.)
"""

import json
import os
import signal
from pathlib import Path
from time import process_time

import pytest

ENDLESS = 99  # exit status
FACTOR, AT_LEAST = 10.0, 5.0
CLOCK_FACTOR, CLOCK_AT_LEAST = 100.0, 90.0
_PATH = Path(os.environ.get("CARTWOOD_TIMES", "times.json"))
_BEFORE = json.loads(_PATH.read_text()) if _PATH.exists() else None
_times: dict[str, float] = {}


def _end(number, frame):
    os._exit(ENDLESS)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    if _BEFORE is not None:
        signal.signal(signal.SIGPROF, _end)
        signal.signal(signal.SIGALRM, _end)
        usual = _BEFORE.get(item.nodeid, 0.0)
        signal.setitimer(signal.ITIMER_PROF, max(AT_LEAST, FACTOR * usual))
        signal.setitimer(signal.ITIMER_REAL, max(CLOCK_AT_LEAST, CLOCK_FACTOR * usual))
    start = process_time()
    yield
    _times[item.nodeid] = round(process_time() - start, 3)
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def pytest_sessionfinish():
    if _BEFORE is None:
        _PATH.write_text(json.dumps(_times))
