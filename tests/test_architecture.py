"""The house rules that a machine can check: floors of wings, and who may import whom."""

import ast
from pathlib import Path

import pytest
import sklearn.base

import cart
import forest

ROOT = Path(__file__).resolve().parents[1]
# From top to bottom, packages and their wings: each may import those below it.
FLOORS = {
    "cartwood": ("commands", "page", "table", "terminal", "interop"),
    "importance": (
        *("report", "inference", "conditional", "permutation", "impurity", "drop_column"),
        *("shap", "core"),
    ),
    "forest": (
        *("interop", "partitioned", "estimators"),
        *("inference", "voting", "growing", "sampling"),
    ),
    "cart": (
        *("interop", "estimators", "fast_paths", "growth", "splitting"),
        *("tree", "table", "files", "primitives", "jit"),
    ),
}
PACKAGES = tuple(FLOORS)
DOORS = ("__init__", "__main__")  # of a package: they stand above its wings
# Estimators and scikit-learn are known by these alone; whatever else cart has are kernels.
NO_KERNELS = (*DOORS, "interop", "estimators")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
NAMES = [path.relative_to(ROOT).as_posix() for path in SOURCES]
EACH_SOURCE = pytest.mark.parametrize("path", SOURCES, ids=NAMES)


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


def wing_of(path):
    """Package and wing, or file beside the wings, that a source belongs to."""
    package, wing, *_ = path.relative_to(ROOT).with_suffix("").parts
    return package, wing


def test_the_floors_are_those_of_the_folders():
    for package, wings in FLOORS.items():
        found = {wing_of(path)[1] for path in (ROOT / package).rglob("*.py")}
        assert found - {*DOORS} == {*wings}


@EACH_SOURCE
def test_packages_import_one_way(path):
    """importance -> forest -> cart, and none of them imports tests or benchmarks."""
    package = wing_of(path)[0]
    above = PACKAGES[: PACKAGES.index(package)]
    for name in imported(path):
        assert name.partition(".")[0] not in (*above, "tests", "benchmarks")


@EACH_SOURCE
def test_wings_import_those_below_them(path):
    """The bridges, on top, may also enter their own package by its door."""
    package, wing = wing_of(path)
    wings = FLOORS[package]
    if wing in DOORS:
        return
    for name in imported(path):
        if starts_with(name, package):
            target = [*name.split("."), "__init__"][1]
            if target not in wings:
                assert wing == "interop", name
            else:
                assert wings.index(wing) <= wings.index(target), name


@EACH_SOURCE
def test_kernels_know_no_scikit_learn(path):
    if path.is_relative_to(ROOT / "cart") and wing_of(path)[1] not in NO_KERNELS:
        assert not any(starts_with(name, "sklearn") for name in imported(path))


@EACH_SOURCE
def test_trees_and_forests_are_our_own(path):
    """scikit-learn's are imported only by the modules that convert to and from them."""
    if wing_of(path)[1] != "interop":
        for name in imported(path):
            assert not starts_with(name, "sklearn.tree"), name
            assert not starts_with(name, "sklearn.ensemble"), name


@EACH_SOURCE
def test_one_wing_knows_numba(path):
    """How kernels are compiled, where they are kept, what instructions they may ask for, and what
    an index is."""
    if wing_of(path) != ("cart", "jit"):
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
        cart.PrunedTreeClassifier,
        cart.PrunedTreeRegressor,
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
