"""scikit-learn's own tests pass on our classes, but for those that `expected` lists."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*options):
    command = [sys.executable, "-m", "tests.conformance", "--tb=short", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_scikit_learns_tests_but_the_slow_ones():
    ran = run()
    assert ran.returncode == 0, ran.stdout
