"""The identity matrix: the models that are compared with scikit-learn's, as data."""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix

from benchmarks.harness import datasets

CLASSIFICATION = ("gini", "entropy", "log_loss")
REGRESSION = ("squared_error", "absolute_error", "poisson")
CRITERIA = CLASSIFICATION + REGRESSION
CLASSES = ("wine", "breast_cancer", "classification:1000x12x4")
NUMBERS = ("diabetes", "california:1000", "regression:600x6")
TABLES = {
    "gini": CLASSES,
    "entropy": CLASSES,
    "log_loss": CLASSES,
    "squared_error": NUMBERS,
    "absolute_error": ("diabetes:250", "regression:250x6", "california:400"),
    "poisson": ("counts:800x6", "diabetes", "california:1000"),
}
LARGE = ("classification:20000x20", "classification:20000x20x10")
LIMITS = (
    {"max_depth": 4},
    {"min_samples_split": 25},
    {"min_samples_split": 0.15},
    {"min_samples_leaf": 7},
    {"min_samples_leaf": 0.04},
    {"min_weight_fraction_leaf": 0.06},
    {"max_features": 2},
    {"max_features": 0.4},
    {"max_features": "sqrt"},
    {"max_features": "log2"},
    {"max_leaf_nodes": 12},
    {"max_leaf_nodes": 60, "max_features": "sqrt"},
    {"min_impurity_decrease": 0.01},
    {"max_leaf_nodes": 25, "min_impurity_decrease": 0.005},
    {
        "max_leaf_nodes": 15,
        "max_depth": 6,
        "min_samples_leaf": 3,
        "min_samples_split": 12,
        "max_features": 0.6,
        "min_impurity_decrease": 0.002,
        "min_weight_fraction_leaf": 0.01,
    },
)
SOME_LIMITS = tuple(LIMITS[i] for i in (0, 3, 5, 7, 10, 12, 14))
CONSTRAINTS = (1, -1, 0)  # repeated over the features


class Case(NamedTuple):
    """One model on one table."""

    group: str
    data: str
    model: str  # DecisionTree, ExtraTree, RandomForest, ExtraTrees or Bagging
    params: dict  # of the tree, of Bagging's trees, or of the forest
    weights: str = "none"  # or "whole", "zeros" (whole numbers, many of them 0), "fractions"
    missing: float = 0.0  # share of the cells
    n_outputs: int = 1
    zeros: float = 0.0  # share of the cells; if not 0 the table is sparse, unless `is_dense`
    is_dense: bool = False
    is_two_valued: bool = False  # whether the other cells are 1
    n_numbers: int = 0  # columns that are left as they are
    patches: dict = {}  # how Bagging draws rows and features

    @property
    def criterion(self):
        return self.params["criterion"]

    @property
    def is_classifier(self):
        return self.criterion in CLASSIFICATION

    @property
    def class_name(self):
        """Name of the class in both libraries."""
        return self.model + ("Classifier" if self.is_classifier else "Regressor")


class Training(NamedTuple):
    """The training data of a case."""

    X: np.ndarray | csc_matrix
    y: np.ndarray  # class codes or numbers, (n_samples,) or (n_samples, n_outputs)
    sample_weight: np.ndarray | None


def all_cases():
    """All cases of the matrix, without duplicates.

    Returns
    -------
    list of Case
    """
    unique = {}
    for case in _all_cases():
        unique.setdefault(repr(case[1:]), case)
    return list(unique.values())


