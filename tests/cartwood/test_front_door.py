"""The package `cartwood`: every public name of the three packages, lazily, and its version."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import cartwood

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cart", "forest", "importance")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_the_packages(package):
    module = import_module(package)
    for name in module.__all__:
        assert getattr(cartwood, name) is getattr(module, name)
        assert name in dir(cartwood)
        assert name in dir(module)


def test_nothing_beyond_them():
    public = {name for package in PACKAGES for name in import_module(package).__all__}
    assert {*cartwood.__all__} == public | {"__version__", "from_sklearn", "to_sklearn"}
    with pytest.raises(AttributeError, match="no attribute 'forrest'"):
        cartwood.forrest  # noqa: B018


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cartwood.__version__ == project["version"]


def test_importing_it_imports_nothing_slow():
    program = (
        "import sys, cartwood; print(any(m in sys.modules for m in ('numpy', 'numba', 'cart')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
