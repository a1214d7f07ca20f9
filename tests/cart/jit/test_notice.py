"""Where kernels are compiled for long, one line says so, once."""

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
    assert said.startswith("Cartwood compiles growth")
    assert "once" in said


def test_short_waits_are_announced_when_they_are_long_together(monkeypatch, capsys):
    monkeypatch.setattr(notice, "PATIENCE", 0.3)
    with notice.announced("first"):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
    with notice.announced("second"):
        time.sleep(0.3)
    assert "second" in capsys.readouterr().err


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
