"""What all tests share: data sets, and a line on california at the end."""

import gc
import os
from pathlib import Path

_SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "scikit_learn_data"
if _SHARED_DATA.is_dir():
    os.environ.setdefault("SCIKIT_LEARN_DATA", str(_SHARED_DATA))

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, Phase, settings  # noqa: E402
from numba import config as numba_config  # noqa: E402

from tests import data  # noqa: E402
from tests.examples import TIMES, examples  # noqa: E402

if numba_config.DISABLE_JIT:
    np.seterr(all="ignore")  # as in compiled code, where 0 / 0 is nan without a word

# Where only the first failure is asked for (`make mutants`), it is not made smaller.
is_hurried = "CARTWOOD_TIMES" in os.environ

settings.register_profile(
    "cartwood",
    phases=[phase for phase in Phase if not (is_hurried and phase is Phase.shrink)],
    deadline=None,
    derandomize=TIMES == 1,
    max_examples=examples(50).max_examples,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("cartwood")


def pytest_configure(config):
    config.addinivalue_line("markers", "california: needs the California housing table")


def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):  # the first tests are in one process: one wheel for all
        items.sort(key=lambda item: item.path.name != "test_wheel.py")


def pytest_runtest_setup(item):
    if item.get_closest_marker("california") and data.why_no_california():
        pytest.skip(data.why_no_california())


@pytest.fixture(autouse=True, scope="session")
def threads():
    """Small forests, too, are grown by as many threads as are asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forest.growing.thread_pool._WORK_PER_THREAD", 1)
        yield


@pytest.fixture(autouse=True, scope="module")
def freeze_what_is_kept():
    """What is there after the tests of a file is kept, kernels mostly: to look for garbage among it
    takes seconds each time at the end."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def california():
    """X and y of the California housing table."""
    return data.load("california")


def pytest_terminal_summary(terminalreporter):
    """Say whether the tests on california ran."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    n = sum("california" in report.keywords and report.when == "call" for report in reports)
    reason = data.why_no_california() or "no such test was selected"
    terminalreporter.write_line(
        f"california: ran {n} tests" if n else f"california: not run, {reason}"
    )
