"""Where kernels are compiled for long, one line says so, once."""

import os
import subprocess
import sys
import threading
import time

import pytest

from cart.jit import notice

NOTHING = {"seconds": 0.0, "is_compiling": False, "is_said": False}


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(notice, "_Waited", type("Waited", (notice._Waited,), NOTHING))


def test_a_long_wait_is_announced_once(monkeypatch, capsys):
    monkeypatch.setattr(notice, "PATIENCE", 0.02)
    for name in ("growth", "search"):
        with notice.announced(name):
            time.sleep(0.2)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("Cartwood is compiling growth")
    assert "once" in said


def test_short_waits_are_announced_when_they_are_long_together(monkeypatch, capsys):
    monkeypatch.setattr(notice, "PATIENCE", 0.3)
    with notice.announced("first"):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
    with notice.announced("second"):
        time.sleep(0.3)
    assert "second" in capsys.readouterr().err


class Recorded:
    """In place of a timer: how long it was to wait, and what became of it."""

    made = []

    def __init__(self, seconds, *_):
        self.seconds = seconds
        self.has_begun = self.is_over = False
        Recorded.made.append(self)

    def start(self):
        self.has_begun = True

    def cancel(self):
        self.is_over = self.has_begun


def test_each_wait_takes_from_the_patience_and_ends_with_the_compiling(monkeypatch):
    clock = iter([10.0, 11.5, 20.0, 20.25, 30.0, 39.0, 40.0, 41.0])
    monkeypatch.setattr(notice, "PATIENCE", 2.0)
    monkeypatch.setattr(notice, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(notice, "Timer", Recorded)
    monkeypatch.setattr(Recorded, "made", [])
    for _ in range(4):
        with notice.announced("growth"):
            assert not Recorded.made[-1].is_over
    assert [timer.seconds for timer in Recorded.made] == [2.0, 0.5, 0.25, 0.0]
    assert all(timer.is_over and timer.daemon for timer in Recorded.made)


def test_nothing_is_said_if_no_thread_can_be_started(monkeypatch, capsys):
    """Under a limit of processes; compiling goes on."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(notice, "PATIENCE", 0.0)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with notice.announced("growth"):
        pass
    assert not notice._Waited.is_compiling
    assert capsys.readouterr().err == ""


def test_kernels_are_announced(monkeypatch, capsys):
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    from cart.jit.decorators import _ENTRY

    monkeypatch.setattr(notice, "PATIENCE", 0.0)

    def double(x):
        time_is = 0
        for i in range(x):
            time_is += 2 * i
        return time_is

    numba.njit(**_ENTRY)(double)(3)
    assert "test_notice.double" in capsys.readouterr().err


FIRST_FIT = """
import sys
import numpy as np
from cart import ExtraTreeRegressor
X = np.arange(40.0)[:, None]
print("begin", file=sys.stderr, flush=True)
ExtraTreeRegressor(random_state=0).fit(X, X[:, 0])
print("end", file=sys.stderr, flush=True)
"""


def test_the_first_fit_of_a_checkout_says_so_after_two_seconds(tmp_path):
    """In a process of its own, with an empty cache: one line, while the fit goes on."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = {}
    with subprocess.Popen(
        [sys.executable, "-c", FIRST_FIT], env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            said[line] = time.perf_counter()
    assert process.returncode == 0
    begin, *others, end = said
    if said[end] - said[begin] < notice.PATIENCE:
        pytest.skip("nothing was compiled for so long")
    (line,) = others
    assert line.startswith("Cartwood is compiling cart.")
    assert "This happens once" in line
    assert "Run `cartwood warm-up` to compile everything ahead" in line
    assert said[line] - said[begin] >= 0.9 * notice.PATIENCE
