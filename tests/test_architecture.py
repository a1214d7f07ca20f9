"""The house rules of docs/design.md that a machine can check."""

import ast
import re
from pathlib import Path

import pytest
import sklearn.base

import cart
import forest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cart", "forest", "importance")  # each may import those before it
# Modules of cart that may know estimators or scikit-learn: kernels are all the others.
NO_KERNELS = {
    *("__init__", "__main__", "bridge", "categories", "estimators", "export", "grower"),
    *("outputs", "parameters", "prune", "target", "training", "tree"),
}
KERNELS = sorted({path.stem for path in (ROOT / "cart").glob("*.py")} - NO_KERNELS)
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
EACH_SOURCE = pytest.mark.parametrize(
    "path", SOURCES, ids=[path.relative_to(ROOT).as_posix() for path in SOURCES]
)


def imported(path):
    """Dotted names that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def starts_with(name, prefix):
    return name == prefix or name.startswith(prefix + ".")


@EACH_SOURCE
def test_imports_run_one_way(path):
    """importance -> forest -> cart, and none of them imports tests or benchmarks."""
    package = path.relative_to(ROOT).parts[0]
    later = PACKAGES[PACKAGES.index(package) + 1 :]
    for name in imported(path):
        assert name.partition(".")[0] not in (*later, "tests", "benchmarks")


@pytest.mark.parametrize("module", KERNELS)
def test_kernels_know_no_estimator(module):
    """Nor scikit-learn, nor any module that does."""
    waiting, seen = {module}, set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        targets = list(imported(ROOT / "cart" / f"{name}.py"))
        assert "estimators" not in seen, f"cart/{module}.py imports estimators"
        assert not any(starts_with(target, "sklearn") for target in targets), f"cart/{name}.py"
        waiting |= {t.split(".")[1] for t in targets if starts_with(t, "cart")} - seen


def test_the_map_names_every_module():
    page = (ROOT / "docs" / "design.md").read_text()
    map_ = page[page.index("## The map") : page.index("Imports run one way")]
    for package in (*PACKAGES, "benchmarks"):
        start = map_.index(f"{package}/ ")
        room = re.split(r"\n    \w", map_[start:])[0]
        modules = {path.name for path in (ROOT / package).glob("*.py")} - {"__init__.py"}
        assert set(re.findall(r"\w+\.py", room)) == modules


@EACH_SOURCE
def test_trees_and_forests_are_our_own(path):
    """scikit-learn's are imported only by the modules that convert to and from them."""
    if path.stem.startswith(("bridge", "export")):
        return
    for name in imported(path):
        assert not starts_with(name, "sklearn.tree"), name
        assert not starts_with(name, "sklearn.ensemble"), name


@EACH_SOURCE
def test_four_modules_know_numba(path):
    """How kernels are compiled, where they are kept, what instructions they may ask for, and what
    an index is."""
    if path.relative_to(ROOT).as_posix() not in (
        "cart/indices.py",
        "cart/jit.py",
        "cart/kernel_cache.py",
        "cart/vectors.py",
    ):
        for name in imported(path):
            assert not starts_with(name, "numba"), name
            assert not starts_with(name, "llvmlite"), name


@pytest.mark.parametrize(
    "model",
    [
        cart.DecisionTreeClassifier,
        cart.DecisionTreeRegressor,
        cart.ExtraTreeClassifier,
        cart.ExtraTreeRegressor,
        forest.BaggingClassifier,
        forest.BaggingRegressor,
        forest.ExtraTreesClassifier,
        forest.ExtraTreesRegressor,
        forest.RandomForestClassifier,
        forest.RandomForestRegressor,
    ],
)
def test_models_inherit_from_scikit_learn_base_only(model):
    """From sklearn.base, and from what its classes are made of."""
    allowed = set(sklearn.base.BaseEstimator.__mro__)
    allowed |= {*sklearn.base.ClassifierMixin.__mro__, *sklearn.base.RegressorMixin.__mro__}
    allowed |= {sklearn.base.MultiOutputMixin, sklearn.base.MetaEstimatorMixin}
    theirs = {c for c in model.__mro__ if c.__module__.partition(".")[0] not in PACKAGES}
    assert theirs <= allowed
