"""A wheel has what the checkout has: subpackages, `py.typed`, models that fit and predict."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cart", "cartwood", "forest", "importance")
SOURCES = ("pyproject.toml", "README.md", "LICENSE")
NO_SETUPTOOLS = ("No matching distribution found", "Could not find a version", "ConnectionError")
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import numpy as np
import cart, cartwood, forest, importance
for package in (cart, cartwood, forest, importance):
    assert Path(package.__file__).is_relative_to({folder!r}), package.__file__
X = np.arange(40.0)[:, None]
y = (X[:, 0] > 20).astype(int)
assert (cart.DecisionTreeClassifier().fit(X, y).predict(X) == y).all()
model = forest.RandomForestClassifier(5, random_state=0).fit(X, y)
assert model.score(X, y) > 0.9
assert importance.mdi(model).values.shape == (1,)
"""


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing is left in the checkout."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*SOURCES, *PACKAGES):
        os.symlink(ROOT / name, copy / name)
    is_new = int(version("setuptools").partition(".")[0]) >= 77
    isolation = ["--no-build-isolation"] if is_new else ["--timeout", "5", "--retries", "0"]
    done = pip("wheel", "--no-deps", *isolation, "-w", str(out), str(copy))
    if done.returncode and not is_new and any(sign in done.stderr for sign in NO_SETUPTOOLS):
        pytest.skip("setuptools is older than 77, and no newer one can be had")
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_it_has_every_source(wheel):
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    kinds = ("*.py", "*.html")
    files = [
        path for package in PACKAGES for kind in kinds for path in (ROOT / package).rglob(kind)
    ]
    expected = {path.relative_to(ROOT).as_posix() for path in files}
    assert names == expected | {f"{package}/py.typed" for package in PACKAGES}


def test_it_fits_where_there_is_no_checkout(wheel, tmp_path):
    """Isolated from the working folder and from PYTHONPATH; only the dependencies are shared.
    Kernels are not compiled: that would take most of a minute."""
    folder = tmp_path / "installed"
    done = pip("install", "--no-deps", "--no-index", "--target", str(folder), str(wheel))
    assert done.returncode == 0, done.stderr
    program = PROGRAM.format(folder=str(folder))
    command, env = [sys.executable, "-I", "-c", program], {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
