"""The contract across versions: trees that each checked scikit-learn has grown are ours too."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn

import cart
import forest
from benchmarks.oracles.ties import Training, why_different
from benchmarks.oracles.weights import row_weights
from cart.interop.versions import CHECKED
from tests.agreement.same import EXACT, TOLERANCE, same_structure
from tests.golden.make_trees import CASES, FIELDS, FOLDER, grow, table

GOLDEN = {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}
IMPORT = (
    "import sklearn; sklearn.__version__ = {!r}; import cart.interop.bridge, forest.interop.bridge"
)


@pytest.mark.parametrize("version", GOLDEN)
@pytest.mark.parametrize("case", CASES)
def test_trees_are_those_of_the_version(case, version):
    """Node for node; with weights that are no whole numbers, which are rounded, but a shown tie."""
    with np.load(GOLDEN[version]) as golden:
        names = [name for name in golden.files if name.split()[0] == case]
        trees = grow(case, cart, forest)
        assert len(names) == len(FIELDS) * len(trees)
        for i, ours in enumerate(trees):
            theirs = {field: golden[f"{case} {i} {field}"] for field in FIELDS}
            is_same = same_structure(ours, SimpleNamespace(**theirs))
            if case == "subsample" and not is_same:
                assert _why_different(ours, theirs, case, i) in ("tie", "pure")
                continue
            for field in FIELDS:
                tolerance = 0.0 if field in EXACT else TOLERANCE
                expected = theirs[field]
                np.testing.assert_allclose(getattr(ours, field), expected, tolerance, tolerance)


def _why_different(ours, theirs, case, i):
    name, parameters, source, is_gappy, _ = CASES[case]
    X, y, _ = table(source, is_gappy)
    fitted = getattr(forest, name)(random_state=0, **parameters).fit(X, y)
    weight = row_weights(y, None, "balanced", fitted.estimators_samples_[i])
    theirs = SimpleNamespace(missing_go_to_left=np.zeros(len(theirs["feature"])), **theirs)
    return why_different(ours, theirs, Training(X, y, weight, fitted.estimators_[i]))


def test_every_checked_version_has_its_trees():
    assert set(GOLDEN) == set(CHECKED)
    assert sklearn.__version__ in CHECKED


@pytest.mark.parametrize(("version", "n_warnings"), [(CHECKED[-1], 0), ("1.10.0", 1)])
def test_a_version_not_checked_gives_one_warning(version, n_warnings):
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT.format(version)], capture_output=True, text=True, check=True
    )
    assert ran.stderr.count(f"scikit-learn {version}") == n_warnings
    assert ran.stderr.count("UserWarning") == n_warnings