def _all_cases():
    def cases(group, model, variants, criteria=CRITERIA, n_tables=2, **rest):
        for criterion, params in product(criteria, variants):
            for data in TABLES[criterion][:n_tables]:
                yield Case(group, data, model, {"criterion": criterion, **params}, **rest)

    plain = ({},)
    either = ({}, {"splitter": "random"})
    ways = (*either, {"max_leaf_nodes": 20}, {"max_features": 2, "min_samples_leaf": 3})
    tree, forest = "DecisionTree", "RandomForest"

    yield from cases("plain", tree, plain, n_tables=3)
    yield from cases("limits", tree, LIMITS)
    for criterion, params, data in product(("gini", "entropy"), (*plain, *LIMITS), LARGE):
        for model in (tree, forest):
            yield Case("20,000 rows", data, model, {"criterion": criterion, **params})
    yield from cases("random splitter", tree, ({"splitter": "random"},), n_tables=3)
    yield from cases("random splitter", "ExtraTree", (*plain, *SOME_LIMITS))
    for weights in ("whole", "zeros", "fractions"):
        yield from cases("weights", tree, ways, weights=weights)
        heavy = ({"min_weight_fraction_leaf": 0.05},)
        yield from cases("weights", tree, heavy, weights=weights)
    forms = ({"class_weight": {0: 3, 1: 2}}, {"class_weight": "balanced"})
    forms = tuple({**form, **way} for form, way in product(forms, either))
    yield from cases("class weights", tree, forms, CLASSIFICATION)
    for form in ("balanced", [{0: 3, 1: 2}, {1: 4}]):
        several = ({"class_weight": form},)
        yield from cases("class weights", tree, several, CLASSIFICATION, n_outputs=2)
    for share in (0.05, 0.4):
        yield from cases("missing values", tree, ways, missing=share)
    yield from cases("missing values", tree, ways, missing=0.2, weights="zeros")
    yield from cases("missing values", "ExtraTree", SOME_LIMITS[1:3], missing=0.2)
    yield from cases("outputs", tree, ways, n_outputs=2)
    yield from cases("outputs", tree, either, n_outputs=3, missing=0.2, weights="whole")

    for share in (0.4, 0.95):
        yield from cases("sparse", tree, ways, zeros=share)
    yield from cases("sparse", tree, either, zeros=0.8, weights="whole", n_outputs=2)
    yield from cases("sparse", "ExtraTree", SOME_LIMITS[1:3], zeros=0.95)
    for model in (forest, "ExtraTrees"):
        yield from cases("sparse", model, plain, zeros=0.95)

    bound = tuple({**way, "monotonic_cst": CONSTRAINTS} for way in ways)
    two_classes = {"gini": "breast_cancer", "entropy": "classification:600x9x2"}
    for criterion, data in two_classes.items():
        for params, share in product(bound, (0.0, 0.1)):
            yield Case("monotonic", data, tree, {"criterion": criterion, **params}, missing=share)
    yield from cases("monotonic", tree, bound, REGRESSION)
    yield from cases("monotonic", tree, bound[:2], REGRESSION, missing=0.1, weights="whole")

    pruned = tuple({"ccp_alpha": alpha} for alpha in (0.003, 0.02))
    yield from cases("pruned", tree, pruned)
    yield from cases("pruned", tree, pruned[:1], missing=0.2, weights="zeros")
    yield from cases("pruned", tree, pruned[:1], n_outputs=2)
    yield from cases("pruned", "ExtraTree", pruned[:1])

    for group, model in (("random forests", forest), ("extra trees", "ExtraTrees")):
        yield from cases(group, model, (*plain, {"max_features": 0.4}), n_tables=3)
        yield from cases(group, model, (LIMITS[-1], *bound[:1]), REGRESSION)
        yield from cases(group, model, (LIMITS[-1],), CLASSIFICATION)
        yield from cases(group, model, ({"bootstrap": model != forest}, *pruned[:1]))
        yield from cases(group, model, plain, missing=0.2)
        yield from cases(group, model, plain, n_outputs=2)
        yield from cases(group, model, plain, weights="zeros", missing=0.1)
        yield from cases(group, model, plain, weights="fractions")
        forms = tuple({"class_weight": form} for form in ("balanced", {0: 3, 1: 2}))
        yield from cases(group, model, forms, CLASSIFICATION)
    forms = ({"class_weight": "balanced_subsample"}, {"max_samples": 0.5})
    yield from cases("random forests", forest, forms, CLASSIFICATION)
    yield from cases("random forests", forest, ({"max_samples": 90},), REGRESSION)

    drawn = (
        {},
        {"max_samples": 0.5},
        {"max_samples": 0.6, "bootstrap": False},
        {"max_features": 0.6},
        {"max_features": 0.8, "bootstrap_features": True},
    )
    for patches in drawn:
        yield from cases("bagging", "Bagging", plain, patches=patches)
    yield from cases("bagging", "Bagging", (LIMITS[-1], *either[1:], *pruned[:1]))
    yield from cases("bagging", "Bagging", plain, missing=0.2)
    yield from cases("bagging", "Bagging", plain, zeros=0.6, patches=drawn[3])
    yield from cases("bagging", "Bagging", plain, REGRESSION, n_outputs=2)
    yield from cases("bagging", "Bagging", plain, weights="fractions")
    forms = ({"class_weight": {0: 3, 1: 2}},)
    yield from cases("bagging", "Bagging", forms, CLASSIFICATION)


