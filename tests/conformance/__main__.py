"""Run scikit-learn's tests on our classes: `python -m tests.conformance [suites and options]`."""

import os
import sys
from pathlib import Path

import pytest
import sklearn

SUITES = (
    "sklearn.tree.tests",
    "sklearn.ensemble.tests.test_forest",
    "sklearn.ensemble.tests.test_bagging",
)


# The installed tests, under no configuration but their own.
OPTIONS = (
    *("-q", "--disable-warnings", "-p", "no:cacheprovider", "-p", "tests.conformance.plugin"),
    *("-c", os.devnull, "--rootdir", str(Path(sklearn.__file__).parents[1])),
)

if __name__ == "__main__":
    given = sys.argv[1:]
    suites = [name for name in given if name.startswith("sklearn.")] or SUITES
    others = [option for option in given if option not in suites]
    sys.exit(pytest.main([*OPTIONS, *others, "--pyargs", *suites]))
