"""A wheel has what the checkout has, and kernels of plain cases for levels of x86-64."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cart", "cartwood", "forest", "importance")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "constraints.txt")
BACKEND = "build_backend"
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


# A forest of the first plain case: hash of trees and predictions, number of compiled kernels.
FOREST = """
import hashlib, sys
{before}
import numpy as np
from sklearn.datasets import load_breast_cancer
from forest import RandomForestClassifier
X, y = load_breast_cancer(return_X_y=True)
model = RandomForestClassifier(20, random_state=0, n_jobs=1).fit(X, y)
digest = hashlib.sha256(model.predict_proba(X).tobytes())
for tree in model.estimators_:
    for name in ("children_left", "feature", "threshold", "impurity", "value"):
        digest.update(np.ascontiguousarray(getattr(tree.tree_, name)).tobytes())
from numba.core.dispatcher import Dispatcher
modules = [m for name, m in sys.modules.items() if name.split(".")[0] in ("cart", "forest")]
kernels = {{k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}}
n_compiled = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
print(digest.hexdigest(), n_compiled)
"""
# A CPU without what only the highest level needs.
WITHOUT_AVX512 = """
from numba.core import codegen
features = codegen.get_host_cpu_features()
codegen.get_host_cpu_features = lambda: features.replace("+avx512", "-avx512")
"""
WHOLE = """
{before}
import numpy as np
from cart.primitives import float_order
float_order._are_whole(np.arange(3.0))
print(sum(float_order._are_whole.stats.cache_misses.values()))
"""


def pip(*arguments, **env):
    command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | env)


def say(program, cwd, before="", **env):
    """What a process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program.format(before=before)], cwd=cwd,
        env=os.environ | {"PYTHONPATH": ""} | env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing is left in the checkout."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*SOURCES, BACKEND, *PACKAGES):
        os.symlink(ROOT / name, copy / name)
    is_new = int(version("setuptools").partition(".")[0]) >= 77
    isolation = ["--no-build-isolation"] if is_new else ["--timeout", "5", "--retries", "0"]
    done = pip(
        "wheel", "--no-deps", *isolation, "-w", str(out), str(copy), CARTWOOD_KERNELS="first"
    )
    if done.returncode and not is_new and any(sign in done.stderr for sign in NO_SETUPTOOLS):
        pytest.skip("setuptools is older than 77, and no newer one can be had")
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder that it is installed in; only the dependencies are shared with this process."""
    folder = tmp_path_factory.mktemp("installed")
    done = pip("install", "--no-deps", "--no-index", "--target", str(folder), str(wheel))
    assert done.returncode == 0, done.stderr
    return folder


def is_of_kernels(name):
    return "/kernels/" in name


def test_it_has_every_source(wheel):
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    kinds = ("*.py", "*.html")
    files = [
        path for package in PACKAGES for kind in kinds for path in (ROOT / package).rglob(kind)
    ]
    expected = {path.relative_to(ROOT).as_posix() for path in files}
    expected |= {f"{package}/py.typed" for package in PACKAGES}
    assert {name for name in names if not is_of_kernels(name)} == expected


def test_it_fits_where_there_is_no_checkout(installed, tmp_path):
    """Isolated from the working folder and from PYTHONPATH, with the JIT off."""
    program = PROGRAM.format(folder=str(installed))
    command, env = [sys.executable, "-I", "-c", program], {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def has_kernels(wheel):
    if "any" in wheel.name.split("-")[-1]:
        pytest.skip("wheels have kernels for x86-64 only")


@pytest.mark.usefixtures("has_kernels")
def test_the_first_forest_compiles_nothing_and_is_the_checkout_s(installed, tmp_path):
    """At the highest level that this machine has, and without AVX-512; to the bit."""
    mine, _ = say(FOREST, ROOT, PYTHONPATH=str(ROOT))
    for before in ("", WITHOUT_AVX512):
        path = {"PYTHONPATH": str(installed), "NUMBA_CACHE_DIR": str(tmp_path)}
        assert say(FOREST, tmp_path, before, **path) == [mine, "0"]
    assert not [*tmp_path.rglob("*")]


@pytest.mark.usefixtures("has_kernels")
@pytest.mark.parametrize(
    ("before", "env"),
    [
        ("import numba; numba.__version__ += '.1'", {}),
        ("import numba, numpy; numpy.__version__ = '2.0.0'", {}),
        ("", {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}),
        ("", {"NUMBA_ENABLE_AVX": "0"}),
    ],
)
def test_kernels_that_do_not_fit_are_compiled(installed, tmp_path, before, env):
    path = {"PYTHONPATH": str(installed), "NUMBA_CACHE_DIR": str(tmp_path)}
    assert say(WHOLE, tmp_path, **path) == ["0"]
    assert say(WHOLE, tmp_path, before, **path, **env) == ["1"]


@pytest.mark.usefixtures("has_kernels")
def test_it_says_what_its_kernels_fit(installed, tmp_path):
    words = "{before}from cart.jit.wheel_kernels import in_words; print(in_words())"
    path = {"PYTHONPATH": str(installed)}
    assert " ".join(say(words, tmp_path, **path)) == (
        "kernels came compiled for x86-64-v4 and x86-64-v3, and match the installed packages"
    )
    other = "import numba; numba.__version__ = '0.1'\n"
    assert f"but for numba {version('numba')} (here 0.1)" in " ".join(
        say(words, tmp_path, other, **path)
    )


def test_the_tag_says_for_what_it_is(wheel):
    kernels = [name for name in ZipFile(wheel).namelist() if is_of_kernels(name)]
    python, abi, where = wheel.stem.split("-")[2:]
    if kernels:
        assert python == abi == sys.implementation.cache_tag.replace("cpython-", "cp")
        assert where != "any"
    else:
        assert (python, abi, where) == ("py3", "none", "any")


def test_what_kernels_are_compiled_with_is_pinned(monkeypatch):
    """The backend takes these versions from constraints.txt; without kernels it asks for none."""
    monkeypatch.syspath_prepend(str(ROOT / BACKEND))
    backend = pytest.importorskip("with_kernels")
    assert f"numba=={version('numba')}" in backend.pins()
    assert f"numpy=={version('numpy')}" in backend.pins()
    monkeypatch.delenv("CARTWOOD_KERNELS", raising=False)
    assert backend.chosen() in ("plain", "none")
    monkeypatch.setenv("CARTWOOD_KERNELS", "none")
    assert backend.chosen() == "none"
    monkeypatch.setenv("CARTWOOD_KERNELS", "some")
    with pytest.raises(SystemExit, match="'some', and not one of plain, first"):
        backend.chosen()
