"""Compile every kind of kernel ahead: trees, forests, importances."""

import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse

from cartwood.terminal import Steps, say

HELP = "compile all kernels once, for an image, for CI, or before a talk"
EXAMPLES = ("cartwood warm-up",)
_N_ROWS = 60


def add_arguments(parser: ArgumentParser) -> None:
    """There are none."""


def run(args: Namespace) -> None:
    """Fit, predict and judge small tables of every kind."""
    begin = perf_counter()
    cases = _cases()
    with Steps("compiling", len(cases)) as step, warnings.catch_warnings(action="ignore"):
        for call in cases:
            call()
            step()
    say(f"all kernels are ready after {perf_counter() - begin:.1f} s; they are kept on disk")


def _cases() -> list[Callable[[], Any]]:
    """Calls that between them compile what users call: the plain cases, and then all others."""
    import cart
    import cart.__main__ as plain
    import forest
    import importance

    rng = np.random.default_rng(0)
    X = rng.normal(size=(_N_ROWS, 5))
    X[:, 4] = rng.integers(0, 3, _N_ROWS)
    classes, numbers = rng.integers(0, 2, _N_ROWS), rng.normal(size=_N_ROWS)
    with_missing = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    sparse = scipy.sparse.csc_matrix(np.where(X > 0, X, 0.0))
    calls: list[Callable[[], Any]] = [lambda: plain.first_draws([0], 2)]
    calls += [partial(plain.use, case) for case in plain.CASES]

    def fit(model, table, y):
        calls.append(lambda: model.fit(table, y).predict(table))

    for Tree, Extra, Forest, Extras, y, criteria in (
        (cart.DecisionTreeClassifier, cart.ExtraTreeClassifier, forest.RandomForestClassifier,
         forest.ExtraTreesClassifier, classes, ("gini", "entropy")),
        (cart.DecisionTreeRegressor, cart.ExtraTreeRegressor, forest.RandomForestRegressor,
         forest.ExtraTreesRegressor, numbers, ("squared_error",)),
    ):  # fmt: skip
        for criterion in criteria:
            for table, parameters in (
                (X, {}), (with_missing, {}), (X, {"categorical_features": [4]}),
                (X, {"max_bins": 255}), (X, {"precision": "float64"}),
            ):  # fmt: skip
                fit(Tree(criterion=criterion, **parameters), table, y)
                fit(Forest(3, criterion=criterion, oob_score=True, **parameters), table, y)
            fit(Tree(criterion=criterion), sparse, y)
            fit(Extra(criterion=criterion), X, y)
            fit(Extras(3, criterion=criterion), X, y)
        fit(Tree(max_leaf_nodes=5), X, y)
        calls += _judgements(importance, Forest, X, y)
    return calls


def _judgements(importance, Forest, X, y):
    """Importances of forests of numbers and of categories."""
    for parameters in ({}, {"categorical_features": [4]}):
        model = Forest(5, random_state=0, **parameters)
        for measure in (
            importance.oob_permutation,
            importance.unbiased_mdi,
            importance.drop_column,
        ):
            yield lambda model=model, measure=measure: measure(model.fit(X, y), X, y)
    model = Forest(5, random_state=0)
    yield lambda: importance.conditional_permutation(model.fit(X, y), X, y)
    for name in ("mean_absolute_shap", "mean_absolute_shap_oob"):
        yield lambda name=name: importance.compare(model.fit(X, y), X, y, measures=[name])
