"""The contract across versions: trees that each checked scikit-learn has grown are ours too."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn

import cart
import forest
from cart.interop.versions import CHECKED
from tests.agreement.same import EXACT, TOLERANCE
from tests.golden.make_trees import CASES, FOLDER, grow

GOLDEN = {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}
IMPORT = (
    "import sklearn; sklearn.__version__ = {!r}; import cart.interop.bridge, forest.interop.bridge"
)


@pytest.mark.parametrize("version", GOLDEN)
@pytest.mark.parametrize("case", CASES)
def test_trees_are_those_of_the_version(case, version):
    with np.load(GOLDEN[version]) as golden:
        names = [name for name in golden.files if name.split()[0] == case]
        trees = grow(case, cart, forest)
        assert len(names) == 6 * len(trees)
        for name in names:
            _, i, field = name.split()
            ours = getattr(trees[int(i)], field)
            tolerance = 0.0 if field in EXACT else TOLERANCE
            np.testing.assert_allclose(ours, golden[name], tolerance, tolerance, err_msg=name)


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