def training(case, seed):
    """The training data of a case, with its missing values, weights and outputs.

    Returns
    -------
    Training
    """
    X, y = _table(case.data)
    rng = np.random.default_rng(seed)
    if case.n_outputs > 1:
        extra = range(1, case.n_outputs)
        if case.is_classifier:
            more = [(y + k * (X[:, k] > np.median(X[:, k]))) % (y.max() + 1) for k in extra]
        else:
            more = [(np.roll(y, k) + y).round(2) for k in extra]
        y = np.column_stack([y, *more])
    if case.missing:
        X = np.where(rng.random(X.shape) < case.missing, np.nan, X)
    if case.zeros:
        numbers = X[:, : case.n_numbers]
        X = np.where(rng.random(X.shape) < case.zeros, 0.0, 1.0 if case.is_two_valued else X)
        X[:, : case.n_numbers] = numbers
        X = X if case.is_dense else csc_matrix(X)
    weight = {
        "none": None,
        "whole": rng.integers(1, 5, len(y)),
        "zeros": rng.integers(0, 3, len(y)),
        "fractions": rng.integers(1, 100, len(y)) / 100,
    }[case.weights]
    return Training(X, y, weight)


def parameters(case, seed):
    """Keyword arguments of the estimator in both libraries; for Bagging, those of its trees."""
    params = {**case.params, "random_state": seed}
    if "monotonic_cst" in params:
        n_features = _table(case.data)[0].shape[1]
        params["monotonic_cst"] = np.resize(params["monotonic_cst"], n_features)
    if case.model in ("RandomForest", "ExtraTrees"):
        params["n_estimators"] = 3
    return params


def missing_tables():
    """Names of the tables that are not available.

    Returns
    -------
    set of str
    """
    return {name for name in {case.data for case in all_cases()} if _table(name) is None}


@cache
def _table(name):
    """X and y; regression targets are scaled to a spread of about 1 and have few decimals."""
    if name.startswith("counts"):
        X, mean = datasets.make_regression(*map(int, name.partition(":")[2].split("x")))
        return X, np.random.default_rng(0).poisson(np.maximum(mean, 0.1) / 10)
    if name.startswith("rounded:"):
        X, y = datasets.make_regression(*map(int, name[8:].split("x")))
        return (10 * X).round(1), y
    n_rows = ""
    if name.startswith(("california", "diabetes")):
        name, _, n_rows = name.partition(":")
    found, _ = datasets.load_found([name])
    if not found:
        return None
    data, X, y = found[0], found[0].X, found[0].y
    if n_rows:
        rows = np.random.default_rng(0).permutation(len(y))[: int(n_rows)]
        X, y = X[rows], y[rows]
    if data.task == "regression":
        y = (abs(y) / y.std()).round(2)
    return X, y
