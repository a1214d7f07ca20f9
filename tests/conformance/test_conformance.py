"""scikit-learn's own tests pass on our classes, but for those that `expected` lists."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.__main__ import SUITES
from tests.conformance.expected import PRIVATE, WORDING

ROOT = Path(__file__).resolve().parents[2]
LISTING = """
import runpy
from tests.conformance import expected
for tests in expected.LISTS.values():
    tests.pop({test!r}, None)
expected.LISTS[{kind!r}][{test!r}] = "on trial"
runpy.run_module("tests.conformance", run_name="__main__", alter_sys=True)
"""


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)


# A sample of those that `make conformance` runs.
_OF_ENSEMBLES = ("test_stacking", "test_voting", "test_weight_boosting")
AROUND = [
    *(f"sklearn.ensemble.tests.{name}" for name in _OF_ENSEMBLES),
    "sklearn.feature_selection.tests.test_from_model",
    "sklearn.tests.test_metaestimators",
]


@pytest.mark.parametrize("suites", [*([suite] for suite in SUITES), AROUND], ids=lambda s: s[0])
def test_scikit_learns_tests_but_the_slow_ones(suites):
    ran = python("-m", "tests.conformance", "--tb=short", *suites)
    assert ran.returncode == 0, ran.stdout
    assert "| anything else | 0 |" in ran.stdout


@pytest.mark.parametrize(
    ("test", "kind", "status", "said"),
    [
        ("test_tree.py::test_classes_shape", PRIVATE, 1, "XPASS(strict)"),
        ("test_tree.py::test_that_is_not_there", PRIVATE, 4, "no such tests"),
        ("test_tree.py::test_huge_allocations", WORDING, 1, "DID NOT RAISE"),
        ("test_tree.py::test_min_sample_split_1_error", WORDING, 0, "worded otherwise | 4 |"),
    ],
    ids=["passes", "is not there", "fails otherwise", "is worded otherwise"],
)
def test_lists_are_exact(test, kind, status, said):
    code = LISTING.format(test=test, kind=kind)
    ran = python("-c", code, "sklearn.tree.tests.test_tree", "-k", test.partition("::")[2])
    assert ran.returncode == status, ran.stdout
    assert said in ran.stdout + ran.stderr
