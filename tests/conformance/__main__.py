"""Run scikit-learn's tests on our classes: `python -m tests.conformance [pytest's options]`."""

import os
import sys
from pathlib import Path

from benchmarks.harness.kernel_cache import use_digest_cache

use_digest_cache()  # before numba is imported

import pytest  # noqa: E402
import sklearn  # noqa: E402

SUITES = (
    "sklearn.tree.tests",
    "sklearn.ensemble.tests.test_forest",
    "sklearn.ensemble.tests.test_bagging",
)


def options(*more):
    """Of pytest: the installed tests, under no configuration but their own."""
    root = Path(sklearn.__file__).parents[1]
    return [
        *("-p", "tests.conformance.plugin", "-p", "no:cacheprovider"),
        *(
            "-c",
            os.devnull,
            "--rootdir",
            str(root),
            "--pyargs",
            *SUITES,
            "--disable-warnings",
            *more,
        ),
    ]


if __name__ == "__main__":
    sys.exit(pytest.main(options("-q", *sys.argv[1:])))
